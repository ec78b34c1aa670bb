//! Realistic reports by arithmetic, for tests, screenshots and benchmarks. Nothing is measured.
//!
//! A closed loop of N workers on a pool of p threads that take s ms each: X = min(N, p)/s, R = N/X, with log-normal
//! jitter, a slow share, slow waves over time and failures. The same parameters give the same bytes.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use uuid::Uuid;

use crate::figures;
use crate::histogram::Histogram;
use crate::ids::{CommitSha, Digest, RunId};
use crate::knee;
use crate::outcome::{ErrorKind, Outcomes};
use crate::plan::{Expect, Phases, Plan, Profile, Service, Smoke, Stability, Staircase, WarmUp, Workload};
use crate::report::{
    Completed, Generator, GeneratorUse, LoadChoice, Phase, PhaseKind, Report, SCHEMA, Status, Step, StepRole, Window,
};
use crate::revision::Revision;
use crate::testbed::{Gpu, Testbed};
use crate::validity;

/// One run to be made up. The default is ten threads of 56 ms in short phases: 179 TPS, P99 at 24 workers about 185 ms.
#[derive(Debug, Clone)]
pub struct Synthetic {
    pub project: String,
    /// Names of the revision; commits as hexadecimal digits.
    pub tag: Option<String>,
    pub commit: Option<String>,
    pub branch: Option<String>,
    pub pull_request: Option<u64>,
    /// First-parent ancestors, nearest first.
    pub ancestors: Vec<String>,
    pub merge_base: Option<String>,
    /// The GPU's model, which makes the testbed.
    pub gpu: String,
    pub started_at: Timestamp,
    pub profile: Profile,
    /// Threads of the service.
    pub pool: u32,
    /// Milliseconds that one request takes alone.
    pub service_ms: f64,
    /// Standard deviation of the logarithm of a latency.
    pub jitter: f64,
    /// Share of requests that take `slow_factor` times as long.
    pub slow_share: f64,
    pub slow_factor: f64,
    /// Standard deviation of the logarithm of the slow waves that all requests of a time share.
    pub waves: f64,
    /// What this run differs by from others of the same code: a factor on every latency.
    pub run_factor: f64,
    /// Share of requests that fail with a 5xx.
    pub error_rate: f64,
    pub staircase: Vec<u32>,
    pub step_s: u64,
    pub stability_workers: u32,
    pub stability_s: u64,
    /// Busiest thread of the load generator; above 0.85 the run is invalid.
    pub engine_cpu: f64,
    /// Tells runs of one revision apart.
    pub seed: u64,
}

impl Default for Synthetic {
    fn default() -> Self {
        Self {
            project: "sentiment".to_owned(),
            tag: None,
            commit: None,
            branch: None,
            pull_request: None,
            ancestors: Vec::new(),
            merge_base: None,
            gpu: "A10".to_owned(),
            started_at: Timestamp::from_second(1_764_000_000).expect("a date in 2025"),
            profile: Profile::Standard,
            pool: 10,
            service_ms: 56.0,
            jitter: 0.12,
            slow_share: 0.0,
            slow_factor: 4.0,
            waves: 0.01,
            run_factor: 1.0,
            error_rate: 0.0,
            staircase: vec![5, 10, 20, 50, 100],
            step_s: 20,
            stability_workers: 24,
            stability_s: 60,
            engine_cpu: 0.21,
            seed: 1,
        }
    }
}

impl Synthetic {
    /// The whole report; it passes [`Report::check`]. Panics on names that are none and on pools or steps of 0.
    pub fn report(&self) -> Report {
        assert!(self.pool > 0 && self.step_s >= 5 && self.stability_s >= 5, "empty pool or step");
        let mut run =
            Run { of: self, random: Xoshiro256PlusPlus::seed_from_u64(self.seed), phases: Vec::new(), at_ms: 0 };
        let plan = self.plan();
        run.smoke();
        run.warm_up();
        run.staircase(&plan.phases.staircase);
        run.phase(PhaseKind::Stability, |run| {
            vec![run.step(StepRole::Soak, self.stability_workers, self.stability_s, 1)]
        });
        let (phases, took) = (run.phases, run.at_ms);
        let mut report = Report {
            schema: SCHEMA,
            run_id: self.run_id(),
            project: self.project.parse().expect("a project's name"),
            revision: self.revision(),
            testbed: Testbed {
                gpu: Some(Gpu { model: self.gpu.clone(), count: 1, memory_gib: Some(24), driver: None }),
                cpu_cores: Some(16),
                memory_gib: Some(64),
                ..Testbed::default()
            },
            plan_digest: plan.digest(),
            plan,
            generator: Generator { name: "plimsoll".to_owned(), version: "0.1.0".to_owned(), shares_host: false },
            started_at: self.started_at,
            finished_at: self.started_at + SignedDuration::from_millis(i64::try_from(took).unwrap_or(i64::MAX)),
            status: Status::Complete,
            load_choice: Some(LoadChoice::Plan),
            phases,
            findings: Vec::new(),
        };
        report.findings = validity::findings(&report);
        report
    }

