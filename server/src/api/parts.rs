//! Uploads in parts, for large reports over bad networks: begun by PUT, continued by PATCH, finished by POST. Each may be
//! repeated: what is there already is said, and nothing is stored twice.

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::JsonRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use plimsoll_domain::ids::RunId;
use plimsoll_domain::report::MAX_BYTES;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::body::ReportBody;
use super::read::run_id;
use super::upload::{self, Uploaded};
use crate::access::{Caller, Scope, on_run};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store::uploads::{self, Upload};
use crate::store::{self, StoreError};
use crate::tasks::ingest;

/// What is to be uploaded: a report as JSON, compressed with zstd or gzip.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object with sha256 and bytes")]
pub(super) struct Begin {
    /// Of the compressed bytes, in hexadecimal digits.
    sha256: String,
    /// Their number.
    bytes: u64,
}

/// How much of it the server has: the next part begins there.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Received {
    received: u64,
}

/// A part has at most this many bytes.
const MAX_PART: usize = 1 << 20;
/// Uploads under way of one owner.
const MAX_OPEN: i64 = 8;
const OFFSET: &str = "upload-offset";

/// Begins an upload, or says how far it is. Other bytes than those announced before begin it anew.
#[utoipa::path(put, path = "/api/v1/uploads/{run}", params(("run" = RunId, Path)), request_body = Begin, responses((status = 200, body = Received)))]
pub(super) async fn begin(
    State(state): State<AppState>,
    caller: Caller,
    Path(run): Path<String>,
    begin: Result<Json<Begin>, JsonRejection>,
) -> Result<Json<Received>> {
    let run_id = run_id(&run)?;
    let Json(begin) = begin.map_err(|rejection| AppError::new(rejection.status(), rejection.body_text()))?;
    let sha256 = sha256(&begin.sha256)?;
    check_length(begin.bytes)?;
    let owner = caller.name();
    let mut transaction = state.pool().begin().await.map_err(StoreError::from)?;
    uploads::lock_owner(&mut *transaction, &owner).await?;
    if let Some(upload) = uploads::lock(&mut *transaction, run_id, &owner).await? {
        if upload.sha256 == sha256 && upload.bytes == begin.bytes {
            return Ok(Json(Received { received: upload.received }));
        }
        uploads::remove(&mut *transaction, upload.id).await?;
    }
    if uploads::open(&mut *transaction, &owner).await? >= MAX_OPEN {
        uploads::remove_stalled(&mut *transaction, &owner).await?;
        if uploads::open(&mut *transaction, &owner).await? >= MAX_OPEN {
            let detail = format!("{owner} has {MAX_OPEN} uploads under way: finish them first");
            return Err(AppError::new(StatusCode::TOO_MANY_REQUESTS, detail).retry_after(60));
        }
    }
    uploads::begin(&mut *transaction, run_id, &owner, &sha256, begin.bytes).await?;
    transaction.commit().await.map_err(StoreError::from)?;
    Ok(Json(Received { received: 0 }))
}

