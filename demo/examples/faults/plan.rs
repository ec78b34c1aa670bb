//! What is broken when: follows from the seed alone.

use std::ops::RangeInclusive;
use std::time::Duration;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use crate::faults::{Kind, available};
use crate::world::Setting;

#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) kind: Kind,
    /// After the run was asked for.
    pub(crate) at: Duration,
    /// How long it stays so, or stays down.
    pub(crate) lasts: Duration,
    /// Which of the two servers or runners.
    pub(crate) which: usize,
    /// At the runner that has the run, if one has.
    pub(crate) aimed: bool,
    /// Of a clock, in seconds.
    pub(crate) offset: i64,
}

#[derive(Debug)]
pub(crate) struct Planner {
    random: Xoshiro256PlusPlus,
    kinds: Vec<Kind>,
    /// What has not had its turn: kinds come as often as they weigh.
    deck: Vec<Kind>,
}

/// A run takes about this long when nothing is broken, and what is broken later would miss it.
const RUN_MS: u64 = 6_000;
const MOST: u64 = 4;
/// From a leap second to a wrong year.
const OFFSETS: [i64; 6] = [1, 45, 600, 7_200, 172_800, 31_536_000];

/// One round of so many is played with a server that runs its own Postgres.
const EMBEDDED_EVERY: u32 = 5;

/// Which rounds are played where: as far as what is wanted can be broken there, four of five with servers that share a
/// Postgres and the last ones with a server that has its own.
pub(crate) fn settings(rounds: u32, only: &[Kind]) -> Vec<(Setting, RangeInclusive<u32>)> {
    let can = |setting| !available(setting, only).is_empty();
    let shared = match (can(Setting::Shared), can(Setting::Embedded)) {
        (true, true) => rounds - rounds / EMBEDDED_EVERY,
        (true, false) => rounds,
        (false, _) => 0,
    };
    let parts = [(Setting::Shared, 1..=shared), (Setting::Embedded, shared + 1..=rounds)];
    parts.into_iter().filter(|(setting, rounds)| can(*setting) && !rounds.is_empty()).collect()
}

impl Planner {
    pub(crate) fn new(seed: u64, kinds: Vec<Kind>) -> Self {
        Self { random: Xoshiro256PlusPlus::seed_from_u64(seed), kinds, deck: Vec::new() }
    }

    /// One to four faults, by time.
    pub(crate) fn round(&mut self) -> Vec<Planned> {
        let count = 1 + self.below(MOST);
        let mut planned: Vec<Planned> = (0..count).map(|_| self.fault()).collect();
        planned.sort_by_key(|fault| fault.at);
        planned
    }

    fn fault(&mut self) -> Planned {
        let sign = if self.below(2) == 0 { 1 } else { -1 };
        Planned {
            kind: self.draw(),
            at: Duration::from_millis(self.below(RUN_MS)),
            lasts: Duration::from_millis(100 + self.below(2_900)),
            which: usize::from(self.below(2) == 1),
            aimed: self.below(4) > 0,
            offset: sign * OFFSETS[usize::try_from(self.below(OFFSETS.len() as u64)).unwrap_or(0)],
        }
    }

    fn draw(&mut self) -> Kind {
        if self.deck.is_empty() {
            self.deck = self.kinds.iter().flat_map(|kind| std::iter::repeat_n(*kind, kind.weight())).collect();
        }
        let at = usize::try_from(self.below(self.deck.len() as u64)).unwrap_or(0);
        self.deck.swap_remove(at)
    }

    /// From 0 to one less than `bound`; for small bounds as good as even.
    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }
}
