//! Charts as GitHub's proxy fetches them: without a cookie, by an address that this server signed.

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::ids::RunId;
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_server::github::text::Images;
use plimsoll_server::state::Settings;
use plimsoll_server::store::projects::{self, Visibility};
use plimsoll_server::store::verdicts;
use plimsoll_server::web::chart_image::images;

use crate::app::{App, release};

const SERVER: &str = "https://plimsoll.acme.dev";

/// A release and the one before it, of a project that only those who are asked in may read.
struct World {
    app: App,
    first: RunId,
    second: RunId,
}

impl World {
    async fn new() -> Self {
        let app = App::with(public()).await;
        let old = release("v1.0.0", 1).report();
        let new = Synthetic { pool: 8, ..release("v1.1.0", 2) }.report();
        app.upload(&old).await;
        app.upload(&new).await;
        projects::set_visibility(&app.pool, &new.project, Visibility::Private).await.unwrap();
        Self { app, first: old.run_id, second: new.run_id }
    }

    async fn comparison(&self, run: RunId) -> Comparison {
        verdicts::get(&self.app.pool, run).await.unwrap().expect("a verdict")
    }

    async fn images(&self, run: RunId) -> Images {
        images(&self.app.state, run, &self.comparison(run).await).await.unwrap().expect("images")
    }
}

fn public() -> Settings {
    Settings { public_url: Some(SERVER.to_owned()), ..Settings::default() }
}

async fn fetch(app: &App, address: &str) -> (StatusCode, HeaderMap, String) {
    let path = address.strip_prefix(SERVER).unwrap_or(address);
    let answer = app.open(Request::get(path).body(Body::empty()).unwrap()).await;
    let (status, headers) = (answer.status(), answer.headers().clone());
    let body = to_bytes(answer.into_body(), 1 << 20).await.unwrap();
    (status, headers, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn a_private_project_s_chart_is_read_by_its_signature_alone() {
    let world = World::new().await;
    for run in [world.first, world.second] {
        let images = world.images(run).await;
        for (address, colour) in [(&images.light, "#fcfcfa"), (&images.dark, "#14171b")] {
            let (status, headers, body) = fetch(&world.app, address).await;
            assert_eq!(status, StatusCode::OK, "{address}");
            assert_eq!(headers[header::CONTENT_TYPE], "image/svg+xml");
            assert_eq!(headers[header::CACHE_CONTROL], "public, max-age=86400, immutable");
            let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
            assert!(policy.contains("sandbox") && policy.contains("default-src 'none'"), "{policy}");
            assert_eq!(headers["cross-origin-resource-policy"], "cross-origin");
            assert!(!headers.contains_key(header::SET_COOKIE));
            // The size that the comment reserves, and nothing that is fetched or run.
            let size = format!("width=\"{}\" height=\"{}\"", images.width, images.height);
            assert!(body.starts_with("<svg xmlns=") && body.contains(&size) && body.contains(colour), "{body}");
            for wrong in ["<script", "href", "url(", "var(", "@import"] {
                assert!(!body.contains(wrong), "{wrong} in {body}");
            }
        }
    }
    // Beside its baseline, whose label stands in it.
    let (_, _, body) = fetch(&world.app, &world.images(world.second).await.light).await;
    assert!(body.contains("v1.0.0") && body.contains("v1.1.0"), "{body}");
}

#[tokio::test]
async fn another_server_on_the_same_database_knows_the_signature() {
    let world = World::new().await;
    let beside = world.app.beside_with(public()).await;
    let images = world.images(world.second).await;
    assert_eq!(fetch(&beside, &images.dark).await.0, StatusCode::OK);
    let elsewhere = App::with(public()).await;
    assert_eq!(fetch(&elsewhere, &images.dark).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn whatever_is_changed_in_an_address_there_is_nothing_at_it() {
    let world = World::new().await;
    let address = world.images(world.second).await.light;
    let (first, second) = (world.first.to_string(), world.second.to_string());
    let signature = address.rsplit_once('=').unwrap().1;
    let wrong = [
        address.replace("theme=light", "theme=dark"),
        address.replace("theme=light&", ""),
        address.replace("staircase", "distribution"),
        address.replace(&second, &first),
        address.replace(&first, &second),
        address.replace(&format!("against={first}&"), ""),
        address.replace(signature, ""),
        address.replace(signature, &signature[1..]),
        address.replace(signature, &"0".repeat(64)),
        address.replace(".svg", ""),
        address.replace(&first, "nonsense"),
        address.split('?').next().unwrap().to_owned(),
    ];
    let (_, _, absent) = fetch(&world.app, &wrong[0]).await;
    for address in wrong {
        let (status, headers, body) = fetch(&world.app, &address).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{address}");
        assert_ne!(headers[header::CACHE_CONTROL], "public, max-age=86400, immutable");
        let text = |body: &str| serde_json::from_str::<serde_json::Value>(body).map(|json| json["detail"].clone()).ok();
        assert_eq!(text(&body), text(&absent), "{address}");
    }
}

#[tokio::test]
async fn a_server_that_only_its_network_reaches_offers_no_images() {
    let app = App::new().await;
    let report = release("v1.0.0", 1).report();
    app.upload(&report).await;
    let comparison = verdicts::get(&app.pool, report.run_id).await.unwrap().unwrap();
    assert_eq!(images(&app.state, report.run_id, &comparison).await.unwrap(), None);
}
