//! GitHub, as a fake that is a real server, and what is done with it: what it delivers, and what this server makes of it.

pub(crate) mod actor;
mod client;
mod doctor;
mod events;
pub(crate) mod fake;
mod fake_payloads;
mod forks;
mod handling;
mod inbox;
mod links;
mod order;
mod payloads;
mod places;
mod plan;
mod pulls;
mod send;
mod setup;
mod starts;
mod webhook;
