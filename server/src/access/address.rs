//! Where a request comes from: the peer, or what a proxy that is trusted says of it.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use axum::extract::ConnectInfo;
use axum::http::{Extensions, HeaderMap};

/// A range of addresses, `10.0.0.0/8`, or a single one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    base: IpAddr,
    bits: u8,
}

impl Cidr {
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, address.to_canonical()) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.bits);
                (base.to_bits() ^ address.to_bits()).checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.bits);
                (base.to_bits() ^ address.to_bits()).checked_shr(shift).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Cidr {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no range of addresses such as 10.0.0.0/8 or fd00::/8");
        let (base, bits) = text.split_once('/').map_or((text, None), |(base, bits)| (base, Some(bits)));
        let base: IpAddr = base.parse().map_err(|_| bad())?;
        let most = if base.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.parse().map_err(|_| bad()))?;
        if bits <= most { Ok(Self { base, bits }) } else { Err(bad()) }
    }
}

/// The peer's address. Of a trusted proxy: the last address in `X-Forwarded-For` that is no trusted proxy itself; what
/// stands before it anybody may have written.
pub(super) fn of(extensions: &Extensions, headers: &HeaderMap, trusted: &[Cidr]) -> Option<IpAddr> {
    let ConnectInfo(peer) = extensions.get::<ConnectInfo<SocketAddr>>()?;
    let mut client = peer.ip().to_canonical();
    let is_proxy = |address: IpAddr| trusted.iter().any(|range| range.contains(address));
    let hops: Vec<&str> = headers
        .get_all("x-forwarded-for")
        .iter()
        .flat_map(|value| value.to_str().unwrap_or("?").split(','))
        .map(str::trim)
        .collect();
    for hop in hops.into_iter().rev() {
        if !is_proxy(client) {
            break;
        }
        // Behind what cannot be read, nothing is known: the proxy stands for all of it.
        let Some(before) = parse(hop) else { break };
        client = before;
    }
    Some(client)
}

/// An address, some proxies write its port too.
fn parse(hop: &str) -> Option<IpAddr> {
    let address = hop.parse::<IpAddr>().or_else(|_| hop.parse::<SocketAddr>().map(|address| address.ip()));
    let bare = || hop.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    address.ok().or_else(bare).map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_its_addresses_and_no_others() {
        let within = |range: &str, address: &str| range.parse::<Cidr>().unwrap().contains(address.parse().unwrap());
        assert!(within("10.0.0.0/8", "10.255.0.1") && !within("10.0.0.0/8", "11.0.0.1"));
        assert!(within("127.0.0.1", "127.0.0.1") && !within("127.0.0.1", "127.0.0.2"));
        assert!(within("0.0.0.0/0", "203.0.113.9") && !within("0.0.0.0/0", "2001:db8::1"));
        assert!(within("fd00::/8", "fd12::1") && !within("fd00::/8", "fe80::1"));
        // An IPv4 peer on a socket for both.
        assert!(within("10.0.0.0/8", "::ffff:10.1.2.3"));
        for bad in ["", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "host", "10.0.0.0/8/8"] {
            assert!(bad.parse::<Cidr>().is_err(), "{bad}");
        }
    }

    #[test]
    fn only_a_trusted_proxy_is_believed_and_only_what_it_saw_itself() {
        let trusted: Vec<Cidr> = ["10.0.0.0/8", "fd00::/8"].iter().map(|range| range.parse().unwrap()).collect();
        let cases: [(&str, &[&str], &str); 10] = [
            ("203.0.113.1:5", &[], "203.0.113.1"),
            // Nobody asked this client.
            ("203.0.113.1:5", &["198.51.100.7"], "203.0.113.1"),
            ("10.0.0.1:5", &[], "10.0.0.1"),
            ("10.0.0.1:5", &["198.51.100.7"], "198.51.100.7"),
            ("[::ffff:10.0.0.1]:5", &["198.51.100.7"], "198.51.100.7"),
            // The client wrote the first one.
            ("10.0.0.1:5", &["1.1.1.1, 198.51.100.7"], "198.51.100.7"),
            ("10.0.0.1:5", &["1.1.1.1", "198.51.100.7, 10.0.0.2"], "198.51.100.7"),
            ("10.0.0.1:5", &["198.51.100.7:4711"], "198.51.100.7"),
            ("10.0.0.1:5", &["[2001:db8::1]"], "2001:db8::1"),
            ("10.0.0.1:5", &["1.1.1.1, unknown"], "10.0.0.1"),
        ];
        for (peer, said, expected) in cases {
            let mut extensions = Extensions::new();
            extensions.insert(ConnectInfo(peer.parse::<SocketAddr>().unwrap()));
            let mut headers = HeaderMap::new();
            for value in said {
                headers.append("x-forwarded-for", value.parse().unwrap());
            }
            assert_eq!(of(&extensions, &headers, &trusted), Some(expected.parse().unwrap()), "{peer} {said:?}");
        }
        assert_eq!(of(&Extensions::new(), &HeaderMap::new(), &trusted), None);
    }
}
