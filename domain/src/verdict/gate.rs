//! Metric by metric: what is gated, what is shown, and what the data say.

use statrs::distribution::{ContinuousCDF, Normal};

use super::measure::{Figure, Measured, Sample};
use super::shift::{self, Shift};
use crate::bootstrap::ENOUGH_BLOCKS;
use crate::comparison::{Better, Metric, MetricComparison, MetricVerdict, Unit};
use crate::figures;
use crate::format;
use crate::noise::{
    ENOUGH_PAIRS, LATENCY_FLOOR, LATENCY_UNLEARNT, Noise, Sigma, THROUGHPUT_FLOOR, THROUGHPUT_UNLEARNT,
};
use crate::percentile::MIN_FOR_P99;
use crate::policy::Policy;
use crate::proportion::{self, Share, Z95};
use crate::report::{PhaseKind, Report};

const METRICS: [Metric; 9] = [
    Metric::P99,
    Metric::Capacity,
    Metric::ErrorRate,
    Metric::P50,
    Metric::P95,
    Metric::Max,
    Metric::Tps,
    Metric::Knee,
    Metric::SingleLatency,
];
/// One-sided level of the gate.
const ALPHA: f64 = 0.05;

/// Noise between runs that goes into a metric's interval, never below its floor; `None` where there is no interval.
pub(super) fn sigma(metric: Metric, noise: &Noise) -> Option<Sigma> {
    let floored = |sigma: Sigma, floor: f64| Sigma { value: sigma.value.max(floor), ..sigma };
    match metric {
        Metric::P99 | Metric::P95 | Metric::P50 | Metric::SingleLatency => Some(floored(noise.latency, LATENCY_FLOOR)),
        Metric::Capacity | Metric::Tps => Some(floored(noise.throughput, THROUGHPUT_FLOOR)),
        Metric::ErrorRate | Metric::Max | Metric::Knee => None,
    }
}

/// The figures of both sides, unjudged: of a candidate without baseline, or of sides that do not compare.
pub(super) fn listed(
    baseline: &[&Report],
    candidate: &Report,
    policy: &Policy,
    invalid: bool,
) -> Vec<MetricComparison> {
    let (baseline, candidate) = (baseline.first().map(|run| Measured::of(run)), Measured::of(candidate));
    let value = |run: &Measured<'_>, metric| match metric {
        Metric::ErrorRate => run.failures().rate().ok_or_else(|| "no request finished".to_owned()),
        _ => run.figure(metric).map(|sample| sample.value),
    };
    METRICS
        .iter()
        .map(|metric| {
            let measured = value(&candidate, *metric);
            let mut row = blank(*metric, policy);
            row.baseline = baseline.as_ref().and_then(|run| value(run, *metric).ok());
            row.candidate = measured.as_ref().ok().copied();
            row.verdict = MetricVerdict::Observed;
            row.note = measured.err().or_else(|| invalid.then(|| "not judged: the runs do not compare".to_owned()));
            row
        })
        .collect()
}

/// All metrics, judged. `baseline` holds at least one run, all valid and comparable.
pub(super) fn judged(
    baseline: &[&Report],
    candidate: &Report,
    policy: &Policy,
    noise: &Noise,
) -> Vec<MetricComparison> {
    let runs: Vec<Measured<'_>> = baseline.iter().map(|run| Measured::of(run)).collect();
    let candidate = Measured::of(candidate);
    let same_load: Vec<&Measured<'_>> = runs.iter().filter(|run| run.workers() == candidate.workers()).collect();
    let all: Vec<&Measured<'_>> = runs.iter().collect();
    let mut rows: Vec<Row> = METRICS
        .iter()
        .map(|metric| {
            let soak = phase(*metric) == PhaseKind::Stability;
            // Another load is another question; a load that only one side has is a figure that is missing.
            let apart = if soak && same_load.is_empty() { loads_differ(&all, &candidate) } else { None };
            let pool = if soak && !same_load.is_empty() { &same_load } else { &all };
            let mut row = match metric {
                Metric::ErrorRate => error_rate(pool, &candidate, policy),
                _ => ratio(*metric, pool, &candidate, policy, noise),
            };
            if let Some(why) = apart {
                row.undecided(why);
            }
            row
        })
        .collect();
    // Growth at the last step is a finding of the staircase, known only from the whole run.
    if let Some(row) = rows.iter_mut().find(|row| row.metric.name == Metric::Capacity) {
        bounded_capacity(row, &all, &candidate);
    }
    let rejected = holm(&rows);
    for (row, rejected) in rows.iter_mut().zip(rejected) {
        row.decide(rejected, noise);
    }
    rows.into_iter().map(|row| row.metric).collect()
}

/// A metric on its way to a verdict.
struct Row {
    metric: MetricComparison,
    /// Against no change in the bad direction; absent where there is no interval.
    p: Option<f64>,
    shift: Option<Shift>,
    decided: bool,
}

