//! Webhooks: set by administrators, and events that reach a receiver however that behaves.

use std::time::Duration;

use axum::http::StatusCode;
use hmac::{Hmac, KeyInit as _, Mac as _};
use plimsoll_server::state::{AppState, Settings};
use plimsoll_server::store::{self, Pool};
use plimsoll_server::tasks::deliveries::run_once;
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::app::{App, database};

const HOOKS: &str = "/api/v1/projects/demo/webhooks";

#[tokio::test]
async fn a_webhook_is_set_shown_without_its_secret_and_removed() {
    let app = App::new().await;
    let made = app.change("POST", HOOKS, json!({ "url": "https://example.com/hook?key=1" })).await;
    assert_eq!(made.status, StatusCode::CREATED, "{made:?}");
    assert_eq!(made.json["secret"].as_str().map(str::len), Some(64));
    let listed = app.read(HOOKS).await;
    assert_eq!(listed.json[0]["id"], made.json["id"]);
    assert_eq!((&listed.json[0]["waiting"], &listed.json[0]["given_up"]), (&json!(0), &json!(0)));
    assert!(!listed.json.to_string().contains(made.json["secret"].as_str().unwrap()));
    // As another project's it is not there.
    let id = made.json["id"].as_str().unwrap();
    let elsewhere = app.change("DELETE", &format!("/api/v1/projects/other/webhooks/{id}"), Value::Null).await;
    assert_eq!(elsewhere.status, StatusCode::NOT_FOUND);
    let removed = app.change("DELETE", &format!("{HOOKS}/{id}"), Value::Null).await;
    assert_eq!(removed.status, StatusCode::NO_CONTENT, "{removed:?}");
    assert_eq!(app.change("DELETE", &format!("{HOOKS}/{id}"), Value::Null).await.status, StatusCode::NOT_FOUND);
    assert_eq!(app.read(HOOKS).await.json, json!([]));
    let acts: Vec<String> = sqlx::query_scalar("select action || ' ' || (detail ->> 'to') from audit order by id")
        .fetch_all(&app.pool)
        .await
        .unwrap();
    assert_eq!(acts, ["webhook.create https://example.com", "webhook.remove https://example.com"]);
}

