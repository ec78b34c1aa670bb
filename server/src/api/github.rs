//! Where GitHub delivers what happened. A delivery is checked, stored and answered; a task reads and handles it later.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use futures_util::StreamExt as _;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;

use crate::error::{AppError, Result};
use crate::github::webhook::{Delivery, MAX_BYTES, Refused, Sent};
use crate::state::AppState;
use crate::store::github::inbox::{self, Put};

const SIGNATURE: HeaderName = HeaderName::from_static("x-hub-signature-256");
const DELIVERY: HeaderName = HeaderName::from_static("x-github-delivery");
const EVENT: HeaderName = HeaderName::from_static("x-github-event");

/// Hardly a body is larger. One that is waits for its turn, so that who has no secret cannot fill the memory, and is
/// checked beside the asynchronous tasks.
const SMALL: usize = 256 << 10;
/// GitHub itself waits no longer.
const READ_WITHIN: Duration = Duration::from_secs(10);
/// What may wait to be handled, and for how long that is believed: counting takes longer than storing.
const MOST_ROWS: i64 = 20_000;
const MOST_BYTES: i64 = 2 << 30;
const COUNT_EVERY: Duration = Duration::from_secs(2);

#[derive(Debug, Serialize)]
pub(super) struct Taken {
    delivery: String,
    /// False of one that was here before, and is not handled twice.
    new: bool,
}

pub(super) async fn webhook(State(state): State<AppState>, request: Request) -> Result<(StatusCode, Json<Taken>)> {
    let secret = state.app().map(|app| app.webhook_secret().clone()).ok_or_else(no_app)?;
    let (head, body) = request.into_parts();
    if !head.headers.contains_key(SIGNATURE) {
        return Err(refusal(Refused::Unsigned));
    }
    let (body, turn) = read(&state, &head.headers, body).await?;
    let open = move || {
        let text = |name: HeaderName| head.headers.get(name).and_then(|value| value.to_str().ok());
        let (signature, content_type) = (text(SIGNATURE), text(header::CONTENT_TYPE));
        Sent { signature, delivery: text(DELIVERY), event: text(EVENT), content_type, body }.open(&secret)
    };
    // Not one of the computations: reports may have all of those turns for long.
    let opened = match turn {
        None => open(),
        Some(_) => tokio::task::spawn_blocking(open).await.map_err(AppError::internal)?,
    };
    store(&state, opened.map_err(refusal)?).await
}

async fn store(state: &AppState, delivery: Delivery) -> Result<(StatusCode, Json<Taken>)> {
    let new = inbox::New {
        delivery: &delivery.id,
        event: &delivery.event,
        lane: delivery.lane.as_deref(),
        body: &delivery.payload,
    };
    let (status, new) = match inbox::put(state.pool(), &new, has_room(state).await?).await? {
        Put::Stored => (StatusCode::ACCEPTED, true),
        Put::Known => (StatusCode::OK, false),
        Put::Full => return Err(full()),
    };
    Ok((status, Json(Taken { delivery: delivery.id, new })))
}

async fn has_room(state: &AppState) -> Result<bool> {
    let known = match state.inbox_room().get(COUNT_EVERY) {
        Some(known) => return Ok(known),
        None => inbox::has_room(state.pool(), MOST_ROWS, MOST_BYTES).await?,
    };
    state.inbox_room().set(known);
    Ok(known)
}

/// The body, and the turn of one that is not small: to be kept until it is stored.
async fn read(state: &AppState, headers: &HeaderMap, body: Body) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>)> {
    let said = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if said.is_some_and(|said| said > MAX_BYTES as u64) {
        return Err(too_large());
    }
    let collect = async {
        let (mut chunks, mut read, mut turn) = (body.into_data_stream(), Vec::new(), None);
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| AppError::bad_request(format!("the body breaks off: {error}")))?;
            let length = read.len() + chunk.len();
            if length > MAX_BYTES {
                return Err(too_large());
            }
            if length > SMALL && turn.is_none() {
                turn = Some(state.turn_for_delivery().await?);
            }
            read.extend_from_slice(&chunk);
        }
        Ok((read, turn))
    };
    let late = |_| AppError::new(StatusCode::REQUEST_TIMEOUT, "the body did not come in time");
    tokio::time::timeout(READ_WITHIN, collect).await.map_err(late)?
}

fn refusal(refused: Refused) -> AppError {
    let status = match refused {
        Refused::Unsigned | Refused::Forged => StatusCode::UNAUTHORIZED,
        Refused::Delivery | Refused::Event => StatusCode::BAD_REQUEST,
        Refused::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
    };
    AppError::new(status, refused.to_string())
}

fn no_app() -> AppError {
    AppError::new(
        StatusCode::NOT_FOUND,
        "this server is no GitHub App: make one at /github/setup, or set PLIMSOLL_GITHUB_APP_ID, \
         PLIMSOLL_GITHUB_PRIVATE_KEY_FILE and PLIMSOLL_GITHUB_WEBHOOK_SECRET",
    )
}

fn too_large() -> AppError {
    AppError::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a delivery has at most {MAX_BYTES} bytes"))
}

fn full() -> AppError {
    let detail = "too many deliveries wait to be handled; redeliver this one later";
    AppError::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(60)
}
