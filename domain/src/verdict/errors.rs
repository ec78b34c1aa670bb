//! The error rate: a difference of two shares.

use statrs::distribution::{ContinuousCDF, Normal};

use super::measure::Run;
use super::row::Row;
use crate::comparison::{Metric, MetricVerdict};
use crate::format;
use crate::percentile::MIN_FOR_P99;
use crate::policy::Policy;
use crate::proportion::{self, Share, Z95};

/// `regressed` when the lower bound of the difference lies above what is allowed, `pass` when the upper bound does not
/// reach it. A candidate without any failure in as many requests as a P99 needs passes too: nothing speaks against it,
/// and the note says how small a rate such a sample can show.
pub(super) fn error_rate(pool: &[&Run], candidate: &Run, policy: &Policy) -> Row {
    let mut row = Row::new(Metric::ErrorRate, policy);
    let before = pool
        .iter()
        .map(|run| run.failures)
        .fold(Share::default(), |sum, share| Share { failed: sum.failed + share.failed, of: sum.of + share.of });
    let after = candidate.failures;
    (row.metric.baseline, row.metric.candidate) = (before.rate(), after.rate());
    let (Some(was), Some(is), Some(bounds)) = (before.rate(), after.rate(), proportion::newcombe(before, after, Z95))
    else {
        let side = if after.of == 0 { "" } else { " of the baseline" };
        row.hold(format!("error rate{side}: no request finished in a stability phase"));
        return row;
    };
    row.metric.change = Some(is - was);
    row.metric.interval = Some(bounds);
    row.p = Some(p_of_no_more_failures(before, after));
    let [low, high] = bounds;
    let allowed = policy.error_rate_points;
    if low > allowed {
        row.settle(MetricVerdict::Regressed);
    } else if high < allowed {
        row.settle(MetricVerdict::Pass);
    } else if after.failed == 0 && after.of >= MIN_FOR_P99 {
        row.note(format!(
            "no failure in {} requests: the rate is below {}{}% with 95{}% confidence",
            format::count(after.of),
            format::percent(after.wilson(Z95)[1]),
            format::NARROW,
            format::NARROW
        ));
        row.settle(MetricVerdict::Pass);
    } else {
        row.note(format!(
            "{} of {} requests failed, {} of {} before: too few requests to tell a rise of {} from none",
            format::count(after.failed),
            format::count(after.of),
            format::count(before.failed),
            format::count(before.of),
            format::allowed_points(allowed)
        ));
        row.settle(MetricVerdict::Inconclusive);
    }
    row
}

/// The level at which Newcombe's lower bound of the difference is 0, by bisection; 0.5 when failures did not rise.
fn p_of_no_more_failures(before: Share, after: Share) -> f64 {
    let excludes = |z| proportion::newcombe(before, after, z).is_some_and(|[low, _]| low > 0.0);
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if excludes(middle) { low = middle } else { high = middle }
    }
    Normal::standard().sf(low)
}
