//! The API's description says what there is, and nothing else.

use std::collections::BTreeSet;

use plimsoll_server::access::Need;
use plimsoll_server::router;
use serde_json::Value;

use crate::app::App;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

#[tokio::test]
async fn every_route_of_the_api_is_described_with_what_it_needs() {
    let app = App::new().await;
    let described = app.get("/api/v1/openapi.json").await.json;
    let mut operations = BTreeSet::new();
    for (path, item) in described["paths"].as_object().unwrap() {
        operations.extend(
            item.as_object()
                .unwrap()
                .keys()
                .filter(|key| METHODS.contains(&key.as_str()))
                .map(|method| (method.to_owned(), path.clone())),
        );
    }
    let ours = |path: &str| path.starts_with("/api/") || ["/healthz", "/readyz", "/metrics"].contains(&path);
    let table = router::table(&app.state);
    let routes: BTreeSet<_> = table
        .iter()
        .filter(|route| ours(&route.path))
        .map(|route| (route.method.as_str().to_ascii_lowercase(), route.path.clone()))
        .collect();
    assert_eq!(
        operations, routes,
        "describe each handler by `#[utoipa::path]` and list it in server/src/api/openapi.rs"
    );
    for route in table.iter().filter(|route| ours(&route.path)) {
        let operation = &described["paths"][&route.path][route.method.as_str().to_ascii_lowercase()];
        let open = operation["security"].as_array().unwrap().is_empty();
        assert_eq!(open, route.need == Need::Open, "{route:?}");
        let named: BTreeSet<_> = operation["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .iter()
            .filter(|p| p["in"] == "path")
            .map(|p| p["name"].as_str().unwrap().to_owned())
            .collect();
        let wanted: BTreeSet<_> = route.path.split(['{', '}']).skip(1).step_by(2).map(ToOwned::to_owned).collect();
        assert_eq!(named, wanted, "{route:?}");
        assert!(operation["responses"]["default"]["content"]["application/problem+json"].is_object(), "{route:?}");
    }
}

#[tokio::test]
async fn what_it_refers_to_is_there_and_names_are_its_own() {
    let app = App::new().await;
    let described = app.get("/api/v1/openapi.json").await.json;
    let mut refs = Vec::new();
    collect(&described, "$ref", &mut refs);
    assert!(!refs.is_empty());
    for to in refs {
        let pointer = to.as_str().and_then(|to| to.strip_prefix('#')).unwrap();
        assert!(described.pointer(pointer).is_some(), "{to}");
    }
    let mut ids = Vec::new();
    collect(&described["paths"], "operationId", &mut ids);
    let distinct: BTreeSet<_> = ids.iter().map(|id| id.as_str().unwrap()).collect();
    assert_eq!(distinct.len(), ids.len());
}

fn collect<'v>(value: &'v Value, key: &str, into: &mut Vec<&'v Value>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            if name == key && value.is_string() { into.push(value) } else { collect(value, key, into) }
        }),
        Value::Array(values) => values.iter().for_each(|value| collect(value, key, into)),
        _ => {}
    }
}
