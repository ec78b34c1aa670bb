//! When to try again: pauses that grow, differ from one runner to the next, and obey the server's word.

use std::time::{Duration, Instant};

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

use super::Tried;

/// The pauses between the tries of one thing.
#[derive(Debug)]
pub struct Pauses {
    backoff: ExponentialBackoff,
    shortest: Duration,
    /// How many tries are still to follow, if that is what ends them.
    tries_left: Option<u32>,
    /// How long to go on without progress, and since when.
    within: Option<Duration>,
    since: Instant,
    attempts: u32,
}

/// What is waited for, for those who watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait<'a> {
    pub why: &'a str,
    pub pause: Duration,
    /// Tries that have failed since something was last achieved.
    pub attempts: u32,
    /// Time until it is given up; `None`: never.
    pub left: Option<Duration>,
}

const SHORTEST: Duration = Duration::from_millis(500);
/// No pause of ours is longer. Half of it is left to chance, so that a fleet does not come back all at once.
const LONGEST: Duration = Duration::from_secs(60);
/// The longest pause that a server may ask for, and while somebody waits at the terminal.
const LONGEST_ASKED: Duration = Duration::from_secs(600);
const LONGEST_ASKED_OF_FEW: Duration = Duration::from_secs(10);
const FEW: u32 = 3;

impl Pauses {
    /// A handful of tries within seconds.
    pub fn few() -> Self {
        Self { tries_left: Some(FEW), ..Self::forever() }
    }

    /// For as long as it takes.
    pub fn forever() -> Self {
        let shortest = SHORTEST;
        let backoff = backoff(shortest);
        Self { backoff, shortest, tries_left: None, within: None, since: Instant::now(), attempts: 0 }
    }

    /// Until so long has passed without progress.
    pub fn within(time: Duration) -> Self {
        Self { within: Some(time), ..Self::forever() }
    }

    /// With another first pause than half a second.
    #[must_use]
    pub fn from(self, shortest: Duration) -> Self {
        Self { backoff: backoff(shortest), shortest, ..self }
    }

    /// The next pause; `None` when it is time to give up. `asked`: what the server says to wait.
    pub fn next(&mut self, asked: Option<Duration>) -> Option<Duration> {
        self.attempts = self.attempts.saturating_add(1);
        let longest_asked = if self.tries_left.is_some() { LONGEST_ASKED_OF_FEW } else { LONGEST_ASKED };
        if let Some(tries) = &mut self.tries_left {
            *tries = tries.checked_sub(1)?;
        }
        let own = self.backoff.next()?.min(LONGEST);
        // Everybody is told the same, and must not come back at the same moment.
        let pause = asked.map_or(own, |asked| own.max(asked.min(longest_asked) + own / 4));
        match self.left() {
            Some(Duration::ZERO) => None,
            Some(left) => Some(pause.min(left)),
            None => Some(pause),
        }
    }

    /// Something was achieved: what follows is counted anew.
    pub fn restart(&mut self) {
        self.backoff = backoff(self.shortest);
        self.since = Instant::now();
        self.attempts = 0;
    }

    /// Tries that have failed since something was last achieved.
    pub(crate) fn attempts(&self) -> u32 {
        self.attempts
    }

    pub(crate) fn wait<'a>(&self, tried: &'a Tried, pause: Duration) -> Wait<'a> {
        Wait { why: tried.error.why(), pause, attempts: self.attempts, left: self.left() }
    }

    fn left(&self) -> Option<Duration> {
        Some(self.within?.saturating_sub(self.since.elapsed()))
    }
}

/// A pause, and up to as much again by chance.
fn backoff(shortest: Duration) -> ExponentialBackoff {
    let half = LONGEST / 2;
    ExponentialBuilder::new().with_min_delay(shortest).with_max_delay(half).without_max_times().with_jitter().build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_minute_and_no_two_runners_keep_step() {
        let mut pauses = Pauses::forever();
        let all: Vec<Duration> = (0..40).map(|_| pauses.next(None).unwrap()).collect();
        let least = |n: u32| (SHORTEST * 2u32.pow(n)).min(LONGEST / 2);
        for (n, pause) in all.iter().enumerate() {
            let least = least(u32::try_from(n.min(10)).unwrap());
            assert!((least..=2 * least).contains(pause), "{n}: {pause:?}");
        }
        let late = &all[10..];
        assert!(late.iter().any(|pause| pause != &late[0]) && late.iter().all(|pause| *pause <= LONGEST), "{late:?}");
        pauses.restart();
        assert!(pauses.next(None).unwrap() <= 2 * SHORTEST);
    }

    #[test]
    fn the_server_s_word_goes_before_ours_within_bounds() {
        let mut pauses = Pauses::forever();
        let asked = Duration::from_secs(90);
        let pause = pauses.next(Some(asked)).unwrap();
        assert!(pause > asked && pause <= asked + SHORTEST, "{pause:?}");
        let pause = pauses.next(Some(Duration::from_secs(1_000_000))).unwrap();
        assert!((LONGEST_ASKED..=LONGEST_ASKED + LONGEST).contains(&pause), "{pause:?}");
        assert!(Pauses::few().next(Some(asked)).unwrap() < Duration::from_secs(11));
    }

    #[test]
    fn tries_end_by_their_number_or_their_time() {
        let mut few = Pauses::few();
        assert_eq!(std::iter::from_fn(|| few.next(None)).count(), FEW as usize);
        assert_eq!(Pauses::within(Duration::ZERO).next(None), None);
        let mut soon = Pauses::within(Duration::from_millis(200));
        assert!(soon.next(None).unwrap() <= Duration::from_millis(200), "the last try is made at the end of the time");
    }
}
