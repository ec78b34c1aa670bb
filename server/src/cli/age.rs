//! Ages on the command line: `90d`, `12h`.

use std::time::Duration;

/// An hour at least: what is younger may still be looked at.
const LEAST: Duration = Duration::from_secs(3_600);
const MOST_DAYS: u64 = 36_500;

pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no age: write days or hours, such as 90d or 36h");
    let (number, hours) = match text.strip_suffix('d') {
        Some(number) => (number, 24),
        None => (text.strip_suffix('h').ok_or_else(wrong)?, 1),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let hours = number.checked_mul(hours).filter(|hours| *hours <= MOST_DAYS * 24).ok_or_else(wrong)?;
    let age = Duration::from_secs(hours * 3_600);
    if age < LEAST { Err("an age has an hour at least".to_owned()) } else { Ok(age) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_days_or_hours() {
        assert_eq!(parse("90d"), Ok(Duration::from_secs(90 * 86_400)));
        assert_eq!(parse("36h"), Ok(Duration::from_secs(36 * 3_600)));
        for wrong in ["", "d", "90", "-1d", "1.5d", "0d", "0h", "99999999999999999999d", "36501d", "1w"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
