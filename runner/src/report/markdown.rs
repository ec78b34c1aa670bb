//! A verdict as Markdown: the summary of a CI job.

use std::fmt::Write as _;

use plimsoll_domain::comparison::{Comparison, MetricComparison, MetricVerdict};
use plimsoll_domain::figures::Figures;
use plimsoll_domain::format::ABSENT;
use plimsoll_domain::markdown::{code, escaped, plain, stressed};
use plimsoll_domain::report::Report;
use plimsoll_domain::row;

use super::summary;

/// Of one text that another wrote.
const MOST: usize = 600;
const NAME: usize = 80;
const MOST_FINDINGS: usize = 10;

/// A run that was judged. `undecisive`: why the verdict decides no check.
pub fn judged(comparison: &Comparison, undecisive: Option<&str>, url: Option<&str>) -> String {
    let verdict = comparison.verdict;
    let provisional = if comparison.provisional { " (provisional)" } else { "" };
    let mut out =
        heading(&format!("{} {}{provisional}", verdict.mark(), verdict.word()), &comparison.candidate.revision);
    let _ = writeln!(out, "{}\n", stressed(&comparison.sentence, MOST));
    if let Some(why) = undecisive {
        let _ = writeln!(out, "**This verdict does not gate:** {}\n", escaped(why, MOST));
    }
    out += &table(comparison);
    let found: Vec<String> = row::unsaid(comparison)
        .take(MOST_FINDINGS)
        .map(|finding| format!("- {}\n", escaped(&finding.message, MOST)))
        .collect();
    if !found.is_empty() {
        let _ = writeln!(out, "{}", found.concat());
    }
    out + &page(url)
}

/// A run without a verdict: `why` says what came between.
pub fn unjudged(report: &Report, why: &str) -> String {
    let mut out = heading("○ no verdict", &report.revision.label_or_unnamed());
    let _ = writeln!(out, "{}\n", escaped(why, MOST));
    let _ = writeln!(out, "{}\n", stressed(&summary::sentence(report, &Figures::of(report)), MOST));
    out
}

fn heading(word: &str, revision: &str) -> String {
    format!("## Plimsoll: {word}, {}\n\n", code(revision, NAME))
}

/// The gated metrics; nothing without a baseline, when the figures stand in the sentence.
fn table(comparison: &Comparison) -> String {
    let gated: Vec<&MetricComparison> = comparison.metrics.iter().filter(|metric| metric.gated).collect();
    if comparison.baseline.is_none() || gated.is_empty() {
        return String::new();
    }
    let mut out = "| Gated metric | Baseline | This | Change | Interval | Allowed | Verdict |\n\
                   |:--|--:|--:|--:|--:|--:|:--|\n"
        .to_owned();
    for metric in gated {
        let or_absent = |text: Option<String>| text.unwrap_or_else(|| ABSENT.to_owned());
        let figure = |value: Option<f64>| or_absent(value.map(|value| row::figure(metric.unit, value)));
        let verdict = match metric.verdict {
            MetricVerdict::Pass => "pass",
            MetricVerdict::Regressed => "**regressed**",
            MetricVerdict::Inconclusive => "undecided",
            MetricVerdict::Observed => "not judged",
        };
        let _ = writeln!(
            out,
            "| {}, {} | {} | {} | {} | {} | {} | {verdict} |",
            row::title(metric.name, comparison.candidate.stability_workers),
            row::unit(metric.unit),
            figure(metric.baseline),
            figure(metric.candidate),
            or_absent(metric.change.map(|change| row::change(metric.unit, change))),
            or_absent(metric.interval.map(|ends| row::interval(metric.unit, ends))),
            or_absent(metric.threshold.map(|limit| row::allowed(metric.unit, limit))),
        );
    }
    out + "\n"
}

/// Only an address that is one becomes a link.
fn page(url: Option<&str>) -> String {
    let fits = |url: &&str| {
        let safe = |c: char| c.is_ascii_graphic() && !"<>()[]`\"\\|".contains(c);
        (url.starts_with("https://") || url.starts_with("http://")) && url.chars().all(safe) && plain(url, MOST) == *url
    };
    url.filter(fits).map_or_else(String::new, |url| format!("[The page of this run]({url})\n"))
}

#[cfg(test)]
mod tests {
    use plimsoll_domain::noise::Noise;
    use plimsoll_domain::policy::Policy;
    use plimsoll_domain::synthetic::Synthetic;
    use plimsoll_domain::verdict::{Baseline, judge};

    use super::*;

    fn compared(tag: &str, service_ms: f64) -> Comparison {
        let run = |tag: &str, service_ms| Synthetic { tag: Some(tag.to_owned()), service_ms, ..Synthetic::default() };
        let (baseline, candidate) = (run("v1.9.1", 56.0).report(), run(tag, service_ms).report());
        let baseline = Baseline { runs: vec![&baseline], chosen_because: None };
        judge(Some(&baseline), &candidate, &Policy::default(), &Noise::default())
    }

    #[test]
    fn the_verdict_leads_and_the_gated_metrics_follow() {
        let text = judged(&compared("v1.10.0", 90.0), None, Some("https://plimsoll.example/p/snapshots/1"));
        assert!(text.starts_with("## Plimsoll: ▲ Regressed"), "{text}");
        assert!(text.contains(", `v1.10.0`\n"), "{text}");
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), 2 + compared("v1.10.0", 90.0).metrics.iter().filter(|metric| metric.gated).count());
        assert!(rows.iter().all(|row| row.matches('|').count() == 8), "{text}");
        assert!(rows.iter().any(|row| row.contains("**regressed**")), "{text}");
        assert!(text.ends_with("[The page of this run](https://plimsoll.example/p/snapshots/1)\n"), "{text}");
        assert!(!text.contains("does not gate"), "{text}");
        let said = judged(&compared("v1.10.0", 90.0), Some("it came by an upload token"), None);
        assert!(said.contains("**This verdict does not gate:** it came by an upload token\n"), "{said}");
    }

    #[test]
    fn hostile_names_and_addresses_change_nothing() {
        let name = "a|b`c`@team<script>${{ x }}\n## Pass";
        let text = judged(&compared(name, 56.0), Some(name), Some("javascript:alert(1)"));
        assert_eq!(text.lines().filter(|line| line.starts_with('#')).count(), 1, "{text}");
        assert!(text.lines().filter(|line| line.starts_with('|')).all(|row| row.matches('|').count() == 8), "{text}");
        for harm in ["<script", "@team<", "javascript", "${{"] {
            assert!(!text.contains(harm), "{harm}: {text}");
        }
        for address in ["https://x.example/)[a](https://evil.example", "https://x.example/\n# a", "ftp://x.example"] {
            assert_eq!(page(Some(address)), "", "{address}");
        }
    }

    #[test]
    fn a_run_that_nobody_judged_says_why() {
        let report = Synthetic { tag: Some("v2".to_owned()), ..Synthetic::default() }.report();
        let text = unjudged(&report, "the server at http://x could not be reached");
        assert!(text.starts_with("## Plimsoll: ○ no verdict, `v2`\n\nthe server at http:"), "{text}");
        assert!(text.contains("workers"), "{text}");
    }
}
