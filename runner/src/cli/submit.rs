//! `plimsoll submit` and `plimsoll cancel`: runs that a runner of the server carries out.

use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::{Run, RunRequest};
use plimsoll_domain::plan::Profile;
use serde_json::{Value, json};

use super::args::{CancelArgs, SubmitArgs};
use super::{Done, watch};
use crate::exit::{Exit, Failure};
use crate::report::paint::Paint;
use crate::report::watch::heading;
use crate::upload::{Server, ServerError};

pub(super) async fn execute(args: &SubmitArgs, paint: Paint) -> Result<Done, Failure> {
    let server = args.server.needed()?;
    let wanted = RunRequest {
        project: args.project.clone(),
        revision: args.git.wanted(),
        plan: args.plan.clone(),
        plan_commit: None,
        profile: args.profile.map(Profile::from),
        labels: args.labels.iter().cloned().collect(),
        priority: None,
        supersedes: None,
        // Ours, so that asking again after a lost answer makes no second run.
        run_id: Some(RunId(uuid::Uuid::now_v7())),
    };
    wanted.check().map_err(|why| Failure::usage(why).hint("give --tag, --commit or --branch as git knows them"))?;
    let run = server.submit(&wanted).await.map_err(|error| error.failure(&server))?;
    if args.wait {
        return watch::follow(&server, run, args.retry.retry_for, paint).await;
    }
    let page = page(&server, &run);
    let mut text = format!("{}\n\nFollow it   plimsoll watch {}\n", heading(&run), run.run_id);
    if let Some(page) = &page {
        text += &format!("Page        {page}\n");
    }
    Ok(Done { exit: Exit::Pass, text, json: document(&server, &run, Exit::Pass) })
}

/// Ends with 0 when the run is over or will be; a run that was over before is none to cancel.
pub(super) async fn cancel(args: &CancelArgs) -> Result<Done, Failure> {
    let server = args.server.needed()?;
    let run = server.cancel(args.run, &args.reason).await.map_err(|error| failed(error, &server))?;
    let text = match run.state.is_final() {
        true => format!("{}\n", heading(&run)),
        false => format!("{}; its runner is told to stop\n", heading(&run)),
    };
    Ok(Done { exit: Exit::Pass, text, json: document(&server, &run, Exit::Pass) })
}

/// Why a run could not be asked about or cancelled. One that the token does not reach looks like one that is not there.
pub(super) fn failed(error: ServerError, server: &Server) -> Failure {
    let is_unknown = matches!(error, ServerError::Refused { status: 404, problem: true, .. });
    let failure = error.failure(server);
    match is_unknown {
        true => failure.hint("is it a run of this server, and does PLIMSOLL_TOKEN (or --token) reach its project?"),
        false => failure,
    }
}

/// A run with its page's whole address and how the program ends.
pub(super) fn document(server: &Server, run: &Run, exit: Exit) -> Value {
    let mut json = json!(run);
    json["url"] = json!(page(server, run));
    json["exit_code"] = json!(exit.code());
    json
}

pub(super) fn page(server: &Server, run: &Run) -> Option<String> {
    server.page(&run.path).map(String::from)
}
