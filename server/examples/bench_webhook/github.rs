//! GitHub's API, as slow as can be.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use tokio::net::TcpListener;

use crate::Fallible;

#[derive(Debug)]
pub(crate) struct GitHub {
    pub(crate) url: String,
    asked: Arc<AtomicUsize>,
}

impl GitHub {
    /// Requests so far.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

/// Each answer takes this long.
pub(crate) async fn start(takes: Duration) -> Fallible<GitHub> {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let answer = move || {
        count.fetch_add(1, Ordering::Relaxed);
        async move {
            tokio::time::sleep(takes).await;
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    Ok(GitHub { url, asked })
}