    fn revision(&self) -> Revision {
        let sha = |text: &String| text.parse::<CommitSha>().expect("a commit");
        Revision {
            commit: self.commit.as_ref().map(sha),
            tag: self.tag.clone(),
            branch: self.branch.clone(),
            pull_request: self.pull_request,
            engine: None,
            ancestors: self.ancestors.iter().map(sha).collect(),
            merge_base: self.merge_base.as_ref().map(sha),
            dirty: false,
        }
    }

    /// Differs with project, revision, testbed, time and seed.
    fn run_id(&self) -> RunId {
        let names = (&self.project, &self.tag, &self.commit, &self.gpu, self.started_at, self.seed);
        let hex = [Digest::of(&(0, &names)), Digest::of(&(1, &names)), Digest::of(&(2, &names))];
        let text: String = hex.iter().map(Digest::as_str).collect();
        let number = u128::from_str_radix(&text[..32], 16).expect("hexadecimal digits");
        RunId(uuid::Builder::from_custom_bytes(Uuid::from_u128(number).into_bytes()).into_uuid())
    }

    fn plan(&self) -> Plan {
        Plan {
            profile: self.profile,
            service: Service {
                origin: "http://127.0.0.1:8000".to_owned(),
                path: "/predict".to_owned(),
                method: "POST".to_owned(),
                headers: BTreeMap::from([("content-type".to_owned(), "application/json".to_owned())]),
                connect_timeout_ms: 3_000,
                response_timeout_ms: RESPONSE_TIMEOUT_MS,
                keep_alive: true,
            },
            workload: Workload {
                requests: 12,
                sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned(),
                expect: Expect { status: 200, json: BTreeMap::new() },
            },
            phases: Phases {
                smoke: Smoke { duration_ms: 20_000 },
                warm_up: WarmUp { min_requests: 40, max_duration_ms: 60_000, top_ms: 3_000 },
                staircase: Staircase {
                    workers: self.staircase.clone(),
                    step_ms: self.step_s * 1_000,
                    ramp_up_ms: 1_000,
                    search: true,
                    search_step_ms: self.step_s * 1_000,
                    max_workers: 400,
                    max_error_rate: 0.01,
                },
                stability: Stability {
                    duration_ms: self.stability_s * 1_000,
                    ramp_up_ms: 1_000,
                    workers: Some(self.stability_workers),
                    knee_fraction: 0.75,
                },
            },
        }
    }
}

const RESPONSE_TIMEOUT_MS: u64 = 60_000;

/// A report on its way.
struct Run<'a> {
    of: &'a Synthetic,
    random: Xoshiro256PlusPlus,
    phases: Vec<Phase>,
    at_ms: u64,
}

