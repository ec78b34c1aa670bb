//! Members as a table, for the server and for one project.

use crate::state::AppState;
use crate::store::members::Member;
use crate::web::view::day;

/// A line of the table.
pub(super) struct Row {
    pub(super) login: String,
    pub(super) scope: &'static str,
    pub(super) project: Option<String>,
    pub(super) added: String,
}

/// What is said above the table.
pub(super) fn lead(state: &AppState, members: usize) -> String {
    let github = match state.github() {
        Some(_) => "They sign in by GitHub.",
        None => "Sign-in by GitHub is not configured: until it is, nobody can use these.",
    };
    match members {
        0 => format!("Nobody is a member. {github}"),
        _ => github.to_owned(),
    }
}

impl From<Member> for Row {
    fn from(member: Member) -> Self {
        Self {
            added: format!("{} by {}", day(member.created_at), member.created_by),
            login: member.login,
            scope: member.scope.name(),
            project: member.project.map(|project| project.to_string()),
        }
    }
}
