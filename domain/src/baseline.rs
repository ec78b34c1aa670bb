//! Which earlier run a candidate is compared with.

use jiff::Timestamp;
use semver::Version;

use crate::ids::{CommitSha, RunId};
use crate::revision::Revision;

/// An earlier run that would compare: same project, plan digest, testbed and load, valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    pub run_id: RunId,
    pub revision: Revision,
    pub started_at: Timestamp,
    /// Neither judged `regressed` nor left undecided, unless a person accepted it.
    pub accepted: bool,
}

/// The chosen baseline: the runs of one revision, newest first, at most [`MAX_POOLED`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub run_ids: Vec<RunId>,
    /// A phrase for people: "the previous release", "the merge base".
    pub because: String,
}

pub const MAX_POOLED: usize = 5;

/// The baseline of `candidate`, which was measured at `at`, among `earlier` runs in any order.
///
/// 1. A pull request: its merge base, else its nearest first-parent ancestor with a run, accepted or not.
/// 2. A tag that is a semantic version (`v1.2.0`, `model-v1.2`): the previous release with the same prefix.
/// 3. Any other commit: as a pull request.
/// 4. Else the latest accepted run before the candidate's revision was first measured.
///
/// Runs of the candidate's own revision never count; by 2 and 4 neither do runs that did not start before `at`. An
/// ancestor is one whenever it was measured.
pub fn choose(candidate: &Revision, at: Timestamp, earlier: &[Measured]) -> Option<Choice> {
    let (own, others): (Vec<&Measured>, Vec<&Measured>) =
        earlier.iter().partition(|run| same(&run.revision, candidate));
    let before: Vec<&Measured> = others.iter().copied().filter(|run| run.started_at < at).collect();
    // Measured again, a revision keeps the baseline it had.
    let first = own.iter().map(|run| run.started_at).fold(at, Timestamp::min);
    let release = candidate.tag.as_deref().and_then(version).filter(|_| candidate.pull_request.is_none());
    release
        .and_then(|release| previous_release(&release, &before))
        .or_else(|| ancestor(candidate, &others))
        .or_else(|| latest(candidate, first, &before))
}

fn previous_release(candidate: &Tag<'_>, others: &[&Measured]) -> Option<Choice> {
    // A dirty checkout carries its commit's tag, but is not what was released.
    let released = |run: &&Measured| run.accepted && run.revision.pull_request.is_none() && !run.revision.dirty;
    let (_, previous) = others
        .iter()
        .copied()
        .filter(released)
        .filter_map(|run| Some((version(run.revision.tag.as_deref()?)?, run)))
        .filter(|(tag, _)| tag.prefix == candidate.prefix && tag.version.cmp_precedence(&candidate.version).is_lt())
        // A release candidate precedes its release, but it is no release.
        .filter(|(tag, _)| tag.version.pre.is_empty() || !candidate.version.pre.is_empty())
        .max_by(|(a, run_a), (b, run_b)| {
            a.version.cmp_precedence(&b.version).then(run_a.started_at.cmp(&run_b.started_at))
        })?;
    let because = if candidate.version.pre.is_empty() { "the previous release" } else { "the version before it" };
    pool(previous, others, because)
}

fn ancestor(candidate: &Revision, others: &[&Measured]) -> Option<Choice> {
    let at = |sha: &CommitSha| {
        let runs = others.iter().copied().filter(|run| is_commit(&run.revision, sha));
        runs.max_by_key(|run| (run.accepted, run.started_at))
    };
    // On the default branch the merge base is the commit itself.
    let base =
        candidate.merge_base.as_ref().filter(|base| !candidate.commit.as_ref().is_some_and(|own| own.is_same(base)));
    if let Some(run) = base.and_then(at) {
        return pool(run, others, "the merge base");
    }
    let (back, run) = candidate.ancestors.iter().enumerate().find_map(|(i, sha)| Some((i + 1, at(sha)?)))?;
    let because = match back {
        1 => "the commit before it".to_owned(),
        _ => format!("the nearest measured ancestor, {back} commits back"),
    };
    pool(run, others, because)
}

/// The latest accepted run before `first`. Code that was never merged is no baseline of other code, a pre-release none
/// of a release, and a later version none of an earlier one.
fn latest(candidate: &Revision, first: Timestamp, others: &[&Measured]) -> Option<Choice> {
    let release = candidate.tag.as_deref().and_then(version);
    let fits = |run: &&Measured| {
        let tag = run.revision.tag.as_deref().and_then(version);
        let another_release = match (&release, tag) {
            (Some(release), Some(tag)) => release.prefix == tag.prefix,
            _ => false,
        };
        run.accepted && run.started_at < first && run.revision.pull_request.is_none() && !another_release
    };
    let run = others.iter().copied().filter(fits).max_by_key(|run| (run.started_at, run.run_id))?;
    pool(run, others, "the latest accepted run before it")
}

/// All runs of the chosen run's revision: the accepted ones, or, when there is none, any.
fn pool(chosen: &Measured, others: &[&Measured], because: impl Into<String>) -> Option<Choice> {
    let of_it = |run: &&Measured| run.run_id == chosen.run_id || same(&run.revision, &chosen.revision);
    let mut runs: Vec<&Measured> =
        others.iter().copied().filter(of_it).filter(|run| run.accepted == chosen.accepted).collect();
    runs.sort_by_key(|run| std::cmp::Reverse((run.started_at, run.run_id)));
    runs.truncate(MAX_POOLED);
    (!runs.is_empty()).then(|| Choice { run_ids: runs.iter().map(|run| run.run_id).collect(), because: because.into() })
}

/// Whether two runs measured one revision: the same tag or the same clean commit. A dirty checkout and a run without
/// names equal nothing, since nobody knows what they measured.
fn same(a: &Revision, b: &Revision) -> bool {
    match (&a.commit, &b.commit) {
        _ if a.dirty || b.dirty => false,
        (Some(a), Some(b)) => a.is_same(b),
        _ => a.tag.is_some() && a.tag == b.tag,
    }
}

fn is_commit(revision: &Revision, sha: &CommitSha) -> bool {
    !revision.dirty && revision.commit.as_ref().is_some_and(|own| own.is_same(sha))
}

/// A tag that names a version.
struct Tag<'a> {
    /// What stands before the version, without the `v`.
    prefix: &'a str,
    version: Version,
}

/// Reads `1.2.3`, `v1.2.3-rc.1`, `model-v1.2`; `None` for other tags.
fn version(tag: &str) -> Option<Tag<'_>> {
    let starts = tag.char_indices().filter(|(i, c)| {
        c.is_ascii_digit() && !tag[..*i].ends_with(|before: char| before.is_ascii_digit() || before == '.')
    });
    starts.map(|(start, _)| tag.split_at(start)).find_map(|(prefix, rest)| {
        let version = Version::parse(rest).ok().or_else(|| two_parts(rest))?;
        let prefix = prefix.strip_suffix(['v', 'V']).unwrap_or(prefix);
        // `model7b1.0.0` names no version, `model-1.0.0` does.
        (!prefix.ends_with(char::is_alphanumeric)).then_some(Tag { prefix, version })
    })
}

fn two_parts(text: &str) -> Option<Version> {
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, rest) = text.split_at(end);
    (numbers.matches('.').count() == 1).then(|| Version::parse(&format!("{numbers}.0{rest}")).ok())?
}

#[cfg(test)]
mod tests;
