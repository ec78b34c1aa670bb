//! A missing baseline is measured by a job of its own.

use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::{Ending, Kind};
use plimsoll_domain::synthetic::Synthetic;
use serde_json::{Value, json};

use super::actor::{Actor, ask, report_of, run, told};
use crate::app::{App, release};

fn sha(digit: &str) -> String {
    digit.repeat(40)
}

/// The first run of a pull request, its base never measured.
fn pull() -> Synthetic {
    Synthetic {
        tag: None,
        commit: Some(sha("b")),
        branch: Some("faster".to_owned()),
        pull_request: Some(7),
        merge_base: Some(sha("a")),
        ancestors: vec![sha("a"), sha("9")],
        ..release("", 2)
    }
}

async fn ask_for_pull(app: &App) -> RunId {
    let revision = json!({"commit": sha("b"), "pull_request": 7});
    ask(app, "", json!({"revision": revision, "labels": {"gpu": "A10"}, "plan": "bench/plimsoll.toml"})).await
}

async fn measure(app: &App, runner: &Actor, id: RunId, of: &Synthetic) -> Value {
    assert_eq!(runner.claim(app).await.unwrap().run_id, id);
    app.upload(&report_of(id, of)).await.json
}

#[tokio::test]
async fn the_base_is_measured_and_the_run_is_judged_again() {
    let app = App::new().await;
    let runner = Actor::new();
    let id = ask_for_pull(&app).await;
    let slow = Synthetic { service_ms: 84.0, ..pull() };
    assert_eq!(measure(&app, &runner, id, &slow).await["comparison"]["verdict"], "no_baseline");
    let before: Value = app.get(&format!("/api/v1/snapshots/{id}")).await.json;
    assert_eq!(before["accepted"], true);

    let job = runner.claim(&app).await.expect("a backfill");
    assert_eq!((job.kind, job.revision.commit.unwrap().as_str().to_owned()), (Kind::Backfill, sha("a")));
    // By the plan of the run that waits, or the figures would not compare.
    assert_eq!(
        (job.plan.as_deref(), job.plan_commit.unwrap().as_str().to_owned()),
        (Some("bench/plimsoll.toml"), sha("b"))
    );
    let base = Synthetic { tag: None, commit: Some(sha("a")), ancestors: vec![sha("9")], ..release("", 3) };
    app.upload(&report_of(job.run_id, &base)).await;

    let judged = app.get(&format!("/api/v1/snapshots/{id}/comparison")).await.json;
    assert_eq!(judged["verdict"], "regressed", "{judged}");
    assert_eq!(judged["baseline"]["run_ids"], json!([job.run_id]));
    assert_eq!(app.get(&format!("/api/v1/snapshots/{id}")).await.json["accepted"], false);
    assert_eq!(run(&app, id).await["verdict"], "regressed");
    let names = ["run.requested", "run.finished", "run.rejudged"].map(ToOwned::to_owned).to_vec();
    assert_eq!(told(&app, id).await, (names, Some("regressed".to_owned())));
    let former: Vec<(String, String)> =
        sqlx::query_as("select run_id::text, verdict from former_verdicts").fetch_all(&app.pool).await.unwrap();
    assert_eq!(former, [(id.to_string(), "no_baseline".to_owned())]);
    // The base has no baseline either, and that is where it ends.
    assert_eq!(runner.claim(&app).await, None);
}

#[tokio::test]
async fn it_is_queued_once_and_only_for_a_runner_that_can() {
    let app = App::new().await;
    // Nobody asked for this run: no runner is known to have its testbed.
    app.upload(&Synthetic { seed: 9, ..pull() }.report()).await;
    let unserved = ask_for_pull(&app).await;
    app.upload(&report_of(unserved, &pull())).await;
    let runner = Actor::new();
    assert_eq!(runner.claim(&app).await, None);

    for seed in [10, 11] {
        let id = ask_for_pull(&app).await;
        app.upload(&report_of(id, &Synthetic { seed, ..pull() })).await;
    }
    let job = runner.claim(&app).await.expect("a backfill");
    assert_eq!((job.kind, runner.claim(&app).await.map(|again| again.run_id)), (Kind::Backfill, Some(job.run_id)));

    // All that waited for this commit are judged again.
    let base = Synthetic { tag: None, commit: Some(sha("a")), ..release("", 3) };
    app.upload(&report_of(job.run_id, &base)).await;
    let waiting: i64 = sqlx::query_scalar("select count(*) from verdicts where verdict = 'no_baseline'")
        .fetch_one(&app.pool)
        .await
        .unwrap();
    assert_eq!(waiting, 1, "the base itself");
}

