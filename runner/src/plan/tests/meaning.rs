//! Bodies, expectations, thresholds and files of bodies mean what they say.

use plimsoll_domain::plan::Assertion;
use plimsoll_domain::policy::{Doubt, Policy};
use serde_json::json;

use super::*;

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
    let policy = Policy { p99_increase: 0.15, capacity_decrease: 0.025, error_rate_points: 0.01, ..Policy::default() };
    assert_eq!(loaded.policy, policy);
    let lenient = good(&format!("{SERVICE}[gate]\nwhen_in_doubt = \"pass\"\n"));
    assert_eq!(lenient.policy, Policy { when_in_doubt: Doubt::Pass, ..Policy::default() });
    let odd = messages(&[&format!("{SERVICE}[gate]\nwhen_in_doubt = \"ask\"\n")]);
    assert!(odd.contains("`gate.when_in_doubt` is neither `fail` nor `pass`"), "{odd}");
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
