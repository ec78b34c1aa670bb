//! One release: started, measured and judged by `plimsoll gate`, stopped.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::child::Child;
use crate::releases::Release;

/// Where the runner finds the plan and the server.
#[derive(Debug)]
pub(crate) struct Setting<'a> {
    pub folder: &'a Path,
    pub plan: &'a Path,
    pub server: &'a str,
    pub token: &'a str,
}

/// What `gate` said about a release.
#[derive(Debug)]
pub(crate) struct Judged {
    pub tag: &'static str,
    pub exit_code: u8,
    /// Its JSON document.
    document: Value,
}

/// Exit codes by which a verdict speaks; all others are failures.
const VERDICTS: [i32; 5] = [0, 1, 3, 4, 6];
const STARTS_WITHIN: Duration = Duration::from_secs(20);

/// Measures `release` and returns the server's verdict. The parts that it starts are left in `children` until it is
/// done, so that whoever is interrupted can stop them.
pub(crate) async fn measure(
    release: &Release,
    setting: &Setting<'_>,
    children: &mut Vec<Child>,
) -> Result<Judged, String> {
    children.push(Child::start("service", release.parameters.to_args(), &[])?);
    let service = last(children).first_line(STARTS_WITHIN).await?;
    let report = setting.folder.join(format!("{}.json", release.tag));
    let path = |path: &Path| path.display().to_string();
    let args = [
        "gate".to_owned(),
        "--json".to_owned(),
        format!("--plan={}", path(setting.plan)),
        format!("--url={service}"),
        format!("--tag={}", release.tag),
        format!("--output={}", path(&report)),
    ];
    let environment = [("PLIMSOLL_SERVER", setting.server), ("PLIMSOLL_TOKEN", setting.token)];
    children.push(Child::start("runner", args, &environment)?);
    let (code, output) = last(children).finish().await?;
    children.pop();
    if let Some(service) = children.pop() {
        service.stop().await;
    }
    let document: Value = serde_json::from_slice(&output)
        .map_err(|error| format!("{} was not measured: the runner's answer is no JSON: {error}", release.tag))?;
    match code.filter(|code| VERDICTS.contains(code)).map(u8::try_from) {
        Some(Ok(exit_code)) if document.get("error").is_none() => Ok(Judged { tag: release.tag, exit_code, document }),
        _ => {
            let why = document.pointer("/error/message").and_then(Value::as_str).unwrap_or("the runner failed");
            Err(format!("{} was not measured: {why}", release.tag))
        }
    }
}

impl Judged {
    pub(crate) fn verdict(&self) -> &str {
        self.text("/verdict")
    }

    pub(crate) fn sentence(&self) -> &str {
        self.text("/comparison/sentence")
    }

    /// The page that shows it.
    pub(crate) fn url(&self) -> &str {
        self.text("/url")
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "release": self.tag,
            "verdict": self.verdict(),
            "exit_code": self.exit_code,
            "sentence": self.sentence(),
            "url": self.url(),
            "comparison": self.document["comparison"],
        })
    }

    fn text(&self, pointer: &str) -> &str {
        self.document.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
}

fn last(children: &mut [Child]) -> &mut Child {
    children.last_mut().expect("one was just pushed")
}
