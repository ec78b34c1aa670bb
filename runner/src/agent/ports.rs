//! Whether the ports of a service are free: before a run nobody else may answer there, after it nobody may be left.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

/// Those that somebody listens on.
pub(super) fn taken(ports: &[u16]) -> Vec<u16> {
    ports.iter().copied().filter(|port| is_taken(*port)).collect()
}

fn is_taken(port: u16) -> bool {
    let addresses: [SocketAddr; 2] = [(Ipv4Addr::UNSPECIFIED, port).into(), (Ipv6Addr::UNSPECIFIED, port).into()];
    addresses.iter().any(|address| TcpListener::bind(address).is_err_and(|error| error.kind() == ErrorKind::AddrInUse))
}

/// `port 8000` or `ports 8000, 8001`.
pub(super) fn named(ports: &[u16]) -> String {
    let list: Vec<String> = ports.iter().map(u16::to_string).collect();
    format!("port{} {}", if ports.len() == 1 { "" } else { "s" }, list.join(", "))
}
