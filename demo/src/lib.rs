//! The whole loop on one machine: a sample model service, three releases of it, and what measures and judges them.

pub mod service;
