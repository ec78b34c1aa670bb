//! The figures of each profile, before the plan and the flags override them.

use plimsoll_domain::plan::{Phases, Profile, Smoke, Stability, Staircase, WarmUp};

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;

/// The phases of a profile. `pr` has those of `standard`, so that both have one digest and compare; the engine carries
/// out a part of them.
pub(super) fn phases(profile: Profile) -> Phases {
    match profile {
        Profile::Standard | Profile::Pr => Phases {
            smoke: Smoke { duration_ms: 20 * SECOND },
            warm_up: WarmUp { min_requests: 30, max_duration_ms: 40 * SECOND, top_ms: 5 * SECOND },
            staircase: Staircase {
                workers: STEPS.to_vec(),
                step_ms: 2 * MINUTE,
                ramp_up_ms: 10 * SECOND,
                search: true,
                search_step_ms: 30 * SECOND,
                max_workers: MAX_WORKERS,
                max_error_rate: MAX_ERROR_RATE,
            },
            stability: Stability {
                duration_ms: 10 * MINUTE,
                ramp_up_ms: 10 * SECOND,
                workers: None,
                knee_fraction: KNEE_FRACTION,
            },
        },
        Profile::Quick => Phases {
            // Long enough for a verdict on capacity where one worker carries it all.
            smoke: Smoke { duration_ms: 6 * SECOND },
            warm_up: WarmUp { min_requests: 20, max_duration_ms: 2 * SECOND, top_ms: SECOND },
            staircase: Staircase {
                workers: STEPS.to_vec(),
                // Without ramp-up and edges five whole seconds are left, on which a verdict on capacity can rest.
                step_ms: 8 * SECOND,
                ramp_up_ms: SECOND,
                search: true,
                search_step_ms: 8 * SECOND,
                max_workers: MAX_WORKERS,
                max_error_rate: MAX_ERROR_RATE,
            },
            stability: Stability {
                duration_ms: 40 * SECOND,
                ramp_up_ms: SECOND,
                workers: None,
                knee_fraction: KNEE_FRACTION,
            },
        },
    }
}

const STEPS: [u32; 5] = [5, 10, 20, 50, 100];
const MAX_WORKERS: u32 = 1_000;
const MAX_ERROR_RATE: f64 = 0.01;
const KNEE_FRACTION: f64 = 0.75;
