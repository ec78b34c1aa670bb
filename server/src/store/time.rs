//! sqlx speaks chrono, everything else jiff.

use jiff::Timestamp;
use sqlx::types::chrono::{DateTime, Utc};

/// Postgres keeps microseconds; what is finer is cut.
pub(super) fn to_db(at: Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(at.as_microsecond()).unwrap_or_default()
}

/// Postgres' range is wider than jiff's, but only [`to_db`] wrote.
pub(super) fn from_db(at: DateTime<Utc>) -> Timestamp {
    Timestamp::from_microsecond(at.timestamp_micros()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_survives_to_the_microsecond() {
        for text in ["2026-02-03T04:05:06.123456Z", "1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z"] {
            let at: Timestamp = text.parse().unwrap();
            assert_eq!(from_db(to_db(at)), at);
        }
    }
}
