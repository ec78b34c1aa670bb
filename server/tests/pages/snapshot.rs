use plimsoll_domain::figures::Figures;
use plimsoll_domain::report::Report;
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_domain::{format, sentence};

use crate::site::{Site, release};

#[tokio::test]
async fn a_snapshot_answers_first_and_shows_every_step() {
    let report = release("v1.0.0", 0, 10).report();
    let site = Site::new(std::slice::from_ref(&report)).await;
    let page = site.page(&format!("/sentiment/snapshots/{}", report.run_id)).await;
    let figures = Figures::of(&report);

    assert_eq!(page.one(".word"), "– No baseline");
    let joined = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(page.one(".say"), joined(sentence::summary(&figures)));
    let asks = page.all(".asks h2");
    assert_eq!(asks, ["How much does it carry?", "Does latency stay level?", "What runs out first?"]);
    assert!(page.all(".asks p")[2].contains("Not measured yet"));

    let rows = page.table("Steps");
    let steps: Vec<&Vec<String>> = rows.iter().filter(|row| row.len() == 12).collect();
    assert_eq!(steps.len(), figures.steps.len() + 1);
    for (row, step) in steps.iter().zip(&figures.steps) {
        assert!(row[0].starts_with(&step.workers.to_string()), "{row:?}");
        assert_eq!(row[1], format::number(step.tps.unwrap()));
        match step.p99_ms {
            Some(p99) => assert_eq!(row[4], format::number(p99)),
            None => assert!(row[4].starts_with('–') && row[4].contains("P99 needs 662"), "{row:?}"),
        }
    }
    let knee = figures.capacity.unwrap().workers;
    assert!(page.one("tr.marked th").contains("knee") && page.one("tr.marked th").starts_with(&knee.to_string()));
    assert_eq!(page.all("figure .chart svg[role=img] > title").len(), 6);
    assert_eq!(page.all("figure details table").len(), 3);
    let ok = page.table("Outcomes by kind").remove(0);
    assert_eq!(ok.last(), Some(&format::count(report.stability().unwrap().outcomes.ok)));
    let json = page.attributes("a[href$='/report']", "href");
    assert_eq!(json, [format!("/api/v1/snapshots/{}/report", report.run_id)]);
    assert!(site.get(&json[0]).await.status.is_success());
}

#[tokio::test]
async fn names_from_outside_stay_text() {
    let hostile = "<script>alert('v1')</script>\"&' ünï";
    let mut report = Synthetic { gpu: format!("H100 {hostile}"), ..release(hostile, 0, 10) }.report();
    report.testbed.labels.insert("<img src=x>".to_owned(), "<b onclick=x>".to_owned());
    let newer = Synthetic { gpu: format!("H100 {hostile}"), ..release("v2.0.0", 1, 10) }.report();
    let site = Site::new(&[report.clone(), newer.clone()]).await;
    let pages = [
        "/".to_owned(),
        "/sentiment/history".to_owned(),
        format!("/sentiment/snapshots/{}", report.run_id),
        format!("/sentiment/compare/{}...{}", report.run_id, newer.run_id),
    ];
    for path in pages {
        let page = site.page(&path).await;
        assert!(page.all("script, img, [onclick]").is_empty(), "{path}");
        assert!(page.all("body")[0].contains("<script>alert('v1')</script>"), "{path}");
    }
}

#[tokio::test]
async fn a_tag_or_a_commit_leads_to_its_snapshot() {
    let report = release("v1.0.0", 0, 10).report();
    let site = Site::new(std::slice::from_ref(&report)).await;
    for name in ["v1.0.0", "0c0ffee"] {
        let seen = site.get(&format!("/sentiment/snapshots/{name}")).await;
        assert_eq!(seen.header("location"), format!("/sentiment/snapshots/{}", report.run_id), "{name}");
    }
}

#[tokio::test]
async fn an_invalid_run_says_why_and_what_to_do() {
    let report = Synthetic { engine_cpu: 0.93, ..release("v1.0.0", 0, 10) }.report();
    let site = Site::new(std::slice::from_ref(&report)).await;
    let page = site.page(&format!("/sentiment/snapshots/{}", report.run_id)).await;
    assert_eq!(page.one(".word"), "○ Invalid");
    assert!(page.one(".say").contains("load generator"));
    assert!(page.all(".findings li")[0].contains("This voids the run."));
    // What is a finding is not in order as well: only the origin of the run names the generator.
    assert_eq!(page.all("dt").iter().filter(|name| *name == "Load generator").count(), 1);
}

#[tokio::test]
async fn an_interrupted_run_without_a_soak_still_has_a_page() {
    let mut report = release("v1.0.0", 0, 10).report();
    report.phases.retain(|phase| phase.kind != plimsoll_domain::report::PhaseKind::Stability);
    report.status = plimsoll_domain::report::Status::Interrupted;
    report.load_choice = None;
    let site = Site::new(std::slice::from_ref(&report)).await;
    let page = site.page(&format!("/sentiment/snapshots/{}", report.run_id)).await;
    assert!(page.all(".asks p")[1].contains("no stability phase"));
    assert!(page.all(".facts li").iter().any(|fact| fact.contains("Stopped before its end")));
    report.phases.clear();
    report.run_id = "01234567-89ab-cdef-0123-456789abcdef".parse().unwrap();
    let site = Site::new(std::slice::from_ref(&report)).await;
    site.page(&format!("/sentiment/snapshots/{}", report.run_id)).await;
    site.page("/sentiment/history").await;
}

#[tokio::test]
async fn a_thinned_report_is_shown_as_before_and_says_so() {
    let whole = release("v1.0.0", 0, 10).report();
    let mut thinned = release("v1.0.0", 0, 10).report();
    thinned.thin();
    let path = |report: &Report| format!("/sentiment/snapshots/{}", report.run_id);
    let before = Site::new(std::slice::from_ref(&whole)).await.page(&path(&whole)).await;
    let after = Site::new(std::slice::from_ref(&thinned)).await.page(&path(&thinned)).await;
    assert!(after.all("main")[0].contains("thinned out by age"));
    assert!(!before.all("main")[0].contains("thinned out by age"));
    assert_eq!(after.table("Steps"), before.table("Steps"));
    assert_eq!(after.all("figure .chart svg[role=img] > title"), before.all("figure .chart svg[role=img] > title"));
}
