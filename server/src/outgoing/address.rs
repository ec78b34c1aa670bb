//! Which addresses belong to the public Internet, after IANA's registries of special-purpose addresses
//! (<https://www.iana.org/assignments/iana-ipv4-special-registry>, `…/iana-ipv6-special-registry`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is one that everybody reaches. An IPv4 address inside an IPv6 one counts as itself.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Networks with their prefix length.
const NOT_PUBLIC_V4: [(Ipv4Addr, u32); 15] = [
    // This network
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    // Shared by carriers (CGNAT)
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    // Link-local, with the metadata services of clouds
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    // Documentation
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    // Relays of 6to4
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    // Benchmarks between networks
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    // Multicast; reserved and broadcast
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let within = |(network, length): &(Ipv4Addr, u32)| (address.to_bits() ^ network.to_bits()) >> (32 - length) == 0;
    !NOT_PUBLIC_V4.iter().any(within)
}

/// Of IPv6 only 2000::/3 is given out, and not all of that.
const NOT_PUBLIC_V6: [(Ipv6Addr, u32); 3] = [
    // Protocols of the IETF, among them Teredo
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    // Documentation
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = inner_v4(address) {
        return is_public_v4(inner);
    }
    let within = |(network, length): &(Ipv6Addr, u32)| (address.to_bits() ^ network.to_bits()) >> (128 - length) == 0;
    within(&(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3)) && !NOT_PUBLIC_V6.iter().any(within)
}

/// Where an IPv6 address stands for one of IPv4: mapped, by NAT64's well-known prefix, by 6to4.
fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let low = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, a, b] | [0x64, 0xff9b, 0, 0, 0, 0, a, b] | [0x2002, a, b, ..] => Some(low(a, b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(text: &str) -> bool {
        is_public(text.parse().unwrap_or_else(|e| panic!("{text}: {e}")))
    }

    #[test]
    fn only_addresses_of_the_public_internet_pass() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
        ] {
            assert!(!public(text), "{text}");
            // The same in the clothes of IPv6.
            let Ok(v4) = text.parse::<Ipv4Addr>() else { panic!("{text}") };
            let [a, b, c, d] = v4.octets();
            assert!(!public(&format!("::ffff:{text}")), "mapped {text}");
            assert!(!public(&format!("64:ff9b::{text}")), "NAT64 {text}");
            assert!(!public(&format!("2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1")), "6to4 {text}");
        }
        for text in ["1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.0.1"] {
            assert!(public(text), "{text}");
            assert!(public(&format!("::ffff:{text}")) && public(&format!("64:ff9b::{text}")), "{text}");
        }
        for text in ["172.32.0.1", "192.0.1.1", "192.167.1.1", "198.17.0.1", "198.20.0.1", "223.255.255.255"] {
            assert!(public(text), "{text}");
        }
    }

    #[test]
    fn of_ipv6_only_what_is_given_out_passes() {
        for text in [
            "::",
            "::1",
            "::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "1fff::1",
            "2001::1",
            "2001:db8::1",
            "2001:1ff::1",
            "3fff::1",
            "3fff:fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd12::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!public(text), "{text}");
        }
        for text in ["2606:4700:4700::1111", "2a00:1450::1", "2001:200::1", "2002:101:101::1", "3fff:1000::1"] {
            assert!(public(text), "{text}");
        }
    }
}
