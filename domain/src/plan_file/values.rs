//! Values with units: durations, shares, percentage points. The flags read them by the same rules.

use std::time::Duration;

use toml::de::DeValue;

use super::section::Field;
use super::source::PlanError;

/// No phase is longer than this.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);

impl Field<'_> {
    /// A duration such as `"30s"` in milliseconds, at least `least_ms`.
    pub fn duration_ms(&self, least_ms: u64) -> Result<u64, PlanError> {
        let example = "write a number with its unit: \"500ms\", \"30s\", \"2m\"";
        let DeValue::String(text) = self.value else {
            return Err(self.wrong_type("a duration in quotes").hint(example));
        };
        duration_ms(text, least_ms).map_err(|why| self.error(why).hint(example))
    }

    /// A share such as `"5%"` as a fraction.
    pub fn percent(&self) -> Result<f64, PlanError> {
        let text = self.string().map_err(|error| error.hint("write a percentage in quotes, for example \"5%\""))?;
        number_with("%", text).filter(|value| *value <= 100.0).map(|value| value / 100.0).ok_or_else(|| {
            self.error(format!("must be a percentage from 0 to 100, not {text:?}")).hint("for example \"5%\"")
        })
    }

    /// A difference of shares such as `"0.1pp"` (percentage points) as a fraction.
    pub fn points(&self) -> Result<f64, PlanError> {
        let example = "write \"0.1pp\": an error rate is compared by its difference, in percentage points";
        let text = self.string().map_err(|error| error.hint(example))?;
        number_with("pp", text)
            .filter(|value| *value <= 100.0)
            .map(|value| value / 100.0)
            .ok_or_else(|| self.error(format!("must be percentage points, not {text:?}")).hint(example))
    }
}

/// Reads a duration; the error completes a sentence that begins with the value's name.
pub fn duration_ms(text: &str, least_ms: u64) -> Result<u64, String> {
    let text = text.trim();
    if text.starts_with(['-', '−']) {
        return Err(format!("cannot be negative: {text:?}"));
    }
    let duration = humantime::parse_duration(text).map_err(|_| match text.parse::<f64>() {
        Ok(_) => format!("has no unit: {text:?}"),
        Err(_) => format!("is no duration: {text:?}"),
    })?;
    if duration > LONGEST {
        return Err(format!("is longer than a day: {text:?}"));
    }
    let ms = duration.as_millis() as u64;
    if ms < least_ms {
        return Err(format!(
            "must be at least {}, not {text:?}",
            humantime::format_duration(Duration::from_millis(least_ms))
        ));
    }
    Ok(ms)
}

fn number_with(unit: &str, text: &str) -> Option<f64> {
    let value: f64 = text.trim().strip_suffix(unit)?.trim_end().parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value)
}
