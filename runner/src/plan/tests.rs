//! Good plans mean what they say; bad ones say what is wrong, where, and what to do.

use std::path::Path;

use plimsoll_domain::plan::{Assertion, Profile};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::exit::Failure;

const SERVICE: &str = "project = \"p\"\n[service]\nurl = \"http://h:1/x\"\n";

fn read_with(text: &str, given: &Overrides) -> Result<Loaded, PlanError> {
    let environment = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
    check_text(Path::new("plimsoll.toml"), text, given, &environment)
}

fn good(text: &str) -> Loaded {
    read_with(text, &Overrides::default()).unwrap_or_else(|error| panic!("{}", Failure::from(error)))
}

/// The messages of plans, one below the other.
fn messages(plans: &[&str]) -> String {
    let message = |plan: &&str| match read_with(plan, &Overrides::default()) {
        Ok(_) => format!("accepted: {plan}"),
        Err(error) => Failure::from(error).to_string(),
    };
    plans.iter().map(message).collect::<Vec<_>>().join("\n\n")
}

/// The messages of additions to a plan that is right.
fn messages_after(additions: &[&str]) -> String {
    let plans: Vec<String> = additions.iter().map(|addition| format!("{SERVICE}{addition}")).collect();
    messages(&plans.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn the_least_plan_is_filled_in() {
    let loaded = good(SERVICE);
    let service = &loaded.plan.service;
    assert_eq!((service.method.as_str(), service.path.as_str(), service.origin.as_str()), ("GET", "/x", "http://h:1"));
    assert_eq!((service.connect_timeout_ms, service.response_timeout_ms, service.keep_alive), (3_000, 60_000, true));
    assert_eq!(loaded.plan.phases.staircase.workers, [5, 10, 20, 50, 100]);
    assert_eq!(loaded.plan.phases.stability.duration_ms, 600_000);
    assert_eq!((loaded.requests.bodies.len(), loaded.requests.bodies[0].len()), (1, 0));
    assert_eq!(loaded.policy, Policy::default());
}

#[test]
fn the_first_plan_that_init_writes_is_good_and_its_comments_hold_the_defaults() {
    let text = template::text("p", "http://h:1/x");
    let written = good(&text);
    // Every commented `key = value`, switched on, but for what cannot stand beside the rest.
    let alone = ["file =", "authorization =", "workers = 48", "\"/", "name =", "labels ="];
    let sections = ["[smoke]", "[warm_up]", "[staircase]", "[stability]"];
    let on = |line: &str| {
        let Some(rest) = line.strip_prefix("# ") else { return line.to_owned() };
        let key = rest.contains(" = ") && rest.starts_with(|c: char| c.is_ascii_lowercase());
        match (sections.contains(&rest) || key) && !alone.iter().any(|other| rest.starts_with(other)) {
            true => rest.to_owned(),
            false => line.to_owned(),
        }
    };
    let all: String = text.lines().skip(3).map(|line| on(line) + "\n").collect();
    assert!(all.contains("\nmethod = ") && all.contains("\nknee_fraction = "), "{all}");
    assert_eq!(good(&all).plan, written.plan);
    assert_eq!(good(&all).policy, Policy::default());
}

#[test]
fn a_plan_s_figures_go_before_the_profile_s_and_flags_before_both() {
    let text = format!("{SERVICE}[staircase]\nstep = \"20s\"\nworkers = [2, 4]\n[stability]\nduration = \"30s\"\n");
    let flags = Overrides {
        profile: Some(Profile::Quick),
        staircase: Some(vec![7]),
        stability_ms: Some(90_000),
        ..Overrides::default()
    };
    let phases = read_with(&text, &flags).unwrap().plan.phases;
    assert_eq!((phases.staircase.step_ms, phases.staircase.workers), (20_000, vec![7]));
    assert_eq!((phases.stability.duration_ms, phases.smoke.duration_ms), (90_000, 6_000));
}

#[test]
fn pr_has_the_digest_of_standard_and_takes_at_most_eight_minutes() {
    let with =
        |profile| read_with(SERVICE, &Overrides { profile: Some(profile), ..Overrides::default() }).unwrap().plan;
    let (standard, pr, quick) = (with(Profile::Standard), with(Profile::Pr), with(Profile::Quick));
    assert_eq!(standard.digest(), pr.digest());
    assert_ne!(standard.digest(), quick.digest());
    let phases = &pr.phases;
    let warm_up = phases.warm_up.max_duration_ms + phases.warm_up.top_ms;
    let total = phases.smoke.duration_ms + warm_up + pr.executed_step_ms() + pr.executed_stability_ms();
    assert!(total <= 8 * 60_000, "{total} ms");
    assert_eq!(standard.executed_stability_ms(), 600_000);
}

#[test]
fn shorter_steps_shorten_what_hangs_on_them() {
    let flags = Overrides { step_ms: Some(4_000), stability_ms: Some(8_000), ..Overrides::default() };
    let phases = read_with(SERVICE, &flags).unwrap().plan.phases;
    assert_eq!((phases.staircase.ramp_up_ms, phases.staircase.search_step_ms), (1_000, 4_000));
    assert_eq!(phases.stability.ramp_up_ms, 2_000);
}

#[test]
fn an_address_without_a_path_keeps_the_plan_s() {
    let url = |flag: &str| {
        let given = Overrides { url: Some(flag.to_owned()), ..Overrides::default() };
        read_with(SERVICE, &given).unwrap().requests.url.to_string()
    };
    assert_eq!(url("http://other:9"), "http://other:9/x");
    assert_eq!(url("http://other:9/"), "http://other:9/");
    assert_eq!(url("http://other:9/y?z=1"), "http://other:9/y?z=1");
}

#[test]
fn secrets_reach_the_service_and_nothing_else() {
    let headers = "[service.headers]\nAuthorization = \"Bearer ${TOKEN}\"\nX-Api-Key = \"abc\"\nAccept = \"*/*\"\n\
                   X-Both = \"v1-${TOKEN}\"\nX-JWT = \"abc${TOKEN}abc${TOKEN}\"\nX-Signature = \"abc\"\n";
    let loaded = good(&format!("{SERVICE}{headers}"));
    let sent: Vec<_> = loaded.requests.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let expected = ["authorization: Bearer s3cret", "x-api-key: abc", "accept: */*", "x-both: v1-s3cret"];
    assert_eq!(sent[..4], expected);
    let shown = json!(loaded.plan).to_string() + &format!("{loaded:?}");
    assert!(!shown.contains("s3cret") && !shown.contains("abc"), "{shown}");
    let kept = &loaded.plan.service.headers;
    for (name, value) in [
        ("authorization", "***${TOKEN}"),
        ("x-api-key", "***"),
        ("accept", "*/*"),
        ("x-both", "v1-${TOKEN}"),
        ("x-jwt", "***${TOKEN}***${TOKEN}"),
        ("x-signature", "***"),
    ] {
        assert_eq!(kept[name], value, "{name}");
    }
}

#[test]
fn secrets_in_the_query_reach_the_service_and_nothing_else() {
    let secret = "project = \"p\"\n[service]\nurl = \"http://h/x?v=2&api_key=abc&plain&%74oken=abc%20&Sign=&n=a=b\"\n";
    let loaded = good(secret);
    assert_eq!(loaded.requests.url.as_str(), "http://h/x?v=2&api_key=abc&plain&%74oken=abc%20&Sign=&n=a=b");
    assert_eq!(loaded.plan.service.path, "/x?v=2&api_key=***&plain&%74oken=***&Sign=***&n=a=b");
    let load = crate::report::plan::Load::default();
    let shown = [
        json!(loaded.plan).to_string(),
        format!("{loaded:?}"),
        crate::report::plan::text(&loaded, load),
        crate::report::plan::json(&loaded, load).to_string(),
    ];
    assert!(shown.iter().all(|text| !text.contains("abc")), "{shown:?}");
    // Another key is another secret, not another plan.
    assert_eq!(loaded.plan.digest(), good(&secret.replace("abc", "xyz")).plan.digest());
}

#[test]
fn bodies_and_expectations_mean_json() {
    let loaded = good(&format!(
        "{SERVICE}[workload]\nbody = {{ text = \"a\", n = [1, 2.5, true] }}\nexpect_status = 201\n\
         [workload.expect]\n\"/label\" = \"good\"\n\"/score\" = {{ exists = true }}\n\"/v\" = {{ length = 384 }}\n\
         \"/o\" = {{ equals = {{ a = 1 }} }}\n"
    ));
    assert_eq!(loaded.requests.bodies, [br#"{"n":[1,2.5,true],"text":"a"}"#.to_vec()]);
    assert_eq!(loaded.plan.service.method, "POST");
    assert_eq!(loaded.plan.service.headers["content-type"], "application/json");
    let expect = &loaded.plan.workload.expect;
    assert_eq!(expect.status, 201);
    assert_eq!(expect.json["/label"], Assertion::Equals(json!("good")));
    assert_eq!(expect.json["/score"], Assertion::Exists);
    assert_eq!(expect.json["/v"], Assertion::Length(384));
    assert_eq!(expect.json["/o"], Assertion::Equals(json!({ "a": 1 })));
}

#[test]
fn thresholds_are_read() {
    let loaded = good(&format!(
        "{SERVICE}[gate]\np99 = {{ max_increase = \"15 %\" }}\ncapacity = {{ max_decrease = \"2.5%\" }}\n\
         error_rate = {{ max_increase = \"1pp\" }}\n"
    ));
    let policy = Policy { p99_increase: 0.15, capacity_decrease: 0.025, error_rate_points: 0.01 };
    assert_eq!(loaded.policy, policy);
}

#[test]
fn a_file_of_bodies_stays_beside_the_plan() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("plan");
    std::fs::create_dir(&inside).unwrap();
    std::fs::write(folder.path().join("outside.jsonl"), "1\n").unwrap();
    std::fs::write(inside.join("two.jsonl"), "{\"a\":1}\n\n  {\"a\": 2}\r\n").unwrap();
    std::fs::write(inside.join("broken.jsonl"), "{\"a\":1}\n{\"a\":\n").unwrap();
    std::fs::write(inside.join("empty.jsonl"), "\n").unwrap();
    std::os::unix::fs::symlink("../outside.jsonl", inside.join("link.jsonl")).unwrap();
    let plan = inside.join(FILE);
    let read = |file: &str| {
        std::fs::write(&plan, format!("{SERVICE}[workload]\nfile = \"{file}\"\n")).unwrap();
        load(&plan, &Overrides::default(), &|_| None)
    };
    let loaded = read("two.jsonl").unwrap();
    assert_eq!(loaded.requests.bodies, [b"{\"a\":1}".to_vec(), b"{\"a\": 2}".to_vec()]);
    assert_eq!(loaded.plan.workload.requests, 2);
    for (file, why) in [
        ("../outside.jsonl", "outside the plan's folder"),
        ("link.jsonl", "outside the plan's folder"),
        ("broken.jsonl", "line 2 is no JSON: EOF while parsing a value at column 5"),
        ("empty.jsonl", "holds no request body"),
        ("none.jsonl", "there is no such file"),
        (".", "it is no file"),
    ] {
        let message = read(file).unwrap_err().to_string();
        assert!(message.contains(why), "{file}: {message}");
    }
}

#[test]
fn bodies_are_told_apart_by_their_digest() {
    let sha = |body: &str| good(&format!("{SERVICE}[workload]\nbody = '{body}'\n")).plan.workload.sha256;
    assert_ne!(sha("a"), sha("b"));
    assert_eq!(sha("a").len(), 64);
}

#[test]
fn unknown_keys_name_the_nearest_right_one() {
    insta::assert_snapshot!(messages(&[
        "project = \"p\"\n[service]\nulr = \"http://h/\"\n",
        "project = \"p\"\n[servce]\nurl = \"http://h/\"\n",
        "projekt = \"p\"\n",
        "project = \"p\"\n[service]\nurl = \"http://h/\"\n\n[staircase]\nsetp = \"30s\"\n",
        "project = \"p\"\n[service]\nurl = \"http://h/\"\nzzz = 1\n",
        "project = \"p\"\n[service]\nurl = \"http://h/\"\n[gate]\np99 = { max_decrease = \"5%\" }\n",
    ]), @r#"
    error: plimsoll.toml:3:1: unknown key `ulr` in [service]
        |
      3 | ulr = "http://h/"
        | ^^^
      → did you mean `url`?

    error: plimsoll.toml:2:2: unknown section [servce]
        |
      2 | [servce]
        |  ^^^^^^
      → did you mean [service]?

    error: plimsoll.toml:1:1: unknown key `projekt`
        |
      1 | projekt = "p"
        | ^^^^^^^
      → did you mean `project`?

    error: plimsoll.toml:6:1: unknown key `setp` in [staircase]
        |
      6 | setp = "30s"
        | ^^^^
      → did you mean `step`?

    error: plimsoll.toml:4:1: unknown key `zzz` in [service]
        |
      4 | zzz = 1
        | ^^^
      → known here: url, method, headers, connect_timeout, response_timeout, keep_alive

    error: plimsoll.toml:5:9: unknown key `max_decrease` in [gate.p99]
        |
      5 | p99 = { max_decrease = "5%" }
        |         ^^^^^^^^^^^^
      → write p99 = { max_increase = "10%" }
    "#);
}

#[test]
fn wrong_types_and_impossible_values_say_what_to_do() {
    insta::assert_snapshot!(messages_after(&[
        "[stability]\nworkers = 0\n",
        "[stability]\nduration = \"-5s\"\n",
        "[stability]\nduration = \"0s\"\n",
        "[stability]\nduration = \"5\"\n",
        "[stability]\nduration = 5\n",
        "[stability]\nknee_fraction = 1.5\n",
        "[staircase]\nworkers = [5, 20, 10]\n",
        "[staircase]\nworkers = []\n",
        "[staircase]\nworkers = [5, 0]\n",
        "[staircase]\nstep = \"20s\"\nramp_up = \"6s\"\n",
        "[staircase]\nmax_workers = 50\n",
        "[staircase]\nmax_error_rate = 0.01\n",
        "[staircase]\nsearch = \"yes\"\n",
        "[workload]\nbody = \"a\"\nfile = \"b\"\n",
        "[workload]\nbody = 5\n",
        "[workload]\nexpect_status = 20\n",
        "[workload.expect]\nlabel = 1\n",
        "[workload.expect]\n\"/a\" = { exists = true, length = 1 }\n",
        "[gate]\np99 = \"10%\"\n",
        "[gate]\nerror_rate = { max_increase = \"0.1%\" }\n",
    ]), @r#"
    error: plimsoll.toml:5:11: `stability.workers` must be from 1 to 100000, not 0
        |
      5 | workers = 0
        |           ^

    error: plimsoll.toml:5:12: `stability.duration` cannot be negative: "-5s"
        |
      5 | duration = "-5s"
        |            ^^^^^
      → write a number with its unit: "500ms", "30s", "2m"

    error: plimsoll.toml:5:12: `stability.duration` must be at least 1s, not "0s"
        |
      5 | duration = "0s"
        |            ^^^^
      → write a number with its unit: "500ms", "30s", "2m"

    error: plimsoll.toml:5:12: `stability.duration` has no unit: "5"
        |
      5 | duration = "5"
        |            ^^^
      → write a number with its unit: "500ms", "30s", "2m"

    error: plimsoll.toml:5:12: `stability.duration` must be a duration in quotes, not a whole number
        |
      5 | duration = 5
        |            ^
      → write a number with its unit: "500ms", "30s", "2m"

    error: plimsoll.toml:5:17: `stability.knee_fraction` must be above 0 and at most 1.0, not 1.5
        |
      5 | knee_fraction = 1.5
        |                 ^^^

    error: plimsoll.toml:5:11: `staircase.workers` must rise from step to step, but 10 follows 20
        |
      5 | workers = [5, 20, 10]
        |           ^^^^^^^^^^^
      → for example [5, 10, 20, 50, 100]

    error: plimsoll.toml:5:11: `staircase.workers` is empty: name at least one number of workers
        |
      5 | workers = []
        |           ^^
      → for example [5, 10, 20, 50, 100]

    error: plimsoll.toml:5:15: `staircase.workers` must be from 1 to 100000, not 0
        |
      5 | workers = [5, 0]
        |               ^

    error: plimsoll.toml:6:11: `staircase.ramp_up` takes more than a quarter of `step`, which is 20s
        |
      6 | ramp_up = "6s"
        |           ^^^^
      → make the ramp-up shorter or the step longer

    error: plimsoll.toml:5:15: `staircase.max_workers` is 50, but the staircase goes to 100
        |
      5 | max_workers = 50
        |               ^^

    error: plimsoll.toml:5:18: `staircase.max_error_rate` must be text in quotes, not a decimal number
        |
      5 | max_error_rate = 0.01
        |                  ^^^^
      → write a percentage in quotes, for example "5%"

    error: plimsoll.toml:5:10: `staircase.search` must be true or false, not text
        |
      5 | search = "yes"
        |          ^^^^^

    error: plimsoll.toml:6:1: [workload] has both `body` and `file`
        |
      6 | file = "b"
        | ^^^^
      → keep one of them

    error: plimsoll.toml:5:8: `workload.body` must be text, a table or a list, not a whole number
        |
      5 | body = 5
        |        ^

    error: plimsoll.toml:5:17: `workload.expect_status` must be from 100 to 599, not 20
        |
      5 | expect_status = 20
        |                 ^^

    error: plimsoll.toml:5:1: `label` is no JSON pointer: it must start with `/`
        |
      5 | label = 1
        | ^^^^^
      → write "/label" = …

    error: plimsoll.toml:5:8: `workload.expect./a` takes exactly one of `exists`, `length` and `equals`
        |
      5 | "/a" = { exists = true, length = 1 }
        |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    error: plimsoll.toml:5:7: `gate.p99` must be a table, not text
        |
      5 | p99 = "10%"
        |       ^^^^^
      → write p99 = { max_increase = "10%" }

    error: plimsoll.toml:5:31: `gate.error_rate.max_increase` must be percentage points, not "0.1%"
        |
      5 | error_rate = { max_increase = "0.1%" }
        |                               ^^^^^^
      → write "0.1pp": an error rate is compared by its difference, in percentage points
    "#);
}

#[test]
fn what_cannot_be_sent_is_refused() {
    insta::assert_snapshot!(messages(&[
        "",
        "project = \"p\"\n",
        "project = \"p\"\n[service]\nmethod = \"GET\"\n",
        "project = \"My Service\"\n[service]\nurl = \"http://h/\"\n",
        "project = \"p\"\n[service]\nurl = \"ftp://h/\"\n",
        "project = \"p\"\n[service]\nurl = \"h:8000/predict\"\n",
        "project = \"p\"\n[service]\nurl = \"http://user:secret@h/\"\n",
        "project = \"p\"\n[service]\nurl = \"http://h/\"\nmethod = \"POTS\"\n",
        "project = \"p\"\n[service]\nurl = \"http://h/\"\nheaders = { authorization = \"Bearer ${NOPE}\" }\n",
        "project = \"p\"\n[service]\nurl = \"http://h/\"\nheaders = { content-length = \"5\" }\n",
        "project = \"p\"\n[service]\nurl = \"http://h/\"\nheaders = { \"a b\" = \"5\" }\n",
        "project = \"p\"\n[service]\nurl = \"http://h/\"\nmethod = \"GET\"\n[workload]\nbody = \"x\"\n",
        "project = \"p\nprofile = \"quick\"\n",
        "project = \"p\"\nproject = \"q\"\n",
        "profile = \"quik\"\nproject = \"p\"\n",
    ]), @r#"
    error: plimsoll.toml: `project` is missing
      → add `project = "my-service"` at the top

    error: plimsoll.toml: [service] with `url` is missing
      → add
        [service]
        url = "http://127.0.0.1:8000/predict"

    error: plimsoll.toml:2:2: [service] lacks `url`
        |
      2 | [service]
        |  ^^^^^^^
      → add `url = "http://127.0.0.1:8000/predict"` to it

    error: plimsoll.toml:1:11: `project` is wrong: project "My Service": use 1 to 64 lower-case letters, digits, '-', '_' or '.', starting with a letter or digit
        |
      1 | project = "My Service"
        |           ^^^^^^^^^^^^

    error: plimsoll.toml:3:7: `service.url` has the scheme `ftp`; plimsoll speaks http and https
        |
      3 | url = "ftp://h/"
        |       ^^^^^^^^^^
      → write "http://127.0.0.1:8000/predict"

    error: plimsoll.toml:3:7: `service.url` needs a scheme: http:// or https://
        |
      3 | url = "h:8000/predict"
        |       ^^^^^^^^^^^^^^^^
      → write "http://127.0.0.1:8000/predict"

    error: plimsoll.toml:3:7: `service.url` must not carry a user name or password; send them as a header
        |
      3 | url = "http://user:secret@h/"
        |       ^^^^^^^^^^^^^^^^^^^^^^^
      → write "http://127.0.0.1:8000/predict"

    error: plimsoll.toml:4:10: `service.method` is no method plimsoll sends: "POTS"
        |
      4 | method = "POTS"
        |          ^^^^^^
      → did you mean POST?

    error: plimsoll.toml:4:29: `service.headers.authorization` needs the environment variable NOPE, which is not set
        |
      4 | headers = { authorization = "Bearer ${NOPE}" }
        |                             ^^^^^^^^^^^^^^^^
      → export NOPE=…

    error: plimsoll.toml:4:13: plimsoll writes the header `content-length` itself
        |
      4 | headers = { content-length = "5" }
        |             ^^^^^^^^^^^^^^
      → for `connection: close` set keep_alive = false in [service]

    error: plimsoll.toml:4:13: "a b" is no name of a header
        |
      4 | headers = { "a b" = "5" }
        |             ^^^^^

    error: plimsoll.toml:4:10: `service.method` is GET, but [workload] has a body
        |
      4 | method = "GET"
        |          ^^^^^
      → use POST, or take the body out

    error: plimsoll.toml:1:13: not TOML: invalid basic string, expected `"`
        |
      1 | project = "p
        |             ^

    error: plimsoll.toml:2:1: not TOML: duplicate key
        |
      2 | project = "q"
        | ^^^^^^^

    error: plimsoll.toml:1:11: `profile` is no profile: "quik"
        |
      1 | profile = "quik"
        |           ^^^^^^
      → did you mean "quick"?
    "#);
}

#[test]
fn of_a_long_line_the_part_around_the_mistake_is_shown() {
    let plan = format!("{SERVICE}[workload]\nbody = {{ a = \"{}\", b = nan, c = 1 }}\n", "é".repeat(500));
    let message = messages(&[plan.as_str()]);
    assert!(message.contains("holds nan, which JSON cannot say"), "{message}");
    assert!(message.lines().all(|line| line.chars().count() < 120), "{message}");
}

proptest! {
    #[test]
    fn no_text_is_too_strange_to_be_answered(at in 0usize..3_000, cut in 0usize..40, put in ".{0,6}|[\\[\\]{}=\"'\\n0-9]{0,6}") {
        let text = template::text("p", "http://h:1/x").replace("# ", "");
        let start = text.floor_char_boundary(at.min(text.len()));
        let end = text.floor_char_boundary((at + cut).min(text.len()));
        let spoiled = format!("{}{put}{}", &text[..start], &text[end..]);
        if let Err(error) = read_with(&spoiled, &Overrides::default()) {
            prop_assert!(!Failure::from(error).to_string().is_empty());
        }
    }
}

mod listed {
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
}
