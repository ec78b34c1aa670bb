//! Reading a report that came from outside: every bound is checked before anything is believed.

use super::{MAX_BYTES, Report, SCHEMA, Step, weight};

/// Why a text is not a report. The message says what and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    #[error("the report has {0} bytes; at most {MAX_BYTES} are read")]
    TooLarge(usize),
    #[error("not a report: {0}")]
    Json(String),
    #[error("the report has schema {0}, written by a newer plimsoll; this one reads up to {SCHEMA}: update it")]
    Newer(u64),
    #[error("{at}: {why}")]
    Value { at: String, why: String },
}

const MAX_STEPS: usize = 200;
const MAX_WINDOWS: usize = 100_000;
const MAX_MS: u64 = 7 * 24 * 3_600_000;
const MAX_WORKERS: u32 = 1_000_000;
const MAX_TEXT: usize = 4_096;
const MAX_LABELS: usize = 64;
const MAX_FINDINGS: usize = 1_000;
/// Requests of one counter: sums over everything a report holds stay within 64 bits.
const MAX_COUNT: u64 = 1_000_000_000_000;
/// Latencies of one window, or one step's time in the system, in µs: the most workers for the longest step.
const MAX_WINDOW_US: u64 = 10_000_000_000_000;
const MAX_BUSY_US: u64 = MAX_WORKERS as u64 * MAX_MS * 1_000;

impl Report {
    /// Reads and checks a report.
    pub fn from_json(bytes: &[u8]) -> Result<Self, ReportError> {
        if bytes.len() > MAX_BYTES {
            return Err(ReportError::TooLarge(bytes.len()));
        }
        #[derive(serde::Deserialize)]
        struct Version {
            schema: u64,
        }
        let json = |e: serde_json::Error| ReportError::Json(e.to_string());
        let report = weight::read::<Self>(bytes);
        // A newer report may fail to parse for reasons that would only mislead.
        if report.as_ref().map_or(true, |report| report.schema > SCHEMA) {
            let Version { schema } = serde_json::from_slice(bytes).map_err(json)?;
            if schema > u64::from(SCHEMA) {
                return Err(ReportError::Newer(schema));
            }
        }
        let report = report.map_err(json)?;
        report.check()?;
        Ok(report)
    }

    /// Pretty JSON with a final newline.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string(self).expect("wire types serialize");
        text.push('\n');
        text
    }

    /// Checks what types alone cannot: bounds, order, and that the parts agree.
    pub fn check(&self) -> Result<(), ReportError> {
        ensure(self.schema == SCHEMA, "schema", || format!("is {}, this plimsoll reads {SCHEMA}", self.schema))?;
        ensure(self.plan_digest == self.plan.digest(), "plan_digest", || "does not belong to `plan`".to_owned())?;
        ensure(self.finished_at >= self.started_at, "finished_at", || "lies before `started_at`".to_owned())?;
        ensure(self.revision.ancestors.len() <= crate::revision::MAX_ANCESTORS, "revision.ancestors", || {
            format!("more than {} entries", crate::revision::MAX_ANCESTORS)
        })?;
        ensure(self.findings.len() <= MAX_FINDINGS, "findings", || format!("more than {MAX_FINDINGS}"))?;
        for (at, text) in self.texts() {
            ensure(text.len() <= MAX_TEXT, at, || format!("longer than {MAX_TEXT} bytes"))?;
            // They end on terminals and pages.
            ensure(!text.contains(char::is_control), at, || "holds a control character".to_owned())?;
        }
        ensure(self.testbed.labels.len() <= MAX_LABELS, "testbed.labels", || format!("more than {MAX_LABELS}"))?;
        let rate = self.plan.phases.staircase.max_error_rate;
        ensure((0.0..=1.0).contains(&rate), "plan.phases.staircase.max_error_rate", || format!("{rate} is no share"))?;
        let mut seen = Vec::new();
        for (i, phase) in self.phases.iter().enumerate() {
            let at = format!("phases[{i}]");
            ensure(!seen.contains(&phase.kind), &at, || format!("a second {} phase", phase.kind.name()))?;
            seen.push(phase.kind);
            ensure(phase.start_ms <= MAX_MS && phase.duration_ms <= MAX_MS, &at, || "longer than a week".to_owned())?;
            ensure(phase.steps.len() <= MAX_STEPS, &at, || format!("more than {MAX_STEPS} steps"))?;
            for (j, step) in phase.steps.iter().enumerate() {
                check_step(step, &format!("{at}.steps[{j}]"))?;
            }
        }
        Ok(())
    }

    /// Texts that somebody else wrote and that a page will show.
    fn texts(&self) -> Vec<(&'static str, &str)> {
        let revision = &self.revision;
        let testbed = &self.testbed;
        let service = &self.plan.service;
        let mut texts = vec![
            ("plan.service.origin", service.origin.as_str()),
            ("plan.service.path", &service.path),
            ("plan.service.method", &service.method),
            ("plan.workload.sha256", &self.plan.workload.sha256),
            ("generator.name", &self.generator.name),
            ("generator.version", &self.generator.version),
        ];
        texts.extend(testbed.gpu.iter().map(|gpu| ("testbed.gpu.model", gpu.model.as_str())));
        texts.extend(
            service
                .headers
                .iter()
                .flat_map(|(k, v)| [("plan.service.headers", k.as_str()), ("plan.service.headers", v)]),
        );
        let optional = [
            ("revision.tag", &revision.tag),
            ("revision.branch", &revision.branch),
            ("revision.engine", &revision.engine),
            ("testbed.name", &testbed.name),
            ("testbed.cpu_model", &testbed.cpu_model),
            ("testbed.os", &testbed.os),
        ];
        texts.extend(optional.into_iter().filter_map(|(at, text)| Some((at, text.as_deref()?))));
        texts.extend(testbed.labels.iter().flat_map(|(k, v)| [("testbed.labels", k.as_str()), ("testbed.labels", v)]));
        for finding in &self.findings {
            texts.extend([("findings", finding.code.as_str()), ("findings", &finding.message)]);
            texts.extend(finding.advice.iter().map(|advice| ("findings", advice.as_str())));
        }
        texts
    }
}

