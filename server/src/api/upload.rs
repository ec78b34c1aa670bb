//! Uploads.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use plimsoll_domain::comparison::Comparison;
use plimsoll_domain::ids::{ProjectSlug, RunId};
use plimsoll_domain::report::{Report, ReportError};
use serde::Serialize;

use super::body::ReportBody;
use crate::auth::Uploader;
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::tasks::ingest::{self, Ingested};

#[derive(Debug, Serialize)]
pub(super) struct Uploaded {
    run_id: RunId,
    /// The snapshot's page.
    url: String,
    created: bool,
    comparison: Comparison,
}

/// Stores a report and answers with the verdict. Sending the same report again is no harm.
pub(super) async fn post(
    _: Uploader,
    State(state): State<AppState>,
    headers: HeaderMap,
    body: ReportBody,
) -> Result<(StatusCode, Json<Uploaded>)> {
    let report = Arc::new(state.compute(move || read(&body)).await??);
    let Ingested { comparison, created } = ingest::ingest(&state, Arc::clone(&report)).await?;
    let status = if created { StatusCode::CREATED } else { StatusCode::OK };
    let url = page(&state, &headers, &report.project, report.run_id);
    Ok((status, Json(Uploaded { run_id: report.run_id, url, created, comparison })))
}

fn read(body: &ReportBody) -> Result<Report> {
    Report::from_json(&body.json()?).map_err(|error| {
        let status = match error {
            ReportError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            ReportError::Json(_) => StatusCode::BAD_REQUEST,
            ReportError::Newer(_) | ReportError::Value { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        };
        AppError::new(status, error.to_string())
    })
}

/// Where people see the snapshot: under the configured address, else the one the client used, else as a path alone.
fn page(state: &AppState, headers: &HeaderMap, project: &ProjectSlug, run_id: RunId) -> String {
    let path = format!("/{project}/snapshots/{run_id}");
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    match (state.public_url(), host) {
        (Some(url), _) => format!("{url}{path}"),
        (None, Some(host)) => format!("http://{host}{path}"),
        (None, None) => path,
    }
}
