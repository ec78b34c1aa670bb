//! GitHub, as a fake that is a real server, and what is done with it: what it delivers, and what this server makes of it.

mod client;
mod events;
pub(crate) mod fake;
mod fake_payloads;
mod inbox;
mod payloads;
mod webhook;
