//! `plimsoll watch`: follows a run of the server to its end.

use std::io::IsTerminal as _;
use std::time::Duration;

use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::{LiveEvent, Run, State, say};

use super::args::WatchArgs;
use super::{Done, submit};
use crate::exit::{Exit, Failure};
use crate::report::labelled;
use crate::report::paint::Paint;
use crate::report::watch::{Watch, heading, waiting};
use crate::sse::Reader;
use crate::upload::{Pauses, Server, ServerError, Tried, one_line, parse};

/// The server says something at least every fifteen seconds: after this much silence it is asked anew.
const SILENCE: Duration = Duration::from_secs(45);
/// The longest event.
const LONGEST: usize = 1 << 20;

pub(super) async fn execute(args: &WatchArgs, paint: Paint) -> Result<Done, Failure> {
    let server = args.server.needed()?;
    let mut pauses = Pauses::within(args.retry.retry_for);
    let run = loop {
        let tried = match server.run(args.run).await {
            Ok(run) => break run,
            Err(tried) => tried,
        };
        let pause = tried.pause(&mut pauses).map_err(|error| submit::failed(error, &server))?;
        eprintln!("{}", waiting(server.address(), &pauses.wait(&tried, pause)));
        tokio::time::sleep(pause).await;
    };
    follow(&server, run, args.retry.retry_for, paint).await
}

/// Follows a run to its end, and ends by its verdict. A run without one ends with 3 and the reason.
pub(super) async fn follow(server: &Server, run: Run, retry_for: Duration, paint: Paint) -> Result<Done, Failure> {
    let mut watch = Watch::new(std::io::stderr().is_terminal());
    watch.line(&heading(&run));
    if let Some(page) = submit::page(server, &run).filter(|_| !is_over(&run)) {
        watch.line(labelled("Page", &page).trim_end());
    }
    let ended = to_its_end(server, run, retry_for, &mut watch).await;
    watch.finish();
    let run = ended.map_err(|error| {
        let failure = submit::failed(error, server);
        let again = "the run goes on without being watched; watch it again later";
        let hint = failure.hint.clone().map_or(again.to_owned(), |hint| format!("{hint}\n{again}"));
        failure.hint(hint)
    })?;
    let exit = run.verdict.filter(|_| run.state == State::Done).map_or(Exit::Failed, Exit::from);
    let mut text = match (run.verdict, &run.sentence) {
        (Some(verdict), Some(sentence)) if run.state == State::Done => {
            labelled("Verdict", &paint.verdict(verdict, &one_line(sentence)))
        }
        _ => labelled(
            "Run",
            &format!("{}: {}", say::word(run.state), one_line(run.reason.as_deref().unwrap_or("no reason told"))),
        ),
    };
    if let Some(page) = submit::page(server, &run) {
        text += &labelled("Page", &page);
    }
    text += &labelled("Exit", &exit.ends());
    Ok(Done { exit, text, json: submit::document(server, &run, exit) })
}

async fn to_its_end(server: &Server, run: Run, retry_for: Duration, watch: &mut Watch) -> Result<Run, ServerError> {
    let mut run = run;
    let mut seen = None;
    let mut pauses = Pauses::within(retry_for);
    loop {
        if is_over(&run) {
            return Ok(run);
        }
        let before = seen;
        let streamed = stream(server, run.run_id, &mut seen, watch).await;
        if seen > before {
            pauses.restart();
        }
        // The stream has ended: by itself at the end of the run, else by an accident or a deploy.
        let asked = server.run(run.run_id).await;
        let tried = match (streamed, asked) {
            (_, Ok(now)) if is_over(&now) => return Ok(now),
            (Err(tried), _) | (_, Err(tried)) => tried,
            (Ok(()), Ok(now)) => {
                run = now;
                Tried::unreachable("the stream of events ended before the run did")
            }
        };
        let pause = tried.pause(&mut pauses)?;
        // A stream that ends is opened again at once, and nobody needs to hear of it.
        if pauses.attempts() > 1 {
            watch.line(&waiting(server.address(), &pauses.wait(&tried, pause)));
        }
        tokio::time::sleep(pause).await;
    }
}

/// A run that is done is over with its verdict.
fn is_over(run: &Run) -> bool {
    run.state.is_final() && (run.state != State::Done || run.verdict.is_some())
}

/// Follows the events after the last one that was seen, until the stream ends.
async fn stream(server: &Server, run: RunId, seen: &mut Option<u64>, watch: &mut Watch) -> Result<(), Tried> {
    let Some(mut response) = server.events(run, *seen).await? else { return Ok(()) };
    let mut reader = Reader::new(LONGEST);
    loop {
        let chunk = match tokio::time::timeout(SILENCE, response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(Tried::unreachable(error.to_string())),
            Err(_) => return Err(Tried::unreachable(format!("it said nothing for {} s", SILENCE.as_secs()))),
        };
        let events = reader.read(&chunk).map_err(|error| ServerError::Strange(error.to_string()))?;
        // Of a newer server there may be other events.
        for event in events.iter().filter(|event| matches!(&*event.name, "state" | "progress" | "verdict")) {
            let event: LiveEvent = parse(event.data.as_bytes())?;
            if seen.is_some_and(|seen| event.seq <= seen) {
                continue;
            }
            *seen = Some(event.seq);
            watch.see(&event.what);
            if event.what.is_last() {
                return Ok(());
            }
        }
    }
}
