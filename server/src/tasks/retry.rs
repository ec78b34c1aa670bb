//! When what failed is tried again.

use std::time::Duration;

/// Doubles with each attempt up to `last`; of that a random part from a half to all, so that who comes back is not hit
/// by everything at once.
pub(super) fn pause(attempts: i32, first: Duration, last: Duration) -> Duration {
    share_of(attempts, first, last, getrandom::u32().map_or(1.0, |random| f64::from(random) / f64::from(u32::MAX)))
}

fn share_of(attempts: i32, first: Duration, last: Duration, share: f64) -> Duration {
    let doublings = u32::try_from(attempts - 1).unwrap_or(0).min(16);
    (first * 2_u32.pow(doublings)).min(last).mul_f64(0.5 + 0.5 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_last() {
        let (first, last) = (Duration::from_secs(2), Duration::from_secs(3_600));
        assert_eq!(share_of(1, first, last, 1.0), first);
        assert_eq!(share_of(1, first, last, 0.0), first / 2);
        assert_eq!(share_of(4, first, last, 1.0), Duration::from_secs(16));
        assert_eq!(share_of(12, first, last, 1.0), last);
        assert_eq!(share_of(i32::MAX, first, last, 0.0), last / 2);
        assert!((first / 2..=first).contains(&pause(1, first, last)));
    }
}