fn check_step(step: &Step, at: &str) -> Result<(), ReportError> {
    let within = |ms: u64| ms <= MAX_MS;
    ensure(within(step.start_ms) && within(step.duration_ms), at, || "longer than a week".to_owned())?;
    ensure(step.measured_from_ms <= step.measured_to_ms && step.measured_to_ms <= step.duration_ms, at, || {
        format!(
            "the measured part, {} to {} ms, does not lie within its {} ms",
            step.measured_from_ms, step.measured_to_ms, step.duration_ms
        )
    })?;
    ensure((1..=MAX_WORKERS).contains(&step.workers), at, || format!("{} workers", step.workers))?;
    ensure((1..=MAX_MS).contains(&step.slice_ms), at, || format!("slice_ms is {}", step.slice_ms))?;
    ensure(step.slices.len() <= MAX_WINDOWS && step.windows.len() <= MAX_WINDOWS, at, || {
        format!("more than {MAX_WINDOWS} slices or windows")
    })?;
    let counts = [step.outcomes.ok, step.outcomes.cut, step.completed.ok, step.completed.failed, step.connections];
    let errors = step.windows.iter().map(|window| &window.errors).chain([&step.outcomes.errors]);
    let all = counts.into_iter().chain(errors.flat_map(|errors| errors.values().copied()));
    let thinned = step.ok_per_second.as_deref().unwrap_or_default();
    ensure(thinned.len() <= MAX_WINDOWS, at, || format!("more than {MAX_WINDOWS} seconds"))?;
    ensure(step.ok_per_second.is_none() || step.windows.is_empty(), at, || {
        "has both windows and what is left of them".to_owned()
    })?;
    let all = all.chain(thinned.iter().copied());
    let mut all = all.chain(step.windows.iter().map(|window| window.ok)).chain(step.slices.iter().map(|s| s.len()));
    ensure(all.all(|n| n <= MAX_COUNT), at, || format!("counts more than {MAX_COUNT} requests"))?;
    ensure(step.windows.iter().all(|window| window.latency_sum_us <= MAX_WINDOW_US), at, || {
        format!("a window whose latencies add up to more than {MAX_WINDOW_US} us")
    })?;
    ensure(step.completed.busy_us <= MAX_BUSY_US, at, || format!("busy for {} us", step.completed.busy_us))?;
    let sliced: u64 = step.slices.iter().map(|slice| slice.len()).sum();
    ensure(sliced == step.latency.len(), at, || {
        format!("its slices hold {sliced} requests, its latency histogram {}", step.latency.len())
    })?;
    ensure(step.outcomes.ok == step.latency.len(), at, || {
        format!("{} successes, but a latency histogram of {}", step.outcomes.ok, step.latency.len())
    })?;
    let shares = [("engine_cpu", step.generator.engine_cpu), ("host_cpu", step.generator.host_cpu)];
    for (name, share) in shares {
        ensure(share.is_none_or(|s| (0.0..=64.0).contains(&s)), at, || format!("generator.{name} is no share"))?;
    }
    Ok(())
}

fn ensure(holds: bool, at: &str, why: impl FnOnce() -> String) -> Result<(), ReportError> {
    if holds { Ok(()) } else { Err(ReportError::Value { at: at.to_owned(), why: why() }) }
}

#[cfg(test)]
mod tests;