impl Row {
    /// Nothing can be said about the change, for one reason that outweighs all others.
    fn undecided(&mut self, why: impl Into<String>) {
        self.metric.change = None;
        self.metric.interval = None;
        self.metric.note = None;
        self.hold(why);
    }

    /// Keeps the figures and says why they do not decide.
    fn hold(&mut self, why: impl Into<String>) {
        (self.p, self.shift) = (None, None);
        self.settle(MetricVerdict::Inconclusive);
        self.note(why);
    }

    fn settle(&mut self, verdict: MetricVerdict) {
        if self.metric.gated {
            self.metric.verdict = verdict;
        }
        self.decided = true;
    }

    fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        self.metric.note = Some(match self.metric.note.take() {
            Some(before) => format!("{before}; {text}"),
            None => text,
        });
    }

    /// The rule for a change of a logarithm. `rejected`: no change is excluded, among all gated metrics.
    fn decide(&mut self, rejected: bool, noise: &Noise) {
        let (Some(shift), Some(threshold), false) = (self.shift, self.metric.threshold, self.decided) else { return };
        let sign = bad_sign(self.metric.better);
        // In the bad direction, so that worse is above.
        let allowed = sign * (1.0 + threshold).max(0.0).ln();
        let ends = shift.interval().map(|end| sign * end);
        let (worse, worst) = (sign * shift.log, ends[0].max(ends[1]));
        let Some(sigma) = sigma(self.metric.name, noise) else { return };
        // What is not learnt may be noisier than the floor.
        let unlearnt = if self.metric.unit == Unit::Ms { LATENCY_UNLEARNT } else { THROUGHPUT_UNLEARNT };
        let doubt = if sigma.pairs >= ENOUGH_PAIRS { 0.0 } else { 3.0 * sigma.value.max(unlearnt) };
        if worse > allowed && rejected && worse > doubt {
            self.settle(MetricVerdict::Regressed);
        } else if worst < allowed {
            self.settle(MetricVerdict::Pass);
        } else {
            self.settle(MetricVerdict::Inconclusive);
            if worse > allowed && rejected {
                self.note(format!(
                    "past the threshold, but within the {} that runs of the same code may differ by while the noise of \
                     this testbed is not learnt",
                    format::change((sign * doubt).exp_m1())
                ));
            } else {
                let cure = if shift.within > 0.5 {
                    "it is wide by these runs' own variation: longer phases narrow it"
                } else {
                    "it is wide by how much runs differ on this testbed: more runs narrow it"
                };
                self.note(format!("the interval reaches past the threshold; {cure}"));
            }
        }
    }
}

