//! GitHub, as a fake that is a real server, and what is done with it: what it delivers, and what this server makes of it.

pub(crate) mod actor;
mod client;
mod events;
pub(crate) mod fake;
mod fake_payloads;
mod forks;
mod handling;
mod inbox;
mod order;
mod payloads;
mod places;
mod pulls;
mod starts;
mod webhook;
