//! The style sheet's rules for drawings in one colour scheme, for a drawing that has no page around it.

use std::collections::BTreeMap;

const SHEET: &str = include_str!("../../assets/style.css");

/// A colour scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    Light,
    Dark,
}

impl Theme {
    pub const ALL: [Self; 2] = [Self::Light, Self::Dark];

    pub fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

/// The rules that begin a line with `.drawn` or an ink's class, their variables filled in.
pub(super) fn rules(theme: Theme) -> String {
    let variables = variables(theme);
    let rules = SHEET.lines().filter(|line| {
        let is_rule = (line.starts_with(".drawn ") || line.starts_with(".i-")) && line.ends_with('}');
        is_rule && !line.contains(":hover")
    });
    rules.map(|rule| filled(rule, &variables)).collect()
}

/// The dark scheme's stand after the light ones, and replace them.
fn variables(theme: Theme) -> BTreeMap<&'static str, &'static str> {
    let blocks = SHEET.split(":root {").skip(1).take(if theme == Theme::Dark { 2 } else { 1 });
    let lines = blocks.flat_map(|block| block.split('}').next().unwrap_or_default().lines());
    lines.filter_map(|line| line.trim().trim_end_matches(';').split_once(": ")).collect()
}

fn filled(rule: &str, variables: &BTreeMap<&str, &str>) -> String {
    let mut out = String::with_capacity(rule.len());
    let mut rest = rule;
    while let Some((before, (name, after))) =
        rest.split_once("var(").and_then(|(before, from)| Some((before, from.split_once(')')?)))
    {
        out += before;
        out += variables.get(name).copied().unwrap_or("inherit");
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheme_has_its_colours_and_no_variable_is_left() {
        let [light, dark] = Theme::ALL.map(rules);
        assert!(light.contains(".i-worse { color: #d55e00; }") && light.contains("stroke: #fcfcfa;"), "{light}");
        assert!(dark.contains(".i-worse { color: #ff8548; }") && dark.contains("stroke: #14171b;"), "{dark}");
        for sheet in [light, dark] {
            assert_eq!(sheet.matches(".i-").count(), sheet.matches("{ color: #").count() + 3, "{sheet}");
            for wrong in ["var(", "inherit", "url(", "@import", "<", "&"] {
                assert!(!sheet.contains(wrong), "{wrong} in {sheet}");
            }
        }
    }
}
