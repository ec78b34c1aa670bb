//! A server that acts as an App on a GitHub of its own, with a project that is measured from a repository there.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use axum::http::Request;
use plimsoll_domain::ids::{CommitSha, ProjectSlug};
use plimsoll_server::store::github::links::{self, Link, NewLink};
use plimsoll_server::store::github::repositories::{self, Repository};
use plimsoll_server::store::projects::{self, Visibility};
use plimsoll_server::tasks::github::inbox;

use super::fake::FakeGitHub;
use super::fake::payloads::{Delivery, signature};
use crate::app::App;

pub(crate) struct Site {
    pub(crate) github: FakeGitHub,
    pub(crate) server: App,
    /// octo/ranker
    pub(crate) id: i64,
    delivered: AtomicU64,
}

pub(crate) const PROJECT: &str = "ranker";

impl Site {
    /// The project is about what lies in `src`.
    pub(crate) async fn new() -> Self {
        let github = FakeGitHub::start().await;
        let (id, place) = github.repository("octo/ranker");
        let server = App::with(github.settings()).await;
        let site = Self { github, server, id, delivered: AtomicU64::new(0) };
        let installed = site.github.model().installation_event(place.installation, "created");
        site.tell(installed).await;
        site.link(id, PROJECT, &["src/**"], None).await;
        site
    }

    pub(crate) async fn link(&self, repository: i64, project: &str, paths: &[&str], tags: Option<&str>) {
        let project = slug(project);
        projects::ensure(&self.server.pool, &project, Visibility::Public).await.unwrap();
        let link = NewLink {
            project: &project,
            repository,
            plan: "plimsoll.toml",
            paths: &paths.iter().map(|&path| path.to_owned()).collect::<Vec<_>>(),
            tags,
            labels: &BTreeMap::from([("gpu".to_owned(), "A10".to_owned())]),
            queue_minutes: 60,
            created_by: "a test",
        };
        links::put(&self.server.pool, &link).await.unwrap();
    }

    pub(crate) async fn linked(&self) -> Link {
        links::get(&self.server.pool, &slug(PROJECT)).await.unwrap().expect("a link")
    }

    pub(crate) async fn known(&self) -> Repository {
        repositories::get(&self.server.pool, self.id).await.unwrap().expect("a repository")
    }

    /// Delivers an event under an id of its own.
    pub(crate) async fn deliver(&self, delivery: &Delivery) {
        self.deliver_to(&self.server, delivery).await;
    }

    pub(crate) async fn deliver_to(&self, server: &App, (event, payload): &Delivery) {
        let body = payload.to_string();
        let request = Request::post("/github/webhook")
            .header("content-type", "application/json")
            .header("x-github-event", *event)
            .header("x-github-delivery", format!("delivery-{}", self.delivered.fetch_add(1, Ordering::Relaxed)))
            .header("x-hub-signature-256", signature(body.as_bytes()));
        let answer = server.send(request.body(Body::from(body)).unwrap()).await;
        assert!(answer.status.is_success(), "{answer:?}");
    }

    /// Handles what was delivered.
    pub(crate) async fn work(&self) {
        while inbox::run_once(&self.server.state).await.unwrap() > 0 {}
    }

    /// Delivers an event, and has it handled; what became of it.
    pub(crate) async fn tell(&self, delivery: Delivery) -> String {
        self.deliver(&delivery).await;
        self.work().await;
        let last = "select coalesce(outcome, last_error) from github_inbox order by received_at desc limit 1";
        sqlx::query_scalar(last).fetch_one(&self.server.pool).await.unwrap()
    }

    /// Every run, the oldest first: `pull 1 queued 1a2b3c4`.
    pub(crate) async fn runs(&self) -> Vec<String> {
        let all = "select supersedes || ' ' || case when cancel is null then state else 'stopping' end || ' '
                       || left(revision ->> 'commit', 7)
                   from jobs order by created_at, run_id";
        sqlx::query_scalar(all).fetch_all(&self.server.pool).await.unwrap()
    }

    /// Every check, the oldest first: `pull_request 1a2b3c4 run`, or how it is settled in the place of `run`; in
    /// brackets where another took its place.
    pub(crate) async fn checks(&self) -> Vec<String> {
        let all = "select case when superseded_at is null then line else '(' || line || ')' end
                   from (select *, kind || ' ' || left(head_sha, 7) || ' ' || coalesce(settled ->> 'conclusion', 'run')
                         as line from github_checks) c order by id";
        sqlx::query_scalar(all).fetch_all(&self.server.pool).await.unwrap()
    }

    /// Checks that GitHub is to be told of, each once, the oldest first.
    pub(crate) async fn to_be_told(&self) -> Vec<String> {
        let all = "select c.kind || ' ' || left(c.head_sha, 7) from github_checks c
                   where exists (select 1 from github_writes w where w.check_id = c.id and w.done_at is null)
                   order by c.id";
        sqlx::query_scalar(all).fetch_all(&self.server.pool).await.unwrap()
    }

    /// A branch's pull request that changes a file, opened; its number and head.
    pub(crate) fn pull(&self, branch: &str, path: &str) -> (i64, String) {
        let mut model = self.github.model();
        let head = model.push(self.id, branch, &[(path, Some(branch))]);
        (model.open_pull(self.id, branch, "mona"), head)
    }

    pub(crate) fn pull_event(&self, number: i64, action: &str) -> Delivery {
        self.github.model().pull_event(self.id, number, action)
    }

    /// A runner takes what is first in the queue.
    pub(crate) async fn take(&self) {
        let running = "update jobs set state = 'leased', lease = gen_random_uuid(), attempt = 1,
                           lease_expires_at = now() + interval '1 hour'
                       where run_id = (select run_id from jobs where state = 'queued'
                                       order by priority desc, created_at limit 1)";
        let taken = sqlx::query(running).execute(&self.server.pool).await.unwrap();
        assert_eq!(taken.rows_affected(), 1, "nothing waits");
    }
}

pub(crate) fn slug(project: &str) -> ProjectSlug {
    project.parse().unwrap()
}

pub(crate) fn commit(sha: &str) -> CommitSha {
    sha.parse().unwrap()
}

pub(crate) fn short(sha: &str) -> &str {
    &sha[..7]
}
