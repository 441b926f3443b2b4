//! Ranges of addresses in CIDR notation.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// All addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IpRange {
    network: IpAddr,
    bits: u8,
}

impl IpRange {
    /// A range of IPv4. `bits` is at most 32.
    pub const fn v4(network: [u8; 4], bits: u8) -> Self {
        let [a, b, c, d] = network;
        Self { network: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
    }

    /// A range of IPv6 by its first two groups. `bits` is at most 32.
    pub const fn v6(first: u16, second: u16, bits: u8) -> Self {
        Self { network: IpAddr::V6(Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0)), bits }
    }

    /// The range of one address.
    pub const fn one(address: IpAddr) -> Self {
        let bits = match address {
            IpAddr::V4(_) => 32,
            IpAddr::V6(_) => 128,
        };
        Self { network: address, bits }
    }

    /// Reads `10.0.0.0/8`, or an address alone. `None` is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let Some((network, bits)) = text.split_once('/') else {
            let address = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
            return address.parse().ok().map(Self::one);
        };
        let one = Self::one(network.parse().ok()?);
        let bits = bits.parse().ok().filter(|bits| *bits <= one.bits)?;
        Some(Self { network: one.network, bits })
    }

    /// True if an address lies in the range. Addresses of the other family never do.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differing = u32::from(network) ^ u32::from(address);
                differing.leading_zeros() >= u32::from(self.bits)
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differing = u128::from(network) ^ u128::from(address);
                differing.leading_zeros() >= u32::from(self.bits)
            }
            _ => false,
        }
    }
}

impl fmt::Display for IpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bits == Self::one(self.network).bits {
            return write!(f, "{}", self.network);
        }
        write!(f, "{}/{}", self.network, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_the_addresses_that_begin_with_its_bits() {
        for (range, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("172.16.0.0/12", "172.31.255.255", "172.32.0.0"),
            ("127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("fc00::/7", "fdff::1", "fe00::"),
            ("[::1]", "::1", "::2"),
            ("0.0.0.0/0", "8.8.8.8", "::"),
            ("::/0", "::1", "0.0.0.0"),
        ] {
            let parsed = IpRange::parse(range).unwrap();
            assert!(parsed.contains(inside.parse().unwrap()), "{range} {inside}");
            assert!(!parsed.contains(outside.parse().unwrap()), "{range} {outside}");
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "10.0.0.0/33", "::/129", "10/8", "10.0.0.0/", "localhost", "1.2.3.4/-1", "127.1"] {
            assert_eq!(IpRange::parse(text), None, "{text}");
        }
    }
}