/// Appends a part, at most 1 MiB. One that does not begin where the server is gets 409, and in it `received`.
#[utoipa::path(patch, path = "/api/v1/uploads/{run}", params(("run" = RunId, Path), ("Upload-Offset" = u64, Header, description = "Where the part begins")), request_body(content = Vec<u8>, content_type = "application/octet-stream"), responses((status = 200, body = Received)))]
pub(super) async fn append(
    State(state): State<AppState>,
    caller: Caller,
    Path(run): Path<String>,
    Part { offset, bytes }: Part,
) -> Result<Json<Received>> {
    let run_id = run_id(&run)?;
    let mut transaction = state.pool().begin().await.map_err(StoreError::from)?;
    let upload = uploads::lock(&mut *transaction, run_id, &caller.name()).await?.ok_or_else(|| none(run_id))?;
    if offset != upload.received {
        let detail = format!("the server has {} bytes of this upload: go on from there", upload.received);
        return Err(AppError::at(upload.received, detail));
    }
    let received = upload.received + bytes.len() as u64;
    if received > upload.bytes {
        let detail = format!("more than the {} bytes that were announced", upload.bytes);
        return Err(AppError::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    if !bytes.is_empty() {
        uploads::append(&mut transaction, upload.id, upload.received, &bytes).await?;
    }
    transaction.commit().await.map_err(StoreError::from)?;
    Ok(Json(Received { received }))
}

/// Stores and judges the report, as if it had been sent in one piece.
#[utoipa::path(post, path = "/api/v1/uploads/{run}/finish", params(("run" = RunId, Path)), responses((status = 201, description = "Stored and judged", body = Uploaded), (status = 200, description = "Stored before", body = Uploaded)))]
pub(super) async fn finish(
    State(state): State<AppState>,
    caller: Caller,
    Path(run): Path<String>,
    headers: HeaderMap,
) -> Result<(StatusCode, Json<Uploaded>)> {
    let run_id = run_id(&run)?;
    let owner = caller.name();
    let upload = uploads::lock(state.pool(), run_id, &owner).await?;
    let Some(upload) = upload.filter(|upload| !upload.finished) else {
        return stored(&state, &caller, &headers, run_id).await;
    };
    if upload.received < upload.bytes {
        let detail = format!("{} of {} bytes are there: send the rest first", upload.received, upload.bytes);
        return Err(AppError::at(upload.received, detail));
    }
    let body = ReportBody::joined(&state, || async { Ok(uploads::parts(state.pool(), upload.id).await?) }).await?;
    if Sha256::digest(body.bytes())[..] != upload.sha256 {
        // Spoilt on its way, or another finish has taken the parts meanwhile.
        return spoilt(&state, &caller, &headers, run_id, &upload).await;
    }
    let answer = upload::store(&state, &caller, &headers, body, Some(run_id)).await?;
    let mut transaction = state.pool().begin().await.map_err(StoreError::from)?;
    uploads::finish(&mut transaction, upload.id).await?;
    transaction.commit().await.map_err(StoreError::from)?;
    Ok(answer)
}

async fn spoilt(
    state: &AppState,
    caller: &Caller,
    headers: &HeaderMap,
    run_id: RunId,
    before: &Upload,
) -> Result<(StatusCode, Json<Uploaded>)> {
    let mut transaction = state.pool().begin().await.map_err(StoreError::from)?;
    match uploads::lock(&mut *transaction, run_id, &caller.name()).await? {
        Some(upload) if upload.id == before.id && !upload.finished => {
            uploads::remove(&mut *transaction, upload.id).await?;
            let owner = caller.name();
            uploads::begin(&mut *transaction, run_id, &owner, &upload.sha256, upload.bytes).await?;
            transaction.commit().await.map_err(StoreError::from)?;
            Err(AppError::at(0, "the bytes do not have the SHA-256 that was announced: send them again"))
        }
        Some(upload) if !upload.finished => Err(AppError::at(upload.received, "the upload began anew meanwhile")),
        _ => {
            drop(transaction);
            stored(state, caller, headers, run_id).await
        }
    }
}

/// What was answered when it was stored.
async fn stored(
    state: &AppState,
    caller: &Caller,
    headers: &HeaderMap,
    run_id: RunId,
) -> Result<(StatusCode, Json<Uploaded>)> {
    let comparison = store::verdicts::get(state.pool(), run_id).await?.ok_or_else(|| none(run_id))?;
    // A run that the caller may not read looks as if it did not exist.
    on_run(state, caller, Scope::Upload, run_id).await.map_err(|error| match error.status() {
        StatusCode::NOT_FOUND => none(run_id),
        _ => error,
    })?;
    let project = store::projects::of_run(state.pool(), run_id).await?.ok_or_else(|| none(run_id))?;
    let ingested = ingest::as_stored(state, run_id, comparison).await?;
    Ok((StatusCode::OK, Json(Uploaded::of(state, headers, &project, run_id, ingested))))
}

/// A part and where it begins.
#[derive(Debug)]
pub(super) struct Part {
    offset: u64,
    bytes: Bytes,
}

impl FromRequest<AppState> for Part {
    type Rejection = AppError;

    async fn from_request(mut request: Request, state: &AppState) -> Result<Self> {
        let given = request.headers().get(OFFSET).and_then(|value| value.to_str().ok()?.parse().ok());
        let offset =
            given.ok_or_else(|| AppError::bad_request("say where the part begins: `Upload-Offset: NUMBER`"))?;
        DefaultBodyLimit::max(MAX_PART).apply(&mut request);
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| match rejection.status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                AppError::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a part has at most {MAX_PART} bytes"))
            }
            status => AppError::new(status, rejection.body_text()),
        })?;
        Ok(Self { offset, bytes })
    }
}

fn sha256(text: &str) -> Result<[u8; 32]> {
    let digits = || AppError::new(StatusCode::UNPROCESSABLE_ENTITY, "sha256: not 64 hexadecimal digits");
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(digits());
    }
    for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| digits())?;
    }
    Ok(bytes)
}

fn check_length(bytes: u64) -> Result<()> {
    if bytes > MAX_BYTES as u64 {
        let detail = format!("bytes: a report has at most {MAX_BYTES}");
        return Err(AppError::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    if bytes == 0 {
        return Err(AppError::new(StatusCode::UNPROCESSABLE_ENTITY, "bytes: a report has some"));
    }
    Ok(())
}

fn none(run_id: RunId) -> AppError {
    AppError::not_found(format!("upload of run {run_id}: begin it with PUT"))
}
