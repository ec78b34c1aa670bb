//! Runs as their readers see them: how they go, what became of them, and who may stop them.

use axum::body::Body;
use axum::http::{Request, StatusCode};
use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::{Ended, Ending, Heartbeat, LeaseId, Progress, Stage};
use plimsoll_domain::report::Report;
use plimsoll_server::access::Scope;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::site::{Seen, Site, release};

/// A program with an administrator's token that asks for runs and carries them out.
struct Machine<'a> {
    site: &'a Site,
    runner: Uuid,
}

const MACHINE: &str = "the token of a machine";

impl<'a> Machine<'a> {
    async fn new(site: &'a Site) -> Self {
        site.token(MACHINE, Scope::Admin, None).await;
        Self { site, runner: Uuid::now_v7() }
    }

    async fn ask(&self, project: &str, tag: &str, labels: Value) -> RunId {
        let request = json!({"project": project, "revision": {"tag": tag}, "labels": labels});
        let answer = self.post("/api/v1/runs", &request).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
        let run: Value = serde_json::from_str(&answer.body).unwrap();
        run["run_id"].as_str().unwrap().parse().unwrap()
    }

    async fn claim(&self, projects: &[&str]) -> Option<(RunId, LeaseId)> {
        let runner = json!({"id": self.runner, "name": "gpu-host-1", "version": "0.1.0", "labels": {"gpu": "A10"},
            "projects": projects});
        let answer = self.post("/api/v1/agent/claim", &json!({"runner": runner, "wait_s": 0})).await;
        if answer.status == StatusCode::NO_CONTENT {
            return None;
        }
        let job: Value = serde_json::from_str(&answer.body).unwrap();
        Some((
            job["run_id"].as_str().unwrap().parse().unwrap(),
            LeaseId(job["lease"].as_str().unwrap().parse().unwrap()),
        ))
    }

    async fn beat(&self, run: RunId, lease: LeaseId, progress: Vec<Progress>) {
        let answer = self
            .post(&format!("/api/v1/agent/runs/{run}/heartbeat"), &Heartbeat { lease, progress, draining: false })
            .await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    }

    async fn beat_last(&self, run: RunId, lease: LeaseId) {
        let beat = Heartbeat { lease, progress: Vec::new(), draining: true };
        let answer = self.post(&format!("/api/v1/agent/runs/{run}/heartbeat"), &beat).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    }

    async fn upload(&self, report: &Report) {
        let answer = self.send("/api/v1/snapshots", report.to_json().into()).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
    }

    async fn post(&self, path: &str, body: &impl serde::Serialize) -> Seen {
        self.send(path, serde_json::to_vec(body).unwrap()).await
    }

    async fn send(&self, path: &str, body: Vec<u8>) -> Seen {
        let request = Request::post(path).header("authorization", format!("Bearer {MACHINE}"));
        self.site.send(request.header("content-type", "application/json").body(Body::from(body)).unwrap()).await
    }
}

fn progress(second: u64, stage: Stage) -> Progress {
    Progress {
        workers: Some(48),
        left_ms: Some(540_000),
        done: Some(0.4),
        tps: Some(312.0),
        p50_ms: Some(140.0),
        p99_ms: (second > 5).then_some(171.0),
        errors: Some(0),
        gpu_utilisation: Some(0.61),
        ..Progress::at(second * 1_000, stage)
    }
}

