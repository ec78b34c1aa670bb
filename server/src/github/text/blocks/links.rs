//! Where the pages are.

use plimsoll_domain::comparison::Verdict;
use plimsoll_domain::ids::RunId;

use crate::github::text::told::{State, Told};

/// Where the methodology says it.
const INVALID: &str = "/methodology#when-a-run-is-invalid";
const BASELINE: &str = "/methodology#what-is-compared-with-what";

/// The page that shows the check best.
pub(in crate::github::text) fn details(told: &Told<'_>) -> Option<String> {
    comparison(told).or_else(|| snapshot(told)).or_else(|| run(told))
}

/// Where all the figures are.
pub(in crate::github::text) fn evidence(told: &Told<'_>) -> Option<String> {
    comparison(told).or_else(|| snapshot(told))
}

pub(in crate::github::text) fn chart(told: &Told<'_>) -> Option<String> {
    Some(format!("{}#staircase", evidence(told)?))
}

/// All of them in a line.
pub(in crate::github::text) fn all(told: &Told<'_>) -> String {
    let methodology = match told.comparison.map(|comparison| comparison.verdict) {
        Some(Verdict::Invalid) => INVALID,
        Some(Verdict::NoBaseline) => BASELINE,
        _ => "/methodology",
    };
    let links = [
        ("Comparison", comparison(told)),
        ("Snapshot", snapshot(told)),
        ("Run", run(told)),
        ("Methodology", under(told, methodology)),
        ("History", under(told, &format!("/{}/history", told.project))),
    ];
    let links: Vec<String> =
        links.into_iter().filter_map(|(name, page)| Some(format!("[{name}]({})", page?))).collect();
    links.join(" · ")
}

/// The page of an earlier push's snapshot or run.
pub(in crate::github::text) fn earlier(told: &Told<'_>, run: RunId) -> Option<String> {
    under(told, &format!("/{}/runs/{run}", told.project))
}

fn comparison(told: &Told<'_>) -> Option<String> {
    let (run, side) = (told.links.run?, told.comparison?.baseline.as_ref()?);
    under(told, &format!("/{}/compare/{}...{run}", told.project, side.run_ids.first()?))
}

fn snapshot(told: &Told<'_>) -> Option<String> {
    let run = told.links.run.filter(|_| told.state == State::Measured)?;
    under(told, &format!("/{}/snapshots/{run}", told.project))
}

fn run(told: &Told<'_>) -> Option<String> {
    let run = told.links.run.filter(|_| told.state != State::Measured)?;
    under(told, &format!("/{}/runs/{run}", told.project))
}

/// A path of the server, as it may stand in brackets.
fn under(told: &Told<'_>, path: &str) -> Option<String> {
    let server = told.links.server?.trim_end_matches('/');
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '(' | ')' | '<' | '>' | '"' | '\\' | '`' | '|' | '@');
    server.chars().all(plain).then(|| format!("{server}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_methodology_has_these_headings() {
        let headings: Vec<String> = include_str!("../../../../../docs/methodology.md")
            .lines()
            .filter(|line| line.starts_with('#'))
            .map(|line| line.trim_start_matches('#').trim().to_lowercase().replace(' ', "-"))
            .collect();
        for page in [INVALID, BASELINE] {
            let anchor = page.split_once('#').unwrap().1;
            assert!(headings.iter().any(|heading| heading == anchor), "{anchor} in {headings:?}");
        }
    }
}
