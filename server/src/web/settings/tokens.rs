//! Tokens as a table and a form, for the server and for one project.

use std::time::Duration;

use axum::http::StatusCode;
use jiff::Timestamp;
use plimsoll_domain::ids::ProjectSlug;
use secrecy::ExposeSecret as _;
use serde::Deserialize;

use super::{Once, grant};
use crate::access::acts::{self, NewToken};
use crate::access::{Caller, Grant};
use crate::error::{AppError, Result};
use crate::state::AppState;
use crate::store::tokens::{State, Token};
use crate::web::view::{ago, day};

#[derive(Debug, Deserialize)]
pub(in crate::web) struct Form {
    name: String,
    scope: String,
    project: Option<String>,
    /// In days; empty: it does not expire.
    days: Option<String>,
}

/// A line of the table.
pub(super) struct Row {
    pub(super) name: String,
    /// The whole name, where a part of it is shown.
    pub(super) whole: Option<String>,
    pub(super) scope: &'static str,
    pub(super) project: Option<ProjectSlug>,
    pub(super) created: String,
    pub(super) expires: String,
    pub(super) used: String,
    /// Revoked or expired.
    pub(super) over: Option<String>,
    /// Where a form revokes it.
    pub(super) revoke: Option<String>,
}

/// Makes the token that a form asks for; of this project, or of the one that the form names.
pub(super) async fn make(state: &AppState, caller: &Caller, form: &Form, of: Option<&ProjectSlug>) -> Result<Once> {
    let Grant { scope, project } = grant(&form.scope, form.project.as_deref())?;
    let grant = Grant { scope, project: of.cloned().or(project) };
    let new = NewToken { name: form.name.trim().to_owned(), grant, lasts: lasts(form.days.as_deref())? };
    let (secret, token) =
        acts::create_token(state.pool(), caller.entry("token.create"), &new, state.new_projects()).await?;
    Ok(Once {
        heading: format!("Token {}", token.name),
        secret: secret.expose_secret().to_owned(),
        hint: "Copy it now: it is not shown again. Programs take it as PLIMSOLL_TOKEN.",
    })
}

fn lasts(days: Option<&str>) -> Result<Option<Duration>> {
    const DAY: u64 = 24 * 60 * 60;
    let Some(days) = super::filled(days) else { return Ok(None) };
    let days: u32 = days
        .parse()
        .map_err(|_| AppError::new(StatusCode::UNPROCESSABLE_ENTITY, format!("{days:?} is no number of days")))?;
    Ok(Some(Duration::from_secs(u64::from(days) * DAY)))
}

impl Row {
    /// `base` is the path of the settings whose forms revoke.
    pub(super) fn new(token: Token, base: &str, now: Timestamp) -> Self {
        let over = match token.state {
            State::InUse => None,
            State::Expired => Some("expired".to_owned()),
            State::Revoked => Some(match token.revoked_at {
                Some(at) => format!("revoked {}", day(at)),
                None => "revoked".to_owned(),
            }),
        };
        // A server makes its own anew when its file is removed.
        let revocable = token.state != State::Revoked && !token.name.starts_with("server ");
        Self {
            revoke: revocable.then(|| format!("{base}/{}/revoke", token.id)),
            created: format!("{} by {}", day(token.created_at), short(&token.created_by)),
            expires: token.expires_at.map_or_else(|| "never".to_owned(), day),
            used: token.last_used_at.map_or_else(|| "never".to_owned(), |at| ago(at, now)),
            name: short(&token.name),
            whole: (short(&token.name) != token.name).then_some(token.name),
            scope: token.scope.name(),
            project: token.project,
            over,
        }
    }
}

/// A server is named by 64 digits, of which the first tell it apart.
fn short(name: &str) -> String {
    const DIGITS: usize = 64;
    const SHOWN: usize = 8;
    let is_id = |word: &str| word.len() == DIGITS && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let words = name.split(' ').map(|word| if is_id(word) { format!("{}…", &word[..SHOWN]) } else { word.to_owned() });
    words.collect::<Vec<_>>().join(" ")
}

/// What is said above the table.
pub(super) fn lead(tokens: &[Token]) -> String {
    let used = tokens.iter().filter(|token| token.state == State::InUse);
    let never = used.clone().filter(|token| token.last_used_at.is_none()).count();
    let never = match never {
        0 => String::new(),
        1 => "; one of them was never used".to_owned(),
        n => format!("; {n} of them were never used"),
    };
    match used.count() {
        0 => "No token is in use.".to_owned(),
        1 => format!("One token is in use{}.", if never.is_empty() { "" } else { " and was never used" }),
        n => format!("{n} tokens are in use{never}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_s_digits_are_cut() {
        let id = "0123456789abcdef".repeat(4);
        assert_eq!(short(&format!("token server {id}")), "token server 01234567…");
        for whole in ["ci of sentiment", "deadbeef", "server é"] {
            assert_eq!(short(whole), whole);
        }
    }
}
