//! Jobs that this agent gave back because of something here: it rests from their project, longer each time, and gives
//! none back for ever, since the server does not count it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use plimsoll_domain::ids::{ProjectSlug, RunId};

/// A job that was given back so often is failed instead.
pub(super) const MOST: u32 = 20;
const FIRST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(5 * 60);

/// What was given back of each project since a job of it went well.
#[derive(Debug, Default)]
pub(super) struct Releases(HashMap<ProjectSlug, Streak>);

#[derive(Debug)]
struct Streak {
    length: u32,
    /// Two jobs may take turns.
    jobs: HashMap<RunId, u32>,
    until: Instant,
}

impl Releases {
    pub(super) fn rests(&self, project: &ProjectSlug) -> bool {
        self.0.get(project).is_some_and(|streak| Instant::now() < streak.until)
    }

    /// How often this job was given back.
    pub(super) fn of(&self, project: &ProjectSlug, run: RunId) -> u32 {
        self.0.get(project).and_then(|streak| streak.jobs.get(&run).copied()).unwrap_or(0)
    }

    pub(super) fn add(&mut self, project: &ProjectSlug, run: RunId) {
        const KEPT: usize = 1_000;
        let fresh = || Streak { length: 0, jobs: HashMap::new(), until: Instant::now() };
        let streak = self.0.entry(project.clone()).or_insert_with(fresh);
        if streak.jobs.len() >= KEPT {
            streak.jobs.clear();
        }
        *streak.jobs.entry(run).or_default() += 1;
        streak.until = Instant::now() + FIRST.saturating_mul(1 << streak.length.min(16)).min(LONGEST);
        streak.length += 1;
    }

    pub(super) fn forget(&mut self, project: &ProjectSlug) {
        self.0.remove(project);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_take_turns_are_counted_apart_and_the_rest_grows_to_its_bound() {
        let project: ProjectSlug = "test".parse().unwrap();
        let runs = [RunId(uuid::Uuid::now_v7()), RunId(uuid::Uuid::now_v7())];
        let mut releases = Releases::default();
        assert!(!releases.rests(&project));
        for count in 1..=MOST {
            runs.iter().for_each(|run| releases.add(&project, *run));
            assert_eq!(runs.map(|run| releases.of(&project, run)), [count; 2]);
        }
        assert!(releases.rests(&project) && !releases.rests(&"other".parse().unwrap()));
        let left = releases.0[&project].until.saturating_duration_since(Instant::now());
        assert!(left > LONGEST / 2 && left <= LONGEST, "{left:?}");
        releases.forget(&project);
        assert_eq!((releases.rests(&project), releases.of(&project, runs[0])), (false, 0));
    }
}
