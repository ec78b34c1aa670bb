//! Good plans mean what they say; bad ones say what is wrong, where, and what to do.

mod listed;
mod meaning;
mod mistakes;
mod overrides;
mod refused;
mod secrets;
mod values;

use std::path::Path;

use super::*;
use crate::exit::Failure;

const SERVICE: &str = "project = \"p\"\n[service]\nurl = \"http://h:1/x\"\n";

fn read_with(text: &str, given: &Overrides) -> Result<Loaded, PlanError> {
    let environment = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
    check_text(Path::new("plimsoll.toml"), text, given, &environment)
}

fn good(text: &str) -> Loaded {
    read_with(text, &Overrides::default()).unwrap_or_else(|error| panic!("{}", Failure::from(error)))
}

/// The messages of plans, one below the other.
fn messages(plans: &[&str]) -> String {
    let message = |plan: &&str| match read_with(plan, &Overrides::default()) {
        Ok(_) => format!("accepted: {plan}"),
        Err(error) => Failure::from(error).to_string(),
    };
    plans.iter().map(message).collect::<Vec<_>>().join("\n\n")
}

/// The messages of additions to a plan that is right.
fn messages_after(additions: &[&str]) -> String {
    let plans: Vec<String> = additions.iter().map(|addition| format!("{SERVICE}{addition}")).collect();
    messages(&plans.iter().map(String::as_str).collect::<Vec<_>>())
}