impl Run<'_> {
    fn phase(&mut self, kind: PhaseKind, steps: impl FnOnce(&mut Self) -> Vec<Step>) {
        let start_ms = self.at_ms;
        let steps = steps(self);
        self.phases.push(Phase { kind, start_ms, duration_ms: self.at_ms - start_ms, steps });
    }

    fn smoke(&mut self) {
        self.phase(PhaseKind::Smoke, |run| {
            vec![run.step(StepRole::Check, 1, 2, 0), run.step(StepRole::Single, 1, 20, 0)]
        });
    }

    fn warm_up(&mut self) {
        let top = self.of.staircase.iter().copied().max().unwrap_or(1);
        self.phase(PhaseKind::WarmUp, |run| {
            vec![run.step(StepRole::WarmUp, 1, 5, 0), run.step(StepRole::WarmUp, top, 3, 0)]
        });
    }

    /// The planned steps, then the runner's own search; of the `pr` profile one step past the knee.
    fn staircase(&mut self, plan: &Staircase) {
        let (seconds, pool) = (self.of.step_s, self.of.pool);
        if self.of.profile == Profile::Pr {
            return self.phase(PhaseKind::Staircase, |run| vec![run.step(StepRole::Capacity, pool * 2, seconds, 1)]);
        }
        let single = self.phases[0].steps[1].clone();
        self.phase(PhaseKind::Staircase, |run| {
            let mut steps = vec![single];
            steps.extend(plan.workers.iter().map(|workers| run.step(StepRole::Planned, *workers, seconds, 1)));
            for (role, next) in [
                (StepRole::Beyond, (|points| knee::beyond(points, 400)) as fn(&[knee::Point]) -> Option<u32>),
                (StepRole::Bisect, knee::bisect),
            ] {
                let points = |steps: &[Step]| figures::points(&steps.iter().collect::<Vec<_>>(), plan.max_error_rate);
                while let Some(workers) = next(&points(&steps)) {
                    steps.push(run.step(role, workers, seconds, 1));
                }
            }
            steps.split_off(1)
        });
    }

    fn step(&mut self, role: StepRole, workers: u32, seconds: u64, ramp_s: u64) -> Step {
        let of = self.of;
        let service_ms = of.service_ms * of.run_factor;
        let tps = f64::from(workers.min(of.pool)) / service_ms * 1_000.0;
        let latency_ms = f64::from(workers) / tps * 1_000.0;
        let edge_s = (seconds / 10).clamp(u64::from(seconds > 2), 10);
        let (from, to) = (ramp_s + edge_s, (seconds - edge_s).max(ramp_s + edge_s));
        let slice_s = role.slice_ms(seconds * 1_000) / 1_000;
        let mut step = Step {
            role,
            workers,
            start_ms: self.at_ms,
            duration_ms: seconds * 1_000,
            measured_from_ms: from * 1_000,
            measured_to_ms: to * 1_000,
            connections: u64::from(workers),
            outcomes: Outcomes::default(),
            completed: Completed::default(),
            latency: Histogram::new(),
            latency_censored: Histogram::new(),
            first_byte: Histogram::new(),
            slice_ms: slice_s * 1_000,
            slices: vec![Histogram::new(); (to - from).div_ceil(slice_s) as usize],
            windows: Vec::new(),
            ok_per_second: None,
            oldest_cut_us: None,
            generator: GeneratorUse {
                engine_cpu: Some(of.engine_cpu * f64::from(workers.min(of.pool)) / f64::from(of.pool)),
                host_cpu: Some(0.12),
                timer_lag_p99_us: Some(140),
            },
        };
        let mut wave = 0.0;
        for second in 0..seconds {
            wave = 0.8 * wave + 0.6 * of.waves * self.normal();
            // The loop is closed: where requests are slower, fewer of them fit.
            let level = f64::exp(wave);
            let n = (tps / level * (1.0 + 0.01 * self.normal())).round().max(1.0) as u64;
            let mut window = Window::default();
            let measured = (from..to).contains(&second);
            for _ in 0..n {
                let failed = of.error_rate > 0.0 && self.uniform() < of.error_rate;
                let us = (self.latency_ms(latency_ms * level) * 1_000.0) as u64;
                if failed {
                    *window.errors.entry(ErrorKind::Http5xx).or_default() += 1;
                } else {
                    window.ok += 1;
                    window.latency_sum_us += us;
                    window.latency_max_us = window.latency_max_us.max(us);
                }
                if measured {
                    let slice = ((second - from) / slice_s) as usize;
                    step.count(us, failed, slice);
                }
            }
            step.windows.push(window);
        }
        step.latency = Histogram::merged(&step.slices);
        step.latency_censored.merge(&step.latency);
        step.completed.busy_us = ((to - from) as f64 * f64::from(workers) * 998_000.0) as u64;
        self.at_ms += seconds * 1_000;
        step
    }

    fn latency_ms(&mut self, mean: f64) -> f64 {
        let of = self.of;
        let slow = if of.slow_share > 0.0 && self.uniform() < of.slow_share { of.slow_factor } else { 1.0 };
        mean * slow * f64::exp(of.jitter * self.normal() - of.jitter * of.jitter / 2.0)
    }

    /// Above 0, at most 1.
    fn uniform(&mut self) -> f64 {
        ((self.random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

impl Step {
    fn count(&mut self, us: u64, failed: bool, slice: usize) {
        if failed {
            self.outcomes.count(Err(ErrorKind::Http5xx));
            self.completed.failed += 1;
            self.latency_censored.record_us(RESPONSE_TIMEOUT_MS * 1_000);
        } else {
            self.outcomes.count(Ok(()));
            self.completed.ok += 1;
            self.slices[slice].record_us(us);
            self.first_byte.record_us(us - us / 20);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;

    #[test]
    fn figures_follow_the_arithmetic() {
        let report = Synthetic::default().report();
        report.check().unwrap();
        assert!(report.is_valid(), "{:?}", report.findings);
        let figures = Figures::of(&report);
        let near = |is: f64, wanted: f64, by: f64| assert!((is / wanted - 1.0).abs() < by, "{is} is not {wanted}");
        let capacity = figures.capacity.unwrap();
        near(capacity.tps, 178.6, 0.05);
        assert!((9..=11).contains(&capacity.workers) && !capacity.lower_bound, "{capacity:?}");
        near(figures.smoke.unwrap().latency_ms, 56.0, 0.02);
        let soak = figures.stability.unwrap().step;
        near(soak.p50_ms.unwrap(), 134.4, 0.03);
        near(soak.tps.unwrap(), 178.6, 0.03);
    }

    #[test]
    fn the_same_parameters_give_the_same_bytes_and_read_back() {
        let one = Synthetic { tag: Some("v1.0.0".to_owned()), error_rate: 0.02, ..Synthetic::default() };
        let json = one.report().to_json();
        assert!(json == one.report().to_json());
        let back = Report::from_json(json.as_bytes()).unwrap();
        assert!(back == one.report() && back.to_json() == json);
        let other = Synthetic { seed: 2, ..one.clone() }.report();
        assert_ne!(other.run_id, one.report().run_id);
        assert_eq!(other.plan_digest, one.report().plan_digest);
    }
}
