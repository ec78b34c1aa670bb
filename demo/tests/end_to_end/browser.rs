//! The pages in a real Chromium: no error in the console, nothing wider than the screen, the verdict in sight.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use plimsoll_domain::synthetic::Synthetic;

use crate::chromium::{Browser, Seen, reachable};
use crate::support::{Serving, is_busy};

const WIDTHS: [u32; 2] = [1_280, 390];
const SCHEMES: [&str; 2] = ["light", "dark"];

#[test]
fn pages_fit_phone_and_desk_in_light_and_dark() {
    let _turn = is_busy();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let wrong = runtime.block_on(look_at_all());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

async fn look_at_all() -> Vec<String> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::Builder::new().permissions(reachable()).tempdir().expect("a temporary directory");
    let server = Serving::server(folder.path());
    let pages = seed(&server, folder.path()).await;
    let browser = Browser::start().await;
    let mut wrong = Vec::new();
    for page in &pages {
        for width in WIDTHS {
            for scheme in SCHEMES {
                let seen = browser.look(&page.url, width, scheme).await;
                let complaints = seen.map_or_else(|why| vec![why], |seen| complaints(&seen, page, scheme));
                wrong
                    .extend(complaints.into_iter().map(|what| format!("{} at {width} px, {scheme}: {what}", page.url)));
            }
        }
    }
    browser.quit().await;
    wrong
}

struct Page {
    url: String,
    /// A word that must be in sight, in small letters.
    word: &'static str,
}

/// Three releases, the last one with a third of the pool: regressed.
async fn seed(server: &Serving, data_dir: &Path) -> Vec<Page> {
    let token = std::fs::read_to_string(data_dir.join("token")).expect("the server's token");
    let client = reqwest::Client::new();
    let begin: Timestamp = "2026-03-01T12:00:00Z".parse().expect("an instant");
    let mut ids = Vec::new();
    for (day, (tag, pool)) in [("v1.0.0", 12), ("v1.1.0", 12), ("v1.2.0", 8)].into_iter().enumerate() {
        let started_at = begin + SignedDuration::from_hours(24 * day as i64);
        let report = Synthetic { tag: Some(tag.to_owned()), pool, started_at, ..Synthetic::default() }.report();
        let answer = client
            .post(format!("{}/api/v1/snapshots", server.address))
            .bearer_auth(token.trim())
            .header("content-type", "application/json")
            .body(report.to_json())
            .send()
            .await
            .expect("the server answers");
        assert_eq!(answer.status(), 201, "{}", answer.text().await.unwrap_or_default());
        ids.push(report.run_id);
    }
    let page = |path: String, word| Page { url: format!("{}{path}", server.address), word };
    vec![
        page("/".to_owned(), "regressed"),
        page("/sentiment/history".to_owned(), "regressed"),
        page(format!("/sentiment/snapshots/{}", ids[2]), "p99"),
        page(format!("/sentiment/compare/{}...{}", ids[1], ids[2]), "regressed"),
    ]
}

/// What is wrong with what is seen of a page.
fn complaints(seen: &Seen, page: &Page, scheme: &str) -> Vec<String> {
    let in_sight = seen.text.to_lowercase().contains(page.word);
    let wrong = [
        (seen.scroll_width > seen.inner_width, format!("scrolls to {} px", seen.scroll_width)),
        (!in_sight, format!("{:?} is not in sight: {}", page.word, seen.text)),
        (seen.dark != (scheme == "dark"), "has the colours of the other scheme".to_owned()),
        (!seen.console.is_empty(), format!("the console says {:?}", seen.console)),
    ];
    wrong.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect()
}