#[tokio::test]
async fn addresses_behind_the_server_are_refused_when_they_are_set() {
    let app = App::new().await;
    for url in ["http://127.0.0.1/", "http://0x7f.1/", "http://[::ffff:10.0.0.1]/", "ftp://example.com/", "nothing"] {
        let answer = app.change("POST", HOOKS, json!({ "url": url })).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{url}: {answer:?}");
        assert!(answer.json["detail"].as_str().unwrap().starts_with("url: "), "{answer:?}");
    }
    let answer = app.change("POST", HOOKS, json!({ "url": "https://example.com/", "secret": "mine" })).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_project_has_a_bounded_number_of_webhooks() {
    let app = App::new().await;
    let create = async |path: &str| app.change("POST", path, json!({ "url": "https://example.com/" })).await.status;
    for _ in 0..store::webhooks::MAX_PER_PROJECT {
        assert_eq!(create(HOOKS).await, StatusCode::CREATED);
    }
    assert_eq!(create(HOOKS).await, StatusCode::CONFLICT);
    assert_eq!(create("/api/v1/projects/other/webhooks").await, StatusCode::CREATED);
}

#[tokio::test]
async fn events_arrive_signed_and_in_order() {
    let sender = Sender::new(true).await;
    let mut receiver = Receiver::start(&[Reply::Status(204)]).await;
    sender.webhook(&receiver.url).await;
    let run = sender.run(3).await;
    // One at a time: the next waits for the one before it.
    for seq in 1..=3 {
        assert_eq!(run_once(&sender.state).await.unwrap(), 1);
        let got = receiver.next().await;
        assert_eq!(got.body["run_id"], run.to_string());
        assert_eq!((&got.body["seq"], &got.body["data"]), (&json!(seq), &json!({ "n": seq })));
        assert_eq!(got.header("plimsoll-event"), "run.started");
        assert_eq!(got.header("plimsoll-signature-256"), got.signature("a secret"));
    }
    assert_eq!(run_once(&sender.state).await.unwrap(), 0);
    assert_eq!(sender.deliveries().await, [(1, true, false, None), (1, true, false, None), (1, true, false, None)]);
}

#[tokio::test]
async fn what_fails_is_sent_again_with_the_same_body_and_holds_up_its_run_only() {
    let sender = Sender::new(true).await;
    let mut receiver = Receiver::start(&[Reply::Status(500), Reply::Reset, Reply::Status(200)]).await;
    sender.webhook(&receiver.url).await;
    sender.run(2).await;
    run_once(&sender.state).await.unwrap();
    let first = receiver.next().await;
    // It waits for its time, and the second event waits for it.
    assert_eq!(run_once(&sender.state).await.unwrap(), 0);
    assert_eq!(sender.deliveries().await[0], (1, false, false, Some("answered 500".to_owned())));
    // Another run's event does not wait.
    sender.run(1).await;
    assert_eq!(run_once(&sender.state).await.unwrap(), 1);
    assert_ne!(receiver.next().await.body["run_id"], first.body["run_id"]);
    assert_eq!(sender.deliveries().await[2].3.as_deref(), Some("the connection broke off"));
    sender.ripen().await;
    run_once(&sender.state).await.unwrap();
    let (a, b) = (receiver.next().await, receiver.next().await);
    let again = if a.body["run_id"] == first.body["run_id"] { a } else { b };
    assert_eq!(again.header("plimsoll-delivery"), first.header("plimsoll-delivery"));
    assert_eq!(again.body, first.body);
    assert_eq!(sender.deliveries().await[0].0, 2);
    assert!(sender.deliveries().await[0].1);
}

#[tokio::test]
async fn a_receiver_that_is_gone_or_redirects_gets_no_more() {
    let sender = Sender::new(true).await;
    let gone = Receiver::start(&[Reply::Status(410)]).await;
    sender.webhook(&gone.url).await;
    sender.run(1).await;
    run_once(&sender.state).await.unwrap();
    assert_eq!(sender.deliveries().await, [(1, false, true, Some("answered 410".to_owned()))]);

    let sender = Sender::new(true).await;
    let mut inner = Receiver::start(&[Reply::Status(200)]).await;
    let outer = Receiver::start(&[Reply::Redirect(inner.url.clone())]).await;
    sender.webhook(&outer.url).await;
    sender.run(1).await;
    run_once(&sender.state).await.unwrap();
    let why = Some("answered 307; redirects are not followed".to_owned());
    assert_eq!(sender.deliveries().await, [(1, false, false, why)]);
    assert!(inner.received.try_recv().is_err());
}

#[tokio::test]
async fn what_is_not_public_is_not_asked_even_when_it_was_set() {
    let sender = Sender::new(false).await;
    let mut receiver = Receiver::start(&[Reply::Status(200)]).await;
    let by_name = receiver.url.replace("127.0.0.1", "localhost");
    for url in [receiver.url.clone(), by_name] {
        sender.webhook(&url).await;
    }
    sender.run(1).await;
    assert_eq!(run_once(&sender.state).await.unwrap(), 2);
    for (_, delivered, _, why) in sender.deliveries().await {
        assert!(!delivered && why.unwrap().starts_with("the address is not public"));
    }
    assert!(receiver.received.try_recv().is_err());
}

#[tokio::test]
async fn a_slow_receiver_keeps_no_transaction_open_and_no_other_server_sends_the_same() {
    let sender = Sender::new(true).await;
    let mut receiver = Receiver::start(&[Reply::Never]).await;
    sender.webhook(&receiver.url).await;
    sender.run(1).await;
    let sending = tokio::spawn({
        let state = sender.state.clone();
        async move { run_once(&state).await.unwrap() }
    });
    receiver.next().await;
    let idle = "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in%'";
    let open: i64 = sqlx::query_scalar(idle).fetch_one(&sender.pool).await.unwrap();
    assert_eq!(open, 0);
    assert_eq!(run_once(&sender.state).await.unwrap(), 0);
    assert_eq!(sending.await.unwrap(), 1);
    assert_eq!(sender.deliveries().await, [(1, false, false, Some("no answer within 10 s".to_owned()))]);
}

#[tokio::test]
async fn one_webhook_takes_not_all_places() {
    let sender = Sender::new(true).await;
    let mut receiver = Receiver::start(&[Reply::Status(200)]).await;
    sender.webhook(&receiver.url).await;
    for _ in 0..6 {
        sender.run(1).await;
    }
    assert_eq!(run_once(&sender.state).await.unwrap(), 4);
    assert_eq!(run_once(&sender.state).await.unwrap(), 2);
    for _ in 0..6 {
        receiver.next().await;
    }
}

#[tokio::test]
async fn after_a_day_an_event_is_given_up_and_the_next_is_sent() {
    let sender = Sender::new(true).await;
    let mut receiver = Receiver::start(&[Reply::Status(503), Reply::Status(200)]).await;
    sender.webhook(&receiver.url).await;
    sender.run(2).await;
    let age = "update outbox set created_at = now() - interval '25 hours' where seq = 1";
    sqlx::query(age).execute(&sender.pool).await.unwrap();
    sqlx::query("update deliveries set attempts = 7").execute(&sender.pool).await.unwrap();
    run_once(&sender.state).await.unwrap();
    assert_eq!(sender.deliveries().await[0], (8, false, true, Some("answered 503".to_owned())));
    run_once(&sender.state).await.unwrap();
    assert_eq!(receiver.next().await.body["seq"], 1);
    assert_eq!(receiver.next().await.body["seq"], 2);
}

/// A server's state, and rows as the jobs write them.
struct Sender {
    state: AppState,
    pool: Pool,
}

impl Sender {
    async fn new(allow_private_webhooks: bool) -> Self {
        let pool = store::database::open(&database().await, 4).await.unwrap();
        sqlx::query("insert into projects (slug, policy) values ('demo', '{}')").execute(&pool).await.unwrap();
        let state = AppState::new(pool.clone(), Settings { allow_private_webhooks, ..Settings::default() });
        Self { state, pool }
    }

    async fn webhook(&self, url: &str) {
        let sql = "insert into webhooks (project, url, secret, created_by) values ('demo', $1, 'a secret', 'a test')";
        sqlx::query(sql).bind(url).execute(&self.pool).await.unwrap();
    }

    /// A run with so many events, for all webhooks that are there.
    async fn run(&self, events: i32) -> Uuid {
        let run = Uuid::now_v7();
        for seq in 1..=events {
            let event: i64 = sqlx::query_scalar(
                "insert into outbox (run_id, project, seq, event, payload) values ($1, 'demo', $2, 'run.started', $3)
                 returning id",
            )
            .bind(run)
            .bind(seq)
            .bind(json!({ "n": seq }))
            .fetch_one(&self.pool)
            .await
            .unwrap();
            let sql = "insert into deliveries (event, webhook) select $1, id from webhooks order by created_at";
            sqlx::query(sql).bind(event).execute(&self.pool).await.unwrap();
        }
        run
    }

    /// Lets the pauses pass.
    async fn ripen(&self) {
        sqlx::query("update deliveries set next_at = now()").execute(&self.pool).await.unwrap();
    }

    /// Attempts, whether delivered, whether given up, last error.
    async fn deliveries(&self) -> Vec<(i32, bool, bool, Option<String>)> {
        let sql = "select attempts, delivered_at is not null, failed_at is not null, last_error
                   from deliveries order by id";
        sqlx::query_as(sql).fetch_all(&self.pool).await.unwrap()
    }
}

#[derive(Debug, Clone)]
enum Reply {
    Status(u16),
    Redirect(String),
    Reset,
    /// Keeps the connection and says nothing.
    Never,
}

/// A receiver that answers by a script; the last line of it holds for all that follow.
struct Receiver {
    url: String,
    received: mpsc::UnboundedReceiver<Received>,
}

struct Received {
    head: Vec<(String, String)>,
    raw: Vec<u8>,
    body: Value,
}

impl Receiver {
    async fn start(script: &[Reply]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (send, received) = mpsc::unbounded_channel();
        let script = script.to_vec();
        tokio::spawn(async move {
            let mut kept = Vec::new();
            for turn in 0.. {
                let mut stream = BufReader::new(listener.accept().await.unwrap().0);
                let _ = send.send(read(&mut stream).await);
                let reply = &script[turn.min(script.len() - 1)];
                kept.extend(answer(stream.into_inner(), reply).await);
            }
        });
        Self { url, received }
    }

    async fn next(&mut self) -> Received {
        let next = tokio::time::timeout(Duration::from_secs(20), self.received.recv()).await;
        next.expect("an event arrives").expect("the receiver runs")
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Received {
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.trim().split_once(": ") {
            head.push((name.to_lowercase(), value.to_owned()));
        }
    }
    let length = head.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, value)| value.parse().unwrap());
    let mut raw = vec![0; length];
    stream.read_exact(&mut raw).await.unwrap();
    let body = serde_json::from_slice(&raw).unwrap();
    Received { head, raw, body }
}

/// The stream, where it is to be kept open.
async fn answer(mut stream: TcpStream, reply: &Reply) -> Option<TcpStream> {
    let text = match reply {
        Reply::Never => return Some(stream),
        Reply::Reset => return None,
        Reply::Status(status) => format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"),
        Reply::Redirect(to) => {
            format!("HTTP/1.1 307 X\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        }
    };
    stream.write_all(text.as_bytes()).await.unwrap();
    None
}

impl Received {
    fn header(&self, name: &str) -> &str {
        self.head.iter().find(|(is, _)| is == name).map_or("", |(_, value)| value)
    }

    fn signature(&self, secret: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(self.header("plimsoll-timestamp").as_bytes());
        mac.update(b".");
        mac.update(&self.raw);
        let digits: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("sha256={digits}")
    }
}
