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
use crate::access::{Caller, Scope};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::tasks::gating::Bringer;
use crate::tasks::ingest::{self, Ingested, Received};

#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct Uploaded {
    run_id: RunId,
    /// The snapshot's page.
    url: String,
    created: bool,
    /// Whether the verdict may decide a check.
    gates: bool,
    /// Why it may not.
    #[serde(skip_serializing_if = "Option::is_none")]
    gates_not_because: Option<String>,
    comparison: Comparison,
}

impl Uploaded {
    pub(super) fn of(
        state: &AppState,
        headers: &HeaderMap,
        project: &ProjectSlug,
        run_id: RunId,
        Ingested { comparison, created, undecisive }: Ingested,
    ) -> Self {
        let (url, gates) = (page(state, headers, project, run_id), undecisive.is_none());
        Self { run_id, url, created, gates, gates_not_because: undecisive, comparison }
    }
}

/// Stores a report and answers with the verdict. Sending the same report again is no harm.
#[utoipa::path(post, path = "/api/v1/snapshots", request_body = Report, responses((status = 201, description = "Stored and judged", body = Uploaded), (status = 200, description = "Stored before", body = Uploaded)))]
pub(super) async fn post(
    caller: Caller,
    State(state): State<AppState>,
    headers: HeaderMap,
    body: ReportBody,
) -> Result<(StatusCode, Json<Uploaded>)> {
    store(&state, &caller, &headers, body, None).await
}

/// Stores and judges a report that is there as a whole; `wanted` is the run it must be of.
pub(super) async fn store(
    state: &AppState,
    caller: &Caller,
    headers: &HeaderMap,
    body: ReportBody,
    wanted: Option<RunId>,
) -> Result<(StatusCode, Json<Uploaded>)> {
    // A parsed report is larger than its body: the turn lasts until it is stored.
    let parse = move || read(&body).map(|received| (received, body.into_turn()));
    let (mut received, _turn) = state.compute(parse).await??;
    let report = Arc::clone(&received.report);
    if let Some(wanted) = wanted.filter(|wanted| *wanted != report.run_id) {
        let detail = format!("run_id: the report is of run {}, not of {wanted}", report.run_id);
        return Err(AppError::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
    }
    caller.require(Scope::Upload, &report.project)?;
    received.bringer = Bringer::of(caller, &report.project);
    let ingested = ingest::ingest(state, received).await?;
    let status = if ingested.created { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(Uploaded::of(state, headers, &report.project, report.run_id, ingested))))
}

fn read(body: &ReportBody) -> Result<Received> {
    let json = body.json()?;
    let report = Report::from_json(&json).map_err(|error| {
        let status = match error {
            ReportError::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            ReportError::Json(_) => StatusCode::BAD_REQUEST,
            ReportError::Newer(_) | ReportError::Value { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        };
        AppError::new(status, error.to_string())
    })?;
    Ok(Received { report: Arc::new(report), json, packed: body.packed(), bringer: Bringer::nobody() })
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_domain::synthetic::Synthetic;
    use secrecy::SecretString;
    use tower::ServiceExt as _;

    use super::*;
    use crate::access::Tokens;
    use crate::postgres::scratch::Scratch;
    use crate::state::Settings;
    use crate::store;

    const TOKEN: &str = "a-token-for-these-tests-only";

    #[tokio::test(flavor = "multi_thread")]
    async fn an_upload_counts_until_its_report_is_stored() {
        let scratch = Scratch::start().await.unwrap();
        let pool = store::database::open(&scratch.database().await.unwrap(), 4).await.unwrap();
        let state = AppState::new(
            pool.clone(),
            Settings { tokens: Tokens::new(&[SecretString::from(TOKEN)]), ..Settings::default() },
        );
        let free = state.free_for_uploads();
        let mut lock = pool.begin().await.unwrap();
        sqlx::raw_sql("lock table reports in access exclusive mode").execute(&mut *lock).await.unwrap();
        let upload = axum::http::Request::post("/api/v1/snapshots")
            .header("authorization", format!("Bearer {TOKEN}"))
            .body(axum::body::Body::from(Synthetic::default().report().to_json()))
            .unwrap();
        let answer = tokio::spawn(crate::router::router(state.clone()).oneshot(upload));
        // Until it waits for the table, which it reads once the report is parsed.
        let waits = "select exists (select 1 from pg_locks where relation = 'reports'::regclass and not granted)";
        while !sqlx::query_scalar::<_, bool>(waits).fetch_one(&pool).await.unwrap() {
            assert!(!answer.is_finished(), "it did not wait");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(state.free_for_uploads(), free - 1);
        lock.rollback().await.unwrap();
        assert_eq!(answer.await.unwrap().unwrap().status(), StatusCode::CREATED);
        assert_eq!(state.free_for_uploads(), free);
    }
}
