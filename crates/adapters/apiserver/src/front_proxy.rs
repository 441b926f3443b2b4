//! The cluster's own API server as a client: whether a peer is it, and for whom it asks.
//!
//! It proves itself with a certificate, and only then are its headers believed. Whoever else sends such headers is not heard.

use std::sync::Arc;

use hyper::HeaderMap;
use muster_ports::delegate::{FrontProxy, Identity};
use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

use crate::target::percent_decode;

/// The common name, as certificates write it.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_ID: u8 = 0x06;

/// Said of a request that came through the cluster's API server.
#[derive(Debug, Clone)]
pub struct Fronted(pub Arc<FrontProxy>);

/// True if a certificate, of which it is known who signed it, is that of the cluster's API server.
pub fn is_named(proxy: &FrontProxy, certificate: &CertificateDer<'_>) -> bool {
    if proxy.names.is_empty() {
        return true;
    }
    let Ok(certificate) = EndEntityCert::try_from(certificate) else { return false };
    let found = common_name(certificate.subject());
    found.is_some_and(|found| proxy.names.iter().any(|name| name.as_bytes() == found))
}

/// For whom the cluster's API server asks.
pub fn identity_of(proxy: &FrontProxy, headers: &HeaderMap) -> Option<Identity> {
    let texts = |name: &str| -> Vec<String> {
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(str::to_owned).collect()
    };
    let first = |names: &[String]| {
        names.iter().find_map(|name| texts(name).into_iter().find(|text| !text.is_empty()))
    };
    let mut identity = Identity {
        name: first(&proxy.user_headers)?,
        uid: first(&proxy.uid_headers).unwrap_or_default(),
        groups: proxy.group_headers.iter().flat_map(|name| texts(name)).collect(),
        ..Identity::default()
    };
    for name in headers.keys() {
        let key = proxy.extra_prefixes.iter().find_map(|prefix| {
            let prefix = prefix.to_ascii_lowercase();
            name.as_str().strip_prefix(&prefix).filter(|key| !key.is_empty())
        });
        if let Some(key) = key {
            let key = percent_decode(key).unwrap_or_else(|| key.into());
            identity.extra.insert(key.into_owned(), texts(name.as_str()));
        }
    }
    Some(identity)
}

/// The common name in the subject of a certificate: a sequence of sets of pairs of a kind and a text.
fn common_name(subject: &[u8]) -> Option<&[u8]> {
    let mut sets = subject;
    // Some give the sequence itself, some what is in it.
    if let Some((SEQUENCE, inner, [])) = read_value(subject) {
        sets = inner;
    }
    while let Some((SET, pairs, rest)) = read_value(sets) {
        let mut pairs = pairs;
        while let Some((SEQUENCE, pair, others)) = read_value(pairs) {
            if let Some((OBJECT_ID, kind, text)) = read_value(pair)
                && kind == COMMON_NAME
            {
                return read_value(text).map(|(_, text, _)| text);
            }
            pairs = others;
        }
        sets = rest;
    }
    None
}

/// The next value: its tag, what it holds, and what follows it.
fn read_value(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&length, rest) = rest.split_first()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81 => rest.split_first().map(|(&length, rest)| (usize::from(length), rest))?,
        0x82 => {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*length)), rest)
        }
        _ => return None,
    };
    let (value, rest) = rest.split_at_checked(length)?;
    Some((tag, value, rest))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn proxy(names: &[&str]) -> FrontProxy {
        let texts = |all: &[&str]| all.iter().map(|&text| text.to_owned()).collect();
        FrontProxy {
            names: texts(names),
            user_headers: texts(&["X-Remote-User"]),
            uid_headers: texts(&["X-Remote-Uid"]),
            group_headers: texts(&["X-Remote-Group"]),
            extra_prefixes: texts(&["X-Remote-Extra-"]),
            ..FrontProxy::default()
        }
    }

    fn certificate(organization: &str, name: &str) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::OrganizationName, organization);
        params.distinguished_name.push(DnType::CommonName, name);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().clone()
    }

    #[test]
    fn only_a_certificate_of_an_allowed_name_is_that_of_the_api_server() {
        let long = "x".repeat(300);
        for organization in ["o", &long] {
            let certificate = certificate(organization, "front-proxy-client");
            assert!(is_named(&proxy(&["other", "front-proxy-client"]), &certificate), "{organization}");
            assert!(!is_named(&proxy(&["front-proxy"]), &certificate));
        }
        assert!(!is_named(&proxy(&["front-proxy-client"]), &certificate("front-proxy-client", "kubelet")));
    }

    #[test]
    fn any_name_will_do_if_none_is_said() {
        assert!(is_named(&proxy(&[]), &certificate("o", "whoever")));
    }

    #[test]
    fn headers_say_for_whom_is_asked() {
        let mut headers = HeaderMap::new();
        headers.insert("x-remote-user", "jane".parse().unwrap());
        headers.append("x-remote-group", "dev".parse().unwrap());
        headers.append("x-remote-group", "system:authenticated".parse().unwrap());
        headers.insert("x-remote-uid", "7".parse().unwrap());
        headers.insert("x-remote-extra-example.org%2fscope", "read".parse().unwrap());
        let found = identity_of(&proxy(&[]), &headers).unwrap();
        assert_eq!((found.name.as_str(), found.uid.as_str()), ("jane", "7"));
        assert_eq!(found.groups, ["dev", "system:authenticated"]);
        assert_eq!(found.extra["example.org/scope"], ["read"]);
        headers.remove("x-remote-user");
        assert_eq!(identity_of(&proxy(&[]), &headers), None);
    }

    proptest::proptest! {
        #[test]
        fn no_subject_panics(subject: Vec<u8>) {
            common_name(&subject);
        }
    }
}
