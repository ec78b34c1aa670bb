//! Plans that are not trusted: what they may name is listed, and they stay in their checkout.

use super::*;

fn checkout(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn read(folder: &Path, plan: &str) -> Result<Loaded, PlanError> {
    let listed = Listed {
        origins: vec!["http://h:1".to_owned()],
        environment: vec!["TOKEN".to_owned()],
        limits: Limits { max_body_bytes: 64, ..Limits::default() },
        place: "[project.p] of the runner's runner.toml".to_owned(),
    };
    let environment = |name: &str| Some(format!("value of {name}"));
    load_listed(&Confined::open(folder).unwrap(), plan, &Overrides::default(), &environment, &listed)
}

#[test]
fn a_plan_of_the_checkout_is_read_with_what_is_listed() {
    let plan = format!("{SERVICE}headers = {{ a = \"${{TOKEN}}\" }}\n[workload]\nfile = \"data/r.jsonl\"\n");
    let folder = checkout(&[("bench/plan.toml", &plan), ("bench/data/r.jsonl", "{\"a\":1}\n2\n")]);
    let loaded = read(folder.path(), "bench/plan.toml").unwrap();
    assert_eq!(loaded.requests.headers[0].1, "value of TOKEN");
    assert_eq!(loaded.requests.bodies.len(), 2);
}

#[test]
fn a_refusal_says_which_line_would_allow_it() {
    let text = |addition: &str| format!("{SERVICE}{addition}");
    let plans = [
        "project = \"p\"\n[service]\nurl = \"http://10.0.0.5/x\"\n".to_owned(),
        text("headers = { a = \"${TOKEN} ${HOME}\" }\n"),
        text("[staircase]\nmax_workers = 5000\n"),
        text("[stability]\nworkers = 2000\n"),
        text("[stability]\nduration = \"3h\"\n"),
        text(&format!("[workload]\nbody = \"{}\"\n", "x".repeat(65))),
        text("[workload]\nfile = \"../secret\"\n"),
    ];
    let said = plans.iter().map(|plan| {
        let folder = checkout(&[("plimsoll.toml", plan)]);
        Failure::from(read(folder.path(), "plimsoll.toml").unwrap_err()).to_string()
    });
    insta::assert_snapshot!(said.collect::<Vec<_>>().join("\n\n"), @r#"
    error: plimsoll.toml:3:7: `service.url` would send load to http://10.0.0.5, which this runner does not allow
        |
      3 | url = "http://10.0.0.5/x"
        |       ^^^^^^^^^^^^^^^^^^^
      → add "http://10.0.0.5" to `origins` in [project.p] of the runner's runner.toml to allow it

    error: plimsoll.toml:4:17: `service.headers.a` uses the environment variable "HOME", which this runner does not give to plans
        |
      4 | headers = { a = "${TOKEN} ${HOME}" }
        |                 ^^^^^^^^^^^^^^^^^^
      → add "HOME" to `plan_environment` in [project.p] of the runner's runner.toml to allow it

    error: plimsoll.toml:5:15: `staircase.max_workers` asks for 5000 workers; this runner allows 1000
        |
      5 | max_workers = 5000
        |               ^^^^
      → `max_workers = 5000` in [limits] of the runner's runner.toml would allow it

    error: plimsoll.toml:5:11: `stability.workers` asks for 2000 workers; this runner allows 1000
        |
      5 | workers = 2000
        |           ^^^^
      → `max_workers = 2000` in [limits] of the runner's runner.toml would allow it

    error: plimsoll.toml:5:12: `stability.duration` makes the run 3h 11m 5s long; this runner allows 2h
        |
      5 | duration = "3h"
        |            ^^^^
      → `max_duration = "3h 11m 5s"` in [limits] of the runner's runner.toml would allow it

    error: plimsoll.toml:5:8: `workload.body` holds a request of 65 bytes; this runner allows 64
        |
      5 | body = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      → `max_body_bytes = 65` in [limits] of the runner's runner.toml would allow it

    error: plimsoll.toml:5:8: `workload.file` names "../secret": "../secret" is no plain path below the checkout
        |
      5 | file = "../secret"
        |        ^^^^^^^^^^^
    "#);
}

#[test]
fn links_are_not_followed() {
    let outside = checkout(&[("secret", "\"s3cret\"\n"), ("plan.toml", SERVICE)]);
    let folder = checkout(&[("plimsoll.toml", &format!("{SERVICE}[workload]\nfile = \"link\"\n"))]);
    std::os::unix::fs::symlink(outside.path().join("secret"), folder.path().join("link")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("plan.toml"), folder.path().join("linked.toml")).unwrap();
    for plan in ["plimsoll.toml", "linked.toml", "../plan.toml", "/etc/passwd"] {
        let said = read(folder.path(), plan).unwrap_err().to_string();
        assert!(!said.contains("s3cret"), "{said}");
    }
    let said = read(folder.path(), "linked.toml").unwrap_err().to_string();
    assert!(said.contains("links are not followed"), "{said}");
}
