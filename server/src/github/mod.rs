//! What is said to GitHub. Its addresses are configuration, so that an installation of one's own, or a test's, takes
//! its place.

mod oauth;

pub use oauth::{App, SignInError};
