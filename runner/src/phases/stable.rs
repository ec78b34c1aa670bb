//! Whether latency has become stable.

use std::time::Duration;

/// How many latencies a median is taken of.
const GROUP: usize = 5;
/// How far the two medians may lie apart.
const WITHIN: f64 = 0.20;

/// Whether the median of the last five latencies lies within 20 % of the median of the five before them.
pub(super) fn is_stable(latencies: &[Duration]) -> bool {
    let Some(start) = latencies.len().checked_sub(2 * GROUP) else { return false };
    let (before, last) = latencies[start..].split_at(GROUP);
    let (before, last) = (median(before), median(last));
    (last - before).abs() <= WITHIN * before
}

fn median(latencies: &[Duration]) -> f64 {
    let mut sorted = latencies.to_vec();
    sorted.sort();
    sorted[sorted.len() / 2].as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stable(ms: &[u64]) -> bool {
        is_stable(&ms.iter().map(|ms| Duration::from_millis(*ms)).collect::<Vec<_>>())
    }

    #[test]
    fn a_cold_start_is_not_stable_until_it_has_passed() {
        assert!(!stable(&[10; 9]));
        assert!(stable(&[10; 10]));
        let cold = [5_000, 5_000, 900, 40, 20, 12, 10, 10, 11, 10, 10, 9, 10, 10, 10, 10, 10, 10];
        assert!(!stable(&cold[..10]) && !stable(&cold[..12]));
        assert!(stable(&cold));
        // One odd answer is not a change.
        assert!(stable(&[10, 10, 10, 10, 10, 10, 900, 10, 10, 10]));
        assert!(!stable(&[10, 10, 10, 10, 10, 13, 13, 13, 13, 13]));
    }
}
