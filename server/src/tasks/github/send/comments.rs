//! The one comment of a project on a pull request: found by its marker and its author, edited in place, made anew when
//! somebody deleted it.

use plimsoll_domain::ids::ProjectSlug;

use super::{Failed, Target, digest};
use crate::github::Error;
use crate::github::text;
use crate::store::github::comments;
use crate::tasks::github::facts;

pub(super) async fn tell(
    target: &Target<'_>,
    project: &ProjectSlug,
    repository: i64,
    number: i64,
) -> Result<(), Failed> {
    let pool = target.state.pool();
    let Some(body) = facts::comment(target.state, project, repository, number).await? else { return Ok(()) };
    let (known, told) = (comments::get(pool, project, repository, number).await?, digest(&body));
    if known.comment.is_some() && known.told.as_ref() == Some(&told) {
        return Ok(());
    }
    let id = match put(target, project, number, known.comment, &body).await {
        // The conclusion counts, not how it is explained.
        Err(Failed::GitHub(Error::TooLong)) => {
            let short: Vec<&str> = body.lines().take(2).collect();
            put(target, project, number, known.comment, &short.join("\n")).await?
        }
        put => put?,
    };
    Ok(comments::told(pool, project, repository, number, id, &told).await?)
}

async fn put(
    target: &Target<'_>,
    project: &ProjectSlug,
    number: i64,
    known: Option<i64>,
    body: &str,
) -> Result<i64, Failed> {
    if let Some(id) = known {
        target.spend().await?;
        match target.repo().update_comment(id, body).await {
            Ok(()) => return Ok(id),
            Err(Error::Missing) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let found = match found(target, project, number).await? {
        Some(id) if Some(id) != known => Some(id),
        _ => None,
    };
    target.spend().await?;
    match found {
        Some(id) => {
            target.repo().update_comment(id, body).await?;
            Ok(id)
        }
        None => Ok(target.repo().create_comment(number, body).await?),
    }
}

/// Ours, the oldest; more of them go. Somebody else's marker is not ours.
async fn found(target: &Target<'_>, project: &ProjectSlug, number: i64) -> Result<Option<i64>, Failed> {
    let (marker, app) = (text::marker(project), target.client.app_id());
    let all = target.repo().comments(number).await?;
    let ours = all.into_iter().filter(|comment| comment.app_id == Some(app) && comment.body.starts_with(&marker));
    let mut ours: Vec<i64> = ours.map(|comment| comment.id).collect();
    ours.sort_unstable();
    for again in ours.iter().skip(1) {
        target.spend().await?;
        target.repo().delete_comment(*again).await?;
    }
    Ok(ours.first().copied())
}