#[tokio::test]
async fn a_run_is_followed_from_the_queue_to_its_snapshot() {
    let site = Site::new(&[release("v1.0.0", 0, 10).report()]).await;
    let machine = Machine::new(&site).await;
    let visitor = site.signed_in(Scope::Read, Some("sentiment")).await;
    let run = machine.ask("sentiment", "v1.1.0", json!({"gpu": "A10"})).await;
    let path = format!("/sentiment/runs/{run}");

    let page = visitor.page(&path).await;
    assert_eq!(page.one(".word"), "Waiting");
    assert_eq!(page.one(".say"), "It waits, and no runner with gpu=A10 takes runs of sentiment: start one.");
    assert_eq!(page.attributes("[data-events]", "data-events"), [format!("/api/v1/runs/{run}/events")]);
    assert_eq!(page.attributes("noscript meta[http-equiv=refresh]", "content").len(), 0, "scraper parses it as text");
    assert!(page.body.contains("<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>"));
    assert_eq!(page.attributes("script", "src").len(), 1);
    assert!(page.all(".drawn").is_empty(), "nothing to draw yet");

    let (taken, lease) = machine.claim(&["sentiment"]).await.expect("a run");
    assert_eq!(taken, run);
    machine.beat(run, lease, vec![progress(1, Stage::Start)]).await;
    let page = visitor.page(&path).await;
    assert_eq!(
        (page.one(".word"), page.one(".say")),
        ("Preparing".into(), "Preparing on gpu-host-1: start of the service.".into())
    );

    machine.beat(run, lease, (2..30).map(|second| progress(second, Stage::Staircase)).collect()).await;
    let page = visitor.page(&path).await;
    let say =
        "Running on gpu-host-1: staircase, 48 workers, 312\u{202f}TPS, P99 171\u{202f}ms; about 9\u{202f}min left.";
    assert_eq!(page.one(".say").split_whitespace().collect::<Vec<_>>().join(" "), spaced(say));
    assert_eq!(page.one("#announced"), "Running: staircase");
    assert_eq!(page.all(".gauges dd")[1], "312");
    assert!(page.all(".gauges dd")[6].contains("no GPU is measured"), "unknown is a dash with its reason");
    assert!(page.attributes(".drawn.wide polyline", "points").len() >= 2, "TPS and P99 are drawn");
    let steps = page.table("What happened");
    assert_eq!(
        steps.iter().map(|step| step[0].as_str()).collect::<Vec<_>>(),
        ["Asked for", "Attempt 1 of 3: taken by gpu-host-1", "The service is measured"]
    );
    assert!(visitor.page("/").await.table("Projects")[0][0].contains("1 running"));

    let report = Report { run_id: run, ..release("v1.1.0", 1, 10).report() };
    machine.upload(&report).await;
    let page = visitor.page(&path).await;
    let snapshot = format!("/sentiment/snapshots/{run}");
    assert!(page.attributes(".facts a", "href").contains(&snapshot));
    assert!(page.one(".word").contains("No regression") || page.one(".word").contains("Pass"), "{}", page.one(".word"));
    assert!(page.all("script").is_empty() && !page.body.contains("noscript"), "nothing more is to come");
    assert!(page.table("What happened").iter().any(|step| step[0] == "Judged"));
    let short = visitor.get(&format!("/runs/{run}")).await;
    assert_eq!((short.status, short.header("location")), (StatusCode::SEE_OTHER, path.as_str()));
}

/// As a reader of the DOM sees it.
fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn a_snapshot_that_nobody_asked_for_has_no_page_of_a_run() {
    let report = release("v1.0.0", 0, 10).report();
    let site = Site::new(std::slice::from_ref(&report)).await;
    let page = site.visitor().get(&format!("/sentiment/runs/{}", report.run_id)).await;
    assert_eq!(page.header("location"), format!("/sentiment/snapshots/{}", report.run_id));
    for nowhere in ["/sentiment/runs/0198c0de-0000-7000-8000-000000000000", "/sentiment/runs/none"] {
        assert!(site.visitor().get(nowhere).await.status.is_client_error(), "{nowhere}");
    }
}

