//! Sends events from the outbox to webhooks: each at least once, those of a run in order.
//!
//! A receiver may see an event again (its answer was lost, or this server was): `Plimsoll-Delivery` is the same then, and
//! so is the body.

use std::time::Duration;

use futures_util::future::join_all;
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use sha2::Sha256;

use super::retry::pause;
use crate::hex::hex;
use crate::state::AppState;
use crate::store::deliveries::{self, Due};
use crate::store::{self, StoreError};

/// Sent at the same time, and of these to one webhook.
const MOST: i64 = 32;
const EACH: i64 = 4;
/// Longer than a request may take; after it another server sends the event, if this one died.
const LEASE: Duration = Duration::from_secs(20);
const FIRST_RETRY: Duration = Duration::from_secs(2);
const LAST_RETRY: Duration = Duration::from_secs(3_600);
/// An event of this age is given up, but not before it was tried a few times: the server itself may have been away.
const GIVE_UP_AFTER: Duration = Duration::from_secs(24 * 3_600);
const MIN_ATTEMPTS: i32 = 3;

/// Sends what is due and returns how much that was. No transaction is open while it sends.
pub async fn run_once(state: &AppState) -> Result<usize, StoreError> {
    let due = deliveries::take(state.pool(), MOST, EACH, LEASE).await?;
    let sent = join_all(due.iter().map(|due| deliver(state, due))).await;
    sent.into_iter().collect::<Result<Vec<()>, _>>()?;
    Ok(due.len())
}

async fn deliver(state: &AppState, due: &Due) -> Result<(), StoreError> {
    let failed = match send(state, due).await {
        Ok(200..=299) => return store::deliveries::delivered(state.pool(), due.id).await,
        // Gone: the receiver says that it will never be there again.
        Ok(410) => Failed { why: "answered 410".to_owned(), retry: None },
        Ok(status @ 300..=399) => Failed::later(due, format!("answered {status}; redirects are not followed")),
        Ok(status) => Failed::later(due, format!("answered {status}")),
        Err(why) => Failed::later(due, why),
    };
    let Failed { why, retry } = &failed;
    let (run_id, event) = (due.event.run_id, &due.event.name);
    tracing::warn!(delivery = due.id, %run_id, event, why, given_up = retry.is_none(), "a webhook was not delivered");
    deliveries::failed(state.pool(), due.id, due.attempts, why, *retry).await
}

struct Failed {
    why: String,
    retry: Option<Duration>,
}

impl Failed {
    fn later(due: &Due, why: String) -> Self {
        let age = Duration::try_from(due.now.duration_since(due.event.created_at)).unwrap_or_default();
        let over = age >= GIVE_UP_AFTER && due.attempts >= MIN_ATTEMPTS;
        Self { why, retry: (!over).then(|| pause(due.attempts, FIRST_RETRY, LAST_RETRY)) }
    }
}

async fn send(state: &AppState, due: &Due) -> Result<u16, String> {
    // Checked again: what is allowed may have changed since it was set.
    let target = state.outgoing().target(&due.url).map_err(|refused| refused.to_string())?;
    let body = body(due);
    let headers = headers(due, &body)?;
    state.outgoing().post(&target, headers, body).await.map_err(|error| error.to_string())
}

/// The same for each attempt.
fn body(due: &Due) -> Vec<u8> {
    let event = &due.event;
    let body = json!({
        "event": event.name,
        "project": event.project,
        "run_id": event.run_id,
        "seq": event.seq,
        "created_at": event.created_at,
        "data": event.payload,
    });
    body.to_string().into_bytes()
}

fn headers(due: &Due, body: &[u8]) -> Result<HeaderMap, String> {
    let timestamp = due.now.as_second().to_string();
    let values = [
        (CONTENT_TYPE, "application/json".to_owned()),
        (HeaderName::from_static("plimsoll-event"), due.event.name.clone()),
        (HeaderName::from_static("plimsoll-delivery"), due.id.to_string()),
        (HeaderName::from_static("plimsoll-signature-256"), signature(&due.secret, &timestamp, body)),
        (HeaderName::from_static("plimsoll-timestamp"), timestamp),
    ];
    let header = |(name, value): (HeaderName, String)| {
        HeaderValue::try_from(value).map(|value| (name, value)).map_err(|error| error.to_string())
    };
    values.into_iter().map(header).collect()
}

/// Over the time too, so that a request which somebody keeps cannot be sent again later.
fn signature(secret: &SecretString, timestamp: &str, body: &[u8]) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.expose_secret().as_bytes()).expect("a key of any length is one");
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    format!("sha256={}", hex(&mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_signature_is_what_openssl_says() {
        // printf '1764547200.{"a":1}' | openssl dgst -sha256 -hmac secret
        let made = signature(&SecretString::from("secret"), "1764547200", br#"{"a":1}"#);
        assert_eq!(made, "sha256=776415641d1f6a2f677a30d82c19b4908e9922f15650cd2096a318da8f446874");
    }

    #[test]
    fn an_event_is_given_up_by_age_and_attempts() {
        let due = |hours: i64, attempts: i32| {
            let now = Timestamp::from_second(1_764_000_000).unwrap();
            let event = deliveries::Event {
                run_id: uuid::Uuid::nil(),
                project: "p".to_owned(),
                seq: 1,
                name: "run.finished".to_owned(),
                created_at: now - jiff::SignedDuration::from_hours(hours),
                payload: json!({}),
            };
            Due { id: 1, attempts, now, url: String::new(), secret: SecretString::from("x"), event }
        };
        assert!(Failed::later(&due(23, 40), String::new()).retry.is_some());
        assert!(Failed::later(&due(25, 1), String::new()).retry.is_some());
        assert!(Failed::later(&due(25, 3), String::new()).retry.is_none());
        // A clock that went back.
        assert!(Failed::later(&due(-5, 3), String::new()).retry.is_some());
    }
}
