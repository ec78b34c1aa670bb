//! GitHub counts bytes: whatever there is to show, it fits, the worst stands first, and the conclusion is sent.

use plimsoll_domain::comparison::{Comparison, Metric, MetricVerdict, Verdict};
use plimsoll_domain::finding::Finding;
use plimsoll_domain::sentence;
use proptest::prelude::*;

use super::fixture::{accepted, at, comparison, images, metric, project, run, settled, told};
use crate::github::text::{Acceptance, CheckText, Earlier, PullTold, Told, check, comment};
use crate::store::github::checks::Conclusion;

/// Many metrics, gated and not, of which each tenth regressed, the later the worse.
fn many(count: usize, note: &str) -> Comparison {
    let mut comparison = comparison(Verdict::Regressed);
    comparison.metrics = (0..count)
        .map(|i| {
            let name = [Metric::P99, Metric::Capacity, Metric::P50][i % 3];
            let sign = if name == Metric::Capacity { -1.0 } else { 1.0 };
            let (change, verdict) = match i % 10 {
                0 => (0.2 + i as f64 / 1_000.0, MetricVerdict::Regressed),
                1 => (0.05, MetricVerdict::Inconclusive),
                _ => (0.01, MetricVerdict::Pass),
            };
            let mut metric = metric(name, [200.0, 200.0, sign * change], [-0.02, 0.02], verdict);
            metric.note = Some(format!("{note}{i}"));
            metric
        })
        .collect();
    comparison.sentence = sentence::of(&comparison);
    comparison
}

fn fits(check: &CheckText, comment: &str) {
    assert!(check.summary.len() <= 65_535, "{}", check.summary.len());
    assert!(check.text.as_ref().is_none_or(|text| text.len() <= 65_535));
    assert!(comment.len() <= 65_536, "{}", comment.len());
    assert!(check.title.chars().count() <= 255 && !check.title.contains('\n'), "{}", check.title);
    assert!(check.actions.len() <= 3);
    for action in &check.actions {
        assert!(action.identifier.len() <= 20 && action.label.len() <= 20 && action.description.len() <= 40);
    }
}

#[test]
fn three_thousand_metrics_conclude_with_the_worst_first_and_the_rest_counted() {
    let (project, comparison) = (project(), many(3_000, ""));
    let told = Told { comparison: Some(&comparison), ..told(&project) };
    let (check, comment) = (check(&told), comment(&PullTold { newest: told, previous: Some(told), earlier: &[] }));
    fits(&check, &comment);
    assert_eq!(check.conclusion, Some(Conclusion::Failure));
    assert!(check.title.ends_with("197 more"), "{}", check.title);
    for text in [&check.summary, &comment] {
        let rows: Vec<&str> = text.lines().filter(|line| line.contains("regressed**")).collect();
        assert!(rows[0].contains("−318\u{202f}%"), "{}", rows[0]);
        assert!(
            text.contains("1\u{202f}900 more [on the page](https://plimsoll.acme.dev/sentiment/compare/"),
            "{text}"
        );
        assert!(text.contains("**What to do:**") && text.contains("[Comparison]("), "{text}");
    }
}

#[test]
fn wide_characters_are_counted_as_bytes() {
    let project = project();
    for piece in ["版", "🎉", "@", "&", "#", "a "] {
        let text = piece.repeat(100_000);
        let mut comparison = many(3_000, &piece.repeat(300));
        comparison.sentence.clone_from(&text);
        comparison.candidate.testbed.clone_from(&text);
        comparison.findings = (0..50).map(|_| Finding::notice("x", text.as_str()).with_advice(&*text)).collect();
        if let Some(side) = &mut comparison.baseline {
            (side.revision, side.chosen_because) = (text.clone(), Some(text.clone()));
        }
        let acceptances: Vec<Acceptance> =
            (0..50).map(|_| Acceptance { by: text.clone(), reason: text.clone(), ..accepted(None) }).collect();
        let earlier: Vec<Earlier> = (0..500).map(|_| push(&text)).collect();
        let (images, settled) = (images(), settled(Conclusion::Failure, &text));
        let newest = Told {
            label: &text,
            comparison: Some(&comparison),
            accepted: &acceptances,
            chart: Some(&images),
            ..told(&project)
        };
        for newest in [newest, Told { settled: Some(&settled), ..newest }, Told { accepted: &[], ..newest }] {
            let pull = PullTold { newest, previous: Some(newest), earlier: &earlier };
            let check = check(&newest);
            assert!(check.conclusion.is_some());
            let comment = comment(&pull);
            fits(&check, &comment);
            assert!(comment.ends_with("</details>"), "cut: {}", &comment[comment.len() - 200..]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_length_fits(count in 0usize..1_500, note in "\\PC{0,40}", figure in any::<f64>(), long in 0usize..60) {
        let project = project();
        let mut comparison = many(count, &note.repeat(long));
        for metric in &mut comparison.metrics {
            (metric.baseline, metric.candidate, metric.change) = (Some(figure), Some(figure), Some(figure));
            metric.interval = Some([figure, figure]);
        }
        let earlier: Vec<Earlier> = (0..long % 40).map(|_| push(&note)).collect();
        let newest = Told { comparison: Some(&comparison), ..told(&project) };
        let pull = PullTold { newest, previous: Some(newest), earlier: &earlier };
        fits(&check(&newest), &comment(&pull));
        prop_assert!(check(&newest).conclusion.is_some());
    }
}

fn push(text: &str) -> Earlier {
    Earlier {
        label: text.to_owned(),
        run: Some(run(7)),
        conclusion: Some(Conclusion::Failure),
        title: text.to_owned(),
        at: at("2025-11-25T14:06:00Z"),
    }
}
