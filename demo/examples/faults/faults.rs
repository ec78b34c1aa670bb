//! What is broken, and how.

use std::time::Duration;

use crate::clock;
use crate::plan::Planned;
use crate::proxy::Mode;
use crate::world::{Setting, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, clap::ValueEnum)]
pub(crate) enum Kind {
    KillRunner,
    KillServer,
    KillPostgres,
    KillBoth,
    RestartRunner,
    RestartServer,
    DeployServer,
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
    pub(crate) const ALL: [Self; 17] = [
        Self::KillRunner,
        Self::KillServer,
        Self::KillPostgres,
        Self::KillBoth,
        Self::RestartRunner,
        Self::RestartServer,
        Self::DeployServer,
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
            Self::KillBoth => "kill-both",
            Self::RestartRunner => "restart-runner",
            Self::RestartServer => "restart-server",
            Self::DeployServer => "deploy-server",
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
            Self::KillBoth => "kill -9 of a server and its own Postgres at once",
            Self::RestartRunner => "SIGTERM to a runner, and a new start",
            Self::RestartServer => "SIGTERM to a server, and a new start",
            Self::DeployServer => "a new server process beside the old one, then SIGTERM to that",
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
        match self {
            Self::KillRunner | Self::KillServer | Self::KillPostgres | Self::KillBoth => 3,
            Self::DeployServer => 2,
            _ => 1,
        }
    }

    fn needs_clock(self) -> bool {
        matches!(self, Self::RunnerClock | Self::ServerClock)
    }

    fn happens_in(self, setting: Setting) -> bool {
        match self {
            // One process at a time owns a data directory with a Postgres in it.
            Self::DeployServer
            | Self::DatabaseCut
            | Self::DatabaseSlow
            | Self::DatabaseSilent
            | Self::DatabaseReset => setting == Setting::Shared,
            Self::KillBoth => setting == Setting::Embedded,
            _ => true,
        }
    }
}

/// The kinds that can be carried out there on this host, of those wanted.
pub(crate) fn available(setting: Setting, only: &[Kind]) -> Vec<Kind> {
    let (wanted, left_out) = (|kind: &Kind| only.is_empty() || only.contains(kind), missing());
    let can = |kind: &Kind| kind.happens_in(setting) && !left_out.iter().any(|(out, _)| out == kind);
    Kind::ALL.into_iter().filter(wanted).filter(can).collect()
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
    let server = &world.servers[planned.which % world.servers.len()];
    let slow = Mode::Slow(Duration::from_millis(150));
    match planned.kind {
        Kind::KillRunner => {
            let runner = &world.runners[runner().await];
            runner.unit.kill(lasts).await;
            Ok(runner.unit.name().to_owned())
        }
        Kind::KillServer => {
            server.kill(lasts).await;
            Ok(server.name.clone())
        }
        Kind::KillPostgres => {
            world.kill_postgres(lasts).await?;
            Ok("postgres".to_owned())
        }
        Kind::KillBoth => {
            world.kill_postgres(Duration::ZERO).await?;
            server.kill(lasts).await;
            Ok(format!("{} and its postgres", server.name))
        }
        Kind::RestartRunner => {
            let runner = &world.runners[runner().await];
            runner.unit.restart(lasts / 10).await;
            Ok(runner.unit.name().to_owned())
        }
        Kind::RestartServer => {
            server.restart(lasts / 10).await;
            Ok(server.name.clone())
        }
        Kind::DeployServer => {
            server.deploy(lasts).await?;
            Ok(server.name.clone())
        }
        Kind::RunnerCut => Ok(world.runners[runner().await].disturb(Mode::Cut, lasts).await),
        Kind::RunnerSlow => Ok(world.runners[runner().await].disturb(slow, lasts).await),
        Kind::RunnerSilent => Ok(world.runners[runner().await].disturb(Mode::BlackHole, lasts).await),
        Kind::RunnerReset => Ok(world.runners[runner().await].disturb(Mode::Reset, lasts / 10).await),
        Kind::DatabaseCut => Ok(server.disturb(Mode::Cut, lasts).await),
        Kind::DatabaseSlow => Ok(server.disturb(slow, lasts).await),
        Kind::DatabaseSilent => Ok(server.disturb(Mode::BlackHole, lasts).await),
        Kind::DatabaseReset => Ok(server.disturb(Mode::Reset, lasts / 10).await),
        Kind::RunnerClock => {
            let runner = &world.runners[runner().await];
            move_clock(&runner.clock, planned).await?;
            Ok(format!("{} by {:+} s", runner.unit.name(), planned.offset))
        }
        Kind::ServerClock => {
            move_clock(&server.clock, planned).await?;
            Ok(format!("{} by {:+} s", server.name, planned.offset))
        }
    }
}

/// The program reads it within a second.
async fn move_clock(clock: &clock::Clock, planned: &Planned) -> Result<(), String> {
    clock.set(planned.offset)?;
    tokio::time::sleep(Duration::from_secs(1) + planned.lasts).await;
    clock.set(0)
}
