//! A project's policy as a form: thresholds in per cent, as people write them.

use plimsoll_domain::policy::{Doubt, Policy};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(in crate::web) struct Form {
    p99_increase: String,
    capacity_decrease: String,
    error_rate_points: String,
    when_in_doubt: Doubt,
}

/// What the form shows.
#[derive(Debug)]
pub(super) struct Fields {
    pub(super) thresholds: [Threshold; 3],
    /// The choices, each with whether it is chosen and what it says.
    pub(super) doubts: [(Doubt, bool, &'static str); 2],
}

/// A field, with what is wrong with it.
#[derive(Debug)]
pub(super) struct Threshold {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
    pub(super) value: String,
    pub(super) problem: Option<String>,
}

impl Form {
    /// The policy, or the fields as they were filled in.
    pub(super) fn read(&self) -> Result<Policy, Box<Fields>> {
        let texts = [&self.p99_increase, &self.capacity_decrease, &self.error_rate_points];
        let most = values(&Policy::MOST);
        let read: [_; 3] = std::array::from_fn(|i| fraction(texts[i], most[i]));
        match read {
            [Ok(p99_increase), Ok(capacity_decrease), Ok(error_rate_points)] => {
                Ok(Policy { p99_increase, capacity_decrease, error_rate_points, when_in_doubt: self.when_in_doubt })
            }
            read => {
                let filled = std::array::from_fn(|i| (texts[i].clone(), read[i].clone().err()));
                Err(Box::new(Fields::new(filled, self.when_in_doubt)))
            }
        }
    }
}

impl Fields {
    /// As the policy is.
    pub(super) fn of(policy: &Policy) -> Self {
        let filled = values(policy).map(|value| (format!("{}", (value * 1e9).round() / 1e7), None));
        Self::new(filled, policy.when_in_doubt)
    }

    fn new(filled: [(String, Option<String>); 3], chosen: Doubt) -> Self {
        let said = |doubt| match doubt {
            Doubt::Fail => "blocked",
            Doubt::Pass => "let through, and told so",
        };
        Self { thresholds: thresholds(filled), doubts: Doubt::ALL.map(|doubt| (doubt, doubt == chosen, said(doubt))) }
    }
}

fn values(policy: &Policy) -> [f64; 3] {
    [policy.p99_increase, policy.capacity_decrease, policy.error_rate_points]
}

fn thresholds(filled: [(String, Option<String>); 3]) -> [Threshold; 3] {
    let known = [
        ("p99_increase", "P99 at the pinned load may rise by, in %"),
        ("capacity_decrease", "The capacity may fall by, in %"),
        ("error_rate_points", "The error rate may rise by, in percentage points"),
    ];
    let mut known = known.into_iter();
    filled.map(|(value, problem)| {
        let (name, label) = known.next().expect("as many as are filled");
        Threshold { name, label, value, problem }
    })
}

/// `7.5`, also as `7,5 %`.
fn fraction(text: &str, most: f64) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().replace(',', ".");
    let fits = |percent: &f64| (0.0..=most * 100.0).contains(percent);
    let percent: f64 = number.parse().ok().filter(fits).ok_or_else(|| {
        format!("Write a number from 0 to {}, such as 5 or 7.5.", plimsoll_domain::format::count((most * 100.0) as u64))
    })?;
    // The fraction that is written so, without what dividing adds.
    Ok((percent * 1e7).round() / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_comes_back() {
        for (text, is) in [("10", 0.1), ("7.5", 0.075), (" 7,5 % ", 0.075), ("0.7", 0.007), ("0", 0.0), ("100", 1.0)] {
            assert_eq!(fraction(text, 1.0), Ok(is), "{text}");
        }
        for wrong in ["", "x", "-1", "100.1", "nan", "inf", "1e9", "1 000"] {
            assert!(fraction(wrong, 1.0).is_err(), "{wrong}");
        }
        assert!(fraction("10001", 100.0).unwrap_err().contains("10\u{202f}000"));
        let policy = Policy { p99_increase: 0.075, error_rate_points: 0.007, ..Policy::default() };
        let shown = Fields::of(&policy).thresholds;
        assert_eq!(shown.map(|field| field.value), ["7.5", "5", "0.7"]);
    }
}
