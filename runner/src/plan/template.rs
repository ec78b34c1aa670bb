//! What `plimsoll init` writes.

/// A commented plan for a service at `url`.
pub fn text(project: &str, url: &str) -> String {
    TEMPLATE.replace("@PROJECT@", project).replace("@URL@", url)
}

const TEMPLATE: &str = include_str!("template.toml");
