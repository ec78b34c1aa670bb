//! How a pull request is now, as far as GitHub has told.

use crate::github::Error as GitHubError;
use crate::github::events::PullRequest;
use crate::state::AppState;
use crate::store::github::pulls::{self, Pull, Seen};
use crate::tasks::Result;
use crate::tasks::github::Site;

/// Asks GitHub, remembers the answer, and says what is the newest that is known: GitHub's answers may lag behind its
/// events, and another server may have asked later. `None` when there is no such pull request.
pub(super) async fn look(
    state: &AppState,
    site: &Site<'_>,
    number: i64,
    said: Option<&PullRequest>,
) -> Result<Option<Pull>> {
    let repository = site.repository.id;
    let asked_at = pulls::now(state.pool()).await?;
    let answer = match site.repo().pull(number).await {
        Ok(answer) => answer,
        Err(GitHubError::Missing) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let told = Seen {
        repository,
        number,
        head_sha: &answer.head_sha,
        base_ref: &answer.base_ref,
        base_sha: &answer.base_sha,
        fork: answer.fork,
        open: answer.open,
        updated_at: answer.updated_at,
        asked_at,
    };
    let newer = said.filter(|said| said.updated_at > answer.updated_at);
    let seen = newer.map_or(told, |said| Seen {
        head_sha: &said.head_sha,
        base_ref: &said.base_ref,
        base_sha: &said.base_sha,
        fork: said.fork,
        open: said.open,
        updated_at: said.updated_at,
        ..told
    });
    pulls::put(state.pool(), seen).await?;
    Ok(pulls::get(state.pool(), repository, number).await?)
}
