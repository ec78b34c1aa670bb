//! The body of an upload: plain or gzip, bounded as sent and as unpacked, and in how many are held at a time.

use std::future::Future;
use std::io::Read as _;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use flate2::read::MultiGzDecoder;
use plimsoll_domain::report::MAX_BYTES;
use tokio::sync::OwnedSemaphorePermit;

use crate::error::{AppError, Result};
use crate::state::AppState;

/// A body as it was sent.
#[derive(Debug)]
pub(super) struct ReportBody {
    bytes: Bytes,
    gzip: bool,
    /// Counts this upload among those in memory: to be kept as long as what was made of the body.
    turn: OwnedSemaphorePermit,
}

impl ReportBody {
    /// Parts that `read` brings, joined to one compressed body once there is room for it in memory.
    pub(super) async fn joined<F: Future<Output = Result<Vec<Vec<u8>>>>>(
        state: &AppState,
        read: impl FnOnce() -> F,
    ) -> Result<Self> {
        let turn = state.turn_to_upload().await?;
        Ok(Self { bytes: read().await?.concat().into(), gzip: true, turn })
    }

    /// As it was sent.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn into_turn(self) -> OwnedSemaphorePermit {
        self.turn
    }

    /// The JSON. Needs a processor for a while.
    pub(super) fn json(&self) -> Result<Vec<u8>> {
        if !self.gzip {
            return Ok(self.bytes.to_vec());
        }
        let mut json = Vec::with_capacity(self.likely_length());
        let unpacked = MultiGzDecoder::new(&self.bytes[..]).take(MAX_BYTES as u64 + 1).read_to_end(&mut json);
        unpacked.map_err(|e| AppError::bad_request(format!("the body is not whole gzip: {e}")))?;
        if json.len() > MAX_BYTES { Err(too_large()) } else { Ok(json) }
    }

    /// What the end of the gzip says, as far as it is likely: memory is not taken on its word.
    fn likely_length(&self) -> usize {
        let last = self.bytes.last_chunk().map_or(0, |four| u32::from_le_bytes(*four) as usize);
        // A byte more, so that the end is seen without growing.
        last.min(4 * self.bytes.len()).min(MAX_BYTES) + 1
    }
}

impl FromRequest<AppState> for ReportBody {
    type Rejection = AppError;

    async fn from_request(mut request: Request, state: &AppState) -> Result<Self> {
        let gzip = is_gzip(request.headers())?;
        check_type(request.headers())?;
        check_length(request.headers())?;
        let turn = state.turn_to_upload().await?;
        DefaultBodyLimit::max(MAX_BYTES).apply(&mut request);
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => too_large(),
            status => AppError::new(status, rejection.body_text()),
        })?;
        Ok(Self { bytes, gzip, turn })
    }
}

fn too_large() -> AppError {
    AppError::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a report has at most {MAX_BYTES} bytes"))
}

fn is_gzip(headers: &HeaderMap) -> Result<bool> {
    match headers.get(header::CONTENT_ENCODING).map(|value| value.as_bytes()) {
        None | Some(b"identity") => Ok(false),
        Some(b"gzip") => Ok(true),
        Some(_) => Err(AppError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send the report plain or with gzip")),
    }
}

/// What says that it is too large is not read at all.
fn check_length(headers: &HeaderMap) -> Result<()> {
    let said = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if said.is_some_and(|said| said > MAX_BYTES as u64) { Err(too_large()) } else { Ok(()) }
}

fn check_type(headers: &HeaderMap) -> Result<()> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    match given.map(|given| given.split(';').next().unwrap_or_default().trim()) {
        None | Some("application/json") => Ok(()),
        Some(_) => Err(AppError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send the report as application/json")),
    }
}
