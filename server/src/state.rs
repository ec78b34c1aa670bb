//! What every handler shares.

/// Cheap to clone; holds no state outside Postgres but pools and configuration.
#[derive(Debug, Clone)]
pub struct AppState {}
