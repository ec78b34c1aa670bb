//! The composition: server up, three releases measured, verdicts said, pages kept open.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::child::Child;
use crate::cli::DemoArgs;
use crate::folder::Folder;
use crate::releases::{Release, releases};
use crate::run::{self, Judged, Setting};
use crate::{access, plan};

/// The whole demo. With `--exit` it ends with the last verdict's exit code, else with 0; with 70 when a part failed, and
/// with 130 when it was interrupted before its end.
pub fn run(args: &DemoArgs) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let code = match runtime {
        Ok(runtime) => runtime.block_on(supervise(args)),
        Err(error) => Err(format!("the runtime did not start: {error}")),
    };
    match code {
        Ok(code) => ExitCode::from(code),
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(FAILED)
        }
    }
}

const FAILED: u8 = 70;
const INTERRUPTED: u8 = 130;
/// A first start makes a database cluster.
const SERVER_WITHIN: Duration = Duration::from_secs(90);

/// How often a release is measured whose run is void for reasons outside the service.
const TRIES: usize = 3;

/// Runs it and stops every part afterwards, the newest first, however it went.
async fn supervise(args: &DemoArgs) -> Result<u8, String> {
    let folder = Folder::at(args.data_dir.as_deref())?;
    let mut children = Vec::new();
    let ended = tokio::select! {
        // A demo that is over waits for the same signal: then its own end counts.
        biased;
        ended = whole(args, folder.path(), &mut children) => ended,
        () = interrupted() => Ok(INTERRUPTED),
    };
    while let Some(child) = children.pop() {
        child.stop().await;
    }
    ended
}

async fn whole(args: &DemoArgs, folder: &Path, children: &mut Vec<Child>) -> Result<u8, String> {
    let began = Instant::now();
    eprintln!("Starting Postgres and the server in {}", folder.display());
    let plan = plan::write(folder, args.short).map_err(|error| format!("{}: {error}", folder.display()))?;
    children.push(Child::start("server", access::server_args(folder, args.listen), &[])?);
    let address = children[0].first_line(SERVER_WITHIN).await?;
    let token = access::token(folder)?;
    let setting = Setting { folder, plan: &plan, server: &address, token: &token };

    let mut judged = Vec::new();
    for release in releases() {
        eprintln!("\n{} · {}", release.tag, release.change);
        let mut one = run::measure(&release, &setting, children).await?;
        eprintln!("{}", said(&release, &one));
        for _ in 1..TRIES {
            if one.verdict() != "invalid" {
                break;
            }
            eprintln!("\n{} is measured again: something else kept this machine busy", release.tag);
            one = run::measure(&release, &setting, children).await?;
            eprintln!("{}", said(&release, &one));
        }
        judged.push(one);
    }
    let code = judged.last().map_or(FAILED, |last| last.exit_code);
    if args.exit {
        let verdicts: Vec<_> = judged.iter().map(Judged::to_json).collect();
        println!("{:#}", json!({ "verdicts": verdicts, "exit_code": code }));
        return Ok(code);
    }
    println!("\nThree releases in {} s:", began.elapsed().as_secs());
    for (release, one) in releases().iter().zip(&judged) {
        println!("{}\n  {}", said(release, one), one.url());
    }
    println!("\nSee them at {address}\nCtrl-C ends the demo.");
    interrupted().await;
    Ok(0)
}

/// The release with its verdict's sentence.
fn said(release: &Release, judged: &Judged) -> String {
    format!("{} {}: {}", release.tag, judged.verdict(), judged.sentence())
}

/// Returns on Ctrl-C or a polite request to end.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut term) => tokio::select! {
            _ = tokio::signal::ctrl_c() => (),
            _ = term.recv() => (),
        },
        Err(_) => drop(tokio::signal::ctrl_c().await),
    }
}
