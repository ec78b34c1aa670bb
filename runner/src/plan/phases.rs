//! `[smoke]`, `[warm_up]`, `[staircase]`, `[stability]`: a profile's phases with the plan's and the flags' figures.

use plimsoll_domain::plan::{Phases, Profile};

use super::section::{Field, Section};
use super::source::PlanError;
use super::{MAX_WORKERS, Overrides, profile, values};

/// A step shorter than this has no seconds to show.
pub const SHORTEST_MS: u64 = 1_000;

pub(super) fn read(top: &Section, profile: Profile, given: &Overrides) -> Result<Phases, PlanError> {
    let mut phases = profile::phases(profile);
    let smoke = top.sub("smoke", &["duration"])?;
    set(&smoke, "duration", &mut phases.smoke.duration_ms, |field| field.duration_ms(SHORTEST_MS))?;
    warm_up(top, &mut phases)?;
    staircase(top, &mut phases, given)?;
    stability(top, &mut phases, given)?;
    Ok(phases)
}

fn warm_up(top: &Section, phases: &mut Phases) -> Result<(), PlanError> {
    let section = top.sub("warm_up", &["min_requests", "max_duration", "top"])?;
    let warm_up = &mut phases.warm_up;
    set(&section, "min_requests", &mut warm_up.min_requests, |field| field.whole(0..=1_000_000))?;
    set(&section, "max_duration", &mut warm_up.max_duration_ms, |field| field.duration_ms(0))?;
    set(&section, "top", &mut warm_up.top_ms, |field| field.duration_ms(0))
}

const STAIRCASE: [&str; 7] = ["workers", "step", "ramp_up", "search", "search_step", "max_workers", "max_error_rate"];

fn staircase(top: &Section, phases: &mut Phases, given: &Overrides) -> Result<(), PlanError> {
    let section = top.sub("staircase", &STAIRCASE)?;
    let stairs = &mut phases.staircase;
    set(&section, "workers", &mut stairs.workers, rising)?;
    set(&section, "step", &mut stairs.step_ms, |field| field.duration_ms(SHORTEST_MS))?;
    set(&section, "search", &mut stairs.search, Field::bool)?;
    set(&section, "max_error_rate", &mut stairs.max_error_rate, Field::percent)?;
    if let Some(workers) = &given.staircase {
        stairs.workers.clone_from(workers);
    }
    if let Some(step_ms) = given.step_ms {
        stairs.step_ms = step_ms;
    }
    // A profile's own figures give way to shorter steps; those that the plan names must fit.
    stairs.ramp_up_ms = ramp_up(&section, "step", stairs.step_ms, stairs.ramp_up_ms)?;
    stairs.search_step_ms = stairs.search_step_ms.min(stairs.step_ms);
    set(&section, "search_step", &mut stairs.search_step_ms, |field| field.duration_ms(SHORTEST_MS))?;
    let last = stairs.workers.last().copied().unwrap_or(1);
    stairs.max_workers = stairs.max_workers.max(last);
    if let Some(field) = section.get("max_workers") {
        stairs.max_workers = field.whole(1..=MAX_WORKERS)?;
        if stairs.max_workers < last {
            return Err(field.error(format!("is {}, but the staircase goes to {last}", stairs.max_workers)));
        }
    }
    Ok(())
}

fn stability(top: &Section, phases: &mut Phases, given: &Overrides) -> Result<(), PlanError> {
    let section = top.sub("stability", &["duration", "ramp_up", "workers", "knee_fraction"])?;
    let stability = &mut phases.stability;
    set(&section, "duration", &mut stability.duration_ms, |field| field.duration_ms(SHORTEST_MS))?;
    set(&section, "workers", &mut stability.workers, |field| field.whole(1..=MAX_WORKERS).map(Some))?;
    set(&section, "knee_fraction", &mut stability.knee_fraction, share)?;
    if let Some(duration_ms) = given.stability_ms {
        stability.duration_ms = duration_ms;
    }
    stability.ramp_up_ms = ramp_up(&section, "duration", stability.duration_ms, stability.ramp_up_ms)?;
    Ok(())
}

fn set<'s, T>(
    section: &Section<'s>,
    key: &str,
    to: &mut T,
    read: impl FnOnce(&Field<'s>) -> Result<T, PlanError>,
) -> Result<(), PlanError> {
    if let Some(field) = section.get(key) {
        *to = read(&field)?;
    }
    Ok(())
}

/// The ramp-up of a step: at most a quarter of it. What the plan says beyond that is refused rather than cut, so that two
/// plans with different digests do not carry out the same.
fn ramp_up(section: &Section, step: &str, step_ms: u64, default_ms: u64) -> Result<u64, PlanError> {
    let Some(field) = section.get("ramp_up") else {
        return Ok(default_ms.min(step_ms / 4));
    };
    let ramp_up = field.duration_ms(0)?;
    if ramp_up > step_ms / 4 {
        return Err(field
            .error(format!("takes more than a quarter of `{step}`, which is {}", values::duration_text(step_ms)))
            .hint("make the ramp-up shorter or the step longer"));
    }
    Ok(ramp_up)
}

fn rising(field: &Field<'_>) -> Result<Vec<u32>, PlanError> {
    let elements = field.elements()?;
    let workers = elements.iter().map(|element| element.whole(1..=MAX_WORKERS)).collect::<Result<Vec<_>, _>>()?;
    match values::rising(&workers) {
        Ok(()) => Ok(workers),
        Err(why) => Err(field.error(why).hint("for example [5, 10, 20, 50, 100]")),
    }
}

/// A number above 0 and up to 1.
fn share(field: &Field<'_>) -> Result<f64, PlanError> {
    let toml::de::DeValue::Float(float) = field.value else {
        return Err(field.wrong_type("a decimal number such as 0.75"));
    };
    let share = float.as_str().parse().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| field.error(format!("must be above 0 and at most 1.0, not {float}")))
}
