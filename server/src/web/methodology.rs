//! How figures are measured and verdicts reached: `docs/methodology.md` as a page.

use std::sync::LazyLock;

use askama::Template;
use axum::response::Response;
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::view::{Drawn, Frame, Here, Look, Page, render};
use crate::charts::escaped;

const SOURCE: &str = include_str!("../../../docs/methodology.md");

static BODY: LazyLock<String> = LazyLock::new(|| markup(SOURCE));

#[derive(Template)]
#[template(path = "methodology.html")]
struct Methodology {
    page: Page,
    body: Drawn,
}

pub(super) async fn page(frame: Frame) -> Response {
    let page = Page::new("How verdicts are made", Look::Plain, frame, Here::Methodology);
    render(&Methodology { page, body: Drawn(BODY.clone()) })
}

/// The document without its title, which the page has: headings are links to themselves, tables scroll in a box.
fn markup(source: &str) -> String {
    let mut events = Vec::new();
    // The heading that is open: its level, and where its text begins.
    let mut heading: Option<(HeadingLevel, usize)> = None;
    for event in Parser::new_ext(source, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => heading = Some((level, events.len())),
            Event::End(TagEnd::Heading(_)) => {
                if let Some((level, from)) = heading.take() {
                    let inside: Vec<Event<'_>> = events.drain(from..).collect();
                    if level != HeadingLevel::H1 {
                        events.push(Event::Html(linked(level, &inside).into()));
                    }
                }
            }
            Event::Start(Tag::Table(columns)) => {
                let open = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table\">";
                events.extend([Event::Html(CowStr::Borrowed(open)), Event::Start(Tag::Table(columns))]);
            }
            Event::End(TagEnd::Table) => {
                events.extend([Event::End(TagEnd::Table), Event::Html(CowStr::Borrowed("</div>\n"))]);
            }
            other => events.push(other),
        }
    }
    let mut out = String::new();
    html::push_html(&mut out, events.into_iter());
    out
}

fn linked(level: HeadingLevel, inside: &[Event<'_>]) -> String {
    let text: String = inside
        .iter()
        .filter_map(|event| match event {
            Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
            _ => None,
        })
        .collect();
    let id: String = text.to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    format!("<{level} id=\"{id}\"><a href=\"#{id}\">{}</a></{level}>\n", escaped(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_links_and_tables_scroll() {
        let page = markup("# Title\n\n## The rule\n\n| a | b |\n|---|---|\n| 1 | `x<y` |\n");
        assert!(!page.contains("Title"));
        assert!(page.contains("<h2 id=\"the-rule\"><a href=\"#the-rule\">The rule</a></h2>"), "{page}");
        assert!(page.contains("<div class=\"scroll\"") && page.contains("x&lt;y"), "{page}");
    }
}
