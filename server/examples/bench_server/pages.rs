//! Pages at a constant rate, whether the server keeps up or not.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use self::random::Random;
use tokio::time::{Instant, sleep_until};

use crate::Fallible;
use crate::fill::History;
use crate::service::Service;

/// Requests per second, half of them histories and half comparisons.
pub(crate) const RATE: u32 = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    History,
    /// The stored verdict.
    Judged,
    /// Two runs that nobody compared before.
    Asked,
}

/// Latencies in ms, rising.
#[derive(Debug, Default)]
pub(crate) struct Latencies(Vec<f64>);

#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) history: Latencies,
    pub(crate) comparison: Latencies,
    judged: Latencies,
    asked: Latencies,
    bytes: [Vec<usize>; 2],
}

/// Asks for pages of random snapshots among `of` for as long as `lasts`.
pub(crate) async fn run(
    service: &Arc<Service>,
    of: Range<usize>,
    history: &History,
    lasts: Duration,
) -> Fallible<Measured> {
    let mut random = Random::seeded(of.start as u64 + 1);
    let wanted: Vec<(Kind, String)> = (0..lasts.as_secs() as u32 * RATE)
        .map(|i| {
            let kind = [Kind::History, Kind::Judged, Kind::History, Kind::Asked][i as usize % 4];
            (kind, path(kind, of.start + random.below(of.len()), history, &mut random))
        })
        .collect();
    let start = Instant::now() + Duration::from_millis(50);
    let mut under_way = Vec::new();
    for (i, (kind, path)) in wanted.into_iter().enumerate() {
        let intended = start + Duration::from_secs(1) / RATE * i as u32;
        sleep_until(intended).await;
        let service = Arc::clone(service);
        under_way.push(tokio::spawn(async move {
            let bytes = service.page(&path).await?;
            Fallible::Ok((kind, intended.elapsed().as_secs_f64() * 1_000.0, bytes))
        }));
    }
    let mut measured = Measured::default();
    for request in under_way {
        let (kind, ms, bytes) = request.await??;
        let (all, own) = match kind {
            Kind::History => (&mut measured.history, None),
            Kind::Judged => (&mut measured.comparison, Some(&mut measured.judged)),
            Kind::Asked => (&mut measured.comparison, Some(&mut measured.asked)),
        };
        all.0.push(ms);
        own.into_iter().for_each(|own| own.0.push(ms));
        measured.bytes[usize::from(kind != Kind::History)].push(bytes);
    }
    for latencies in [&mut measured.history, &mut measured.comparison, &mut measured.judged, &mut measured.asked] {
        latencies.0.sort_by(f64::total_cmp);
    }
    Ok(measured)
}

fn path(kind: Kind, at: usize, history: &History, random: &mut Random) -> String {
    let run = &history.runs[at];
    let project = &run.project;
    let before = run.before.unwrap_or(at);
    match kind {
        Kind::History => format!("/{project}/history?testbed={}&before={}", run.testbed, run.run_id),
        Kind::Judged => format!("/{project}/compare/{}...{}", history.runs[before].run_id, run.run_id),
        Kind::Asked => {
            let earlier = (0..2 + random.below(20)).fold(at, |at, _| history.runs[at].before.unwrap_or(at));
            format!("/{project}/compare/{}...{}", history.runs[earlier].run_id, run.run_id)
        }
    }
}

impl Latencies {
    /// The latency that the fraction `q` of the requests did not exceed.
    fn quantile(&self, q: f64) -> f64 {
        let rank = ((q * self.0.len() as f64).ceil() as usize).clamp(1, self.0.len());
        self.0[rank - 1]
    }

    pub(crate) fn p99(&self) -> f64 {
        self.quantile(0.99)
    }
}

impl Measured {
    pub(crate) fn print(&self, of: &str) {
        for (name, latencies) in [
            ("history", &self.history),
            ("comparison", &self.comparison),
            ("  as judged", &self.judged),
            ("  on request", &self.asked),
        ] {
            let name = format!("{name}, {of}");
            let [p50, p99, max] = [0.5, 0.99, 1.0].map(|q| latencies.quantile(q));
            println!("  {name:<34} {:>6} {p50:>8.1} {p99:>8.1} {max:>8.1}", latencies.0.len());
        }
        let [history, comparison] = [0, 1].map(|i| {
            let bytes = &self.bytes[i];
            bytes.iter().sum::<usize>() as f64 / bytes.len() as f64 / 1_000.0
        });
        println!("  {:<34} {history:.0} and {comparison:.0} kB, compressed", "mean size of the two");
    }
}

mod random {
    /// SplitMix64: the same requests each time.
    #[derive(Debug)]
    pub(super) struct Random(u64);

    impl Random {
        pub(super) fn seeded(seed: u64) -> Self {
            Self(seed)
        }

        pub(super) fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((u128::from(mixed ^ (mixed >> 31)) * n as u128) >> 64) as usize
        }
    }
}
