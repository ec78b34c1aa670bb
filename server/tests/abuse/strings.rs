//! SQL and HTML in every text that somebody may send: kept word for word or refused, and shown as text.

use std::collections::BTreeMap;

use plimsoll_domain::finding::Finding;
use plimsoll_domain::ids::RunId;
use scraper::{Html, Selector};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::target::{Seen, Target, small};

const HOSTILE: [&str; 3] = [
    "</title></text><script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg/onload=alert(3)>",
    "'; drop table snapshots; -- \" ) or 1=1 /* \\' $1 %s {{7*7}} ${x}",
    "javascript:alert(1)//\u{202e}evil&lt;b&gt;&#60;script&#62;<!--",
];

/// A report with every field set that may hold a text.
fn full(n: u64) -> Value {
    let mut report = small(n).report();
    report.findings.push(Finding::notice("a-note", "a message").with_advice("an advice"));
    let mut value: Value = serde_json::from_str(&report.to_json()).unwrap();
    let set: [(&str, Value); 8] = [
        ("/testbed/name", json!("a host")),
        ("/testbed/cpu_model", json!("a cpu")),
        ("/testbed/os", json!("an os")),
        ("/testbed/labels", json!({"zone": "a"})),
        ("/testbed/gpu/driver", json!("550.1")),
        ("/plan/service/headers", json!({"x-a": "a value"})),
        ("/plan/workload/expect/json", json!({"/label": {"equals": "a text"}})),
        ("/revision/engine", json!("an engine")),
    ];
    for (pointer, part) in set {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        value.pointer_mut(parent).unwrap_or_else(|| panic!("the report has {parent}"))[key] = part;
    }
    sealed(value).expect("it is whole")
}

/// With a run id and a plan digest of its own, if it is a report at all.
fn sealed(mut value: Value) -> Option<Value> {
    value["run_id"] = json!(RunId(Uuid::now_v7()));
    let plan = serde_json::from_value::<plimsoll_domain::plan::Plan>(value["plan"].clone()).ok()?;
    value["plan_digest"] = json!(plan.digest());
    Some(value)
}

