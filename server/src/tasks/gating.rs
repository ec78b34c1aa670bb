//! Whether a report may decide a check. Whoever can change a workflow could forge what it uploads: a report of a pull
//! request counts only when somebody vouches for where it comes from.

use plimsoll_domain::ids::ProjectSlug;
use plimsoll_domain::revision::Revision;

use crate::access::{Caller, Scope, Who, Workflow};

/// Who brought a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bringer {
    /// As the audit log names them.
    pub name: Option<String>,
    pub standing: Standing,
}

/// For what they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Carries out the project's runs, or administers it.
    Trusted,
    /// GitHub says what it is, and on which commit it runs.
    Workflow(Box<Workflow>),
    /// May upload, and nothing more is known.
    Upload,
}

/// Why a report decides nothing; a sentence to go on with, without its full stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    #[error(
        "a pull request's report came by a token that may upload and no more, which whoever changes the workflow can \
         use: let the workflow identify itself (docs/github-actions.md), or let a runner of the server measure it"
    )]
    MereToken,
    #[error("the report is of {measured}, and the workflow that brought it runs on {runs_on}")]
    OtherCommit { measured: String, runs_on: String },
    #[error("the workflow runs for {runs_for}, and the report is not of that pull request")]
    OtherPull { runs_for: String },
    #[error("the workflow was started by {0:?}, which runs with more rights than what it measures should have")]
    Event(String),
}

/// Of a report that is stored, why it decides nothing.
pub const UNVOUCHED: &str = "nobody vouched for where it comes from when it was brought";

impl Bringer {
    pub fn of(caller: &Caller, project: &ProjectSlug) -> Self {
        let standing = match &caller.who {
            _ if caller.may(Scope::Agent, project) => Standing::Trusted,
            Who::Workflow(workflow) => Standing::Workflow(workflow.clone()),
            _ => Standing::Upload,
        };
        Self { name: Some(caller.name()), standing }
    }

    /// The server itself, or a program that holds it.
    pub fn own() -> Self {
        Self { name: None, standing: Standing::Trusted }
    }

    /// Until it is known.
    pub fn nobody() -> Self {
        Self { name: None, standing: Standing::Upload }
    }

    pub fn is_trusted(&self) -> bool {
        self.standing == Standing::Trusted
    }

    /// Whether a report of this revision decides, brought by them.
    pub fn decides(&self, revision: &Revision) -> Result<(), Cause> {
        match &self.standing {
            Standing::Trusted => Ok(()),
            Standing::Workflow(workflow) => vouched(workflow, revision),
            Standing::Upload if revision.pull_request.is_some() => Err(Cause::MereToken),
            Standing::Upload => Ok(()),
        }
    }
}

