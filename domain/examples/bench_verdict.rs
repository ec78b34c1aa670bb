//! What a verdict on two runs of a quarter of an hour costs on one core, step by step; `scripts/bench-verdict` runs it.
//! Ends with 1 past the limit.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use plimsoll_domain::figures::Figures;
use plimsoll_domain::noise::Noise;
use plimsoll_domain::policy::Policy;
use plimsoll_domain::report::Report;
use plimsoll_domain::synthetic::Synthetic;
use plimsoll_domain::verdict::{Baseline, Run, judge, judge_runs};

/// For comparing two reports that are in memory.
const LIMIT_MS: f64 = 50.0;
const TIMES: usize = 15;

fn main() -> ExitCode {
    let run = |seed, pool, service_ms| Synthetic {
        pool,
        service_ms,
        jitter: 0.25,
        slow_share: 0.01,
        waves: 0.02,
        step_s: 60,
        stability_s: 480,
        seed,
        ..Synthetic::default()
    };
    let mut worst: f64 = 0.0;
    for (name, pool, service_ms) in [("180 requests/s", 10, 56.0), ("2,000 requests/s", 20, 10.0)] {
        let [old, new] =
            [1, 2].map(|seed| Report::from_json(run(seed, pool, service_ms).report().to_json().as_bytes()));
        let (Ok(old), Ok(new)) = (old, new) else {
            eprintln!("a made-up report cannot be read back");
            return ExitCode::from(70);
        };
        let json = new.to_json();
        let requests: u64 = new.phases.iter().flat_map(|phase| &phase.steps).map(|step| step.latency.len()).sum();
        let prepared = [&old, &new].map(Run::of);
        let (policy, noise) = (Policy::default(), Noise::default());
        println!("{name}: {requests} requests, {} kB of JSON; medians of {TIMES}, ms", json.len() / 1_000);
        measure("read and check", || Report::from_json(json.as_bytes()));
        measure("write", || new.to_json());
        measure("figures", || Figures::of(&new));
        measure("prepare one run", || Run::of(&new));
        measure("compare prepared runs", || judge_runs(&[&prepared[0]], None, &prepared[1], &policy, &noise));
        let baseline = Baseline { runs: vec![&old], chosen_because: None };
        worst = worst.max(measure("compare two reports", || judge(Some(&baseline), &new, &policy, &noise)));
    }
    println!("verdict: {worst:.1} ms (limit {LIMIT_MS})");
    if worst <= LIMIT_MS { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn measure<T>(name: &str, mut work: impl FnMut() -> T) -> f64 {
    let mut times: Vec<f64> = (0..TIMES)
        .map(|_| {
            let began = Instant::now();
            black_box(work());
            began.elapsed().as_secs_f64() * 1_000.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("  {name:<24} {:>8.2}", times[TIMES / 2]);
    times[TIMES / 2]
}
