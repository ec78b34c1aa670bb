//! The whole loop on one machine: three releases of a sample model service, the server, and the runner that measures
//! them. Each is a process of its own: the program runs itself again as each part.

mod access;
mod child;
pub mod cli;
pub mod demo;
mod folder;
mod plan;
pub mod process;
pub mod releases;
mod run;
mod server;
pub mod service;