#[tokio::test]
async fn a_lost_runner_and_a_failure_leave_their_reasons() {
    let site = Site::new(&[]).await;
    let machine = Machine::new(&site).await;
    let run = machine.ask("sentiment", "v1.0.0", json!({})).await;
    let (_, lease) = machine.claim(&["sentiment"]).await.expect("a run");
    machine.beat(run, lease, vec![progress(1, Stage::Smoke)]).await;
    // A runner that asks anew has lost what it had.
    let (again, lease) = machine.claim(&["sentiment"]).await.expect("the run again");
    assert_eq!(again, run);
    let reader = site.signed_in(Scope::Read, Some("sentiment")).await;
    let page = reader.page(&format!("/sentiment/runs/{run}")).await;
    let lost = page.table("What happened").into_iter().find(|step| step[0].starts_with("Back in the queue"));
    let lost = lost.expect("the lost attempt");
    assert!(
        lost[0].contains("after attempt 1 of 3") && lost[2].contains("Runner lost: it was last heard at"),
        "{lost:?}"
    );
    assert!(page.all(".facts li").contains(&"attempt 2 of 3".to_owned()));

    let reason = "the <b>plan</b> names no origin".to_owned();
    machine.post(&format!("/api/v1/agent/runs/{run}/end"), &Ended { lease, how: Ending::Failed, reason }).await;
    let page = reader.page(&format!("/sentiment/runs/{run}")).await;
    assert_eq!(page.one(".word"), "Failed");
    assert_eq!(page.one(".say"), "It could not be measured on gpu-host-1. The <b>plan</b> names no origin.");
    assert!(!page.body.contains("<b>plan</b>") && page.all("script").is_empty());
    assert!(page.one("#course figcaption p").contains("of attempt 1"), "the second attempt has nothing to draw");

    // Without a scope for the project one is told the same, but of no host and of nobody who asked.
    for stranger in [site.visitor(), site.signed_in(Scope::Admin, Some("other")).await] {
        let page = stranger.page(&format!("/sentiment/runs/{run}")).await;
        assert_eq!(page.one(".say"), "It could not be measured. The <b>plan</b> names no origin.");
        let steps: Vec<String> = page.table("What happened").into_iter().map(|mut step| step.swap_remove(0)).collect();
        let told = [
            "Asked for",
            "Attempt 1 of 3",
            "The service is measured",
            "Back in the queue after attempt 1 of 3",
            "Attempt 2 of 3",
            "Failed",
        ];
        assert_eq!(steps, told);
        for page in [page, stranger.page("/runs").await] {
            assert!(!page.body.contains("gpu-host-1") && !page.body.contains(MACHINE), "{}", page.body);
        }
    }
    assert!(reader.page("/runs").await.body.contains("gpu-host-1"));
}

