//! What the service's host does while the load is on it. Knows neither the load engine nor a protocol.

pub mod gpu;