/// The commit must be the one that GitHub says the workflow runs on, and a pull request's workflow speaks for that pull
/// request alone: it brings no baseline and no release.
fn vouched(workflow: &Workflow, revision: &Revision) -> Result<(), Cause> {
    const TOO_MIGHTY: [&str; 2] = ["pull_request_target", "workflow_run"];
    if TOO_MIGHTY.contains(&workflow.event.as_str()) {
        return Err(Cause::Event(workflow.event.clone()));
    }
    let measured = revision.commit.as_ref().filter(|_| !revision.dirty);
    if measured.is_none_or(|commit| commit.as_str() != workflow.sha.as_str()) {
        let measured = match &revision.commit {
            Some(commit) if revision.dirty => format!("a changed checkout of {}", commit.short()),
            Some(commit) => commit.short().to_owned(),
            None => "no commit".to_owned(),
        };
        return Err(Cause::OtherCommit { measured, runs_on: workflow.sha.short().to_owned() });
    }
    let runs_for = workflow.r#ref.strip_prefix("refs/pull/").and_then(|rest| rest.split('/').next());
    let number = runs_for.and_then(|number| number.parse().ok());
    match (runs_for, revision.pull_request) {
        (None, None) => Ok(()),
        // The head of a pull request, measured after a push to its branch.
        (None, Some(_)) if workflow.event == "push" => Ok(()),
        (Some(_), Some(pull)) if number == Some(pull) => Ok(()),
        _ => Err(Cause::OtherPull { runs_for: workflow.r#ref.chars().take(100).collect() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Grant;

    const SHA: &str = "0123456789abcdef0123456789abcdef01234567";
    const OTHER: &str = "89abcdef0123456789abcdef0123456789abcdef";

    fn workflow(event: &str, name: &str) -> Standing {
        Standing::Workflow(Box::new(Workflow {
            repository: "acme/sentiment".to_owned(),
            repository_id: 7,
            sha: SHA.parse().unwrap(),
            run_id: 1,
            event: event.to_owned(),
            r#ref: name.to_owned(),
        }))
    }

    fn revision(commit: Option<&str>, pull_request: Option<u64>) -> Revision {
        Revision { commit: commit.map(|sha| sha.parse().unwrap()), pull_request, ..Revision::default() }
    }

    #[test]
    fn who_brings_which_revision() {
        let pull = || workflow("pull_request", "refs/pull/128/merge");
        let push = || workflow("push", "refs/heads/main");
        let own = |pull| revision(Some(SHA), pull);
        let dirty = Revision { dirty: true, ..own(None) };
        let released = Revision { tag: Some("v1.2.0".to_owned()), ..own(None) };
        for (standing, revision, decides) in [
            (Standing::Trusted, own(Some(128)), true),
            (Standing::Trusted, own(None), true),
            (Standing::Trusted, revision(None, Some(128)), true),
            (Standing::Upload, own(None), true),
            (Standing::Upload, revision(None, None), true),
            (Standing::Upload, own(Some(128)), false),
            (Standing::Upload, revision(None, Some(128)), false),
            (pull(), own(Some(128)), true),
            (pull(), own(Some(129)), false),
            // No baseline, and no release, out of a pull request.
            (pull(), own(None), false),
            (pull(), released.clone(), false),
            (pull(), revision(Some(OTHER), Some(128)), false),
            (pull(), revision(Some(&SHA[..12]), Some(128)), false),
            (pull(), revision(None, Some(128)), false),
            (push(), own(None), true),
            (push(), released.clone(), true),
            (workflow("push", "refs/tags/v1.2.0"), released, true),
            (push(), own(Some(128)), true),
            (push(), revision(Some(OTHER), None), false),
            (push(), dirty, false),
            (workflow("pull_request_target", "refs/heads/main"), own(None), false),
            (workflow("workflow_run", "refs/heads/main"), own(None), false),
            (workflow("workflow_dispatch", "refs/heads/main"), own(None), true),
            (workflow("workflow_dispatch", "refs/heads/main"), own(Some(128)), false),
        ] {
            let bringer = Bringer { name: None, standing };
            let answer = bringer.decides(&revision);
            assert_eq!(answer.is_ok(), decides, "{bringer:?} {revision:?}: {answer:?}");
        }
    }

    #[test]
    fn a_scope_for_another_project_is_none() {
        let project: ProjectSlug = "sentiment".parse().unwrap();
        let other = Some("other".parse().unwrap());
        let token = Who::Token { id: None, name: "ci".to_owned() };
        let standing = |grants: Vec<Grant>| {
            let caller = Caller { who: token.clone(), grants, ..Caller::anonymous() };
            Bringer::of(&caller, &project).standing
        };
        let (upload, agent, admin) = (Scope::Upload, Scope::Agent, Scope::Admin);
        assert_eq!(standing(vec![Grant { scope: upload, project: None }]), Standing::Upload);
        assert_eq!(standing(vec![Grant { scope: agent, project: Some(project.clone()) }]), Standing::Trusted);
        assert_eq!(standing(vec![Grant { scope: admin, project: None }]), Standing::Trusted);
        let elsewhere =
            vec![Grant { scope: admin, project: other }, Grant { scope: upload, project: Some(project.clone()) }];
        assert_eq!(standing(elsewhere), Standing::Upload);
    }
}
