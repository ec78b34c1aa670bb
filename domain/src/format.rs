//! How figures are written, everywhere: three significant digits, a narrow no-break space (U+202F) between thousands
//! and before units, changes in whole per cent from 10 %, an absent figure as a dash.

/// U+202F, the narrow no-break space.
pub const NARROW: char = '\u{202f}';
/// What stands for an absent figure.
pub const ABSENT: &str = "–";

/// Three significant digits, plain decimal notation, thousands grouped: `0.0312`, `4.57`, `261`, `1 740`.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    // Rounding may carry into the next power of ten (9.996 → 10.0), so the exponent is taken after it.
    let scientific = format!("{:.2e}", value.abs());
    let exponent: i32 = scientific.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let decimals = (2 - exponent).max(0) as usize;
    let unit = 10f64.powi((exponent - 2).max(0));
    let text = format!("{:.decimals$}", (value.abs() / unit).round_if(unit > 1.0) * unit);
    let sign = if value < 0.0 { "−" } else { "" };
    format!("{sign}{}", grouped(&text))
}

/// A count, exact, thousands grouped.
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// How many of something: `1 error`, `48 errors`.
pub fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(n), if n == 1 { "" } else { "s" })
}

/// `1 worker`, `48 workers`.
pub fn workers(n: u32) -> String {
    counted(n.into(), "worker")
}

/// A latency with its unit: ms below 10 s, then s.
pub fn latency(ms: f64) -> String {
    if ms < 10_000.0 { format!("{}{NARROW}ms", number(ms)) } else { format!("{}{NARROW}s", number(ms / 1_000.0)) }
}

/// A number, or the dash.
pub fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), number)
}

/// A signed change in per cent: `+54 %`, `−1.5 %`, `0.0 %`.
pub fn change(fraction: f64) -> String {
    format!("{}{NARROW}%", signed_percent(fraction))
}

/// An interval of changes: `+47 to +61 %`.
pub fn interval([low, high]: [f64; 2]) -> String {
    format!("{} to {}{NARROW}%", signed_percent(low), signed_percent(high))
}

/// A difference of fractions in percentage points: `+0.001 pp`.
pub fn points(difference: f64) -> String {
    format!("{}{NARROW}pp", signed(difference * 100.0, 3))
}

/// An interval of differences: `−0.005 to +0.006 pp`.
pub fn points_interval([low, high]: [f64; 2]) -> String {
    format!("{} to {}{NARROW}pp", signed(low * 100.0, 3), signed(high * 100.0, 3))
}

/// A threshold as people wrote it, without padding: `+10 %`, `−5 %`, `+7.5 %`.
pub fn allowed(fraction: f64) -> String {
    format!("{}{NARROW}%", terse(fraction * 100.0))
}

/// A threshold in percentage points: `+0.1 pp`.
pub fn allowed_points(difference: f64) -> String {
    format!("{}{NARROW}pp", terse(difference * 100.0))
}

/// A fraction as per cent without its sign: `0.003`, `61`.
pub fn percent(fraction: f64) -> String {
    number(fraction * 100.0)
}

/// A length of time for people: `24 s`, `12 min`, `1 h 5 min`.
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round().max(0.0) as u64;
    match whole {
        0..=99 => format!("{whole}{NARROW}s"),
        100..=5_999 => match ((whole + 30) / 60, whole % 60) {
            (_, rest) if whole < 600 && rest != 0 => format!("{}{NARROW}min {rest}{NARROW}s", whole / 60),
            (minutes, _) => format!("{minutes}{NARROW}min"),
        },
        _ => format!("{}{NARROW}h {}{NARROW}min", whole / 3_600, whole % 3_600 / 60),
    }
}

fn signed_percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    signed(percent, if percent.abs() >= 9.95 { 0 } else { 1 })
}

/// With its sign unless it rounds to zero.
fn signed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return ABSENT.to_owned();
    }
    let text = format!("{:.decimals$}", value.abs());
    let zero = text.bytes().all(|b| matches!(b, b'0' | b'.'));
    let sign = if zero {
        ""
    } else if value < 0.0 {
        "−"
    } else {
        "+"
    };
    format!("{sign}{}", grouped(&text))
}

/// Signed, with as many of three decimals as it needs.
fn terse(value: f64) -> String {
    // The decimals are always there, so only zeros after the point go.
    signed(value, 3).trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn grouped(text: &str) -> String {
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    if whole.len() < 4 {
        return text.to_owned();
    }
    let mut out = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(NARROW);
        }
        out.push(digit);
    }
    out + rest
}

trait RoundIf {
    fn round_if(self, condition: bool) -> Self;
}
impl RoundIf for f64 {
    fn round_if(self, condition: bool) -> f64 {
        if condition { self.round() } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.031_24, "0.0312"),
            (4.567, "4.57"),
            (9.996, "10.0"),
            (41.94, "41.9"),
            (261.4, "261"),
            (999.7, "1\u{202f}000"),
            (1_744.0, "1\u{202f}740"),
            (1_234_567.0, "1\u{202f}230\u{202f}000"),
            (-12.34, "−12.3"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(number(value), text, "{value}");
        }
        assert_eq!(count(122_500), "122\u{202f}500");
        assert_eq!(
            (workers(1), workers(48), counted(0, "error")),
            ("1 worker".into(), "48 workers".into(), "0 errors".into())
        );
    }

    #[test]
    fn changes_read_as_the_trade_writes_them() {
        assert_eq!(change(0.54), "+54\u{202f}%");
        assert_eq!(change(-0.015), "−1.5\u{202f}%");
        assert_eq!(change(0.0996), "+10\u{202f}%");
        assert_eq!(change(-0.000_1), "0.0\u{202f}%");
        assert_eq!(interval([0.47, 0.61]), "+47 to +61\u{202f}%");
        assert_eq!(interval([-0.028, 0.2]), "−2.8 to +20\u{202f}%");
        assert_eq!(points(0.00001), "+0.001\u{202f}pp");
        assert_eq!(points(0.0), "0.000\u{202f}pp");
        assert_eq!(allowed(0.1), "+10\u{202f}%");
        assert_eq!(allowed(-0.05), "−5\u{202f}%");
        assert_eq!(allowed(0.075), "+7.5\u{202f}%");
        assert_eq!(allowed(0.0), "0\u{202f}%");
        assert_eq!(allowed_points(0.001), "+0.1\u{202f}pp");
    }

    #[test]
    fn times_change_their_unit() {
        assert_eq!(latency(402.3), "402\u{202f}ms");
        assert_eq!(latency(12_345.0), "12.3\u{202f}s");
        assert_eq!(duration(24.2), "24\u{202f}s");
        assert_eq!(duration(125.0), "2\u{202f}min 5\u{202f}s");
        assert_eq!(duration(720.0), "12\u{202f}min");
        assert_eq!(duration(7_500.0), "2\u{202f}h 5\u{202f}min");
    }
}
