//! A check run: made once, found again where it is unknown whether it was made, and never taken back from its end.

use uuid::Uuid;

use super::{Failed, Target, digest};
use crate::github::text::{CheckText, Status, check_name};
use crate::github::{CheckWrite, Error};
use crate::state::AppState;
use crate::store::github::checks::{self, Check, Conclusion};
use crate::store::github::writes::Due;
use crate::tasks::github::facts::Facts;

pub(super) async fn tell(state: &AppState, due: &Due, id: Uuid) -> Result<(), Failed> {
    let Some(check) = checks::get(state.pool(), id).await? else { return Ok(()) };
    let concluded = check.told.as_deref().is_some_and(|told| told.starts_with(CONCLUDED));
    if check.superseded && concluded {
        return Ok(());
    }
    let Some(target) = Target::of(state, check.repository).await? else { return Ok(()) };
    let told = match check.superseded {
        true => end(&target, due, &check).await,
        false => stand(&target, due, check, concluded).await,
    };
    target.limited(told).await
}

/// What `told` begins with once a check is concluded.
const CONCLUDED: &str = "completed:";

/// Another took its place: it ends, if GitHub ever heard of it. It is not made now, or it would be the newest.
async fn end(target: &Target<'_>, due: &Due, check: &Check) -> Result<(), Failed> {
    let name = check_name(&check.project, check.kind);
    let text = CheckText {
        status: Status::Completed,
        conclusion: Some(Conclusion::Cancelled),
        title: "A newer check took its place".to_owned(),
        summary: "This commit is judged by a newer check of the same name.".to_owned(),
        text: None,
        details_url: None,
        actions: Vec::new(),
    };
    let write = CheckWrite { name: &name, head: &check.head_sha, external_id: check.id, started_at: None, text: &text };
    let Some(id) = known(target, due, check, &name).await? else { return Ok(()) };
    target.spend().await?;
    match target.repo().update_check(id, &write).await {
        Ok(()) | Err(Error::Missing) => Ok(checks::told(target.state.pool(), check.id, id, &told(&text)).await?),
        Err(error) => Err(error.into()),
    }
}

async fn stand(target: &Target<'_>, due: &Due, check: Check, concluded: bool) -> Result<(), Failed> {
    let facts = Facts::of(target.state, check).await?;
    let (check, text) = (&facts.check, facts.text());
    if concluded && text.status != Status::Completed {
        return Ok(());
    }
    let (name, told) = (check_name(&check.project, check.kind), told(&text));
    if check.told.as_ref() == Some(&told)
        && let Some(id) = check.check_run
    {
        // Looked at just now, so that it is not looked at again at once.
        return Ok(checks::told(target.state.pool(), check.id, id, &told).await?);
    }
    let known = known(target, due, check, &name).await?;
    let started_at = facts.started_at();
    let write = CheckWrite { name: &name, head: &check.head_sha, external_id: check.id, started_at, text: &text };
    target.spend().await?;
    let id = match put(target, known, &write).await {
        // The conclusion counts, not how it is explained.
        Err(Failed::GitHub(Error::TooLong)) => {
            let text = CheckText { summary: text.title.clone(), text: None, ..text.clone() };
            put(target, known, &CheckWrite { text: &text, ..write }).await?
        }
        put => put?,
    };
    Ok(checks::told(target.state.pool(), check.id, id, &told).await?)
}

/// GitHub's id of it. An attempt of which nothing is known may have made it.
async fn known(target: &Target<'_>, due: &Due, check: &Check, name: &str) -> Result<Option<i64>, Failed> {
    match check.check_run {
        None if due.tried => Ok(target.repo().find_check(&check.head_sha, name, check.id).await?),
        known => Ok(known),
    }
}

/// One that is gone is made anew.
async fn put(target: &Target<'_>, known: Option<i64>, write: &CheckWrite<'_>) -> Result<i64, Failed> {
    if let Some(id) = known {
        match target.repo().update_check(id, write).await {
            Ok(()) => return Ok(id),
            Err(Error::Missing) => target.spend().await?,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(target.repo().create_check(write).await?)
}

fn told(text: &CheckText) -> String {
    format!("{}:{}", text.status.name(), digest(text))
}
