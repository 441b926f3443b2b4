//! What holds for all addresses: what the standard library calls no public address is denied, in every form, and a rule that denies wins.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use muster_egress::{EgressPolicy, EgressRule};
use proptest::prelude::*;

fn rules(texts: &[&str]) -> Vec<EgressRule> {
    texts.iter().map(|text| text.parse().expect("a rule")).collect()
}

fn is_allowed(policy: &EgressPolicy, host: &str, address: IpAddr) -> bool {
    policy.judge(host, 443, address).is_ok()
}

/// IPv6 addresses that lead to an IPv4 address.
fn forms_of(address: Ipv4Addr) -> [Ipv6Addr; 5] {
    let bits = u128::from(u32::from(address));
    let prefix = |first: u128, second: u128| (first << 112) | (second << 96);
    [
        address.to_ipv6_mapped(),
        Ipv6Addr::from(prefix(0x64, 0xff9b) | bits),
        Ipv6Addr::from(prefix(0x2002, 0) | (bits << 80) | 1),
        Ipv6Addr::from(prefix(0x2001, 0) | u128::from(!u32::from(address))),
        Ipv6Addr::from((0xffff_u128 << 48) | bits),
    ]
}

fn any_v4() -> impl Strategy<Value = Ipv4Addr> {
    // Addresses of the special ranges are rare among all of them.
    let first =
        prop_oneof![any::<u8>(), Just(10), Just(127), Just(169), Just(172), Just(192), Just(100), Just(0)];
    let second = prop_oneof![any::<u8>(), Just(254), Just(168), Just(16), Just(64)];
    (first, second, any::<u8>(), any::<u8>()).prop_map(|(a, b, c, d)| Ipv4Addr::new(a, b, c, d))
}

proptest! {
    #[test]
    fn what_is_not_public_is_denied_in_every_form(address in any_v4()) {
        let policy = EgressPolicy::default();
        let special = address.is_loopback()
            || address.is_private()
            || address.is_link_local()
            || address.is_multicast()
            || address.is_broadcast()
            || address.is_unspecified();
        let allowed = is_allowed(&policy, "a.example", address.into());
        prop_assert!(!(special && allowed), "{address}");
        for form in forms_of(address) {
            prop_assert_eq!(is_allowed(&policy, "a.example", form.into()), allowed, "{}", form);
        }
    }

    #[test]
    fn a_range_that_denies_wins_over_all_that_allow(address in any_v4()) {
        let deny: Vec<EgressRule> = vec![address.to_string().parse().unwrap()];
        let policy = EgressPolicy::new(rules(&["0.0.0.0/0", "::/0", "a.example", "*.example"]), deny);
        prop_assert!(!is_allowed(&policy, "a.example", address.into()));
        for form in forms_of(address) {
            prop_assert!(!is_allowed(&policy, "a.example", form.into()), "{}", form);
        }
    }

    #[test]
    fn a_range_of_ipv6_allows_no_mapped_address(address in any_v4()) {
        let policy = EgressPolicy::new(rules(&["::/0"]), Vec::new());
        let (v4, mapped) = (IpAddr::V4(address), IpAddr::V6(address.to_ipv6_mapped()));
        prop_assert_eq!(is_allowed(&policy, "a", v4), is_allowed(&policy, "a", mapped));
    }

    #[test]
    fn what_a_denial_advises_allows_the_address(address in any_v4()) {
        if let Err(denial) = EgressPolicy::default().judge("a", 1, address.into()) {
            let text = denial.to_string();
            let flag = text.split_once("--egress-allow ").unwrap().1.split(' ').next().unwrap();
            prop_assert!(is_allowed(&EgressPolicy::new(rules(&[flag]), Vec::new()), "a", address.into()));
        }
    }
}

