//! The demo's own plan: it suits a service that answers in 33 ms, and pins one load for all releases.

use std::path::{Path, PathBuf};

use crate::releases::STABILITY_WORKERS;

/// Writes the plan into `folder` and returns its path.
pub(crate) fn write(folder: &Path, short: bool) -> std::io::Result<PathBuf> {
    std::fs::write(folder.join("requests.jsonl"), REQUESTS)?;
    let path = folder.join("plimsoll.toml");
    std::fs::write(&path, text(short))?;
    Ok(path)
}

/// Different lengths, one answer.
const REQUESTS: &str = r#"{"text": "A great and fast answer."}
{"text": "I love how it went: excellent support, good price, and the parcel came a day before it was due."}
{"text": "Fine."}
"#;

fn text(short: bool) -> String {
    // Capacity needs three whole seconds of a step without its edges, which is just what 4.5 s hold. The short plan
    // measures two levels past every release's knee and does not look for it.
    let (workers, search, smoke, stability) =
        if short { ("[48, 80]", false, "1s", "12s") } else { ("[10, 24, 40, 80]", true, "1500ms", "15s") };
    format!(
        r#"# The plan of the demo: short steps for a service that answers in 33 ms.
project = "sample"

[service]
# The address of each release is given by a flag.
url = "http://127.0.0.1:1/predict"
response_timeout = "10s"

[workload]
file = "requests.jsonl"

[workload.expect]
"/label" = "positive"
"/score" = {{ exists = true }}

[smoke]
duration = "{smoke}"

[warm_up]
min_requests = 20
max_duration = "1s"
top = "500ms"

[staircase]
workers = {workers}
step = "4500ms"
ramp_up = "200ms"
search = {search}
search_step = "4500ms"
max_workers = 160

# One load for every release, so that their P99 compare.
[stability]
duration = "{stability}"
ramp_up = "200ms"
workers = {STABILITY_WORKERS}
"#
    )
}
