//! Texts of other people change no table, mention nobody and become no markup, whatever is in them.

use plimsoll_domain::comparison::{Comparison, Verdict};
use plimsoll_domain::finding::Finding;
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};

use super::fixture::{SERVER, accepted, at, comparison, images, project, run, settled, told};
use crate::github::text::{Acceptance, Earlier, PullTold, State, Told, Unmeasured, check, comment};
use crate::store::github::checks::Conclusion;

/// What a browser, GitHub or a workflow could make something of.
const PIECES: [&str; 38] = [
    "|",
    "`",
    "```",
    "@team",
    "@org/team",
    "#123",
    "GH-12",
    "gh-9",
    "octo/repo#5",
    "<script>",
    "</details>",
    "-->",
    "<!--",
    "${{ secrets.X }}",
    "${{",
    "![x](https://evil.test/x.png)",
    "[x](https://evil.test)",
    "https://evil.test",
    "www.evil.test",
    "http://",
    "a@evil.test",
    "\n",
    "\r\n",
    "\n\n|a|\n|--|\n",
    "\u{202e}",
    "\u{200b}",
    "\u{2028}",
    "\u{feff}",
    "\\",
    "*",
    "__",
    "~~",
    "$$",
    "&lt;",
    "# ",
    "- ",
    "1. ",
    "版本 🎉",
];

/// Everything that comes from outside is this.
struct World {
    comparison: Comparison,
    accepted: [Acceptance; 2],
    earlier: [Earlier; 2],
    text: String,
}

impl World {
    fn new(verdict: Verdict, text: &str) -> Self {
        let mut comparison = comparison(verdict);
        for side in comparison.baseline.iter_mut().chain([&mut comparison.candidate]) {
            (side.revision, side.testbed) = (text.to_owned(), text.to_owned());
            side.commit = side.commit.as_ref().map(|_| text.to_owned());
            side.chosen_because = side.chosen_because.as_ref().map(|_| text.to_owned());
        }
        for metric in &mut comparison.metrics {
            metric.note = Some(text.to_owned());
        }
        comparison.sentence = format!("{text} P99 rose to 402\u{202f}ms {text}.");
        comparison.findings = vec![Finding::notice("x", format!("{text} and")).with_advice(text)];
        let accepted = accepted(None);
        let accepted = Acceptance { by: text.to_owned(), reason: text.to_owned(), ..accepted };
        let push = |n| Earlier {
            label: text.to_owned(),
            run: Some(run(n)),
            conclusion: Some(Conclusion::Failure),
            title: format!("Regressed: {text}"),
            at: at("2025-11-25T14:06:00Z"),
        };
        let accepted = [accepted.clone(), accepted];
        Self { comparison, accepted, earlier: [push(3), push(4)], text: text.to_owned() }
    }

    /// All that is told of it, in each state.
    fn shown(&self) -> Vec<String> {
        let (project, images) = (project(), images());
        let base = Told { label: &self.text, comparison: Some(&self.comparison), ..told(&project) };
        let settled = settled(Conclusion::ActionRequired, &self.text);
        // The summary is our own.
        let settled = crate::store::github::checks::Settled { summary: "Settled.".to_owned(), ..settled };
        let failed = State::Unmeasured { end: Unmeasured::Failed, why: Some(&self.text) };
        let all = [
            base,
            Told { accepted: &self.accepted, chart: Some(&images), ..base },
            Told { settled: Some(&settled), ..base },
            Told { state: failed, comparison: None, ..base },
        ];
        let mut shown = Vec::new();
        for newest in all {
            let told = PullTold { newest, previous: Some(base), earlier: &self.earlier };
            let check = check(&newest);
            shown.extend([comment(&told), check.summary, check.text.unwrap_or_default()]);
            assert!(!check.title.contains('\n'), "{:?}", check.title);
        }
        shown
    }
}

/// What is not code or a target: what GitHub looks for mentions and references in; and how tables and lists stand.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    live: String,
    /// Cells of each row of each table.
    tables: Vec<Vec<usize>>,
    blocks: Vec<String>,
}