/// Pointers to every text, one of each list.
fn texts(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at.to_owned()),
        Value::Array(list) => list.iter().take(1).for_each(|value| texts(value, &format!("{at}/0"), found)),
        Value::Object(fields) => {
            for (key, value) in fields {
                texts(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_text_of_a_report_is_kept_and_shown_as_text() {
    let target = Target::new().await;
    let base = full(0);
    let seen = target.upload(base.to_string()).await;
    assert_eq!(seen.status.as_u16(), 201, "{}", seen.text());
    let mut pointers = Vec::new();
    texts(&base, "", &mut pointers);
    let known = ["/testbed/name", "/findings/0/message", "/plan/service/path", "/generator/name", "/revision/engine"];
    assert!(known.iter().all(|known| pointers.iter().any(|found| found == known)), "{pointers:?}");
    let (mut kept, mut stored) = (BTreeMap::new(), 1);
    for pointer in &pointers {
        // What names the run and proves the plan is not free.
        if ["/run_id", "/plan_digest"].contains(&pointer.as_str()) {
            continue;
        }
        for hostile in HOSTILE {
            let mut report = full(stored);
            *report.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = json!(hostile);
            let report = sealed(report.clone()).unwrap_or(report);
            let seen = target.upload(report.to_string()).await;
            let status = seen.status.as_u16();
            assert!(matches!(status, 201 | 400 | 422), "{pointer}: {status} {}", seen.text());
            if status != 201 {
                continue;
            }
            stored += 1;
            let run = report["run_id"].as_str().unwrap().to_owned();
            let document = target.get(&format!("/api/v1/snapshots/{run}/report")).await.json();
            assert_eq!(document.pointer(pointer), Some(&json!(hostile)), "{pointer}");
            kept.insert(pointer.clone(), run);
        }
    }
    // Keys are texts too.
    for (pointer, fill) in [
        ("/testbed/labels", json!("x")),
        ("/plan/service/headers", json!("x")),
        ("/plan/workload/expect/json", json!({"equals": "x"})),
    ] {
        for hostile in HOSTILE {
            let mut report = full(stored);
            report.pointer_mut(pointer).unwrap()[hostile] = fill.clone();
            let report = sealed(report).expect("it is a report");
            let status = target.upload(report.to_string()).await.status.as_u16();
            assert!(matches!(status, 201 | 400 | 422), "{pointer}: {status}");
            if status == 201 {
                stored += 1;
                kept.insert(format!("a key of {pointer}"), report["run_id"].as_str().unwrap().to_owned());
            }
        }
    }
    assert!(kept.len() > 12, "{kept:?}");
    assert_eq!(target.snapshots().await, i64::try_from(stored).unwrap());
    let first = base["run_id"].as_str().unwrap();
    for (pointer, run) in &kept {
        for path in [format!("/sentiment/snapshots/{run}"), format!("/sentiment/compare/{first}...{run}")] {
            let page = target.get(&path).await;
            assert!(page.status.is_success(), "{path}: {}", page.text());
            harmless(&page, pointer);
        }
    }
    for path in ["/", "/sentiment/history"] {
        let page = target.get(path).await;
        assert!(page.is_page() && page.status.is_success(), "{path}");
        harmless(&page, path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_question_and_every_name_in_a_path_is_shown_as_text() {
    let target = Target::new().await;
    let base = full(0);
    assert_eq!(target.upload(base.to_string()).await.status.as_u16(), 201);
    let run = base["run_id"].as_str().unwrap();
    let names = [
        "testbed",
        "plan",
        "before",
        "after",
        "limit",
        "next",
        "baseline",
        "candidate",
        "on",
        "project",
        "state",
        "code",
        "error",
        "from",
        "accept",
    ];
    let encode = |text: &str| text.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
    for route in target.table.clone().iter().filter(|route| route.method == "GET") {
        for hostile in HOSTILE {
            let hostile = encode(hostile);
            let fill = |project: &str, run: &str, other: &str| {
                let path = route.path.replace("{project}", project).replace("{run}", run);
                path.replace("{pair}", &format!("{other}...{other}")).replace("{name}", other).replace("{id}", other)
            };
            let mut asks: Vec<String> =
                names.iter().map(|name| format!("{}?{name}={hostile}", fill("sentiment", run, run))).collect();
            asks.extend([fill(&hostile, run, run), fill("sentiment", &hostile, run), fill("sentiment", run, &hostile)]);
            for path in asks {
                let seen = target.get(&path).await;
                assert!(seen.status.as_u16() < 500, "{path}: {} {}", seen.status, seen.text());
                harmless(&seen, &path);
            }
        }
    }
    assert_eq!(target.snapshots().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_text_of_the_other_documents_is_kept_or_refused() {
    let target = Target::new().await;
    let commit = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00";
    let documents = [
        ("POST", "/api/v1/tokens", json!({"name": "ci", "scope": "read", "project": "sentiment"})),
        ("PUT", "/api/v1/projects/sentiment/visibility", json!({"visibility": "public"})),
        ("POST", "/api/v1/projects/sentiment/webhooks", json!({"url": "https://example.com/hook"})),
        (
            "POST",
            "/api/v1/runs",
            json!({"project": "sentiment", "revision": {"commit": commit, "tag": "v1", "branch": "main"},
                   "plan": "plimsoll.toml", "labels": {"gpu": "A10"}, "supersedes": "key", "profile": "quick"}),
        ),
    ];
    for (method, path, document) in documents {
        let mut pointers = Vec::new();
        texts(&document, "", &mut pointers);
        let good = target.change(method, path, document.to_string()).await;
        assert!(good.status.is_success() || path.ends_with("webhooks"), "{path}: {}", good.text());
        for pointer in pointers {
            for hostile in HOSTILE.iter().copied().chain([
                "",
                "\u{0}",
                "a\u{0}b",
                "../..",
                "\u{7f}\u{1b}[2J",
                &"x".repeat(100_000),
            ]) {
                let mut sent = document.clone();
                *sent.pointer_mut(&pointer).unwrap() = json!(hostile);
                let seen = target.change(method, path, sent.to_string()).await;
                assert!(seen.status.as_u16() < 500, "{path} {pointer}: {} {}", seen.status, seen.text());
            }
        }
    }
    for route in target.table.clone().iter().filter(|route| route.method == "GET" && !route.path.contains('{')) {
        let seen = target.get(&route.path).await;
        assert!(seen.status.as_u16() < 500, "{}: {}", route.path, seen.text());
        harmless(&seen, &route.path);
    }
}

/// A page may hold what somebody wrote, but only as text.
fn harmless(seen: &Seen, what: &str) {
    if !seen.is_page() {
        return;
    }
    let text = seen.text();
    let page = Html::parse_document(&text);
    let all = |selector: &str| {
        let selector = Selector::parse(selector).expect("a selector");
        page.select(&selector).map(|element| element.value().clone()).collect::<Vec<_>>()
    };
    for script in all("script") {
        let source = script.attr("src").unwrap_or_default();
        assert!(source.starts_with("/assets/"), "{what}: a script from {source:?}");
    }
    for element in all("*") {
        for (name, value) in element.attrs() {
            assert!(!name.starts_with("on"), "{what}: {name}={value}");
            let leads = ["href", "src", "action", "formaction", "xlink:href", "data"].contains(&name);
            assert!(!leads || !value.trim_start().to_lowercase().starts_with("javascript:"), "{what}: {name}={value}");
        }
    }
    assert!(all("img[src=x], base, iframe, object, embed").is_empty(), "{what}: {text}");
}

#[test]
#[should_panic(expected = "a script")]
fn a_page_that_is_not_harmless_is_noticed() {
    let headers = [("content-type".parse().unwrap(), "text/html".parse().unwrap())].into_iter().collect();
    let body = b"<p>hello<script>alert(1)</script>".to_vec();
    harmless(&Seen { status: axum::http::StatusCode::OK, headers, body }, "this page");
}
