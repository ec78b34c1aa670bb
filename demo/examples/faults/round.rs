//! One round: a run is asked for, things break meanwhile, everything is put right, and then the run must have ended.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::check::{self, Found};
use crate::faults::{self, Kind};
use crate::host;
use crate::measured::tag;
use crate::plan::Planned;
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) number: u32,
    pub(crate) run: Uuid,
    pub(crate) took: Duration,
    /// With when and to whom.
    pub(crate) faults: Vec<(Kind, String)>,
    /// As far as it was asked for.
    pub(crate) found: Option<Found>,
    pub(crate) losses: Vec<String>,
}

/// Three attempts, each of them lost with its lease of a minute, and the last upload.
const ENDS_WITHIN: Duration = Duration::from_secs(300);
/// After the end: webhooks, the end of the service.
const SETTLES_WITHIN: Duration = Duration::from_secs(90);
const POLL: Duration = Duration::from_millis(100);

pub(crate) async fn play(world: &mut World, number: u32, planned: Vec<Planned>) -> Result<Done, String> {
    let began = Instant::now();
    let run = Uuid::now_v7();
    world.note(&format!("round {number}: run {run}")).await;
    let tag = tag(number);
    let asked = world.submit(run, &tag);
    let faults = futures_util::future::join_all(planned.iter().map(|fault| happen(world, fault, began)));
    let (asked, faults) = tokio::join!(asked, faults);
    let faults = faults.into_iter().collect::<Result<Vec<_>, _>>()?;
    if let Err(why) = asked {
        return Ok(Done { number, run, took: began.elapsed(), faults, found: None, losses: vec![why] });
    }
    world.accepted.push(run);

    let mut losses = Vec::new();
    if !within(ENDS_WITHIN, async || check::is_over(world, run).await).await {
        losses.push(format!("it was not over {} s after everything was put right", ENDS_WITHIN.as_secs()));
    }
    if !within(SETTLES_WITHIN, async || check::is_settled(world, run).await && host::of_run(run).is_empty()).await {
        losses.extend(host::of_run(run).into_iter().map(|process| format!("an orphan: {process}")));
    }
    let (found, wrong) = check::run(world, run).await?;
    losses.extend(wrong);
    losses.extend(world.ends.take_disorderly());
    Ok(Done { number, run, took: began.elapsed(), faults, found: Some(found), losses })
}

async fn happen(world: &World, planned: &Planned, began: Instant) -> Result<(Kind, String), String> {
    tokio::time::sleep_until(began + planned.at).await;
    let whom = faults::carry_out(world, planned).await?;
    let (at, lasts) = (planned.at.as_secs_f64(), planned.lasts.as_secs_f64());
    Ok((planned.kind, format!("{} ({whom}) at {at:.1} s for {lasts:.1} s", planned.kind.name())))
}

/// Whether it is so before the time is over.
pub(crate) async fn within(time: Duration, is: impl AsyncFn() -> bool) -> bool {
    let until = Instant::now() + time;
    loop {
        if is().await {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        tokio::time::sleep(POLL).await;
    }
}