fn seen(markdown: &str) -> Seen {
    let mut seen = Seen::default();
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Text(text) => seen.live.push_str(&text),
            Event::SoftBreak | Event::HardBreak | Event::Code(_) => seen.live.push(' '),
            Event::Html(html) | Event::InlineHtml(html) => {
                seen.live.push_str(&own(&html));
            }
            Event::Start(Tag::Table(_)) => seen.tables.push(Vec::new()),
            Event::Start(Tag::TableRow | Tag::TableHead) => seen.tables.last_mut().unwrap().push(0),
            Event::Start(Tag::TableCell) => *seen.tables.last_mut().unwrap().last_mut().unwrap() += 1,
            Event::Start(Tag::Link { dest_url, .. }) => {
                assert!(dest_url.starts_with(SERVER), "a link to {dest_url} in\n{markdown}");
            }
            Event::Start(Tag::Image { dest_url, .. }) => panic!("an image of {dest_url} in\n{markdown}"),
            Event::Start(tag @ (Tag::Heading { .. } | Tag::CodeBlock(_) | Tag::BlockQuote(_) | Tag::List(_))) => {
                seen.blocks.push(format!("{tag:?}"));
            }
            Event::Rule => seen.blocks.push("rule".to_owned()),
            Event::End(_) => seen.live.push('\n'),
            _ => {}
        }
    }
    seen
}

/// Markup without our own tags.
fn own(html: &str) -> String {
    let mut rest = html.replace("<!-- plimsoll:sentiment -->", "").replace("<br>", "");
    for tag in ["<details>", "</details>", "<summary>", "</summary>", "</picture>", "<picture>"] {
        rest = rest.replace(tag, "");
    }
    for tag in ["<source media=", "<img width="] {
        while let Some(at) = rest.find(tag) {
            let end = at + rest[at..].find('>').expect("its end");
            assert_eq!(rest[at..end].matches('"').count() % 2, 0, "{html}");
            rest.replace_range(at..=end, "");
        }
    }
    assert!(!rest.contains('<'), "{rest} in\n{html}");
    rest
}

fn harmless(markdown: &str) {
    let live = seen(markdown).live;
    let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-');
    for (at, _) in live.match_indices('@') {
        assert!(!word(live[at + 1..].chars().next()), "a mention in\n{markdown}");
    }
    for (at, _) in live.match_indices('#') {
        assert!(!word(live[at + 1..].chars().next()), "a reference in\n{markdown}");
    }
    let small = live.to_ascii_lowercase();
    for wrong in ["gh-", "://", "www."] {
        for (at, _) in small.match_indices(wrong) {
            let after = small[at + wrong.len()..].chars().next();
            assert!(!word(after), "{wrong} in\n{markdown}");
        }
    }
    for wrong in ["${{", "\u{202e}", "\u{2028}", "\u{feff}", "\r"] {
        assert!(!markdown.contains(wrong), "{wrong:?} in\n{markdown}");
    }
    assert!(!own(&without_code(markdown)).contains("<"), "{markdown}");
}

/// A code span may hold what it likes, but for what ends it.
fn without_code(markdown: &str) -> String {
    markdown.replace("\\`", "").split('`').step_by(2).collect()
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(PIECES.to_vec()).prop_map(ToOwned::to_owned),
        1 => any::<String>(),
        1 => "[ -~]{0,6}",
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn any_verdict() -> impl Strategy<Value = Verdict> {
    prop::sample::select(vec![
        Verdict::Pass,
        Verdict::Regressed,
        Verdict::Inconclusive,
        Verdict::Invalid,
        Verdict::NoBaseline,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_text_changes_a_table_mentions_anybody_or_becomes_markup(verdict in any_verdict(), text in text()) {
        let tame = World::new(verdict, "v1.9.1 of yesterday").shown();
        for (markdown, tame) in World::new(verdict, &text).shown().iter().zip(&tame) {
            harmless(markdown);
            let [shown, tame] = [markdown, tame].map(|markdown| seen(markdown));
            prop_assert_eq!(&shown.tables, &tame.tables, "{}", markdown);
            prop_assert_eq!(shown.blocks, tame.blocks, "{}", markdown);
        }
    }
}

#[test]
fn each_hostile_piece_is_harmless_at_every_place() {
    for piece in PIECES {
        for text in [piece.to_owned(), format!("a{piece}b"), format!("{piece}{piece}"), format!("x {piece} y")] {
            World::new(Verdict::Regressed, &text).shown().iter().for_each(|markdown| harmless(markdown));
        }
    }
}
