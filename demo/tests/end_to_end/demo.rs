//! The demo itself.

use std::process::Stdio;

use serde_json::Value;

use crate::support::{measures, program};

#[test]
fn three_releases_end_in_no_baseline_better_and_regressed() {
    let _turn = measures();
    // It has a database and a server of its own, whatever is set around it.
    let mut demo = program();
    demo.env("DATABASE_URL", "postgres://127.0.0.1:1/").env("PLIMSOLL_SERVER", "http://127.0.0.1:1");
    let output = demo.args(["--exit", "--short"]).stdin(Stdio::null()).output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("stdout is no JSON: {error}; it ended with {} and said\n{said}", output.status));
    let verdicts = document["verdicts"].as_array().expect("a list of verdicts");
    let each = |key: &str| verdicts.iter().map(|one| one[key].clone()).collect::<Vec<_>>();
    assert_eq!(each("release"), ["v1.0.0", "v1.1.0", "v1.2.0"], "{said}");
    assert_eq!(each("verdict"), ["no_baseline", "pass", "regressed"], "{document:#}\n{said}");
    assert_eq!(each("exit_code"), [6, 0, 1]);
    assert_eq!(output.status.code(), Some(1));
    // The second is several times faster at the tail, and is said to be better.
    let p99 = p99_change(&verdicts[1]);
    assert!(p99 < -0.5, "P99 changed by {p99}");
    let sentence = verdicts[1]["sentence"].as_str().expect("a sentence");
    assert!(sentence.starts_with("Better than v1.0.0: P99 at 48 workers fell"), "{sentence}");
    assert!(p99_change(&verdicts[2]) > 0.3);
}

fn p99_change(verdict: &Value) -> f64 {
    let metrics = verdict["comparison"]["metrics"].as_array().expect("metrics");
    let p99 = metrics.iter().find(|metric| metric["name"] == "p99").expect("a P99");
    p99["change"].as_f64().expect("a change")
}
