//! Check runs, with the limits and refusals of GitHub's.

use serde_json::{Value, json};

use super::model::{APP, CheckRun, Model, Repository};
use super::route::{Handled, Incoming, Reply};
use super::shape;

/// In bytes, of the summary and of the text.
const MAX_TEXT: usize = 65_535;
const CONCLUSIONS: [&str; 7] =
    ["action_required", "cancelled", "failure", "neutral", "success", "skipped", "timed_out"];

pub(super) fn list(at: &Repository, sha: &str, incoming: &Incoming<'_>) -> Handled {
    let sha = at.resolve(sha).ok_or_else(Reply::missing)?;
    let asked = |name: &str| incoming.query.get(name).map(String::as_str);
    let app = asked("app_id").and_then(|id| id.parse::<i64>().ok());
    let fits = |run: &&CheckRun| {
        run.head_sha == sha
            && asked("check_name").is_none_or(|name| name == run.name)
            && app.is_none_or(|app| app == run.app_id)
    };
    let mut found: Vec<&CheckRun> = at.checks.values().filter(fits).collect();
    if asked("filter") != Some("all") {
        found.retain(|run| at.latest(&run.head_sha, &run.name).is_some_and(|latest| latest.id == run.id));
    }
    let found = found.into_iter().rev().map(shape::check).collect();
    Ok(incoming.page(found, |total, shown| json!({ "total_count": total, "check_runs": shown })))
}

pub(super) fn create(model: &mut Model, repository: i64, incoming: &Incoming<'_>) -> Handled {
    let (id, body) = (model.next_id(), incoming.body);
    let at = model.repo(repository);
    let text = |name: &str| body[name].as_str().map(ToOwned::to_owned);
    let name = text("name").ok_or_else(|| Reply::invalid("name is missing"))?;
    let head_sha = text("head_sha").ok_or_else(|| Reply::invalid("head_sha is missing"))?;
    if !at.graph.contains(&head_sha) {
        return Err(Reply::invalid(&format!("No commit found for SHA: {head_sha}")));
    }
    let mut run = CheckRun {
        id,
        app_id: APP,
        name,
        head_sha,
        external_id: String::new(),
        status: "queued".to_owned(),
        conclusion: None,
        details_url: None,
        title: String::new(),
        summary: String::new(),
        text: String::new(),
        actions: Vec::new(),
        writes: 0,
        output: Value::Null,
    };
    run.tell(body)?;
    let answer = shape::check(&run);
    at.checks.insert(id, run);
    Ok(Reply::of(201, answer))
}

pub(super) fn update(model: &mut Model, repository: i64, id: i64, incoming: &Incoming<'_>) -> Handled {
    let run = model.repo(repository).checks.get_mut(&id).ok_or_else(Reply::missing)?;
    if run.app_id != APP {
        return Err(Reply::told(403, "Invalid app_id `4711` - check run can only be modified by the GitHub App"));
    }
    // Nothing of what is refused stays.
    let mut told = run.clone();
    told.tell(incoming.body)?;
    *run = told;
    Ok(Reply::of(200, shape::check(run)))
}

impl CheckRun {
    fn tell(&mut self, body: &Value) -> Result<(), Reply> {
        let text = |name: &str| body[name].as_str().map(ToOwned::to_owned);
        let was_completed = self.status == "completed";
        if body.as_object().is_none_or(|fields| fields.values().any(Value::is_null)) {
            return Err(Reply::told(422, "Invalid request.\n\nFor 'anyOf/0', nil is not a string."));
        }
        self.name = text("name").unwrap_or_else(|| self.name.clone());
        self.external_id = text("external_id").unwrap_or_else(|| self.external_id.clone());
        self.details_url = text("details_url").or(self.details_url.take());
        self.status = text("status").unwrap_or_else(|| self.status.clone());
        if let Some(conclusion) = text("conclusion") {
            (self.status, self.conclusion) = ("completed".to_owned(), Some(conclusion));
        }
        match (self.status.as_str(), self.conclusion.as_deref()) {
            ("queued" | "in_progress", _) if was_completed => {
                return Err(Reply::invalid("a check run that is completed does not go back"));
            }
            ("completed", None) => return Err(Reply::invalid("a completed check run needs a conclusion")),
            (_, Some(conclusion)) if !CONCLUSIONS.contains(&conclusion) => {
                return Err(Reply::invalid(&format!("{conclusion} is no conclusion")));
            }
            ("queued" | "in_progress" | "completed", _) => {}
            (other, _) => return Err(Reply::invalid(&format!("{other} is no status"))),
        }
        if let Some(output) = body.get("output") {
            self.output(output)?;
        }
        if let Some(actions) = body["actions"].as_array() {
            self.actions = buttons(actions)?;
        }
        self.writes += 1;
        Ok(())
    }

    fn output(&mut self, output: &Value) -> Result<(), Reply> {
        let text = |name: &str| output[name].as_str().map(ToOwned::to_owned);
        let (Some(title), Some(summary)) = (text("title"), text("summary")) else {
            return Err(Reply::invalid("an output needs a title and a summary"));
        };
        self.title = title;
        self.summary = bounded(summary)?;
        self.text = bounded(text("text").unwrap_or_default())?;
        self.output = output.clone();
        Ok(())
    }
}

fn bounded(text: String) -> Result<String, Reply> {
    if text.len() <= MAX_TEXT {
        return Ok(text);
    }
    let told = format!("Invalid request.\n\nOnly {MAX_TEXT} characters are allowed; {} were supplied.", text.len());
    Err(Reply::told(422, &told))
}

/// Their identifiers.
fn buttons(actions: &[Value]) -> Result<Vec<String>, Reply> {
    if actions.len() > 3 {
        return Err(Reply::told(422, "Invalid request.\n\nNo more than 3 items are allowed; more were supplied."));
    }
    for action in actions {
        for (field, most) in [("label", 20), ("identifier", 20), ("description", 40)] {
            let length = action[field].as_str().map_or(0, |text| text.chars().count());
            if !(1..=most).contains(&length) {
                return Err(Reply::invalid(&format!("{field} of an action has {length} characters")));
            }
        }
    }
    Ok(actions.iter().map(|action| action["identifier"].as_str().unwrap_or_default().to_owned()).collect())
}

impl Repository {
    /// The one that GitHub shows for this name, and that a required check looks at.
    pub(crate) fn latest(&self, head: &str, name: &str) -> Option<&CheckRun> {
        self.checks.values().rev().find(|run| run.head_sha == head && run.name == name)
    }
}
