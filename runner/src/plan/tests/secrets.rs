//! Secrets reach the service, and are shown nowhere.

use serde_json::json;

use super::*;

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
