//! The knobs of the sample service, and what follows from them.

use std::time::Duration;

/// How the service behaves. Times are given in ms on the command line, probabilities and the jitter as fractions.
#[derive(Debug, Clone, PartialEq, clap::Args)]
pub struct Parameters {
    /// Worker threads.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub pool: u32,
    /// Requests that may wait for a worker; one more is refused with 503.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub queue: u32,
    /// A worker's own time per request, half before and half after the accelerator.
    #[arg(long = "pool-ms", default_value = "50", value_parser = millis)]
    pub pool_time: Duration,
    /// The accelerator's time per batch.
    #[arg(long = "base-ms", default_value = "3", value_parser = millis)]
    pub base: Duration,
    /// The accelerator's time per request in a batch.
    #[arg(long = "per-item-ms", default_value = "1", value_parser = millis)]
    pub per_item: Duration,
    /// The most requests in one batch. A batch never waits to be filled.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_024))]
    pub max_batch: u32,
    /// Every time varies evenly by this fraction of itself.
    #[arg(long, default_value = "0", value_parser = fraction)]
    pub jitter: f64,
    /// The share of requests on which a worker spends `slow_extra` more.
    #[arg(long, default_value = "0", value_parser = fraction)]
    pub slow_probability: f64,
    #[arg(long = "slow-extra-ms", default_value = "0", value_parser = millis)]
    pub slow_extra: Duration,
    /// The first requests, on which a worker spends `cold_extra` more.
    #[arg(long, default_value_t = 0)]
    pub cold_requests: u64,
    #[arg(long = "cold-extra-ms", default_value = "0", value_parser = millis)]
    pub cold_extra: Duration,
    /// What the first batch of each size takes more: an engine that prepares itself for every shape it meets.
    #[arg(long = "cold-batch-ms", default_value = "0", value_parser = millis)]
    pub cold_batch_extra: Duration,
    /// Bytes that each request leaves behind, up to 1 GiB in all.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=1 << 20))]
    pub leak_bytes: u32,
    /// The share of requests that end in a 500.
    #[arg(long, default_value = "0", value_parser = fraction)]
    pub error_probability: f64,
    /// From this many requests on, all end in a 500.
    #[arg(long)]
    pub error_after: Option<u64>,
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Default for Parameters {
    /// The defaults of the command line.
    fn default() -> Self {
        Self {
            pool: 10,
            queue: 500,
            pool_time: Duration::from_millis(50),
            base: Duration::from_millis(3),
            per_item: Duration::from_millis(1),
            max_batch: 1,
            jitter: 0.0,
            slow_probability: 0.0,
            slow_extra: Duration::ZERO,
            cold_requests: 0,
            cold_extra: Duration::ZERO,
            cold_batch_extra: Duration::ZERO,
            leak_bytes: 0,
            error_probability: 0.0,
            error_after: None,
            seed: 1,
        }
    }
}

impl Parameters {
    /// The accelerator's mean time for a batch of `items`.
    pub fn batch_time(&self, items: u32) -> Duration {
        self.base + self.per_item * items
    }

    /// The same parameters as flags.
    pub fn to_args(&self) -> Vec<String> {
        let ms = |time: Duration| (time.as_secs_f64() * 1_000.0).to_string();
        let flags = [
            ("pool", self.pool.to_string()),
            ("queue", self.queue.to_string()),
            ("pool-ms", ms(self.pool_time)),
            ("base-ms", ms(self.base)),
            ("per-item-ms", ms(self.per_item)),
            ("max-batch", self.max_batch.to_string()),
            ("jitter", self.jitter.to_string()),
            ("slow-probability", self.slow_probability.to_string()),
            ("slow-extra-ms", ms(self.slow_extra)),
            ("cold-requests", self.cold_requests.to_string()),
            ("cold-extra-ms", ms(self.cold_extra)),
            ("cold-batch-ms", ms(self.cold_batch_extra)),
            ("leak-bytes", self.leak_bytes.to_string()),
            ("error-probability", self.error_probability.to_string()),
            ("seed", self.seed.to_string()),
        ];
        let after = self.error_after.map(|after| ("error-after", after.to_string()));
        flags.into_iter().chain(after).map(|(name, value)| format!("--{name}={value}")).collect()
    }
}

/// What a warm service without errors carries in a closed loop with enough workers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    /// Requests per second.
    pub capacity: f64,
    /// Workers that fill it: its capacity × the latency of a request that never waits for a pool worker.
    pub workers: f64,
    /// Latency of one request alone, in ms, without HTTP.
    pub single_ms: f64,
}

