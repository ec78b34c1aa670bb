//! `plimsoll agent`: takes jobs from the server.

use serde_json::json;

use super::args::AgentArgs;
use super::{Done, environment};
use crate::agent::{self, check, config};
use crate::exit::{Exit, Failure};

pub(super) async fn execute(args: &AgentArgs, json: bool) -> Result<Done, Failure> {
    let config = config::load(&args.config, &environment)?;
    if args.check {
        return Ok(shown(&check::check(&config).await));
    }
    let server = agent::server(&config, &environment)?;
    let done = agent::run(config, server, args.once, json).await?;
    let last = done.last.as_deref().map(|last| format!(" The last one: {last}.")).unwrap_or_default();
    let text = format!("The agent has ended. Jobs: {}.{last}\n", done.jobs);
    Ok(Done { exit: Exit::Pass, text, json: json!({ "jobs": done.jobs, "last": done.last }) })
}

fn shown(looked: &[check::Looked]) -> Done {
    let fine = looked.iter().all(|one| one.wrong.is_none());
    let lines = looked.iter().map(|one| match &one.wrong {
        None => format!("✓ {}\n", one.what),
        Some(wrong) => format!("✗ {}: {wrong}\n", one.what),
    });
    let list: Vec<_> = looked.iter().map(|one| json!({ "what": one.what, "wrong": one.wrong })).collect();
    Done {
        exit: if fine { Exit::Pass } else { Exit::Usage },
        text: lines.collect(),
        json: json!({ "ok": fine, "checks": list }),
    }
}
