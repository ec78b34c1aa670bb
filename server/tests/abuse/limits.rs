//! Reports with too much of something.

use serde_json::{Value, json};

use crate::target::{Target, small};

#[tokio::test(flavor = "multi_thread")]
async fn too_much_of_anything_is_refused_and_named() {
    let target = Target::new().await;
    let good: Value = serde_json::from_str(&small(0).report().to_json()).unwrap();
    let with = |pointer: &str, change: &dyn Fn(&mut Value)| {
        let mut report = good.clone();
        change(report.pointer_mut(pointer).unwrap_or_else(|| panic!("the report has {pointer}")));
        report.to_string()
    };
    let labels = |count: usize| -> Value {
        (0..count).map(|n| (format!("l{n}"), json!("x"))).collect::<serde_json::Map<_, _>>().into()
    };
    let finding = || json!({"code": "x", "severity": "notice", "message": "x"});
    let repeat = |value: &mut Value, count: usize| {
        let list = value.as_array_mut().expect("a list");
        let first = list[0].clone();
        list.resize(count, first);
    };
    let cases = [
        ("labels", with("/testbed", &|value| value["labels"] = labels(65)), "labels"),
        ("steps", with("/phases/1/steps", &|value| repeat(value, 201)), "steps"),
        ("windows", with("/phases/0/steps/0/windows", &|value| repeat(value, 100_001)), "windows"),
        ("slices", with("/phases/0/steps/0/slices", &|value| repeat(value, 100_001)), "histograms"),
        ("findings", with("", &|value| value["findings"] = vec![finding(); 1_001].into()), "findings"),
        ("a text", with("/revision", &|value| value["engine"] = json!("x".repeat(5_000))), "longer"),
        ("ancestors", with("/revision", &|value| value["ancestors"] = json!(vec!["c0ffee00"; 100_000])), "ancestors"),
    ];
    for (what, report, named) in cases {
        let seen = target.upload(report).await;
        let status = seen.status.as_u16();
        assert!(matches!(status, 400 | 413 | 422), "{what}: {status} {}", seen.text());
        assert!(seen.detail().contains(named), "{what}: {}", seen.detail());
    }
}
