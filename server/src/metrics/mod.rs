//! What `/metrics` shows Prometheus: counts of this process, and how the database stands. Labels are route templates,
//! methods and words of ours: nothing that a client writes makes a new series.

mod http;
mod text;

use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics::{Key, KeyName, Label, Level, Metadata, Recorder as _, Unit};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder};
use tokio::sync::Mutex;

use crate::store::gauges::{self, Gauges};
use crate::store::{Pool, migrate};

pub use http::count as count_requests;

/// The counts of one server, with a recorder of its own: several servers in one process do not mix theirs.
#[derive(Debug)]
pub struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
    /// How the database stood last, and when; `None` inside: it did not answer.
    read: Mutex<Option<(Instant, Option<Standing>)>>,
}

#[derive(Debug, Clone, Copy)]
struct Standing {
    gauges: Gauges,
    current: bool,
}

const REQUESTS: &str = "plimsoll_http_requests_total";
const DURATIONS: &str = "plimsoll_http_request_duration_seconds";
const VERDICTS: &str = "plimsoll_verdicts_total";
const BUCKETS: [f64; 12] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0];
static HERE: Metadata<'static> = Metadata::new("plimsoll", Level::INFO, Some("plimsoll"));

/// However often it is scraped, the database is asked only this often.
const READ_EVERY: Duration = Duration::from_secs(5);
/// Who scrapes does not wait for a database that is away.
const READ_WITHIN: Duration = Duration::from_secs(2);

impl Default for Metrics {
    fn default() -> Self {
        let builder = PrometheusBuilder::new().set_buckets_for_metric(Matcher::Full(DURATIONS.to_owned()), &BUCKETS);
        let recorder = builder.expect("there are buckets").build_recorder();
        let handle = recorder.handle();
        for (name, help) in [(REQUESTS, "Requests answered."), (VERDICTS, "Snapshots stored, by their verdict.")] {
            recorder.describe_counter(KeyName::from_const_str(name), Some(Unit::Count), help.into());
        }
        let help = "Time from a request's head to its answer's.";
        recorder.describe_histogram(KeyName::from_const_str(DURATIONS), Some(Unit::Seconds), help.into());
        Self { recorder, handle, read: Mutex::new(None) }
    }
}

impl Metrics {
    fn request(&self, method: &'static str, route: Arc<str>, class: &'static str, took: Duration) {
        let labels = vec![Label::new("method", method), Label::new("route", route), Label::new("status", class)];
        let key = Key::from_parts(REQUESTS, labels.clone());
        self.recorder.register_counter(&key, &HERE).increment(1);
        self.recorder.register_histogram(&Key::from_parts(DURATIONS, labels), &HERE).record(took.as_secs_f64());
    }

    /// A snapshot was stored.
    pub fn verdict(&self, verdict: &'static str) {
        let key = Key::from_parts(VERDICTS, vec![Label::new("verdict", verdict)]);
        self.recorder.register_counter(&key, &HERE).increment(1);
    }

    /// Folds what was recorded, which would otherwise pile up until somebody scrapes.
    pub fn upkeep(&self) {
        self.handle.run_upkeep();
    }

    /// The whole page.
    pub async fn page(&self, pool: &Pool) -> String {
        let standing = self.standing(pool).await;
        let mut page = self.handle.render();
        text::pool(&mut page, pool);
        text::database(&mut page, standing.is_some());
        if let Some(Standing { gauges, current }) = standing {
            text::gauges(&mut page, &gauges, current);
        }
        page
    }

    /// Read anew when it is old; whoever comes meanwhile waits and gets the same.
    async fn standing(&self, pool: &Pool) -> Option<Standing> {
        let mut read = self.read.lock().await;
        if let Some((at, standing)) = *read
            && at.elapsed() < READ_EVERY
        {
            return standing;
        }
        let ask =
            async { Ok::<_, crate::store::StoreError>((gauges::read(pool).await?, migrate::is_current(pool).await?)) };
        let found = match tokio::time::timeout(READ_WITHIN, ask).await {
            Ok(Ok((gauges, current))) => Some(Standing { gauges, current }),
            Ok(Err(error)) => {
                tracing::warn!(%error, "no figures from the database");
                None
            }
            Err(_) => None,
        };
        *read = Some((Instant::now(), found));
        found
    }
}
