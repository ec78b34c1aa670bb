//! Where a value lies on an axis, and which values are written beside it.

use plimsoll_domain::format;

use super::canvas::{TEXT, text_width};

/// A linear axis from zero to a round value, with ticks that a person would choose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Linear {
    pub(super) max: f64,
    step: f64,
}

impl Linear {
    /// Holds all `values`, in about `ticks` steps of 1, 2 or 5 times a power of ten.
    pub(super) fn holding(values: impl IntoIterator<Item = f64>, ticks: u32) -> Self {
        let most = values.into_iter().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let most = if most > 0.0 { most } else { 1.0 };
        let step = round_up(most / f64::from(ticks.max(1)));
        Self { max: (most / step - 1e-9).ceil().max(1.0) * step, step }
    }

    /// The fraction of the axis below `value`.
    pub(super) fn at(&self, value: f64) -> f64 {
        value / self.max
    }

    /// Pixels that the labels need beside the axis.
    pub(super) fn room(&self) -> f64 {
        self.ticks().iter().map(|(_, label)| text_width(label, TEXT)).fold(0.0, f64::max) + 12.0
    }

    /// Values with their labels, from zero.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let count = (self.max / self.step).round() as u32;
        (0..=count).map(|i| f64::from(i) * self.step).map(|v| (v, tick_label(v, self.step))).collect()
    }
}

/// A logarithmic axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Log {
    min: f64,
    max: f64,
}

impl Log {
    /// Holds all `values` above zero with a little room at both ends.
    pub(super) fn holding(values: impl IntoIterator<Item = f64>) -> Self {
        let (mut min, mut max) = (f64::INFINITY, 0.0f64);
        for value in values.into_iter().filter(|v| v.is_finite() && *v > 0.0) {
            min = min.min(value);
            max = max.max(value);
        }
        if min > max {
            (min, max) = (1.0, 10.0);
        }
        // A single value gets a decade around it.
        if max < min * 2.0 {
            (min, max) = (min / 2.0, max * 2.0);
        }
        let room = (max / min).powf(0.03);
        Self { min: min / room, max: max * room }
    }

    pub(super) fn at(&self, value: f64) -> f64 {
        (value / self.min).ln() / (self.max / self.min).ln()
    }

    /// Whole values of 1, 2 and 5 times powers of ten, or only of powers of ten when those are too many.
    pub(super) fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        let within = |v: &f64| (self.min..=self.max).contains(v);
        let decades = (self.min.log10().floor() as i32).max(0)..=self.max.log10().ceil() as i32;
        let of = |parts: &[f64]| -> Vec<f64> {
            decades.clone().flat_map(|d| parts.iter().map(move |p| p * 10f64.powi(d))).filter(within).collect()
        };
        let mut ticks = of(&[1.0, 2.0, 5.0]);
        if ticks.len() > most {
            ticks = of(&[1.0]);
        }
        if ticks.is_empty() {
            ticks = vec![(self.min * self.max).sqrt().round()];
        }
        ticks.into_iter().map(|v| (v, format::count(v as u64))).collect()
    }
}

/// The percentile axis from the median on, stretched towards the tail: P50, P90, P99, P99.9 and P99.99.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Tail {
    decades: f64,
}

impl Tail {
    /// Up to the quantile `to`.
    pub(super) fn up_to(to: f64) -> Self {
        Self { decades: Self::depth(to.clamp(0.9, 0.9999)) }
    }

    pub(super) fn at(&self, q: f64) -> f64 {
        Self::depth(q) / self.decades
    }

    pub(super) fn ticks(&self) -> Vec<(f64, &'static str)> {
        let all = [(0.5, "50"), (0.9, "90"), (0.99, "99"), (0.999, "99.9"), (0.9999, "99.99")];
        all.into_iter().filter(|(q, _)| self.at(*q) <= 1.0 + 1e-9).collect()
    }

    /// `count` quantiles at equal distances.
    pub(super) fn samples(&self, count: u32) -> impl Iterator<Item = f64> + use<> {
        let decades = self.decades;
        (0..=count).map(move |i| 1.0 - 0.5 * 10f64.powf(-decades * f64::from(i) / f64::from(count)))
    }

    fn depth(q: f64) -> f64 {
        (0.5 / (1.0 - q)).log10()
    }
}

/// The unit that latencies up to `max_ms` are drawn in: its name, and how many ms it has.
pub(super) fn latency_unit(max_ms: f64) -> (&'static str, f64) {
    if max_ms < 10_000.0 { ("ms", 1.0) } else { ("s", 1_000.0) }
}

/// The least of 1, 2 and 5 times a power of ten that is not below `value`.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|v| *v >= value * (1.0 - 1e-9)).unwrap_or(power * 10.0)
}

/// A tick with as many decimals as the step needs.
fn tick_label(value: f64, step: f64) -> String {
    if step >= 1.0 {
        return format::count(value.round() as u64);
    }
    let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    if value == 0.0 { "0".to_owned() } else { format!("{value:.decimals$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64], ticks: u32) -> Vec<String> {
        Linear::holding(values.iter().copied(), ticks).ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_start_at_zero() {
        assert_eq!(labels(&[286.0], 6), ["0", "50", "100", "150", "200", "250", "300"]);
        assert_eq!(labels(&[0.31], 4), ["0", "0.1", "0.2", "0.3", "0.4"]);
        assert_eq!(labels(&[962.0], 5), ["0", "200", "400", "600", "800", "1\u{202f}000"]);
        assert_eq!(labels(&[], 4).first().unwrap(), "0");
        assert_eq!(labels(&[f64::NAN, 100.0], 5), ["0", "20", "40", "60", "80", "100"]);
    }

    #[test]
    fn workers_have_whole_ticks() {
        let ticks = |values: &[f64]| -> Vec<String> {
            Log::holding(values.iter().copied()).ticks(8).into_iter().map(|(_, label)| label).collect()
        };
        assert_eq!(ticks(&[1.0, 100.0]), ["1", "2", "5", "10", "20", "50", "100"]);
        assert_eq!(ticks(&[48.0]), ["50", "100"]);
        assert_eq!(ticks(&[1.0, 20_000.0]), ["1", "10", "100", "1\u{202f}000", "10\u{202f}000"]);
        assert!(!ticks(&[]).is_empty());
        assert_eq!(ticks(&[33.0, 34.0]), ["20", "50"]);
    }

    #[test]
    fn the_tail_axis_ends_where_it_is_told() {
        let tail = Tail::up_to(0.999);
        assert!((tail.at(0.5)).abs() < 1e-12 && (tail.at(0.999) - 1.0).abs() < 1e-12);
        assert_eq!(tail.ticks().len(), 4);
        assert!((tail.samples(10).last().unwrap() - 0.999).abs() < 1e-9);
    }
}
