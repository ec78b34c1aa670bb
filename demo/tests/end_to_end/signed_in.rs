//! A person at work in a real Chromium: signs in, makes a token, follows a run that goes on meanwhile, stops it, and
//! leaves. Nothing in the console, so no script failed and the content security policy was not broken.

use plimsoll_domain::job::{Assignment, Ended, Ending, Heartbeat, Progress, Stage};
use serde_json::{Value, json};

use crate::chromium::{Browser, reachable};
use crate::support::{Serving, is_busy};

#[test]
fn a_run_is_followed_and_stopped_by_who_signed_in() {
    let _turn = is_busy();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(work());
}

async fn work() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::Builder::new().permissions(reachable()).tempdir().expect("a temporary directory");
    let server = Serving::server(folder.path());
    let admin = std::fs::read_to_string(folder.path().join("token")).expect("the server's token").trim().to_owned();
    let machine = Machine { address: server.address.clone(), client: reqwest::Client::new() };
    let browser = Browser::start().await;

    let mut console = sign_in(&browser, &server.address, &admin).await;
    let token = make_token(&browser).await;
    let asked =
        machine.post(&token, "/api/v1/runs", &json!({"project": "sentiment", "revision": {"tag": "v2.0.0"}})).await;
    assert_eq!(asked.0, 201, "{}", asked.1);
    let run = asked.1["run_id"].as_str().expect("a run's id").to_owned();
    console.extend(follow(&browser, &machine, &admin, &run).await);
    console.extend(revoke(&browser, &machine, &token).await);

    browser.click("header form[action='/sign-out'] button").await;
    browser.until(".account", "Sign in").await;
    console.extend(fits(&browser).await);
    browser.quit().await;
    assert!(console.is_empty(), "the console says {console:#?}");
}

/// Comes to the settings by way of the sign-in.
async fn sign_in(browser: &Browser, address: &str, token: &str) -> Vec<String> {
    let url = format!("{address}/sign-in?next=/settings/tokens");
    let console = browser.look(&url, 1_280, "light").await.expect("the form").console;
    browser.fill("#token", token).await;
    browser.click("main form button").await;
    browser.until("h1", "Settings of the server").await;
    [console, fits(browser).await].concat()
}

/// Makes a token and sees it once.
async fn make_token(browser: &Browser) -> String {
    browser.fill("#name", "from the browser").await;
    browser.click("#scope option[value=upload]").await;
    browser.click("form[action='/settings/tokens'] button").await;
    browser.until(".made", "Token from the browser").await;
    let token = browser.until(".once", "").await;
    assert!(token.len() >= 64, "{token:?}");
    browser.click("header a[href='/settings/tokens']").await;
    let listed = browser.until("[aria-label=Tokens]", "from the browser").await;
    assert!(!listed.contains(&token), "{listed}");
    token
}

/// The page keeps up with the run without being loaded again; then the run is stopped on it.
async fn follow(browser: &Browser, machine: &Machine, admin: &str, run: &str) -> Vec<String> {
    let url = format!("{}/sentiment/runs/{run}", machine.address);
    let mut console = browser.look(&url, 1_280, "dark").await.expect("the page").console;
    browser.until(".say", "It waits").await;
    let job = machine.claim(admin).await;
    browser.until(".word", "Preparing").await;
    for second in 1..=20 {
        machine.beat(admin, &job, second, Stage::Staircase).await;
    }
    browser.until(".say", "Running on gpu-host-1: staircase, 48 workers, 312\u{202f}TPS, P99 171\u{202f}ms").await;
    browser.until(".gauges", "312").await;
    let lines = browser.driver.execute("return document.querySelectorAll('.drawn polyline').length;", Vec::new()).await;
    assert!(lines.expect("the browser answers").json().as_u64() > Some(1), "the lines are drawn");
    // What is open stays open while the page changes.
    browser.click("#cancel").await;
    machine.beat(admin, &job, 21, Stage::Stability).await;
    browser.until("#announced", "stability").await;
    console.extend(fits(browser).await);

    browser.click("form[action$=cancel] button").await;
    browser.until("#stop", "was asked to stop").await;
    let answer = machine.beat(admin, &job, 22, Stage::Stability).await;
    assert!(answer["cancel"].is_string(), "{answer}");
    browser.driver.execute("window.kept = true;", Vec::new()).await.expect("the browser answers");
    let ended = Ended { lease: job.lease, how: Ending::Cancelled, reason: "as asked".to_owned() };
    let end = machine.post(admin, &format!("/api/v1/agent/runs/{run}/end"), &json!(ended)).await;
    assert_eq!(end.0, 204, "{}", end.1);
    browser.until(".word", "Cancelled").await;
    browser.until(".say", "on its page").await;
    let kept = browser.driver.execute("return window.kept === true;", Vec::new()).await.expect("the browser answers");
    assert_eq!(kept.json(), &Value::Bool(true), "the page was loaded again");
    console.extend(fits(browser).await);
    console
}

