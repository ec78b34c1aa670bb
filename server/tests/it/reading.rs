//! What can be asked of the server.

use plimsoll_domain::ids::ProjectSlug;
use plimsoll_domain::report::Report;
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_server::access::Scope;
use plimsoll_server::store::resolve::resolve;

use crate::app::{App, release};

#[tokio::test]
async fn a_report_comes_back_as_it_was() {
    let app = App::new().await;
    let report = release("v1.0.0", 0).report();
    app.upload(&report).await;
    let stored = app.get(&format!("/api/v1/snapshots/{}/report", report.run_id)).await;
    assert_eq!(Report::from_json(stored.json.to_string().as_bytes()).unwrap(), report);

    let shown = app.get(&format!("/api/v1/snapshots/{}", report.run_id)).await.json;
    assert_eq!(shown["revision"]["tag"], "v1.0.0");
    assert_eq!(shown["p99_ms"], shown["figures"]["stability"]["p99_ms"]);
    assert!(shown["p99_ms"].is_f64() && shown["capacity_tps"].is_f64(), "{shown}");
}

#[tokio::test]
async fn a_history_is_read_page_by_page_newest_first() {
    let app = App::new().await;
    let mut runs = Vec::new();
    for day in 0..5 {
        let report = release(&format!("v1.{day}.0"), day).report();
        app.upload(&report).await;
        runs.insert(0, report.run_id.to_string());
    }
    let elsewhere = Synthetic { gpu: "L20".to_owned(), ..release("v1.5.0", 5) }.report();
    app.upload(&elsewhere).await;

    let mut seen: Vec<String> = Vec::new();
    let mut before = String::new();
    loop {
        let page =
            app.get(&format!("/api/v1/projects/sentiment/snapshots?testbed=A10%20%C3%971&limit=2{before}")).await;
        let rows = page.json.as_array().unwrap().clone();
        let Some(last) = rows.last() else { break };
        before = format!("&before={}", last["run_id"].as_str().unwrap());
        seen.extend(rows.iter().map(|row| row["run_id"].as_str().unwrap().to_owned()));
    }
    assert_eq!(seen, runs);

    let fingerprint = elsewhere.testbed.fingerprint();
    let one = app.get(&format!("/api/v1/projects/sentiment/snapshots?testbed={fingerprint}")).await.json;
    assert_eq!(one.as_array().unwrap().len(), 1);
    let project = app.get("/api/v1/projects/sentiment").await.json;
    assert_eq!(project["series"].as_array().unwrap().len(), 2);
    let projects = app.get("/api/v1/projects").await.json;
    assert_eq!((&projects[0]["snapshots"], &projects[0]["latest"]["label"]), (&6.into(), &"v1.5.0".into()));
}

#[tokio::test]
async fn any_two_snapshots_compare() {
    let app = App::new().await;
    let (old, new) = (release("v1.0.0", 0).report(), Synthetic { service_ms: 84.0, ..release("v2.0.0", 1) }.report());
    app.upload(&old).await;
    let verdict = app.upload(&new).await.json["comparison"].clone();
    let path = |a: &Report, b: &Report| format!("/api/v1/comparisons?baseline={}&candidate={}", a.run_id, b.run_id);
    let mut asked = app.get(&path(&old, &new)).await.json;
    // Asked for, not chosen.
    let because = asked["baseline"]
        .as_object_mut()
        .unwrap()
        .insert("chosen_because".to_owned(), verdict["baseline"]["chosen_because"].clone());
    assert_eq!(because, None);
    assert_eq!(asked["metrics"], verdict["metrics"]);
    assert_eq!(asked["verdict"], "regressed");
    assert_ne!(app.get(&path(&new, &old)).await.json["verdict"], "regressed");
    assert_eq!(app.get(&path(&old, &release("v3.0.0", 2).report())).await.status.as_u16(), 404);
}

#[tokio::test]
async fn revisions_are_found_by_the_names_people_type() {
    let app = App::new().await;
    let commit = |digit: &str, tag: &str, day| Synthetic {
        commit: Some(digit.repeat(40)),
        branch: Some("main".to_owned()),
        ..release(tag, day)
    };
    let one = commit("a", "v1.0.0", 0).report();
    let two = commit("b", "v1.1.0", 1).report();
    let again = Synthetic { seed: 99, ..commit("b", "v1.1.0", 2) }.report();
    // A branch that looks like a commit, measured before it and void.
    let branch = Synthetic { branch: Some("c".repeat(7)), engine_cpu: 0.97, ..commit("d", "v2.0.0", 3) }.report();
    let three = commit("c", "v1.2.0", 4).report();
    for report in [&one, &two, &again, &branch, &three] {
        app.upload(report).await;
    }
    let project: ProjectSlug = "sentiment".parse().unwrap();
    let (first, second) = (one.run_id.to_string(), two.run_id.to_string());
    for (reference, testbed, run) in [
        ("v1.0.0", None, Some(one.run_id)),
        ("v1.1.0", None, Some(again.run_id)),
        ("aaaaaaa", None, Some(one.run_id)),
        ("BBBBBBBBBB", None, Some(again.run_id)),
        ("main", None, Some(three.run_id)),
        ("ccccccc", None, Some(branch.run_id)),
        ("cccccccc", None, Some(three.run_id)),
        (&first, None, Some(one.run_id)),
        (&second, None, Some(two.run_id)),
        ("v1.0.0", Some("A10 ×1"), Some(one.run_id)),
        ("v1.0.0", Some("L20 ×1"), None),
        ("aaaaaa", None, None),
        ("%", None, None),
        ("v1", None, None),
    ] {
        let found = resolve(&app.pool, &project, reference, testbed).await.unwrap();
        assert_eq!(found.map(|row| row.run_id), run, "{reference} on {testbed:?}");
    }
    assert!(resolve(&app.pool, &"other".parse().unwrap(), "v1.0.0", None).await.unwrap().is_none());
}

#[tokio::test]
async fn readiness_is_more_than_life() {
    let app = App::new().await;
    assert_eq!(app.get("/readyz").await.status.as_u16(), 200);
    sqlx::raw_sql("delete from _sqlx_migrations").execute(&app.pool).await.unwrap();
    let behind = app.get("/readyz").await;
    assert_eq!((behind.status.as_u16(), behind.kind.as_str()), (503, "application/problem+json"));
    app.pool.close().await;
    assert_eq!(app.get("/readyz").await.status.as_u16(), 503);
    assert_eq!(app.get("/api/v1/projects").await.status.as_u16(), 503);
    assert_eq!(app.get("/healthz").await.status.as_u16(), 200);
}

#[tokio::test]
async fn a_list_of_projects_is_cut_after_what_the_caller_may_not_read_is_left_out() {
    let app = App::new().await;
    let token = app.token(Scope::Read, Some("zebra")).await;
    let fill = "update projects set visibility = 'private';
                insert into projects (slug, policy, visibility)
                    select 'p' || n, policy, 'private' from projects, generate_series(1, 1001) n";
    sqlx::raw_sql(fill).execute(&app.pool).await.unwrap();
    let seen = app.ask_by(&token, "GET", "/api/v1/projects", &()).await;
    assert_eq!(seen.json.as_array().map(Vec::len), Some(1), "{seen:?}");
    assert_eq!(seen.json[0]["slug"], "zebra");
    let all = app.ask("GET", "/api/v1/projects", &()).await;
    assert_eq!(all.json.as_array().map(Vec::len), Some(1_000));
    assert_eq!(app.get("/api/v1/projects").await.json, serde_json::json!([]));
}
