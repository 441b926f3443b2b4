//! Addresses that no public server has, and IPv6 addresses that lead to an IPv4 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::ip_range::IpRange;

/// Addresses that are denied unless a rule allows them.
pub struct AddressClass {
    pub range: IpRange,
    /// With its article: it stands in messages.
    pub name: &'static str,
}

const fn class(range: IpRange, name: &'static str) -> AddressClass {
    AddressClass { range, name }
}

const CLASSES: [AddressClass; 22] = [
    class(IpRange::v4([127, 0, 0, 0], 8), "a loopback address"),
    class(IpRange::one(IpAddr::V6(Ipv6Addr::LOCALHOST)), "a loopback address"),
    class(IpRange::v4([169, 254, 0, 0], 16), "a link-local address"),
    class(IpRange::v6(0xfe80, 0, 10), "a link-local address"),
    class(IpRange::v4([10, 0, 0, 0], 8), "a private address"),
    class(IpRange::v4([172, 16, 0, 0], 12), "a private address"),
    class(IpRange::v4([192, 168, 0, 0], 16), "a private address"),
    class(IpRange::v6(0xfc00, 0, 7), "a private address"),
    class(IpRange::v6(0xfec0, 0, 10), "a private address"),
    class(IpRange::v4([100, 64, 0, 0], 10), "a carrier-grade NAT address"),
    // Linux connects to itself by these.
    class(IpRange::v4([0, 0, 0, 0], 8), "an unspecified address"),
    class(IpRange::one(IpAddr::V6(Ipv6Addr::UNSPECIFIED)), "an unspecified address"),
    class(IpRange::v4([224, 0, 0, 0], 4), "a multicast address"),
    class(IpRange::v6(0xff00, 0, 8), "a multicast address"),
    class(IpRange::v4([240, 0, 0, 0], 4), "a reserved address"),
    class(IpRange::v4([192, 0, 0, 0], 24), "a reserved address"),
    class(IpRange::v4([198, 18, 0, 0], 15), "a reserved address"),
    class(IpRange::v4([192, 0, 2, 0], 24), "a reserved address"),
    class(IpRange::v4([198, 51, 100, 0], 24), "a reserved address"),
    class(IpRange::v4([203, 0, 113, 0], 24), "a reserved address"),
    // A translator of the local network, whose format only that network knows.
    class(IpRange::v6(0x64, 0xff9b, 32), "a NAT64 address"),
    class(IpRange::v6(0x2001, 0xdb8, 32), "a reserved address"),
];

/// The class of an address; a public one has none.
pub fn class_of(address: IpAddr) -> Option<&'static AddressClass> {
    static TABLE: [AddressClass; CLASSES.len()] = CLASSES;
    TABLE.iter().find(|class| class.range.contains(address))
}

/// The IPv4 address that an IPv6 address leads to: mapped, compatible, NAT64, 6to4 or Teredo.
pub fn embedded_v4(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else { return None };
    let bits = u128::from(address);
    let v4 = |shift: u32| Ipv4Addr::from(u32::try_from((bits >> shift) & 0xffff_ffff).unwrap_or_default());
    match address.segments() {
        // Mapped, NAT64, and translated as of RFC 2765.
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] => {
            Some(v4(0))
        }
        // The shortest ones are loopback and unspecified, which are classes of their own.
        [0, 0, 0, 0, 0, 0, _, _] if bits > 1 => Some(v4(0)),
        [0x2002, ..] => Some(v4(80)),
        [0x2001, 0, ..] => Some(Ipv4Addr::from(!u32::from(v4(0)))),
        _ => None,
    }
}
