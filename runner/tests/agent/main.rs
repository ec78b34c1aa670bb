//! The real `plimsoll agent` with real services, repositories and processes, against a server that says what the test
//! wants.

mod hostile;
mod life;
mod places;
mod processes;
mod refusals;
mod repository;
mod server;
mod setup;
mod start;

/// The measured service: this very program, started again by the recipe's `start`.
#[test]
#[ignore = "started by the agent as the service"]
fn service() {
    if let Some(port) = std::env::var("SERVICE_PORT").ok().and_then(|port| port.parse().ok()) {
        setup::serve_model(port);
    }
}
