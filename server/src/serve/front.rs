//! What stands before the application, which is there only once the database was.

use std::sync::{Arc, OnceLock};

use axum::Router;

use crate::router;

/// Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub(super) struct Front {
    waiting: Router,
    app: Arc<OnceLock<Router>>,
}

impl Front {
    pub(super) fn new(over_tls: bool) -> Self {
        Self { waiting: router::waiting(over_tls), app: Arc::default() }
    }

    /// From now on the application answers, also on connections that are open.
    pub(super) fn open(&self, app: Router) {
        // Whoever opens a second time is the same server with the same application.
        let _ = self.app.set(app);
    }

    pub(super) fn router(&self) -> Router {
        self.app.get().unwrap_or(&self.waiting).clone()
    }
}
