use axum::http::StatusCode;
use plimsoll_domain::comparison::{Comparison, Unit};
use plimsoll_domain::format;
use plimsoll_domain::synthetic::Synthetic;

use crate::site::{Site, release};

#[tokio::test]
async fn a_regression_shows_every_figure_beside_its_baseline() {
    let (old, new) = (release("v1.0.0", 0, 10).report(), release("v2.0.0", 1, 5).report());
    let site = Site::new(&[old.clone(), new.clone()]).await;
    let api = format!("/api/v1/comparisons?baseline={}&candidate={}", old.run_id, new.run_id);
    let comparison: Comparison = serde_json::from_str(&site.page(&api).await.body).unwrap();
    let page = site.page("/sentiment/compare/v1.0.0...v2.0.0").await;

    assert_eq!(page.one(".word"), "▲ Regressed");
    let joined = comparison.sentence.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(page.one(".say"), joined);
    assert!(page.attributes("link[rel=icon]", "href")[0].contains("icon-worse"));

    let rows = page.table("Metrics: baseline, this run, change and verdict");
    let rows: Vec<&Vec<String>> = rows.iter().filter(|row| row.len() == 8).collect();
    assert_eq!(rows.len(), comparison.metrics.len());
    for (row, metric) in rows.iter().zip(&comparison.metrics) {
        let points = metric.unit == Unit::Fraction;
        if let Some(change) = metric.change {
            let written = if points { format::points(change) } else { format::change(change) };
            assert!(row[3].starts_with(&written), "{row:?} does not have {written}");
        }
        if let Some(interval) = metric.interval {
            let written = if points { format::points_interval(interval) } else { format::interval(interval) };
            assert_eq!(row[5], written);
        }
        if matches!(metric.unit, Unit::Ms | Unit::Tps) {
            assert_eq!((&row[1], &row[2]), (&format::optional(metric.baseline), &format::optional(metric.candidate)));
        }
    }
    assert!(rows[0][7].contains("regressed"), "{:?}", rows[0]);
    let whiskers = page.attributes("td.interval svg", "aria-label");
    assert_eq!(whiskers.len(), rows.len());
    assert!(whiskers[0].starts_with("P99 at 24 workers: +"), "{whiskers:?}");
    assert_eq!(page.all("figure").len(), 2);
    let changes = page.table("What changed between the two runs");
    let tag = changes.iter().find(|row| row[0] == "Tag").unwrap();
    assert_eq!(tag[1..], ["v1.0.0", "v2.0.0", "changed"]);
    assert_eq!(changes.iter().find(|row| row[0] == "Digest").unwrap()[3], "same");
    assert!(page.all("dl.pairs dt").contains(&"Baseline".to_owned()));
}

#[tokio::test]
async fn the_same_code_passes_and_the_way_back_is_better() {
    let (one, two) = (release("v1.0.0", 0, 5).report(), release("v1.1.0", 1, 10).report());
    let (old, new) = (one.run_id, two.run_id);
    let site = Site::new(&[one, two]).await;
    let page = site.page("/sentiment/compare/v1.0.0...v1.1.0").await;
    assert_eq!(page.one(".word"), "● Pass");
    assert!(page.all("td small.is-better").iter().any(|word| word.contains("better")));
    // The JSON says what the page says: what was stored, or what was compared just now.
    let json = |run: &plimsoll_domain::ids::RunId| format!("/api/v1/snapshots/{run}/comparison");
    assert!(page.attributes("ul.links a", "href").contains(&json(&new)));
    let stored: Comparison = serde_json::from_str(&site.page(&json(&new)).await.body).unwrap();
    assert_eq!(page.one(".say"), stored.sentence.split_whitespace().collect::<Vec<_>>().join(" "));
    let back = site.page("/sentiment/compare/v1.1.0...v1.0.0").await;
    let asked = format!("/api/v1/comparisons?baseline={new}&candidate={old}");
    assert!(back.attributes("ul.links a", "href").contains(&asked));
    assert_eq!(back.one(".word"), "▲ Regressed");
    assert!(back.all(".facts li").iter().any(|fact| fact.contains("Compared on request")));
}

#[tokio::test]
async fn different_testbeds_do_not_compare_and_on_narrows_a_name() {
    let a10 = release("v1.0.0", 0, 10);
    let l20 = Synthetic { gpu: "L20".to_owned(), ..release("v1.0.0", 1, 20) }.report();
    let newer = release("v1.1.0", 2, 10).report();
    let site = Site::new(&[a10.report(), l20.clone(), newer]).await;
    let page = site.page(&format!("/sentiment/compare/{}...v1.1.0", l20.run_id)).await;
    assert_eq!(page.one(".word"), "○ Invalid");
    let changes = page.table("What changed between the two runs");
    assert_eq!(changes.iter().find(|row| row[0] == "GPU").unwrap()[1..], ["L20 ×1", "A10 ×1", "changed"]);
    let on = site.page("/sentiment/compare/v1.0.0...v1.1.0?on=A10%20%C3%971").await;
    assert_ne!(on.one(".word"), "○ Invalid");
    assert_eq!(site.get("/sentiment/compare/v1.0.0...v1.1.0?on=H100").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn two_selects_lead_to_a_comparison() {
    let (old, new) = (release("v1.0.0", 0, 10).report(), release("v2.0.0", 1, 10).report());
    let site = Site::new(&[old.clone(), new.clone()]).await;
    let history = site.page("/sentiment/history").await;
    let chosen = history.attributes("option[selected]", "value");
    assert!(chosen.contains(&old.run_id.to_string()) && chosen.contains(&new.run_id.to_string()), "{chosen:?}");
    let path = format!("/sentiment/compare?baseline={}&candidate={}", old.run_id, new.run_id);
    let seen = site.get(&path).await;
    assert_eq!(seen.status, StatusCode::SEE_OTHER);
    let target = seen.header("location").to_owned();
    assert_eq!(target, format!("/sentiment/compare/{}...{}", old.run_id, new.run_id));
    site.page(&target).await;
}
