//! A reader of server-sent events.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::{Request, StatusCode};
use futures_util::StreamExt as _;
use plimsoll_domain::ids::RunId;
use plimsoll_domain::job::LiveEvent;

use crate::app::App;

/// Sooner than anybody looks again without having been told: what comes in this time was woken.
const SOON: Duration = Duration::from_secs(10);

pub(crate) struct Stream {
    body: BodyDataStream,
    text: String,
}

impl Stream {
    /// Follows a run from after an event on.
    pub(crate) async fn open(app: &App, run_id: RunId, after: u64) -> Self {
        Self::with(app, run_id, "last-event-id", &after.to_string()).await.expect("a place")
    }

    /// Follows a run from its begin on, with one header.
    pub(crate) async fn with(app: &App, run_id: RunId, header: &str, value: &str) -> Result<Self, StatusCode> {
        let request = Request::get(format!("/api/v1/runs/{run_id}/events")).header(header, value);
        let response = app.open(request.body(Body::empty()).unwrap()).await;
        if response.status() != StatusCode::OK {
            return Err(response.status());
        }
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Ok(Self { body: response.into_body().into_data_stream(), text: String::new() })
    }

    /// The next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<LiveEvent> {
        tokio::time::timeout(SOON, self.frame()).await.expect("nothing came")
    }

    /// All that is to come.
    pub(crate) async fn rest(mut self) -> Vec<LiveEvent> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }

    async fn frame(&mut self) -> Option<LiveEvent> {
        loop {
            while let Some((frame, rest)) = self.text.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                self.text = rest;
                let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name).map(str::trim));
                let Some(data) = field("data:") else { continue };
                let event: LiveEvent = serde_json::from_str(data).unwrap();
                assert_eq!(field("id:"), Some(event.seq.to_string().as_str()));
                assert_eq!(field("event:"), Some(event.what.name()));
                return Some(event);
            }
            let part = self.body.next().await?.unwrap();
            self.text.push_str(std::str::from_utf8(&part).unwrap());
        }
    }
}
