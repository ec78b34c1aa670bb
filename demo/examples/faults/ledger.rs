//! What happened: a line a round while it goes on, a table at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::faults::Kind;
use crate::round::Done;

#[derive(Debug)]
pub(crate) struct Ledger {
    seed: u64,
    wanted: u32,
    began: Instant,
    left_out: Vec<(Kind, &'static str)>,
    rounds: Vec<Done>,
    /// Found at the end, beside those of the rounds.
    afterwards: Vec<String>,
    by_themselves: Vec<String>,
    kept: Vec<PathBuf>,
}

/// Of one kind of fault.
#[derive(Debug, Default)]
struct Count {
    happened: u32,
    /// Rounds with a loss in which it happened, alone or not.
    lost: u32,
}

impl Ledger {
    pub(crate) fn new(seed: u64, wanted: u32, left_out: Vec<(Kind, &'static str)>) -> Self {
        Self {
            seed,
            wanted,
            began: Instant::now(),
            left_out,
            rounds: Vec::new(),
            afterwards: Vec::new(),
            by_themselves: Vec::new(),
            kept: Vec::new(),
        }
    }

    pub(crate) fn begin(&self) {
        eprintln!("{} rounds with --seed {}", self.wanted, self.seed);
        for (kind, why) in &self.left_out {
            eprintln!("left out: {}: {why}", kind.says());
        }
    }

    pub(crate) fn enter(&mut self, done: Done) {
        let outcome = outcome(&done);
        let faults = done.faults.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(", ");
        let (number, run, took) = (done.number, done.run, done.took.as_secs_f64());
        let loss = if done.losses.is_empty() { "" } else { "LOST, " };
        self.rounds.push(done);
        let left = self.began.elapsed().div_f64(self.rounds.len() as f64) * (self.wanted - number);
        eprintln!("{number} of {}: {loss}{outcome}, {took:.1} s; {}; {} left", self.wanted, faults, text(left));
        if let Some(done) = self.rounds.last() {
            for why in &done.losses {
                eprintln!("    run {run}: {why}");
            }
            if let Some((state, reason)) = done.found.as_ref().and_then(|f| Some((&f.state, f.reason.as_ref()?))) {
                eprintln!("    {state}: {reason}");
            }
        }
    }

    pub(crate) fn afterwards(&mut self, losses: Vec<String>) {
        for why in &losses {
            eprintln!("    {why}");
        }
        self.afterwards.extend(losses);
    }

    pub(crate) fn by_themselves(&mut self, ended: Vec<String>) {
        self.by_themselves.extend(ended);
    }

    pub(crate) fn kept(&mut self, folder: PathBuf) {
        eprintln!("the logs are in {}", folder.display());
        self.kept.push(folder);
    }

    pub(crate) fn losses(&self) -> usize {
        self.rounds.iter().filter(|done| !done.losses.is_empty()).count() + self.afterwards.len()
    }

    pub(crate) fn end(&self, as_json: bool) {
        let mut faults: BTreeMap<Kind, Count> = BTreeMap::new();
        let outcomes = counted(self.rounds.iter().map(outcome));
        for done in &self.rounds {
            done.faults.iter().for_each(|(kind, _)| faults.entry(*kind).or_default().happened += 1);
            if !done.losses.is_empty() {
                let kinds: BTreeSet<Kind> = done.faults.iter().map(|(kind, _)| *kind).collect();
                kinds.into_iter().for_each(|kind| faults.entry(kind).or_default().lost += 1);
            }
        }
        let again = self.rounds.iter().filter(|done| done.found.as_ref().is_some_and(|f| f.attempt > 1)).count();
        let took = self.began.elapsed();
        if as_json {
            let faults: BTreeMap<&str, Value> = faults
                .iter()
                .map(|(kind, count)| (kind.name(), json!({ "happened": count.happened, "in_lost_rounds": count.lost })))
                .collect();
            let document = json!({
                "seed": self.seed,
                "rounds": self.rounds.len(),
                "seconds": took.as_secs(),
                "faults": faults,
                "left_out": self.left_out.iter().map(|(kind, why)| (kind.name(), *why)).collect::<BTreeMap<_, _>>(),
                "outcomes": outcomes,
                "measured_again": again,
                "ended_by_themselves": counted(self.by_themselves.iter().cloned()),
                "losses": self.losses(),
                "lost": self.rounds.iter().filter(|done| !done.losses.is_empty()).map(|done| {
                    json!({ "round": done.number, "run_id": done.run, "why": done.losses })
                }).collect::<Vec<_>>(),
                "afterwards": self.afterwards,
                "logs": self.kept,
            });
            println!("{document:#}");
            return;
        }
        println!("rounds    {:>5}   in {}, seed {}", self.rounds.len(), text(took), self.seed);
        println!("faults    {:>5}   rounds with a loss", faults.values().map(|count| count.happened).sum::<u32>());
        for (kind, Count { happened, lost }) in &faults {
            println!("          {happened:>5} {lost:>5}   {}", kind.says());
        }
        for (kind, _) in &self.left_out {
            println!("              -     -   {} (left out)", kind.says());
        }
        println!("outcomes");
        for (outcome, count) in &outcomes {
            println!("          {count:>5}   {outcome}");
        }
        println!("          {again:>5}   of them after more than one attempt");
        for (ended, count) in counted(self.by_themselves.iter().cloned()) {
            println!("          {count:>5}   {ended}");
        }
        println!("losses    {:>5}", self.losses());
    }
}

fn counted(words: impl Iterator<Item = String>) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    words.for_each(|word| *counts.entry(word).or_default() += 1);
    counts
}

fn outcome(done: &Done) -> String {
    match &done.found {
        None => "not accepted".to_owned(),
        Some(found) => match &found.verdict {
            Some(verdict) => format!("{}, {verdict}", found.state),
            None => found.state.clone(),
        },
    }
}

fn text(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 90 { format!("{seconds} s") } else { format!("{} min", (seconds + 30) / 60) }
}
