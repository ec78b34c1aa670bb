//! What is broken, and how.

use std::time::Duration;

use crate::clock;
use crate::plan::Planned;
use crate::proxy::Mode;
use crate::world::World;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum)]
pub(crate) enum Kind {
    KillRunner,
    KillServer,
    KillPostgres,
    RunnerCut,
    RunnerSlow,
    RunnerSilent,
    RunnerReset,
    DatabaseCut,
    DatabaseSlow,
    DatabaseSilent,
    DatabaseReset,
    RunnerClock,
    ServerClock,
}

impl Kind {
    pub(crate) const ALL: [Self; 13] = [
        Self::KillRunner,
        Self::KillServer,
        Self::KillPostgres,
        Self::RunnerCut,
        Self::RunnerSlow,
        Self::RunnerSilent,
        Self::RunnerReset,
        Self::DatabaseCut,
        Self::DatabaseSlow,
        Self::DatabaseSilent,
        Self::DatabaseReset,
        Self::RunnerClock,
        Self::ServerClock,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::KillRunner => "kill-runner",
            Self::KillServer => "kill-server",
            Self::KillPostgres => "kill-postgres",
            Self::RunnerCut => "runner-cut",
            Self::RunnerSlow => "runner-slow",
            Self::RunnerSilent => "runner-silent",
            Self::RunnerReset => "runner-reset",
            Self::DatabaseCut => "database-cut",
            Self::DatabaseSlow => "database-slow",
            Self::DatabaseSilent => "database-silent",
            Self::DatabaseReset => "database-reset",
            Self::RunnerClock => "runner-clock",
            Self::ServerClock => "server-clock",
        }
    }

    pub(crate) fn says(self) -> &'static str {
        match self {
            Self::KillRunner => "kill -9 of a runner",
            Self::KillServer => "kill -9 of a server",
            Self::KillPostgres => "kill -9 of Postgres and all its processes",
            Self::RunnerCut => "network between runner and servers cut",
            Self::RunnerSlow => "network between runner and servers slow",
            Self::RunnerSilent => "network between runner and servers silent",
            Self::RunnerReset => "connections of a runner reset",
            Self::DatabaseCut => "network between a server and Postgres cut",
            Self::DatabaseSlow => "network between a server and Postgres slow",
            Self::DatabaseSilent => "network between a server and Postgres silent",
            Self::DatabaseReset => "connections between a server and Postgres reset",
            Self::RunnerClock => "wall clock of a runner moved",
            Self::ServerClock => "wall clock of a server moved",
        }
    }

    /// How often it is drawn: what kills, more often.
    pub(crate) fn weight(self) -> usize {
        if matches!(self, Self::KillRunner | Self::KillServer | Self::KillPostgres) { 3 } else { 1 }
    }

    fn needs_clock(self) -> bool {
        matches!(self, Self::RunnerClock | Self::ServerClock)
    }
}

/// The kinds that can be carried out here, of those wanted.
pub(crate) fn available(world: &World, only: &[Kind]) -> Result<Vec<Kind>, String> {
    let wanted = |kind: &Kind| only.is_empty() || only.contains(kind);
    let left_out = world.left_out();
    let kinds: Vec<Kind> =
        Kind::ALL.into_iter().filter(wanted).filter(|kind| !left_out.iter().any(|(out, _)| out == kind)).collect();
    if kinds.is_empty() { Err("nothing of what is wanted can be broken here".to_owned()) } else { Ok(kinds) }
}

/// The kinds that cannot, and why.
pub(crate) fn missing() -> Vec<(Kind, &'static str)> {
    let why = "libfaketime is not installed (Debian: apt-get install faketime)";
    let out = |kind: &Kind| kind.needs_clock() && clock::library().is_none();
    Kind::ALL.into_iter().filter(out).map(|kind| (kind, why)).collect()
}

/// Breaks something, waits, and puts it right. Returns to whom it was done.
pub(crate) async fn carry_out(world: &World, planned: &Planned) -> Result<String, String> {
    let lasts = planned.lasts;
    let runner = async || world.busy_runner().await.filter(|_| planned.aimed).unwrap_or(planned.which);
    let slow = Mode::Slow(Duration::from_millis(150));
    match planned.kind {
        Kind::KillRunner => {
            let runner = &world.runners[runner().await];
            runner.unit.kill(lasts).await;
            Ok(runner.unit.name().to_owned())
        }
        Kind::KillServer => {
            let server = &world.servers[planned.which];
            server.unit.kill(lasts).await;
            Ok(server.unit.name().to_owned())
        }
        Kind::KillPostgres => {
            world.kill_postgres(lasts).await?;
            Ok("postgres".to_owned())
        }
        Kind::RunnerCut => Ok(world.disturb_runner(runner().await, Mode::Cut, lasts).await),
        Kind::RunnerSlow => Ok(world.disturb_runner(runner().await, slow, lasts).await),
        Kind::RunnerSilent => Ok(world.disturb_runner(runner().await, Mode::BlackHole, lasts).await),
        Kind::RunnerReset => Ok(world.disturb_runner(runner().await, Mode::Reset, lasts / 10).await),
        Kind::DatabaseCut => Ok(world.disturb_server(planned.which, Mode::Cut, lasts).await),
        Kind::DatabaseSlow => Ok(world.disturb_server(planned.which, slow, lasts).await),
        Kind::DatabaseSilent => Ok(world.disturb_server(planned.which, Mode::BlackHole, lasts).await),
        Kind::DatabaseReset => Ok(world.disturb_server(planned.which, Mode::Reset, lasts / 10).await),
        Kind::RunnerClock => {
            let runner = &world.runners[runner().await];
            move_clock(&runner.clock, planned).await?;
            Ok(format!("{} by {:+} s", runner.unit.name(), planned.offset))
        }
        Kind::ServerClock => {
            let server = &world.servers[planned.which];
            move_clock(&server.clock, planned).await?;
            Ok(format!("{} by {:+} s", server.unit.name(), planned.offset))
        }
    }
}

/// The program reads it within a second.
async fn move_clock(clock: &clock::Clock, planned: &Planned) -> Result<(), String> {
    clock.set(planned.offset)?;
    tokio::time::sleep(Duration::from_secs(1) + planned.lasts).await;
    clock.set(0)
}
