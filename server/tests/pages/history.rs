use plimsoll_domain::figures::Figures;
use plimsoll_domain::format;
use plimsoll_domain::synthetic::Synthetic;

use crate::site::{Site, release};

#[tokio::test]
async fn a_history_has_a_point_and_a_row_for_each_release() {
    let reports = [release("v1.0.0", 0, 10), release("v1.1.0", 1, 10), release("v1.2.0", 2, 5)].map(|r| r.report());
    let site = Site::new(&reports).await;
    assert_eq!(site.get("/sentiment").await.header("location"), "/sentiment/history");
    let page = site.page("/sentiment/history").await;
    assert_eq!(page.one("h1"), "3 snapshots on A10 ×1, v1.0.0 to v1.2.0");
    assert_eq!(page.one(".word"), "▲ Regressed");
    assert_eq!(page.one("figcaption h2"), "P99 rose and capacity fell at v1.2.0");

    let rows = page.table("Snapshots");
    assert_eq!(rows.len(), 3);
    for (row, report) in rows.iter().zip(reports.iter().rev()) {
        let figures = Figures::of(report);
        assert_eq!(row[0], report.revision.label_or_unnamed());
        assert_eq!(row[4], format::number(figures.stability.unwrap().step.p99_ms.unwrap()));
        assert_eq!(row[6], format::number(figures.capacity.unwrap().tps));
    }
    assert_eq!(rows[0][8], "▲ regressed");
    let href = format!("/sentiment/snapshots/{}", reports[0].run_id);
    // Three drawings of two panels each.
    assert_eq!(page.attributes(".chart a", "href").iter().filter(|to| **to == href).count(), 3 * 2);
    assert!(page.attributes(".chart a", "tabindex").iter().all(|index| index == "-1"));
}

#[tokio::test]
async fn testbeds_are_apart_and_invalid_runs_in_brackets() {
    let void = Synthetic { engine_cpu: 0.93, ..release("v1.1.0", 1, 10) }.report();
    let other = Synthetic { gpu: "L20".to_owned(), ..release("v1.0.0", 2, 20) }.report();
    let fingerprint = void.testbed.fingerprint();
    let site = Site::new(&[release("v1.0.0", 0, 10).report(), void, other]).await;
    let newest = site.page("/sentiment/history").await;
    assert_eq!(newest.one("h1"), "1 snapshot on L20 ×1, v1.0.0");
    assert_eq!(newest.all("#testbed option"), ["L20 ×1", "A10 ×1"]);
    let page = site.page(&format!("/sentiment/history?testbed={fingerprint}")).await;
    assert_eq!(page.all("#testbed option[selected]"), ["A10 ×1"]);
    let rows = page.table("Snapshots");
    assert!(rows[0][4].starts_with('(') && rows[0][8] == "○ invalid", "{rows:?}");
    assert!(page.body.contains("invalid, not judged"));
    // A name with what a query does not carry as it is.
    let named = site.page("/sentiment/history?testbed=A10%20%C3%971").await;
    let json = named.attributes("ul.links a", "href").into_iter().find(|href| href.starts_with("/api/")).unwrap();
    assert_eq!(json, "/api/v1/projects/sentiment/snapshots?testbed=A10%20%C3%971");
    let none = site.page("/sentiment/history?testbed=%3Cscript%3E").await;
    assert_eq!(none.one("h1"), "No snapshots here");
    assert!(!none.body.contains("<script"));
}

#[tokio::test]
async fn what_no_run_has_is_not_drawn_and_the_page_says_why() {
    let all = release("v1.0.0", 0, 10).report();
    let failing = Synthetic { error_rate: 1.0, ..release("v1.0.0", 0, 10) }.report();
    for (report, why) in
        [(all, None), (failing, Some("There is no chart: none of these runs has a P99 or a capacity."))]
    {
        let page = Site::new(&[report]).await.page("/sentiment/history").await;
        assert_eq!(page.all("main .note").first().map(String::as_str), why);
        assert_eq!(page.all(".drawn").is_empty(), why.is_some());
    }
}
