//! The one comment of a project on a pull request, edited in place. The order of its blocks never changes, and an empty
//! block is left out.

use plimsoll_domain::format;

use super::blocks::{NAME, accepted, baseline_of, chart, headline, joined, links, said, what_to_do, why, within};
use super::outside::{code, escaped, html};
use super::tables;
use super::told::{Earlier, PullTold, Told};
use crate::store::github::checks::Conclusion;

/// Bytes that GitHub takes.
const LIMIT: usize = 65_536;
/// Earlier pushes that are listed.
const EARLIER: usize = 10;
/// Characters of what one came to.
const TITLE: usize = 120;
/// What the frames of what is folded take.
const FRAMES: usize = 500;

/// What finds the comment again.
pub fn marker(project: &plimsoll_domain::ids::ProjectSlug) -> String {
    format!("<!-- plimsoll:{project} -->")
}

pub fn comment(told: &PullTold<'_>) -> String {
    let newest = &told.newest;
    let head = format!("{}\n### {}", marker(newest.project), headline(newest));
    let said = joined([said(newest), accepted(newest)]);
    let tail = joined([chart(newest), why(newest), what_to_do(newest), links::all(newest)]);
    let earlier = earlier(told);
    let taken = head.len() + said.len() + tail.len() + earlier.len() + FRAMES;
    let room = LIMIT.saturating_sub(taken);
    let table = tables::gated(newest, room * 6 / 10);
    let folded = folded(told, earlier, room - table.len().min(room));
    within(&joined([head, said, table, tail, folded]), LIMIT).to_owned()
}

fn folded(told: &PullTold<'_>, earlier: String, room: usize) -> String {
    let before = told.previous.as_ref().map(|previous| before(previous, room / 2)).unwrap_or_default();
    let room = room.saturating_sub(before.len());
    let baseline = baseline_of(&told.newest);
    let observed = tables::observed(&told.newest, room.saturating_sub(baseline.len()));
    let names = [("Observed metrics", &observed), ("baseline", &baseline), ("earlier pushes", &earlier)];
    let names: Vec<&str> = names.into_iter().filter(|(_, block)| !block.is_empty()).map(|(name, _)| name).collect();
    let rest = joined([observed, baseline, earlier]);
    let rest = if rest.is_empty() { rest } else { fold(&plimsoll_domain::prose::capital(&names.join(", ")), &rest) };
    joined([before, rest])
}

/// What stood there before the newest push.
fn before(previous: &Told<'_>, room: usize) -> String {
    let texts = joined([headline(previous), said(previous), accepted(previous)]);
    let table = tables::gated(previous, room.saturating_sub(texts.len()));
    let label = html(previous.label, NAME);
    fold(&format!("Before: {label}"), &joined([texts, table, links::all(previous)]))
}

fn earlier(told: &PullTold<'_>) -> String {
    let line = |push: &Earlier| {
        let label = code(&push.label, NAME);
        let label = match push.run.and_then(|run| links::earlier(&told.newest, run)) {
            Some(page) => format!("[{label}]({page})"),
            None => label,
        };
        let mark = match push.conclusion {
            Some(Conclusion::Success) => "●",
            Some(Conclusion::Failure) => "✕",
            Some(_) | None => "○",
        };
        let title = if push.title.is_empty() {
            "still open when the next came".to_owned()
        } else {
            escaped(&push.title, TITLE)
        };
        format!("- {label} {mark} {title}, {} UTC\n", push.at.strftime("%-d %b %Y, %H:%M"))
    };
    let lines: String = told.earlier.iter().take(EARLIER).map(line).collect();
    match told.earlier.len().saturating_sub(EARLIER) {
        0 => lines.trim_end().to_owned(),
        rest => format!("{lines}- and {} before", format::count(rest as u64)),
    }
}

fn fold(name: &str, block: &str) -> String {
    format!("<details><summary>{name}</summary>\n\n{block}\n</details>")
}
