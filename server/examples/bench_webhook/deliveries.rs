//! What GitHub delivers, and how it is taken.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit as _, Mac as _};
use plimsoll_domain::ids::ProjectSlug;
use plimsoll_server::store::github::links::{self, NewLink};
use plimsoll_server::store::github::repositories::{self, Seen};
use plimsoll_server::store::projects::{self, Visibility};
use plimsoll_server::store::{self, Pool};
use serde_json::{Value, json};
use sha2::Sha256;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::Fallible;

pub(crate) const APP: i64 = 4711;
pub(crate) const SECRET: &str = "the secret of this measurement";

const INSTALLATION: i64 = 7;
/// Each with a project, so that what is delivered needs GitHub's answers.
const REPOSITORIES: i64 = 20;
/// About what GitHub puts around what is used.
const PADDING: usize = 8 << 10;
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

pub(crate) async fn projects(pool: &Pool) -> Fallible {
    let mut transaction = store::begin(pool).await?;
    repositories::install(&mut *transaction, INSTALLATION, "octo").await?;
    for id in 1..=REPOSITORIES {
        let (full_name, project) = (format!("octo/service-{id}"), format!("service-{id}"));
        let project: ProjectSlug = project.parse()?;
        let seen = Seen {
            id,
            installation: INSTALLATION,
            full_name: &full_name,
            default_branch: Some("main"),
            private: false,
        };
        repositories::put(&mut *transaction, seen).await?;
        projects::ensure(&mut *transaction, &project, Visibility::Public).await?;
        let link = NewLink {
            project: &project,
            repository: id,
            plan: "plimsoll.toml",
            paths: &["src/**".to_owned()],
            tags: None,
            labels: &BTreeMap::new(),
            queue_minutes: 60,
            created_by: "a measurement",
        };
        links::put(&mut *transaction, &link).await?;
    }
    Ok(store::commit(transaction).await?)
}

/// Signed requests, ready to be sent.
#[derive(Debug)]
pub(crate) struct Round(Vec<(String, Vec<u8>)>);

/// How one was taken.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) delivery: String,
    /// `None`: not answered.
    pub(crate) status: Option<u16>,
    /// Since the start of the round.
    pub(crate) ms: f64,
}

impl Round {
    pub(crate) fn new(number: usize, deliveries: usize) -> Self {
        Self((0..deliveries).map(|n| request(number, n)).collect())
    }

    /// Sends all at once; `taken` hears after each answer how many there were.
    pub(crate) async fn send(self, to: SocketAddr, mut taken: impl FnMut(usize)) -> Vec<Taken> {
        let began = Instant::now();
        let mut sending = JoinSet::new();
        for (delivery, request) in self.0 {
            sending.spawn(async move {
                let answer = tokio::time::timeout(ANSWERED_WITHIN, exchange(to, &request)).await;
                let status = answer.ok().and_then(Result::ok);
                Taken { delivery, status, ms: began.elapsed().as_secs_f64() * 1e3 }
            });
        }
        let mut all = Vec::new();
        while let Some(one) = sending.join_next().await {
            all.push(one.expect("sending does not panic"));
            taken(all.len());
        }
        all
    }
}

/// The status, once the whole answer is here.
async fn exchange(to: SocketAddr, request: &[u8]) -> Fallible<u16> {
    let mut connection = TcpStream::connect(to).await?;
    connection.write_all(request).await?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await?;
    let status = answer.get(9..12).and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    status.ok_or_else(|| "no answer".into())
}

fn request(round: usize, n: usize) -> (String, Vec<u8>) {
    let delivery = format!("round-{round}-{n}");
    let (event, payload) = delivered(round, n);
    let body = payload.to_string();
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("a key of any length is one");
    mac.update(body.as_bytes());
    let digest: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let request = format!(
        "POST /github/webhook HTTP/1.1\r\nHost: plimsoll\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nX-GitHub-Delivery: {delivery}\r\nX-GitHub-Event: {event}\r\n\
         X-Hub-Signature-256: sha256={digest}\r\n\r\n{body}",
        body.len()
    );
    (delivery, request.into_bytes())
}

/// Pushes, tags and pull requests, all of which need GitHub's answers.
fn delivered(round: usize, n: usize) -> (&'static str, Value) {
    let id = n as i64 % REPOSITORIES + 1;
    let (head, base) = (format!("{:040x}", round * 10_000 + n + 1), format!("{:040x}", 1));
    let mut payload = json!({
        "repository": {
            "id": id, "full_name": format!("octo/service-{id}"), "default_branch": "main", "private": false,
            "description": "x".repeat(PADDING),
        },
        "installation": { "id": INSTALLATION }, "sender": { "login": "mona", "type": "User" },
    });
    let (event, own) = match n % 3 {
        0 => {
            ("push", json!({ "ref": "refs/heads/main", "before": base, "after": head, "head_commit": { "id": head } }))
        }
        1 => ("create", json!({ "ref": format!("v{round}.{n}.0"), "ref_type": "tag" })),
        _ => {
            let end = |name: &str, sha: &str| json!({ "ref": name, "sha": sha, "repo": { "id": id } });
            let pull = json!({
                "number": n + 1, "state": "open", "head": end("faster", &head), "base": end("main", &base),
                "updated_at": "2026-03-01T10:00:00Z", "user": { "login": "mona" },
            });
            ("pull_request", json!({ "action": "opened", "number": n + 1, "pull_request": pull }))
        }
    };
    let (Value::Object(payload_keys), Value::Object(own)) = (&mut payload, own) else { unreachable!("objects") };
    payload_keys.extend(own);
    (event, payload)
}