/// Capacity and knee by arithmetic.
///
/// The accelerator carries at most `B / (base + B · per_item)` with full batches of `B`. The pool carries
/// `P / (time of a worker per request)`, where that time is the worker's own, the batch's and the wait for the batch
/// before it. Without batching a pool that does not fill the accelerator falls into step with it and never waits; with
/// batching a batch holds what came during the one before it, and the wait is half a batch. The wait makes the answer
/// depend on itself, hence the bisection.
pub fn expected_capacity(parameters: &Parameters) -> Expected {
    let own = (parameters.pool_time + parameters.slow_extra.mul_f64(parameters.slow_probability)).as_secs_f64();
    let base = parameters.base.as_secs_f64();
    let per_item = parameters.per_item.as_secs_f64();
    let one = base + per_item;
    let most = f64::from(parameters.max_batch);
    let full = base + most * per_item;
    // The time that a worker spends on a request when the service carries `tps`.
    let held = |tps: f64| {
        // A batch of n takes as long as n requests take to come: n / tps = base + n · per_item.
        let filled = if tps * per_item < 1.0 { tps * base / (1.0 - tps * per_item) } else { most };
        let batch = base + per_item * filled.clamp(1.0, most);
        let wait = if parameters.max_batch == 1 { 0.0 } else { batch / 2.0 * (tps * one).min(1.0) };
        own + wait + batch
    };
    let pool = f64::from(parameters.pool);
    let (mut low, mut high) = (0.0, if full > 0.0 { most / full } else { pool / own });
    if high * held(high) > pool {
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if middle * held(middle) > pool { high = middle } else { low = middle }
        }
    }
    Expected {
        capacity: high,
        workers: (high * held(high)).min(pool),
        single_ms: (parameters.pool_time.as_secs_f64() + one) * 1e3,
    }
}

fn millis(text: &str) -> Result<Duration, String> {
    let ms: f64 = text.parse().map_err(|_| format!("`{text}` is no number of milliseconds"))?;
    if (0.0..=600_000.0).contains(&ms) {
        Ok(Duration::from_secs_f64(ms / 1_000.0))
    } else {
        Err(format!("{ms} ms does not lie between 0 and 600000"))
    }
}

fn fraction(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is no fraction"))?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(format!("{value} does not lie between 0 and 1")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        parameters: Parameters,
    }

    fn parse(args: impl IntoIterator<Item = String>) -> Result<Parameters, clap::Error> {
        Line::try_parse_from(std::iter::once("service".to_owned()).chain(args)).map(|line| line.parameters)
    }

    #[test]
    fn flags_say_the_whole_truth() {
        assert_eq!(parse([]).unwrap(), Parameters::default());
        let other = Parameters {
            pool: 64,
            queue: 10_000,
            pool_time: Duration::from_micros(12_500),
            base: Duration::from_micros(250),
            per_item: Duration::from_micros(750),
            max_batch: 4,
            jitter: 0.05,
            slow_probability: 0.002,
            slow_extra: Duration::from_millis(150),
            cold_requests: 20,
            cold_extra: Duration::from_secs(5),
            cold_batch_extra: Duration::from_millis(700),
            leak_bytes: 4_096,
            error_probability: 0.01,
            error_after: Some(1_000),
            seed: 42,
        };
        assert_eq!(parse(other.to_args()).unwrap(), other);
    }

    #[test]
    fn impossible_values_are_refused() {
        for flag in ["--pool=0", "--queue=0", "--pool-ms=-1", "--jitter=2", "--base-ms=x", "--slow-probability=NaN"] {
            assert!(parse([flag.to_owned()]).is_err(), "{flag}");
        }
    }

    fn of(pool: u32, pool_ms: f64, base_ms: f64, per_item_ms: f64, max_batch: u32) -> Expected {
        let ms = |ms: f64| Duration::from_secs_f64(ms / 1_000.0);
        expected_capacity(&Parameters {
            pool,
            pool_time: ms(pool_ms),
            base: ms(base_ms),
            per_item: ms(per_item_ms),
            max_batch,
            ..Parameters::default()
        })
    }

    #[test]
    fn the_narrowest_part_decides() {
        // 10 workers of 54 ms each, on an accelerator that would carry 250.
        let pool = of(10, 50.0, 3.0, 1.0, 1);
        assert!((pool.capacity - 10.0 / 0.054).abs() < 0.01 && (pool.workers - 10.0).abs() < 0.01, "{pool:?}");
        assert!((pool.single_ms - 54.0).abs() < 1e-9);
        // 64 workers fill an accelerator of 250; 54 ms × 250 = 13.5 of them are enough.
        let accelerator = of(64, 50.0, 3.0, 1.0, 1);
        assert!((accelerator.capacity - 250.0).abs() < 0.01, "{accelerator:?}");
        assert!((accelerator.workers - 13.5).abs() < 0.01, "{accelerator:?}");
        // Batches of 4 in 7 ms.
        let batched = of(64, 50.0, 3.0, 1.0, 4);
        assert!((batched.capacity - 4.0 / 0.007).abs() < 0.01, "{batched:?}");
        // 16 workers never fill the batches; each is held for less than a full batch and its wait.
        let starved = of(16, 50.0, 3.0, 1.0, 4);
        assert!(starved.capacity > 16.0 / 0.0605 && starved.capacity < 16.0 / 0.054, "{starved:?}");
        assert!((starved.workers - 16.0).abs() < 0.01);
    }

    #[test]
    fn more_of_anything_never_carries_less() {
        let mut last = 0.0;
        for pool in 1..=128 {
            let now = of(pool, 40.0, 3.0, 0.75, 4).capacity;
            assert!(now >= last - 1e-6, "{pool}: {now} after {last}");
            last = now;
        }
        let free = of(10, 50.0, 0.0, 0.0, 1);
        assert!((free.capacity - 200.0).abs() < 0.01, "{free:?}");
    }
}
