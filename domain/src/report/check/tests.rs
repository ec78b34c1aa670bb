use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::figures::Figures;
use crate::noise::Noise;
use crate::policy::Policy;
use crate::synthetic::Synthetic;
use crate::verdict::{Baseline, judge};
use crate::{sentence, validity};

fn small() -> Synthetic {
    Synthetic { staircase: vec![2, 4], step_s: 5, stability_s: 6, error_rate: 0.005, ..Synthetic::default() }
}

fn value() -> Value {
    serde_json::from_str(&small().report().to_json()).unwrap()
}

fn read(value: &Value) -> Result<Report, ReportError> {
    Report::from_json(value.to_string().as_bytes())
}

/// The report with something else at a JSON pointer.
fn with(pointer: &str, new: Value) -> Value {
    let mut value = value();
    *value.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = new;
    value
}

#[test]
fn a_cut_or_garbled_text_says_where() {
    let text = small().report().to_json();
    for end in [0, 1, text.len() / 2, text.len() - 3] {
        let error = Report::from_json(&text.as_bytes()[..end]).unwrap_err();
        assert!(matches!(&error, ReportError::Json(why) if why.contains("line 1 column")), "{end}: {error}");
    }
    let lag = "\"timer_lag_p99_us\":140";
    assert!(text.contains(lag));
    let nan = text.replacen(lag, "\"timer_lag_p99_us\":NaN", 1);
    let error = Report::from_json(nan.as_bytes()).unwrap_err().to_string();
    assert!(error.starts_with("not a report: expected value at line 1 column"), "{error}");
    let infinite = text.replacen("\"host_cpu\":0.12", "\"host_cpu\":1e999", 1);
    assert!(Report::from_json(infinite.as_bytes()).unwrap_err().to_string().contains("out of range"));
    assert!(Report::from_json(b"\xff\xfe").is_err());
}

#[test]
fn size_and_version_come_first() {
    let big = vec![b' '; MAX_BYTES + 1];
    assert_eq!(Report::from_json(&big).unwrap_err(), ReportError::TooLarge(MAX_BYTES + 1));
    let newer = read(&json!({ "schema": 2, "something": "new" })).unwrap_err();
    assert_eq!(newer, ReportError::Newer(2));
    assert!(newer.to_string().contains("written by a newer plimsoll"), "{newer}");
    assert!(matches!(read(&json!({ "schema": "1" })).unwrap_err(), ReportError::Json(_)));
    assert!(matches!(read(&json!({})).unwrap_err(), ReportError::Json(_)));
}

#[test]
fn every_bound_names_its_place() {
    let step = "/phases/3/steps/0";
    for (pointer, new, at) in [
        ("/schema".to_owned(), json!(0), "schema"),
        ("/plan_digest".to_owned(), json!("000000000000"), "plan_digest"),
        ("/plan/phases/stability/duration_ms".to_owned(), json!(1), "plan_digest"),
        ("/finished_at".to_owned(), json!("2001-01-01T00:00:00Z"), "finished_at"),
        ("/phases/2/kind".to_owned(), json!("stability"), "phases[3]"),
        (format!("{step}/measured_to_ms"), json!(600_000), "phases[3].steps[0]"),
        (format!("{step}/workers"), json!(0), "phases[3].steps[0]"),
        (format!("{step}/slice_ms"), json!(0), "phases[3].steps[0]"),
        (format!("{step}/slice_ms"), json!(u64::MAX), "phases[3].steps[0]"),
        (format!("{step}/outcomes/ok"), json!(1), "phases[3].steps[0]"),
        (format!("{step}/outcomes/cut"), json!(u64::MAX), "phases[3].steps[0]"),
        (format!("{step}/completed/busy_us"), json!(u64::MAX), "phases[3].steps[0]"),
        (format!("{step}/windows/0/latency_sum_us"), json!(u64::MAX), "phases[3].steps[0]"),
        (format!("{step}/slices"), json!([]), "phases[3].steps[0]"),
        (format!("{step}/generator/host_cpu"), json!(-0.1), "phases[3].steps[0]"),
        ("/generator/name".to_owned(), json!("x".repeat(5_000)), "generator.name"),
        (
            "/findings".to_owned(),
            json!([{ "code": "x", "severity": "notice", "message": "", "advice": "x".repeat(5_000) }]),
            "findings",
        ),
    ] {
        match read(&with(&pointer, new)).unwrap_err() {
            ReportError::Value { at: place, .. } => assert_eq!(place, at, "{pointer}"),
            other => panic!("{pointer}: {other}"),
        }
    }
    let unknown = read(&with("/generator", json!({ "name": "x", "version": "1", "shares_host": false, "extra": 1 })));
    assert!(unknown.unwrap_err().to_string().contains("unknown field `extra`"));
}

/// All paths to values in a JSON document.
fn pointers(value: &Value, at: String, all: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| pointers(value, format!("{at}/{key}"), all)),
        Value::Array(list) => list.iter().enumerate().for_each(|(i, value)| pointers(value, format!("{at}/{i}"), all)),
        _ => {}
    }
    all.push(at);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Whatever a stranger writes into a report: it is refused, or everything that reads it goes on.
    #[test]
    fn mutated_reports_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12), 1..4)) {
        let original = small().report();
        let mut value: Value = serde_json::from_str(&original.to_json()).unwrap();
        for (at, new) in changes {
            let mut all = Vec::new();
            pointers(&value, String::new(), &mut all);
            let pointer = at.get(&all).clone();
            let new = [
                json!(null), json!(0), json!(1), json!(-1), json!(u64::MAX), json!(1e300), json!(0.5), json!(""),
                json!("\u{202e}<script>"), json!([]), json!({}), json!(true),
            ][new].clone();
            *value.pointer_mut(&pointer).unwrap() = new;
        }
        if let Ok(report) = read(&value) {
            let _ = (sentence::summary(&Figures::of(&report)), validity::findings(&report));
            for (a, b) in [(&original, &report), (&report, &original)] {
                let baseline = Baseline { runs: vec![a], chosen_because: None };
                let comparison = judge(Some(&baseline), b, &Policy::default(), &Noise::default());
                prop_assert!(!comparison.sentence.is_empty());
            }
        }
    }
}
