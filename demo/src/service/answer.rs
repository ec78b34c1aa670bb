//! What the model says: a fixed function of the text, so that a plan can assert it.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Question {
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Answer {
    pub label: &'static str,
    /// How sure it is, 0.5 to 1.
    pub score: f64,
    /// Words of the text.
    pub tokens: usize,
}

const GOOD: [&str; 6] = ["good", "great", "fast", "love", "excellent", "fine"];
const BAD: [&str; 6] = ["bad", "slow", "poor", "hate", "broken", "late"];

/// Counts words of praise and of blame.
pub(super) fn classify(text: &str) -> Answer {
    let mut balance = 0i32;
    let mut tokens = 0;
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        tokens += 1;
        let is = |list: &[&str]| i32::from(list.iter().any(|entry| word.eq_ignore_ascii_case(entry)));
        balance += is(&GOOD) - is(&BAD);
    }
    let label = if balance < 0 { "negative" } else { "positive" };
    let score = 1.0 - 0.5 / (1.0 + f64::from(balance.abs()));
    Answer { label, score, tokens }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn praise_and_blame() {
        for (text, label, score, tokens) in [
            ("A great and fast answer", "positive", 1.0 - 0.5 / 3.0, 5),
            ("slow, Late, broken", "negative", 0.875, 3),
            ("", "positive", 0.5, 0),
        ] {
            assert_eq!(classify(text), Answer { label, score, tokens });
        }
    }
}
