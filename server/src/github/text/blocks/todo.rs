//! What to do, in one line.

use plimsoll_domain::comparison::{Comparison, Verdict};
use plimsoll_domain::policy::Doubt;
use plimsoll_domain::prose::lower;
use plimsoll_domain::sentence;

use crate::github::text::conclusion::{is_accepted, open_regressions};
use crate::github::text::outside::escaped;
use crate::github::text::told::{State, Told, Unmeasured};
use crate::store::github::checks::Kind;

const ADVICE: usize = 300;

pub(in crate::github::text) fn what_to_do(told: &Told<'_>) -> String {
    let line = match (told.settled, told.state, told.comparison) {
        (Some(_), ..) => None,
        (_, State::Measured, Some(comparison)) => judged(told, comparison),
        (_, State::Unmeasured { end: Unmeasured::Cancelled, .. }, _) => {
            Some("run it again when it is wanted; a cancelled run says nothing about this commit.".to_owned())
        }
        (_, State::Unmeasured { .. }, _) => {
            Some(format!("look at the run, then run it again. This is no verdict on your change. {}", policy(told)))
        }
        _ => None,
    };
    line.map(|line| format!("**What to do:** {line}")).unwrap_or_default()
}

fn judged(told: &Told<'_>, comparison: &Comparison) -> Option<String> {
    match comparison.verdict {
        Verdict::NoBaseline if told.backfill.is_some() => {
            Some("nothing. The check waits for the baseline and then turns by itself.".to_owned())
        }
        _ if !told.gates => Some(
            "let the workflow prove who it is (`permissions: id-token: write`): a report that comes with a mere token is \
             shown and decides nothing."
                .to_owned(),
        ),
        Verdict::Pass => None,
        Verdict::Regressed if is_accepted(told) => Some("nothing: it was taken on for this commit.".to_owned()),
        Verdict::Regressed => {
            Some(format!("{} Or take it on{}.", advice(comparison), by(told)))
        }
        Verdict::Invalid => {
            Some(format!("{} This is no verdict on your change. {}", advice(comparison), policy(told)))
        }
        Verdict::Inconclusive | Verdict::NoBaseline => Some(format!("{} {}", advice(comparison), policy(told))),
    }
}

/// How a regression is taken on.
fn by(told: &Told<'_>) -> String {
    if told.kind != Kind::PullRequest {
        return " by the button *Accept*".to_owned();
    }
    let metric = open_regressions(told).first().map_or("all", |metric| metric.name.name());
    format!(": `/plimsoll accept {metric} \"reason\"`")
}

/// What the sentence has advised already is not said twice.
fn advice(comparison: &Comparison) -> String {
    let advice = sentence::advice(comparison);
    let said = comparison.sentence.to_lowercase().contains(&advice.trim_end_matches('.').to_lowercase());
    let advice = if said { "run it again once that is done." } else { &lower(&advice) };
    escaped(advice, ADVICE)
}

fn policy(told: &Told<'_>) -> &'static str {
    match told.doubt {
        Doubt::Fail => "Until then the policy blocks (`when_in_doubt = \"fail\"`).",
        Doubt::Pass => "The policy lets it pass meanwhile (`when_in_doubt = \"pass\"`).",
    }
}