#[tokio::test]
async fn a_cancelled_one_stays_away_for_a_week() {
    let app = App::new().await;
    let runner = Actor::new();
    let measure_pull = async |seed| {
        let id = ask_for_pull(&app).await;
        measure(&app, &runner, id, &Synthetic { seed, ..pull() }).await;
    };
    measure_pull(20).await;
    let queued = app.read("/api/v1/runs?state=queued").await.json;
    assert_eq!((&queued[0]["kind"], queued.as_array().unwrap().len()), (&"backfill".into(), 1), "{queued}");
    let stop = format!("/api/v1/runs/{}/cancel", queued[0]["run_id"].as_str().unwrap());
    assert_eq!(app.change("POST", &stop, json!({"reason": "too old"})).await.json["state"], "cancelled");

    measure_pull(21).await;
    assert_eq!(runner.claim(&app).await, None, "somebody does not want it");
    let earlier = "update jobs set finished_at = now() - interval '8 days' where state = 'cancelled'";
    sqlx::raw_sql(earlier).execute(&app.pool).await.unwrap();
    measure_pull(22).await;
    assert_eq!(runner.claim(&app).await.expect("a backfill").kind, Kind::Backfill);
}

#[tokio::test]
async fn a_base_that_cannot_be_measured_leaves_the_verdict() {
    let app = App::new().await;
    let runner = Actor::new();
    let id = ask_for_pull(&app).await;
    measure(&app, &runner, id, &pull()).await;
    let job = runner.claim(&app).await.unwrap();
    runner.end(&app, &job, Ending::Failed).await;
    assert_eq!(run(&app, id).await["verdict"], "no_baseline");

    // Measured, but spoiled.
    let id = ask_for_pull(&app).await;
    measure(&app, &runner, id, &Synthetic { seed: 9, ..pull() }).await;
    let job = runner.claim(&app).await.unwrap();
    let spoiled = Synthetic { tag: None, commit: Some(sha("a")), engine_cpu: 0.97, ..release("", 3) };
    app.upload(&report_of(job.run_id, &spoiled)).await;
    assert_eq!(run(&app, id).await["verdict"], "no_baseline");
    assert_eq!(told(&app, id).await.0.len(), 2);
}

#[tokio::test]
async fn a_base_that_is_stored_while_the_run_is_judged_counts() {
    let app = App::new().await;
    let id = ask_for_pull(&app).await;
    Actor::new().claim(&app).await.unwrap();
    // Holds the run between its judgement and its snapshot.
    let mut hold = app.pool.begin().await.unwrap();
    let lock = "select pg_advisory_xact_lock(hashtextextended($1, 0))";
    sqlx::query(lock).bind(format!("run {id}")).execute(&mut *hold).await.unwrap();
    let base = async {
        let waits = "select exists (select 1 from pg_locks where locktype = 'advisory' and not granted
                     and database = (select oid from pg_database where datname = current_database()))";
        let judged = async || sqlx::query_scalar::<_, bool>(waits).fetch_one(&app.pool).await.unwrap();
        while !judged().await {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        app.upload(&Synthetic { tag: None, commit: Some(sha("a")), ..release("", 3) }.report()).await;
        hold.rollback().await.unwrap();
    };
    let slow = report_of(id, &Synthetic { service_ms: 84.0, ..pull() });
    let (answer, ()) = tokio::join!(app.upload(&slow), base);
    assert_eq!(answer.json["comparison"]["verdict"], "regressed");
    assert_eq!(run(&app, id).await["verdict"], "regressed");
    assert_eq!(told(&app, id).await.0, ["run.requested", "run.finished", "run.rejudged"]);
}
