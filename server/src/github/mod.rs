//! What is said to GitHub. Its addresses are configuration, so that an installation of one's own, or a test's, takes
//! its place.

pub mod answers;
mod app_file;
mod client;
mod error;
pub mod events;
pub mod manifest;
mod oauth;
mod place;
mod room;
mod setup;
pub mod signature;
pub mod text;
pub mod webhook;

use std::time::Duration;

use reqwest::redirect::Policy;

pub use app_file::{AppFile, AppFileError};
pub use client::{CheckWrite, Client, Identity, Repo, UnfitIdentity};
pub use error::{Error, Result};
pub use oauth::{App, SignInError};
pub use place::Place;
pub(crate) use room::Room;
pub use setup::Setup;

/// Where GitHub is, without final slashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// Its pages.
    pub url: String,
    pub api_url: String,
}

impl Default for Site {
    fn default() -> Self {
        Self { url: "https://github.com".to_owned(), api_url: "https://api.github.com".to_owned() }
    }
}

/// The status of the answer to one request.
pub(crate) async fn answer(api_url: &str, within: Duration) -> Result<u16, String> {
    let client = http(within).map_err(|error| error.to_string())?;
    let answer = client.get(api_url).send().await.map_err(|error| match error.is_timeout() {
        true => format!("nothing came within {within:?}"),
        false => error.without_url().to_string(),
    })?;
    Ok(answer.status().as_u16())
}

pub(crate) fn http(within: Duration) -> reqwest::Result<reqwest::Client> {
    // Does nothing where the program has chosen one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .redirect(Policy::none())
        .timeout(within)
        .user_agent(concat!("plimsoll-server/", env!("CARGO_PKG_VERSION")))
        .build()
}
