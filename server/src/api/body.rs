//! The body of an upload: plain, zstd or gzip, bounded as sent and as unpacked, and in how many are held at a time.

use std::future::Future;
use std::io::{self, Read};

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use flate2::read::MultiGzDecoder;
use plimsoll_domain::report::MAX_BYTES;
use tokio::sync::OwnedSemaphorePermit;

use crate::error::{AppError, Result};
use crate::state::AppState;

/// How a body was packed. `zstd` is what is stored, so that nothing is packed again, and by far the quickest to unpack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Plain,
    Gzip,
    Zstd,
}

/// A body as it was sent.
#[derive(Debug)]
pub(super) struct ReportBody {
    bytes: Bytes,
    encoding: Encoding,
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
        let bytes = Bytes::from(read().await?.concat());
        let encoding = if bytes.starts_with(&ZSTD) { Encoding::Zstd } else { Encoding::Gzip };
        Ok(Self { bytes, encoding, turn })
    }

    /// As it was sent.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn into_turn(self) -> OwnedSemaphorePermit {
        self.turn
    }

    /// The bytes, where they are what is stored.
    pub(super) fn packed(&self) -> Option<Vec<u8>> {
        (self.encoding == Encoding::Zstd).then(|| self.bytes.to_vec())
    }

    /// The JSON. Needs a processor for a while.
    pub(super) fn json(&self) -> Result<Vec<u8>> {
        let broken = |name: &str, e: io::Error| AppError::bad_request(format!("the body is not whole {name}: {e}"));
        match self.encoding {
            Encoding::Plain => Ok(self.bytes.to_vec()),
            Encoding::Gzip => self.unpack(MultiGzDecoder::new(&self.bytes[..])).map_err(|e| broken("gzip", e)),
            Encoding::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(&self.bytes[..]).and_then(|mut decoder| {
                    decoder.window_log_max(MAX_WINDOW_LOG)?;
                    Ok(decoder)
                });
                decoder.and_then(|decoder| self.unpack(decoder)).map_err(|e| broken("zstd", e))
            }
        }
        .and_then(|json| if json.len() > MAX_BYTES { Err(too_large()) } else { Ok(json) })
    }

    /// At most a byte more than may be.
    fn unpack(&self, decoder: impl Read) -> io::Result<Vec<u8>> {
        let mut json = Vec::with_capacity(self.likely_length());
        decoder.take(MAX_BYTES as u64 + 1).read_to_end(&mut json)?;
        Ok(json)
    }

    /// What the body says of its length, as far as it is likely: memory is not taken on its word.
    fn likely_length(&self) -> usize {
        let said = match self.encoding {
            Encoding::Plain => Some(self.bytes.len()),
            Encoding::Gzip => self.bytes.last_chunk().map(|four| u32::from_le_bytes(*four) as usize),
            Encoding::Zstd => zstd::zstd_safe::get_frame_content_size(&self.bytes).ok().flatten().map(|n| n as usize),
        };
        // A byte more, so that the end is seen without growing.
        said.unwrap_or_default().min(4 * self.bytes.len()).min(MAX_BYTES) + 1
    }
}

impl FromRequest<AppState> for ReportBody {
    type Rejection = AppError;

    async fn from_request(mut request: Request, state: &AppState) -> Result<Self> {
        let encoding = encoding(request.headers())?;
        check_type(request.headers())?;
        check_length(request.headers())?;
        let turn = state.turn_to_upload().await?;
        DefaultBodyLimit::max(MAX_BYTES).apply(&mut request);
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => too_large(),
            status => AppError::new(status, rejection.body_text()),
        })?;
        Ok(Self { bytes, encoding, turn })
    }
}

fn too_large() -> AppError {
    AppError::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a report has at most {MAX_BYTES} bytes"))
}

/// How every zstd frame begins.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// 8 MiB: what the usual levels need at most. A frame may ask for far more memory.
const MAX_WINDOW_LOG: u32 = 23;

fn encoding(headers: &HeaderMap) -> Result<Encoding> {
    match headers.get(header::CONTENT_ENCODING).map(|value| value.as_bytes()) {
        None | Some(b"identity") => Ok(Encoding::Plain),
        Some(b"gzip") => Ok(Encoding::Gzip),
        Some(b"zstd") => Ok(Encoding::Zstd),
        Some(_) => {
            Err(AppError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send the report plain, with zstd or with gzip"))
        }
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
