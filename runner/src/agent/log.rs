//! The agent's own log: a line on stderr for each thing that happened, which systemd's journal keeps.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use serde_json::json;

static JSON: AtomicBool = AtomicBool::new(false);

/// Lines are JSON from now on.
pub(super) fn as_json() {
    JSON.store(true, Ordering::Relaxed);
}

/// One line, whatever the text holds: part of it may come from elsewhere.
pub(super) fn say(run: Option<plimsoll_domain::ids::RunId>, text: &str) {
    const LONGEST: usize = 2_000;
    let text: String = text.replace('\n', "; ").chars().filter(|c| !c.is_control()).take(LONGEST).collect();
    let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    let line = match (JSON.load(Ordering::Relaxed), run) {
        (true, run) => json!({ "time": now.to_string(), "run_id": run, "message": text }).to_string(),
        (false, Some(run)) => format!("{now} run {run}: {text}"),
        (false, None) => format!("{now} {text}"),
    };
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
