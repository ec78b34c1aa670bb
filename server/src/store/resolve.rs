//! Revisions by the names people type.

use plimsoll_domain::ids::{ProjectSlug, RunId};

use super::snapshots::{SnapshotRow, rows};
use super::{Executor, Result};

/// The shortest commit that is looked up.
const SHORTEST_COMMIT: usize = 7;

/// The snapshot that `reference` means in a project: a run id, a tag, a branch, or the first seven or more digits of a
/// commit, in this order; of several the newest valid one. `testbed` (fingerprint or label) narrows it.
pub async fn resolve(
    executor: impl Executor<'_>,
    project: &ProjectSlug,
    reference: &str,
    testbed: Option<&str>,
) -> Result<Option<SnapshotRow>> {
    let run_id: Option<RunId> = reference.parse().ok();
    let is_commit = reference.len() >= SHORTEST_COMMIT && reference.bytes().all(|b| b.is_ascii_hexdigit());
    let commit = is_commit.then(|| format!("{}%", reference.to_ascii_lowercase()));
    let found = rows!(
        "where s.project = $1
           and (s.run_id = $2 or s.tag = $3 or s.branch = $3 or s.commit_sha like $4)
           and ($5::text is null or s.testbed = $5 or t.label = $5)
         order by s.run_id is not distinct from $2 desc, s.tag is not distinct from $3 desc,
             s.branch is not distinct from $3 desc, s.valid desc, s.started_at desc
         limit 1",
        project.as_str(),
        run_id.map(|run| run.0) as _,
        reference,
        commit,
        testbed,
    );
    found.fetch_optional(executor).await?.map(TryInto::try_into).transpose()
}