#[tokio::test]
async fn only_who_may_cancels_and_only_from_our_own_page() {
    let site = Site::new(&[]).await;
    let machine = Machine::new(&site).await;
    let run = machine.ask("sentiment", "v1.0.0", json!({})).await;
    let (path, stop) = (format!("/sentiment/runs/{run}"), format!("/sentiment/runs/{run}/cancel"));
    let (nobody, reader) = (site.visitor(), site.signed_in(Scope::Read, Some("sentiment")).await);
    let elsewhere = site.signed_in(Scope::Upload, Some("other")).await;
    for (visitor, refusal) in
        [(&nobody, StatusCode::UNAUTHORIZED), (&reader, StatusCode::FORBIDDEN), (&elsewhere, StatusCode::FORBIDDEN)]
    {
        assert!(visitor.page(&path).await.all("form[action$=cancel]").is_empty());
        assert_eq!(visitor.post(&stop, &[]).await.status, refusal);
    }
    let own = site.signed_in(Scope::Upload, Some("sentiment")).await;
    assert_eq!(own.page(&path).await.attributes("form[action$=cancel]", "action"), std::slice::from_ref(&stop));
    assert_eq!(own.post_from("cross-site", &stop, &[]).await.status, StatusCode::FORBIDDEN);
    assert_eq!(own.page(&path).await.one(".word"), "Waiting");
    let done = own.post(&stop, &[]).await;
    assert_eq!((done.status, done.header("location")), (StatusCode::SEE_OTHER, path.as_str()));
    let page = own.page(&path).await;
    assert_eq!(page.one(".say"), "Cancelled. Cancelled on its page.");
    assert!(page.all(".drawn").is_empty() && page.one("#course .note").starts_with("There is no chart"));
    assert!(page.all("form[action$=cancel]").is_empty());
    // A second press is no harm.
    assert_eq!(own.post(&stop, &[]).await.status, StatusCode::SEE_OTHER);
    // Under another project's name it is not there.
    let other = site.signed_in(Scope::Admin, None).await;
    assert_eq!(other.get(&format!("/other/runs/{run}")).await.status, StatusCode::NOT_FOUND);
    assert_eq!(other.post(&format!("/other/runs/{run}/cancel"), &[]).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_runner_at_work_is_asked_to_stop_and_the_page_says_so() {
    let site = Site::new(&[]).await;
    let machine = Machine::new(&site).await;
    let run = machine.ask("sentiment", "v1.0.0", json!({})).await;
    let (_, lease) = machine.claim(&["sentiment"]).await.expect("a run");
    machine.beat(run, lease, vec![progress(9, Stage::Staircase)]).await;
    let own = site.signed_in(Scope::Upload, None).await;
    own.post(&format!("/sentiment/runs/{run}/cancel"), &[]).await;
    let page = own.page(&format!("/sentiment/runs/{run}")).await;
    assert_eq!(page.one(".word"), "Running");
    assert!(page.one(".problem").contains("was asked to stop"), "{}", page.one(".problem"));
    assert!(page.all("form[action$=cancel]").is_empty() && page.all("script").len() == 1);
}

#[tokio::test]
async fn private_runs_are_listed_to_their_readers_only() {
    let site = Site::new(&[]).await;
    let machine = Machine::new(&site).await;
    let open = machine.ask("open", "v1.0.0", json!({})).await;
    let secret = machine.ask("secret", "v9.9.9", json!({"gpu": "H200"})).await;
    site.make_private("secret").await;
    let (nobody, reader) = (site.visitor(), site.signed_in(Scope::Read, Some("secret")).await);

    let page = nobody.page("/runs").await;
    assert_eq!(page.table("Runs").len(), 1);
    assert_eq!(page.attributes("tbody th a", "href"), [format!("/open/runs/{open}")]);
    assert!(!page.body.contains("secret") && !page.body.contains("v9.9.9"), "{}", page.body);
    assert_eq!(page.one(".say"), "No run is under way; one waits.");
    assert!(nobody.page("/runs?project=secret").await.table("Runs").is_empty());
    assert_eq!(nobody.get(&format!("/secret/runs/{secret}")).await.status, StatusCode::NOT_FOUND);
    assert_eq!(nobody.get(&format!("/runs/{secret}")).await.status, StatusCode::NOT_FOUND);
    assert!(!nobody.page("/").await.body.contains("secret"));

    assert_eq!(reader.page("/runs").await.table("Runs").len(), 2);
    let page = reader.page("/runs?project=secret&state=queued").await;
    let rows = page.table("Runs");
    assert_eq!((rows.len(), rows[0][5].as_str()), (1, "Needs gpu=H200."), "{rows:?}");
    assert_eq!((page.one("h1"), page.one("header .private")), ("Runs of secret".to_owned(), "Private".to_owned()));
    assert!(reader.page("/runs?state=done").await.table("Runs").is_empty());
    let empty = reader.page("/runs?project=secret&state=done").await;
    assert!(empty.one("main pre").contains(r#"-d '{"project": "secret", "revision": {"tag": "v1.9.2"}}'"#));
    assert!(empty.attributes("main a", "href").contains(&"/api/v1/openapi.json".to_owned()));
    assert_eq!(reader.get("/runs?state=sleeping").await.status, StatusCode::BAD_REQUEST);
    assert_eq!(reader.get("/runs?project=%3Cb%3E").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn runners_are_shown_to_those_with_a_scope_and_say_what_waits_in_vain() {
    let site = Site::new(&[]).await;
    let machine = Machine::new(&site).await;
    let (fits, alone) = (
        machine.ask("mine", "v1.0.0", json!({"gpu": "A10"})).await,
        machine.ask("mine", "v2.0.0", json!({"gpu": "H200"})).await,
    );
    let covert = machine.ask("covert", "v3.0.0", json!({"gpu": "H100"})).await;
    site.make_private("covert").await;
    let (taken, lease) = machine.claim(&["mine", "covert"]).await.expect("a run");
    assert_eq!(taken, fits);
    machine.beat(fits, lease, vec![progress(9, Stage::Staircase)]).await;

    assert_eq!(site.visitor().get("/runners").await.status, StatusCode::UNAUTHORIZED);
    assert!(!site.visitor().page("/").await.all("header a").contains(&"Runners".to_owned()));
    let mine = site.signed_in(Scope::Read, Some("mine")).await;
    let page = mine.page("/runners").await;
    assert_eq!(page.one(".say"), "0 idle, 1 at work; 1 run waits, for what no runner has.");
    let rows = page.table("Runners");
    assert_eq!(rows.len(), 1);
    assert!(rows[0][0].contains("gpu-host-1") && rows[0][1].contains("mine v1.0.0, staircase, 48 workers"), "{rows:?}");
    assert_eq!((rows[0][3].as_str(), rows[0][4].as_str()), ("gpu=A10", "mine"), "the other project is not named");
    let alone_rows = page.table("Waiting for what no runner has");
    assert_eq!(alone_rows, [["mine", "gpu=H200", "v2.0.0"]]);
    assert!(page.attributes("main a", "href").contains(&format!("/mine/runs/{alone}")));
    assert!(!page.body.contains(&covert.to_string()) && !page.body.contains("covert"));

    let elsewhere = site.signed_in(Scope::Admin, Some("elsewhere")).await;
    let page = elsewhere.page("/runners").await;
    assert!(page.one(".say").starts_with("No runner has been heard yet") && !page.body.contains("gpu-host-1"));
    let all = site.signed_in(Scope::Read, None).await;
    assert_eq!(all.page("/runners").await.table("Waiting for what no runner has").len(), 2);

    // It was told to end, and does so after this run.
    machine.beat_last(fits, lease).await;
    let page = mine.page("/runners").await;
    assert!(page.one(".say").starts_with("0 idle, 1 at work (1 of them ending); 1 run waits"), "{}", page.one(".say"));
    assert!(page.table("Runners")[0][1].ends_with("staircase, 48 workers; ends after it"), "{}", page.body);

    // It says that it takes no more runs: what it had goes back, and it is not idle.
    machine.claim(&[]).await;
    let page = mine.page("/runners").await;
    assert!(page.one(".say").starts_with("0 idle, 0 at work, 1 ended; 2 runs wait"), "{}", page.one(".say"));
    assert_eq!(page.table("Runners")[0][1], "ended");

    // A runner that was not heard for a week fits nothing any more, on either page.
    let late = machine.ask("mine", "v4.0.0", json!({"gpu": "A10"})).await;
    let waits = "It waits until a runner with gpu=A10 is free.";
    assert_eq!(mine.page(&format!("/mine/runs/{late}")).await.one(".say"), waits);
    let away = "update runners set last_seen_at = now() - interval '8 days'";
    sqlx::query(away).execute(&site.pool).await.unwrap();
    let lone = "It waits, and no runner with gpu=A10 takes runs of mine: start one.";
    assert_eq!(mine.page(&format!("/mine/runs/{late}")).await.one(".say"), lone);
    let alone = mine.page("/runners").await.table("Waiting for what no runner has");
    assert_eq!(alone, [["mine", "gpu=A10", "v4.0.0, v1.0.0"], ["mine", "gpu=H200", "v2.0.0"]]);
}
