//! Revisions by the names people type.

use plimsoll_domain::ids::{ProjectSlug, RunId};

use super::snapshots::{SnapshotRow, rows};
use super::{Pool, Result};

/// The shortest commit that is looked up.
const SHORTEST_COMMIT: usize = 7;

/// The snapshot that `reference` means in a project: a run id, a tag, a branch, or the first seven or more digits of a
/// commit, in this order; of several the newest valid one. `testbed` (fingerprint or label) narrows it.
pub async fn resolve(
    pool: &Pool,
    project: &ProjectSlug,
    reference: &str,
    testbed: Option<&str>,
) -> Result<Option<SnapshotRow>> {
    // One after the other: no index answers all of them at once.
    if let Ok(RunId(run_id)) = reference.parse() {
        let found = rows!(
            "where s.run_id = $2 and s.project = $1 and ($3::text is null or s.testbed = $3 or t.label = $3)",
            project.as_str(),
            run_id,
            testbed,
        );
        if let Some(row) = found.fetch_optional(pool).await? {
            return row.try_into().map(Some);
        }
    }
    let found = rows!(
        "where s.project = $1 and s.tag = $2 and ($3::text is null or s.testbed = $3 or t.label = $3)
         order by s.valid desc, s.started_at desc limit 1",
        project.as_str(),
        reference,
        testbed,
    );
    if let Some(row) = found.fetch_optional(pool).await? {
        return row.try_into().map(Some);
    }
    let found = rows!(
        "where s.project = $1 and s.branch = $2 and ($3::text is null or s.testbed = $3 or t.label = $3)
         order by s.valid desc, s.started_at desc limit 1",
        project.as_str(),
        reference,
        testbed,
    );
    if let Some(row) = found.fetch_optional(pool).await? {
        return row.try_into().map(Some);
    }
    if reference.len() < SHORTEST_COMMIT || !reference.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Ok(None);
    }
    // All commits that begin so, in the order of the index.
    let first = reference.to_ascii_lowercase();
    let found = rows!(
        "where s.project = $1 and s.commit_sha ~>=~ $2 and s.commit_sha ~<~ ($2 || 'g')
           and ($3::text is null or s.testbed = $3 or t.label = $3)
         order by s.valid desc, s.started_at desc limit 1",
        project.as_str(),
        first,
        testbed,
    );
    found.fetch_optional(pool).await?.map(TryInto::try_into).transpose()
}