#[test]
fn addresses_that_no_public_server_has_are_denied() {
    let policy = EgressPolicy::default();
    for text in [
        "127.0.0.1",
        "127.255.255.254",
        "::1",
        "::",
        "0.0.0.0",
        "0.1.2.3",
        "169.254.169.254",
        "fe80::1",
        "10.0.0.1",
        "172.31.0.1",
        "192.168.1.1",
        "fc00::1",
        "fd12::1",
        "fec0::1",
        "100.64.0.1",
        "100.127.255.255",
        "224.0.0.1",
        "ff02::1",
        "255.255.255.255",
        "240.0.0.1",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a9fe:a9fe",
        "2002:7f00:1::",
        "2002:a9fe:a9fe::1",
        "2001:0:1:2::80ff:fffe",
    ] {
        assert!(!is_allowed(&policy, "a.example", text.parse().unwrap()), "{text}");
    }
    for text in ["8.8.8.8", "172.32.0.1", "100.128.0.1", "169.253.0.1", "2606:4700::1", "64:ff9b::808:808"] {
        assert!(is_allowed(&policy, "a.example", text.parse().unwrap()), "{text}");
    }
}

#[test]
fn a_denial_says_which_flag_would_allow_it() {
    let said = |policy: &EgressPolicy, host: &str, address: &str| {
        policy.judge(host, 80, address.parse().unwrap()).unwrap_err().to_string()
    };
    let usual = EgressPolicy::default();
    assert_eq!(
        said(&usual, "127.0.0.1", "127.0.0.1"),
        "127.0.0.1 is a loopback address, which the egress policy denies; start the server with --egress-allow \
         127.0.0.0/8 to allow it"
    );
    assert_eq!(
        said(&usual, "hooks.corp", "10.1.2.3"),
        "hooks.corp (10.1.2.3) is a private address, which the egress policy denies; start the server with \
         --egress-allow 10.0.0.0/8 to allow it"
    );
    assert!(
        said(&usual, "::ffff:127.0.0.1", "::ffff:127.0.0.1")
            .contains("leads to 127.0.0.1, which is a loopback")
    );
    let denying = EgressPolicy::new(rules(&["10.0.0.0/8"]), rules(&["10.1.0.0/16", "*.bad.example"]));
    assert_eq!(
        said(&denying, "10.1.2.3", "10.1.2.3"),
        "10.1.2.3 is denied by the egress policy; start the server without --egress-deny 10.1.0.0/16 to allow it"
    );
    assert!(said(&denying, "A.BAD.example.", "8.8.8.8").contains("--egress-deny *.bad.example"));
}

#[test]
fn a_name_that_is_allowed_may_have_a_private_address_and_other_names_may_not() {
    let policy = EgressPolicy::new(rules(&["hooks.corp", "*.svc.example"]), rules(&["169.254.0.0/16"]));
    let private: IpAddr = "10.0.0.9".parse().unwrap();
    assert!(is_allowed(&policy, "Hooks.Corp.", private) && is_allowed(&policy, "a.svc.example", private));
    assert!(!is_allowed(&policy, "svc.example", private) && !is_allowed(&policy, "10.0.0.9", private));
    let metadata: IpAddr = "169.254.169.254".parse().unwrap();
    assert!(!is_allowed(&policy, "hooks.corp", metadata), "a range that denies wins over the name");
}

#[test]
fn an_endpoint_of_the_operator_is_allowed_at_its_port_alone() {
    let policy = EgressPolicy::new(Vec::new(), rules(&["10.0.0.0/8"])).with_endpoint("Rabbit", 5672);
    let address: IpAddr = "10.0.0.9".parse().unwrap();
    assert!(policy.judge("rabbit", 5672, address).is_ok());
    assert!(policy.judge("rabbit", 80, address).is_err() && policy.judge("10.0.0.9", 5672, address).is_err());
}

#[tokio::test]
async fn the_address_that_is_judged_is_the_one_that_is_connected_to() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let allowing = EgressPolicy::new(rules(&["127.0.0.0/8"]), Vec::new());
    for host in ["127.0.0.1", "localhost", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]"] {
        let denied = EgressPolicy::default().connect(host, port).await.unwrap_err();
        assert!(matches!(denied, muster_egress::EgressError::Denied(_)), "{host}: {denied}");
        let stream = allowing.connect(host, port).await.unwrap();
        assert!(stream.peer_addr().unwrap().ip().to_canonical().is_loopback(), "{host}");
    }
}
