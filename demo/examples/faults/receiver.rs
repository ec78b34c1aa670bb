//! Receives the project's webhook, not always willingly, and remembers what came.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use uuid::Uuid;

#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Debug, Default)]
struct Seen {
    secret: String,
    requests: u64,
    /// By delivery id.
    bodies: BTreeMap<String, Bytes>,
    /// Numbers of events in the order in which they came first.
    events: BTreeMap<Uuid, Vec<(i64, String)>>,
    wrong: Vec<String>,
}

impl Receiver {
    pub(crate) async fn start() -> Result<Self, String> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
        let receiver =
            Self { address: listener.local_addr().map_err(|error| error.to_string())?, seen: Arc::default() };
        let app = Router::new().fallback(receive).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(receiver)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(crate) fn set_secret(&self, secret: &str) {
        secret.clone_into(&mut self.seen().secret);
    }

    /// Numbers and names of a run's events in the order in which they came first.
    pub(crate) fn events(&self, run: Uuid) -> Vec<(i64, String)> {
        self.seen().events.get(&run).cloned().unwrap_or_default()
    }

    /// What was wrong with what came since this was asked last.
    pub(crate) fn take_wrong(&self) -> Vec<String> {
        std::mem::take(&mut self.seen().wrong)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let turn = {
        let mut seen = receiver.seen();
        seen.requests += 1;
        if let Err(why) = seen.take(&headers, &body) {
            seen.wrong.push(why);
        }
        seen.requests
    };
    // It remembers also what it refuses: that must come again.
    match turn % 12 {
        5 => StatusCode::INTERNAL_SERVER_ERROR,
        9 => {
            tokio::time::sleep(Duration::from_secs(1)).await;
            StatusCode::NO_CONTENT
        }
        _ => StatusCode::NO_CONTENT,
    }
}

impl Seen {
    fn take(&mut self, headers: &HeaderMap, body: &Bytes) -> Result<(), String> {
        let header = |name: &str| {
            let text = headers.get(name).and_then(|value| value.to_str().ok());
            text.map(ToOwned::to_owned).ok_or_else(|| format!("a webhook without {name}"))
        };
        let delivery = header("plimsoll-delivery")?;
        let signed = signature(&self.secret, &header("plimsoll-timestamp")?, body);
        if header("plimsoll-signature-256")? != signed {
            return Err(format!("delivery {delivery} has a wrong signature"));
        }
        match self.bodies.get(&delivery) {
            Some(before) if before != body => return Err(format!("delivery {delivery} came with two contents")),
            Some(_) => return Ok(()),
            None => drop(self.bodies.insert(delivery.clone(), body.clone())),
        }
        let document: Value = serde_json::from_slice(body).map_err(|error| format!("delivery {delivery}: {error}"))?;
        let run = document["run_id"].as_str().and_then(|id| id.parse().ok());
        let (Some(run), Some(seq)) = (run, document["seq"].as_i64()) else {
            return Err(format!("delivery {delivery} names no run"));
        };
        self.events.entry(run).or_default().push((seq, header("plimsoll-event")?));
        Ok(())
    }
}

fn signature(secret: &str, timestamp: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("a key of any length is one");
    for part in [timestamp.as_bytes(), b".", body] {
        mac.update(part);
    }
    let digits: String = mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={digits}")
}
