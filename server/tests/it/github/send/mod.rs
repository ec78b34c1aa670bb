//! What GitHub is told of it all.

mod faults;
mod told;

use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::Wanted;
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_server::tasks::github::{deadlines, progress, send};
use sqlx::types::Json;
use uuid::Uuid;

use super::actor::{PROJECT, Site};
use crate::app::App;
use crate::jobs::actor::report_of;

impl Site {
    /// Everything that is due is sent.
    async fn send(&self) {
        send_from(&self.server).await;
    }

    /// Waits end now, GitHub's too.
    async fn hurry(&self) {
        for sql in [
            "update github_writes set next_at = now() where done_at is null and failed_at is null",
            "update github_pace set not_before = now()",
        ] {
            sqlx::query(sql).execute(&self.server.pool).await.unwrap();
        }
    }

    /// What waits to be sent, and why.
    async fn pending(&self) -> Vec<Option<String>> {
        let sql = "select last_error from github_writes where done_at is null and failed_at is null order by id";
        sqlx::query_scalar(sql).fetch_all(&self.server.pool).await.unwrap()
    }

    /// Why what was given up was.
    async fn given_up(&self) -> Vec<String> {
        let sql = "select distinct last_error from github_writes where failed_at is not null";
        sqlx::query_scalar(sql).fetch_all(&self.server.pool).await.unwrap()
    }

    /// The report of the run of this head arrives.
    async fn measured(&self, head: &str, of: Synthetic) {
        let sql = "select run_id, revision from jobs where revision ->> 'commit' = $1 order by created_at desc limit 1";
        let (run_id, Json(wanted)): (Uuid, Json<Wanted>) =
            sqlx::query_as(sql).bind(head).fetch_one(&self.server.pool).await.unwrap();
        let of = Synthetic {
            project: PROJECT.to_owned(),
            commit: Some(head.to_owned()),
            branch: wanted.branch,
            tag: wanted.tag,
            pull_request: wanted.pull_request,
            merge_base: wanted.merge_base.map(|base| base.as_str().to_owned()),
            ..of
        };
        self.server.upload(&report_of(RunId(run_id), &of)).await;
    }

    /// A measured commit of the default branch, so that there is a baseline.
    async fn baseline(&self) {
        let (head, event) = {
            let mut model = self.github.model();
            let before = model.repositories[&self.id].branches["main"].clone();
            let head = model.push(self.id, "main", &[("src/app.py", Some("base"))]);
            (head, model.push_event(self.id, "main", Some(&before)))
        };
        self.tell(event).await;
        self.measured(&head, Synthetic::default()).await;
        self.send().await;
        assert_eq!(self.shown(&head), ["branch: failure"], "without a baseline, in doubt");
        self.github.take_writes();
    }

    /// A pull request that is measured; its number and head.
    async fn opened(&self, branch: &str) -> (i64, String) {
        let (number, head) = self.pull(branch, "src/app.py");
        self.tell(self.pull_event(number, "opened")).await;
        (number, head)
    }

    /// The check runs of a head that GitHub has, the oldest first: `plimsoll/ranker completed success`.
    fn check_runs(&self, head: &str) -> Vec<String> {
        let model = self.github.model();
        let runs = model.repositories[&self.id].checks.values().filter(|run| run.head_sha == head);
        let line = |run: &super::fake::CheckRun| match &run.conclusion {
            Some(conclusion) => format!("{} {conclusion}", run.name),
            None => format!("{} {}", run.name, run.status),
        };
        runs.map(line).collect()
    }

    fn shown(&self, head: &str) -> Vec<String> {
        self.check_runs(head).into_iter().map(|line| line.replace("plimsoll/ranker ", "branch: ")).collect()
    }

    /// The bodies of the App's comments.
    fn comments(&self) -> Vec<String> {
        let model = self.github.model();
        let ours = model.repositories[&self.id].comments.values().filter(|comment| comment.app_id.is_some());
        ours.map(|comment| comment.body.clone()).collect()
    }

    async fn end(&self) {
        assert_eq!(self.pending().await, [None; 0]);
        self.github.end();
    }
}

async fn send_from(server: &App) {
    loop {
        let told = send::run_once(&server.state).await.unwrap()
            + progress::run_once(&server.state).await.unwrap()
            + deadlines::run_once(&server.state).await.unwrap();
        if told == 0 {
            return;
        }
    }
}

/// A service that got slower.
fn slower() -> Synthetic {
    Synthetic { run_factor: 2.0, seed: 7, ..Synthetic::default() }
}

fn same() -> Synthetic {
    Synthetic { seed: 8, ..Synthetic::default() }
}
