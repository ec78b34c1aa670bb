//! How figures are measured and verdicts reached, in prose.

use askama::Template;
use axum::response::Response;

use super::view::{Here, Look, Page, render};

#[derive(Template)]
#[template(path = "methodology.html")]
struct Methodology {
    page: Page,
}

pub(super) async fn page() -> Response {
    render(&Methodology { page: Page::new("How verdicts are made", Look::Plain, None, Here::Methodology) })
}
