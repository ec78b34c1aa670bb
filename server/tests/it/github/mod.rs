//! GitHub, as a fake that is a real server, and what is done with it.

mod client;
pub(crate) mod fake;
mod fake_payloads;
