//! Whether anything is lost: the real programs with a real Postgres, broken at random moments, round after round of
//! submit → run → upload → verdict. `scripts/faults` builds the programs and runs it; `docs/development.md` says what is
//! broken and what must hold.

mod check;
mod clock;
mod embedded;
mod faults;
mod host;
mod ledger;
mod measured;
mod plan;
mod postgres;
mod proxy;
mod receiver;
mod round;
mod server;
mod unit;
mod world;

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::ledger::Ledger;
use crate::world::World;

/// Breaks runners, servers, Postgres, networks and clocks while runs are measured, and checks that nothing is lost.
#[derive(Debug, Parser)]
#[command(name = "faults", max_term_width = 100)]
struct Cli {
    /// Runs to submit, one after the other.
    #[arg(default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// What is broken and when follows from it [default: from the clock; it is printed].
    #[arg(long)]
    seed: Option<u64>,
    /// Print one JSON document on stdout at the end; everything else goes to stderr.
    #[arg(long)]
    json: bool,
    /// Folder of `plimsoll`, `plimsoll-server` and `plimsoll-demo` [default: where this program lies].
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// Break nothing but this kind, as the table names it; may be given several times.
    #[arg(long, value_name = "KIND")]
    only: Vec<faults::Kind>,
    /// Keep the logs also when nothing was lost.
    #[arg(long)]
    keep: bool,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        eprintln!("faults: a TLS provider was installed already");
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime.map_err(|error| error.to_string()).and_then(|runtime| runtime.block_on(run(&cli))) {
        Ok(ledger) if ledger.losses() == 0 => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(why) => {
            eprintln!("faults: {why}");
            ExitCode::from(70)
        }
    }
}

async fn run(cli: &Cli) -> Result<Ledger, String> {
    let seed = cli.seed.unwrap_or_else(|| jiff::Timestamp::now().as_millisecond().unsigned_abs());
    let programs = match &cli.programs {
        Some(folder) => folder.clone(),
        None => beside_this_program()?,
    };
    let settings = plan::settings(cli.rounds, &cli.only);
    if settings.is_empty() {
        return Err("nothing of what is wanted can be broken here".to_owned());
    }
    let mut ledger = Ledger::new(seed, cli.rounds, faults::missing());
    ledger.begin();
    for (setting, numbers) in settings {
        eprintln!("rounds {} to {}: {}", numbers.start(), numbers.end(), setting.says());
        let lost_before = ledger.losses();
        let mut world = World::start(&programs, setting, *numbers.end(), seed).await?;
        let planner = plan::Planner::new(seed, faults::available(setting, &cli.only));
        let ended = tokio::select! {
            ended = rounds(numbers, planner, &mut world, &mut ledger) => ended,
            _ = tokio::signal::ctrl_c() => Err("interrupted".to_owned()),
        };
        world.stop().await;
        ledger.by_themselves(world.ends.by_themselves());
        ledger.afterwards(world.ends.take_disorderly());
        if ended.is_err() || ledger.losses() > lost_before || cli.keep {
            ledger.kept(world.keep());
        }
        ended?;
    }
    ledger.end(cli.json);
    Ok(ledger)
}

async fn rounds(
    numbers: RangeInclusive<u32>,
    mut planner: plan::Planner,
    world: &mut World,
    ledger: &mut Ledger,
) -> Result<(), String> {
    for number in numbers {
        let done = round::play(world, number, planner.round()).await?;
        ledger.enter(done);
    }
    // What a later round did to an earlier run.
    ledger.afterwards(check::all(world).await?);
    Ok(())
}

/// An example lies in a folder below the programs.
fn beside_this_program() -> Result<PathBuf, String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    own.ancestors().nth(2).map(ToOwned::to_owned).ok_or_else(|| format!("{} lies in no folder", own.display()))
}