/// A token that is revoked on the page opens nothing any more.
async fn revoke(browser: &Browser, machine: &Machine, token: &str) -> Vec<String> {
    browser.click("header nav a[href='/settings/tokens']").await;
    browser.until("[aria-label=Tokens]", "from the browser").await;
    browser.click("[aria-label=Tokens] details summary").await;
    let button = browser.until("[aria-label=Tokens] details[open] button", "Revoke").await;
    assert_eq!(button, "Revoke from the browser");
    browser.click("[aria-label=Tokens] details[open] button").await;
    browser.until("[aria-label=Tokens]", "revoked").await;
    let refused = machine.post(token, "/api/v1/runs", &json!({})).await;
    assert_eq!(refused.0, 401, "{}", refused.1);
    fits(browser).await
}

/// The page that is open is no wider than a desk's or a phone's screen.
async fn fits(browser: &Browser) -> Vec<String> {
    let mut console = Vec::new();
    for width in [390, 1_280] {
        let seen = browser.at_width(width).await.expect("the page");
        assert!(
            seen.scroll_width <= seen.inner_width,
            "scrolls to {} px at {width} px: {}",
            seen.scroll_width,
            seen.text
        );
        console.extend(seen.console);
    }
    console
}

/// What asks for runs and carries them out.
struct Machine {
    address: String,
    client: reqwest::Client,
}

impl Machine {
    async fn post(&self, token: &str, path: &str, body: &Value) -> (u16, Value) {
        let request = self.client.post(format!("{}{path}", self.address)).bearer_auth(token).json(body);
        let answer = request.send().await.expect("the server answers");
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    async fn claim(&self, token: &str) -> Assignment {
        let runner = json!({"id": "0198c0de-0000-7000-8000-000000000001", "name": "gpu-host-1", "version": "0.1.0",
            "labels": {}, "projects": ["sentiment"]});
        let (status, job) = self.post(token, "/api/v1/agent/claim", &json!({"runner": runner, "wait_s": 5})).await;
        assert_eq!(status, 200, "{job}");
        serde_json::from_value(job).expect("an assignment")
    }

    async fn beat(&self, token: &str, job: &Assignment, second: u64, stage: Stage) -> Value {
        let progress = Progress {
            workers: Some(48),
            left_ms: Some(540_000),
            done: Some(0.4),
            tps: Some(312.0),
            p50_ms: Some(140.0),
            p99_ms: Some(171.0),
            errors: Some(0),
            gpu_utilisation: Some(0.61),
            ..Progress::at(second * 1_000, stage)
        };
        let heartbeat = Heartbeat { lease: job.lease, progress: vec![progress], draining: false };
        let path = format!("/api/v1/agent/runs/{}/heartbeat", job.run_id);
        let (status, answer) = self.post(token, &path, &json!(heartbeat)).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }
}
