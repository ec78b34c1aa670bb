//! A workflow of GitHub Actions as a caller: by the identity token that GitHub gave its job, signed by GitHub and made
//! out to this server. It may upload for the projects that are measured from its repository, and no more.

mod keys;

use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use plimsoll_domain::ids::CommitSha;
use serde::Deserialize;

use super::caller::{Caller, Grant, Refusal, Scope, Who};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store::github::links;

pub use keys::Issuer;

/// Which run of a workflow it is, as GitHub says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    /// `owner/name`
    pub repository: String,
    /// Outlives a new name.
    pub repository_id: i64,
    /// The commit that the workflow runs on; for a pull request GitHub's merge of it.
    pub sha: CommitSha,
    pub run_id: u64,
    /// `push`, `pull_request`, …
    pub event: String,
    /// `refs/heads/main`, `refs/pull/128/merge`, …
    pub r#ref: String,
}

/// Clocks of GitHub and of this server differ by less.
const LEEWAY_S: u64 = 60;
/// GitHub's live five minutes.
const LONGEST_LIFE_S: u64 = 60 * 60;
const LONGEST: usize = 16 << 10;

/// Whether this is a token of the kind that GitHub gives a workflow; no token of the server's is.
pub(super) fn is_one(token: &str) -> bool {
    token.starts_with("eyJ") && token.split('.').count() == 3
}

/// Who shows this token. Unauthorized when it is not GitHub's, or not for this server; forbidden when no project is
/// measured from its repository.
pub(super) async fn caller(state: &AppState, token: &str, base: Caller) -> Result<Caller> {
    let workflow = verified(state, token).await?;
    let links = links::of_repository(state.pool(), workflow.repository_id).await?;
    if links.is_empty() {
        let why = format!("no project here is measured from the repository {}: link one first", workflow.repository);
        return Err(Refusal::OutOfReach(why).into());
    }
    let grant = |link: links::Link| Grant { scope: Scope::Upload, project: Some(link.project) };
    let grants = links.into_iter().map(grant).collect();
    Ok(Caller { who: Who::Workflow(Box::new(workflow)), grants, ..base })
}

#[derive(Deserialize)]
struct Claims {
    iat: u64,
    exp: u64,
    repository: String,
    repository_id: String,
    sha: String,
    run_id: String,
    event_name: String,
    r#ref: String,
}

async fn verified(state: &AppState, token: &str) -> Result<Workflow> {
    let Some(audience) = state.public_url() else {
        return Err(refused(
            "this server has no public address, so nothing can be made out to it: set PLIMSOLL_PUBLIC_URL",
        ));
    };
    if token.len() > LONGEST {
        return Err(refused("it is too long"));
    }
    let header = decode_header(token).map_err(|_| refused("it is none"))?;
    if header.alg != Algorithm::RS256 {
        return Err(refused("it is not signed by RS256"));
    }
    let kid = header.kid.ok_or_else(|| refused("it names no key"))?;
    let issuer = state.oidc_issuer();
    let key = issuer.key(&kid).await.map_err(|error| match error {
        keys::KeyError::Unknown => refused(&format!("{} has no key of the name it gives", issuer.url())),
        keys::KeyError::Unreachable(why) => {
            tracing::warn!(issuer = issuer.url(), why, "no keys for identity tokens");
            let detail = format!("the keys of {} cannot be had at the moment", issuer.url());
            AppError::new(axum::http::StatusCode::SERVICE_UNAVAILABLE, detail).retry_after(30)
        }
    })?;
    let mut validation = Validation::new(Algorithm::RS256);
    validation.set_audience(&[audience]);
    validation.set_issuer(&[issuer.url()]);
    validation.set_required_spec_claims(&["exp", "nbf", "iss", "aud"]);
    validation.validate_nbf = true;
    validation.leeway = LEEWAY_S;
    let claims = decode::<Claims>(token, &key, &validation).map_err(|error| refused(&why(&error, audience)))?.claims;
    let now = jsonwebtoken::get_current_timestamp();
    if claims.iat > now + LEEWAY_S || claims.exp > claims.iat.saturating_add(LONGEST_LIFE_S) {
        return Err(refused("its times are not those of a token of GitHub's"));
    }
    let strange = |_| refused("it does not name its repository, commit and run");
    Ok(Workflow {
        repository_id: claims.repository_id.parse().map_err(|_| ()).map_err(strange)?,
        sha: claims.sha.parse().map_err(|_| ()).map_err(strange)?,
        run_id: claims.run_id.parse().map_err(|_| ()).map_err(strange)?,
        repository: claims.repository,
        event: claims.event_name,
        r#ref: claims.r#ref,
    })
}

fn refused(why: &str) -> AppError {
    AppError::unauthorized(format!("this identity token is not taken: {why}"))
}

fn why(error: &jsonwebtoken::errors::Error, audience: &str) -> String {
    use jsonwebtoken::errors::ErrorKind;
    match error.kind() {
        ErrorKind::InvalidSignature => "it is not signed by the key it names".to_owned(),
        ErrorKind::InvalidAudience => {
            format!("it is made out to another address than {audience}, which is this server's")
        }
        ErrorKind::InvalidIssuer => "it was given by another than this server believes".to_owned(),
        ErrorKind::ExpiredSignature => "it has expired".to_owned(),
        ErrorKind::ImmatureSignature => "it is not valid yet".to_owned(),
        ErrorKind::MissingRequiredClaim(claim) => format!("it has no {claim}"),
        _ => "it does not say what a workflow's token says".to_owned(),
    }
}
