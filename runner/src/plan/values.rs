//! What staircases and durations look like, in plans and flags.

use std::time::Duration;

/// Worker counts of a staircase: from 1, rising. The error completes a sentence that begins with the value's name.
pub fn rising(workers: &[u32]) -> Result<(), String> {
    if workers.is_empty() {
        return Err("is empty: name at least one number of workers".to_owned());
    }
    if workers.len() > MAX_STEPS {
        return Err(format!("has {} steps; at most {MAX_STEPS} fit a report", workers.len()));
    }
    match workers.windows(2).find(|pair| pair[0] >= pair[1]) {
        Some(pair) => Err(format!("must rise from step to step, but {} follows {}", pair[1], pair[0])),
        None => Ok(()),
    }
}

/// The search adds steps of its own, and a report takes 200.
const MAX_STEPS: usize = 100;

/// A duration as plans write it: `2m`, `500ms`.
pub fn duration_text(ms: u64) -> String {
    humantime::format_duration(Duration::from_millis(ms)).to_string()
}
