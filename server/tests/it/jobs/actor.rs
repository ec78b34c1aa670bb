//! A runner that asks and tells what it is made to, and those who ask for runs.

use axum::http::StatusCode;
use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::{Assignment, Ended, Ending, Heartbeat, Progress, Stage};
use plimsoll_domain::report::Report;
use plimsoll_domain::synthetic::Synthetic;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::app::{Answer, App};

pub(crate) struct Actor {
    pub(crate) id: Uuid,
    pub(crate) projects: Vec<&'static str>,
    pub(crate) token: Option<String>,
}

impl Actor {
    pub(crate) fn new() -> Self {
        Self { id: Uuid::now_v7(), projects: vec!["sentiment"], token: None }
    }

    pub(crate) async fn claim_answer(&self, app: &App, wait_s: u32) -> Answer {
        let claim = json!({
            "runner": {"id": self.id, "name": "gpu-1", "version": "0.1.0", "labels": {"gpu": "A10"},
                "projects": self.projects},
            "wait_s": wait_s,
        });
        match &self.token {
            Some(token) => app.ask_by(token, "POST", "/api/v1/agent/claim", &claim).await,
            None => app.ask("POST", "/api/v1/agent/claim", &claim).await,
        }
    }

    pub(crate) async fn claim(&self, app: &App) -> Option<Assignment> {
        let answer = self.claim_answer(app, 0).await;
        match answer.status {
            StatusCode::NO_CONTENT => None,
            StatusCode::OK => Some(serde_json::from_value(answer.json).unwrap()),
            _ => panic!("{answer:?}"),
        }
    }

    pub(crate) async fn beat(&self, app: &App, job: &Assignment, stage: Stage) -> Answer {
        let progress = Progress {
            workers: Some(24),
            done: Some(0.5),
            tps: Some(178.4),
            p99_ms: Some(184.2),
            errors: Some(0),
            ..Progress::at(1_000, stage)
        };
        let heartbeat = Heartbeat { lease: job.lease, progress: vec![progress], draining: false };
        app.ask("POST", &format!("/api/v1/agent/runs/{}/heartbeat", job.run_id), &heartbeat).await
    }

    pub(crate) async fn end(&self, app: &App, job: &Assignment, how: Ending) -> Answer {
        let ended = Ended { lease: job.lease, how, reason: "the service did not start".to_owned() };
        app.ask("POST", &format!("/api/v1/agent/runs/{}/end", job.run_id), &ended).await
    }
}

/// Asks for a run of a tag, and returns its id.
pub(crate) async fn ask(app: &App, tag: &str, more: Value) -> RunId {
    let mut request = json!({"project": "sentiment", "revision": {"tag": tag}});
    request.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    let answer = app.ask("POST", "/api/v1/runs", &request).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    serde_json::from_value(answer.json["run_id"].clone()).unwrap()
}

/// The report of a run that was asked for.
pub(crate) fn report_of(run_id: RunId, of: &Synthetic) -> Report {
    Report { run_id, ..of.report() }
}

pub(crate) async fn run(app: &App, run_id: RunId) -> Value {
    let answer = app.ask("GET", &format!("/api/v1/runs/{run_id}"), &Value::Null).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    answer.json
}

pub(crate) async fn state(app: &App, run_id: RunId) -> String {
    run(app, run_id).await["state"].as_str().unwrap().to_owned()
}

/// The runner is not heard any more.
pub(crate) async fn end_lease(app: &App, run_id: RunId) {
    let sql = "update jobs set lease_expires_at = now() - interval '1 second' where run_id = $1 and lease is not null";
    sqlx::query(sql).bind(run_id.0).execute(&app.pool).await.unwrap();
}

/// The run's outbox: events in order, and the conclusion that the last one carries.
pub(crate) async fn told(app: &App, run_id: RunId) -> (Vec<String>, Option<String>) {
    let sql = "select seq, event, payload ->> 'conclusion' from outbox where run_id = $1 order by seq";
    let rows: Vec<(i32, String, Option<String>)> =
        sqlx::query_as(sql).bind(run_id.0).fetch_all(&app.pool).await.unwrap();
    let seqs: Vec<i32> = rows.iter().map(|row| row.0).collect();
    assert_eq!(seqs, (1..=i32::try_from(rows.len()).unwrap()).collect::<Vec<_>>(), "a gap");
    let last = rows.last().and_then(|row| row.2.clone());
    (rows.into_iter().map(|row| row.1).collect(), last)
}