fn ratio(metric: Metric, pool: &[&Measured<'_>], candidate: &Measured<'_>, policy: &Policy, noise: &Noise) -> Row {
    let mut row = Row { metric: blank(metric, policy), p: None, shift: None, decided: false };
    let figures: Vec<Figure> = pool.iter().map(|run| run.figure(metric)).collect();
    let before: Vec<Sample> = figures.iter().filter_map(|figure| figure.as_ref().ok().copied()).collect();
    let after = candidate.figure(metric);
    row.metric.baseline = shift::mean(&before);
    row.metric.candidate = after.as_ref().ok().map(|sample| sample.value);
    let after = match (after, figures.into_iter().next()) {
        (Err(why), _) => {
            row.hold(format!("{}: {why}", title(metric)));
            return row;
        }
        (Ok(_), Some(Err(why))) if before.is_empty() => {
            row.hold(format!("{} of the baseline: {why}", title(metric)));
            return row;
        }
        (Ok(after), _) => after,
    };
    let Some(was) = row.metric.baseline else { return row };
    if was <= 0.0 || after.value <= 0.0 {
        from_or_to_nothing(&mut row, was, after.value);
        return row;
    }
    row.metric.change = Some(after.value / was - 1.0);
    let Some(sigma) = sigma(metric, noise) else { return row };
    row.metric.sigma = Some(sigma.value);
    match Shift::of(&before, &after, sigma.value) {
        Some(shift) => {
            row.metric.interval = Some(shift.interval().map(f64::exp_m1));
            row.p = Some(shift.p_of_no_change(bad_sign(row.metric.better)));
            row.shift = Some(shift);
            if shift.blocks < ENOUGH_BLOCKS {
                row.note(format!(
                    "the interval rests on {} blocks of {}; from {ENOUGH_BLOCKS} on it would be narrower",
                    shift.blocks,
                    format::duration(shift.block_s)
                ));
            }
        }
        None => row.hold(format!("{}: the step is too short to say how sure the figure is", title(metric))),
    }
    row
}

/// A rate of 0 has no logarithm.
fn from_or_to_nothing(row: &mut Row, was: f64, is: f64) {
    let better_up = row.metric.better == Better::Higher;
    if was <= 0.0 && is <= 0.0 {
        row.metric.change = Some(0.0);
        row.hold("0 on both sides");
    } else if was <= 0.0 {
        row.note("new (was 0)");
        row.settle(if better_up { MetricVerdict::Pass } else { MetricVerdict::Inconclusive });
    } else {
        row.metric.change = Some(-1.0);
        row.note("fell to 0");
        row.settle(if better_up { MetricVerdict::Regressed } else { MetricVerdict::Pass });
    }
}

/// `regressed` when the lower bound of the difference lies above what is allowed, `pass` when the upper bound does not
/// reach it. A candidate without any failure in as many requests as a P99 needs passes too: nothing speaks against it,
/// and the note says how small a rate such a sample can show.
fn error_rate(pool: &[&Measured<'_>], candidate: &Measured<'_>, policy: &Policy) -> Row {
    let mut row = Row { metric: blank(Metric::ErrorRate, policy), p: None, shift: None, decided: false };
    let before = pool
        .iter()
        .map(|run| run.failures())
        .fold(Share::default(), |sum, share| Share { failed: sum.failed + share.failed, of: sum.of + share.of });
    let after = candidate.failures();
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

/// Holm's step-down over the gated metrics: which of them exclude no change at a joint level of 5 %.
fn holm(rows: &[Row]) -> Vec<bool> {
    let mut family: Vec<(usize, f64)> =
        rows.iter().enumerate().filter(|(_, row)| row.metric.gated).filter_map(|(i, row)| Some((i, row.p?))).collect();
    family.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut rejected = vec![false; rows.len()];
    let m = family.len();
    for (rank, (i, p)) in family.into_iter().enumerate() {
        if p > ALPHA / (m - rank) as f64 {
            break;
        }
        rejected[i] = true;
    }
    rejected
}

/// A capacity that was still growing at the last step is "at least". Both plans have the same last step, so up to
/// there the two compare; only a candidate that stopped short of a baseline's plateau may still reach it.
fn bounded_capacity(row: &mut Row, baseline: &[&Measured<'_>], candidate: &Measured<'_>) {
    let growing = |run: &Measured<'_>| figures::capacity(run.report).filter(|c| c.lower_bound).map(|c| c.at_workers);
    let before: Vec<Option<u32>> = baseline.iter().map(|run| growing(run)).collect();
    let after = growing(candidate);
    let fell = row.metric.change.is_some_and(|change| change < 0.0);
    match after {
        Some(at) if fell && before.iter().any(|was| *was != Some(at)) => {
            let change = row.metric.change;
            row.undecided(format!(
                "capacity was still growing at {at} workers and may be higher: let the staircase go on (max_workers)"
            ));
            row.metric.change = change;
        }
        Some(at) => row.note(format!("at least: TPS was still growing at {at} workers")),
        None => {
            if let Some(at) = before.into_iter().flatten().next() {
                row.note(format!("the baseline's is at least this: its TPS was still growing at {at} workers"));
            }
        }
    }
}

fn loads_differ(baseline: &[&Measured<'_>], candidate: &Measured<'_>) -> Option<String> {
    let (before, after) = (baseline.iter().find_map(|run| run.workers())?, candidate.workers()?);
    Some(format!(
        "P99s at {before} and {after} workers do not compare: measure again with --baseline or --stability-workers \
         {before}"
    ))
}

fn blank(metric: Metric, policy: &Policy) -> MetricComparison {
    let threshold = match metric {
        Metric::P99 => Some(policy.p99_increase),
        Metric::Capacity => Some(-policy.capacity_decrease),
        Metric::ErrorRate => Some(policy.error_rate_points),
        _ => None,
    };
    MetricComparison {
        name: metric,
        phase: phase(metric),
        unit: metric.unit(),
        better: metric.better(),
        gated: threshold.is_some(),
        baseline: None,
        candidate: None,
        change: None,
        interval: None,
        threshold,
        verdict: if threshold.is_some() { MetricVerdict::Inconclusive } else { MetricVerdict::Observed },
        sigma: None,
        note: None,
    }
}

fn phase(metric: Metric) -> PhaseKind {
    match metric {
        Metric::Capacity | Metric::Knee => PhaseKind::Staircase,
        Metric::SingleLatency => PhaseKind::Smoke,
        Metric::P99 | Metric::ErrorRate | Metric::P50 | Metric::P95 | Metric::Max | Metric::Tps => PhaseKind::Stability,
    }
}

fn title(metric: Metric) -> &'static str {
    match metric {
        Metric::P99 => "P99",
        Metric::Capacity => "capacity",
        Metric::ErrorRate => "error rate",
        Metric::P50 => "P50",
        Metric::P95 => "P95",
        Metric::Max => "longest latency",
        Metric::Tps => "TPS",
        Metric::Knee => "knee",
        Metric::SingleLatency => "one request alone",
    }
}

fn bad_sign(better: Better) -> f64 {
    match better {
        Better::Lower => 1.0,
        Better::Higher => -1.0,
    }
}
