//! GitHub: what an event starts, and what is told there. Events are hints: what is done about one is worked out from
//! how things are when it is handled, so that it is no harm when one is late, comes twice or comes in another order.

pub mod deadlines;
mod facts;
mod filter;
pub mod inbox;
mod installations;
mod outdated;
pub mod plan;
pub mod progress;
pub mod pulls;
pub mod pushes;
pub mod send;
pub mod start;
pub mod tags;

use std::borrow::Cow;
use std::fmt;

use plimsoll_domain::ids::ProjectSlug;

use crate::github::events::{self, Event};
use crate::github::{Client, Place, Repo};
use crate::state::AppState;
use crate::store::github::links::{self, Link};
use crate::store::github::repositories::Repository;
use crate::tasks::Result;

pub(super) use filter::check as check_glob;
pub use filter::is_version;

/// What became of an event, in a phrase for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome(Cow<'static, str>);

impl Outcome {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&'static str> for Outcome {
    fn from(phrase: &'static str) -> Self {
        Self(Cow::Borrowed(phrase))
    }
}

impl From<String> for Outcome {
    fn from(phrase: String) -> Self {
        Self(Cow::Owned(phrase))
    }
}

impl From<Cow<'static, str>> for Outcome {
    fn from(phrase: Cow<'static, str>) -> Self {
        Self(phrase)
    }
}

/// Does what an event asks for. After an error it may be handled again.
pub async fn handle(state: &AppState, event: &Event) -> Result<Outcome> {
    match event {
        Event::Push(push) => pushes::handle(state, push).await,
        Event::Tag(tag) => tags::handle(state, tag).await,
        Event::PullRequest(pull) => pulls::handle(state, pull).await,
        Event::Installation(installation) => installations::installation(state, installation).await,
        Event::Repositories(reached) => installations::reached(state, reached).await,
        Event::Repository(changed) => installations::changed(state, changed).await,
        Event::MergeGroup(_) | Event::CheckRun(_) | Event::CheckSuite(_) | Event::Comment(_) => {
            Ok("nothing that this server answers".into())
        }
        Event::Ignored(why) => Ok((*why).into()),
    }
}

/// A repository that the App reaches, with the projects that are measured from it.
pub(super) struct Site<'a> {
    client: &'a Client,
    place: Place,
    pub(super) repository: Repository,
    pub(super) links: Vec<Link>,
}

impl<'a> Site<'a> {
    /// Of an event; else why nothing is done about it.
    pub(super) async fn of(state: &'a AppState, seen: &events::Repository) -> Result<Result<Self, Outcome>> {
        match installations::known(state, seen).await? {
            Some(repository) => Self::new(state, repository).await,
            None => Ok(Err("the App does not reach this repository".into())),
        }
    }

    pub(super) async fn new(state: &'a AppState, repository: Repository) -> Result<Result<Self, Outcome>> {
        let Some(client) = state.app() else { return Ok(Err("there is no App".into())) };
        if !repository.reachable {
            return Ok(Err("the App does not reach this repository".into()));
        }
        let links = links::of_repository(state.pool(), repository.id).await?;
        if links.is_empty() {
            return Ok(Err("no project is measured from this repository".into()));
        }
        Ok(Ok(Self { client, place: Place::from(&repository), repository, links }))
    }

    pub(super) fn repo(&self) -> Repo<'_> {
        self.client.at(&self.place)
    }
}

/// How often at most GitHub is asked for the newest before something is left to the next event.
const LOOKS: usize = 4;

/// What became of each project, in one phrase.
fn all(each: impl IntoIterator<Item = (ProjectSlug, Cow<'static, str>)>) -> Outcome {
    let each: Vec<String> = each.into_iter().map(|(project, what)| format!("{project}: {what}")).collect();
    each.join("; ").into()
}
