//! The decision: may the server connect to this address, which this host name has?

use std::fmt;
use std::net::IpAddr;

use crate::address_class::{class_of, embedded_v4};
use crate::egress_rule::{EgressRule, normal_name};

/// What the server may connect to. A rule that denies wins over one that allows. Addresses that no public server has are denied
/// unless a rule allows them or the name that has them.
#[derive(Debug, Clone, Default)]
pub struct EgressPolicy {
    allow: Vec<EgressRule>,
    deny: Vec<EgressRule>,
    /// Servers that the operator named elsewhere.
    endpoints: Vec<(String, u16)>,
    is_unrestricted: bool,
}

/// Why a connection is denied, and the flag that would allow it. The text stands in conditions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Denial(String);

impl EgressPolicy {
    /// The policy of `--egress-allow` and `--egress-deny`.
    pub fn new(allow: Vec<EgressRule>, deny: Vec<EgressRule>) -> Self {
        Self { allow, deny, ..Self::default() }
    }

    /// Allows everything. For connections whose address no object names.
    pub fn unrestricted() -> Self {
        Self { is_unrestricted: true, ..Self::default() }
    }

    /// Allows a server besides that the operator named, whatever the rules say.
    #[must_use]
    pub fn with_endpoint(mut self, host: &str, port: u16) -> Self {
        self.endpoints.push((normal_name(host), port));
        self
    }

    /// Whether a host may be asked for at all. This comes before it is resolved: a question of DNS is a message, too.
    pub fn judge_name(&self, host: &str, port: u16) -> Result<(), Denial> {
        let name = normal_name(host);
        if self.is_exempt(&name, port) {
            return Ok(());
        }
        match self.deny.iter().find(|rule| rule.names(&name)) {
            Some(rule) => Err(denied_by(host, rule)),
            None => Ok(()),
        }
    }

    /// Whether the server may connect to an address that a host has.
    pub fn judge(&self, host: &str, port: u16, address: IpAddr) -> Result<(), Denial> {
        self.judge_name(host, port)?;
        let name = normal_name(host);
        if self.is_exempt(&name, port) {
            return Ok(());
        }
        let behind = embedded_v4(address).map(IpAddr::V4);
        // A mapped address is an IPv4 address: a range of IPv6 does not allow it.
        let is_mapped = matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
        let written = Some(address).filter(|_| !is_mapped);
        let has = |rule: &EgressRule, address: Option<IpAddr>| address.is_some_and(|one| rule.contains(one));
        let denying = self.deny.iter().find(|rule| rule.contains(address) || has(rule, behind));
        if let Some(rule) = denying {
            return Err(denied_by(&Place { host, address }.to_string(), rule));
        }
        if self.allow.iter().any(|rule| rule.names(&name) || has(rule, written) || has(rule, behind)) {
            return Ok(());
        }
        let Some(class) = behind.and_then(class_of).or_else(|| class_of_written(address, behind)) else {
            return Ok(());
        };
        let place = Place { host, address };
        let target = behind.map_or_else(String::new, |v4| format!(" leads to {v4}, which"));
        Err(Denial(format!(
            "{place}{target} is {}, which the egress policy denies; start the server with --egress-allow {} to allow it",
            class.name, class.range,
        )))
    }

    fn is_exempt(&self, name: &str, port: u16) -> bool {
        self.is_unrestricted || self.endpoints.iter().any(|(host, at)| host == name && *at == port)
    }
}

/// The class of an address that leads to no other one.
fn class_of_written(
    address: IpAddr,
    behind: Option<IpAddr>,
) -> Option<&'static crate::address_class::AddressClass> {
    if behind.is_some() { None } else { class_of(address) }
}

fn denied_by(place: &str, rule: &EgressRule) -> Denial {
    Denial(format!(
        "{place} is denied by the egress policy; start the server without --egress-deny {rule} to allow it"
    ))
}

/// A host with its address, or the address alone if the host is one.
struct Place<'a> {
    host: &'a str,
    address: IpAddr,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, address } = self;
        if host.parse() == Ok(*address) {
            return write!(f, "{address}");
        }
        write!(f, "{host} ({address})")
    }
}
