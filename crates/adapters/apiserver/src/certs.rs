//! TLS identities: the user's own, or generated. How long generated ones are valid is said in [`crate::renewal`].

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use muster_types::Millis;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::sign::CertifiedKey;
use webpki::EndEntityCert;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;
use x509_parser::time::ASN1Time;

use crate::renewal::{AUTHORITY_LASTS, LEAF_LASTS, Validity};

/// Why there is no identity.
#[derive(Debug, thiserror::Error)]
pub enum CertError {
    /// A file cannot be read.
    #[error("cannot read {path}: {why}; give a PEM file with --tls-cert and --tls-key")]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A certificate cannot be made.
    #[error("cannot generate a certificate: {0}")]
    Generate(#[from] rcgen::Error),
    /// A certificate cannot be read.
    #[error("the certificate is damaged: {0}")]
    Certificate(String),
    /// The authority of clients cannot be used.
    #[error("the authority of the cluster's API server cannot be used: {0}")]
    Authority(String),
    /// The key does not fit the certificate.
    #[error("the certificate and key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// A certificate and its private key, as PEM texts.
pub struct Pair {
    /// The certificate.
    pub cert: String,
    /// Its key.
    pub key: String,
}

/// Makes an authority that clients trust.
pub fn new_authority(now: Millis) -> Result<Pair, CertError> {
    sign_authority(&KeyPair::generate()?, now)
}

/// Makes an authority again with the key it has: clients that trust the one before trust what is issued after it too.
pub fn renew_authority(key: &str, now: Millis) -> Result<Pair, CertError> {
    sign_authority(&KeyPair::from_pem(key)?, now)
}

fn sign_authority(key: &KeyPair, now: Millis) -> Result<Pair, CertError> {
    Ok(Pair { cert: authority_params(now).self_signed(key)?.pem(), key: key.serialize_pem() })
}

fn authority_params(now: Millis) -> CertificateParams {
    let mut ca = CertificateParams::default();
    ca.distinguished_name.push(DnType::CommonName, "muster");
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    // By itself the number follows from the key, and browsers refuse two certificates of one authority with one number.
    ca.serial_number = Some(now.0.unsigned_abs().into());
    be_valid(&mut ca, Validity::starting(now, AUTHORITY_LASTS));
    ca
}

/// Makes the certificate of a server with a key of its own, signed with the key of an authority.
pub fn issue(
    authority_key: &str,
    names: &[String],
    addresses: &[IpAddr],
    now: Millis,
) -> Result<Pair, CertError> {
    let issuer = Issuer::new(authority_params(now), KeyPair::from_pem(authority_key)?);
    let mut leaf = CertificateParams::new(names.to_vec())?;
    leaf.distinguished_name.push(DnType::CommonName, "muster-server");
    leaf.subject_alt_names.extend(addresses.iter().map(|address| SanType::IpAddress(*address)));
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.use_authority_key_identifier_extension = true;
    be_valid(&mut leaf, Validity::starting(now, LEAF_LASTS));
    let key = KeyPair::generate()?;
    let cert = leaf.signed_by(&key, &issuer)?;
    Ok(Pair { cert: cert.pem(), key: key.serialize_pem() })
}

fn be_valid(params: &mut CertificateParams, validity: Validity) {
    let moment = |at: Millis| {
        let since_epoch = Duration::from_millis(u64::try_from(at.0).unwrap_or(0));
        rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(since_epoch.as_secs())
    };
    (params.not_before, params.not_after) = (moment(validity.from), moment(validity.until));
}

/// From when until when the certificate of an identity is valid.
pub fn validity(identity: &CertifiedKey) -> Result<Validity, CertError> {
    let unreadable = |why: String| CertError::Certificate(why);
    let (_, cert) = X509Certificate::from_der(identity.end_entity_cert()?)
        .map_err(|error| unreadable(error.to_string()))?;
    let moment = |at: ASN1Time| Millis(at.timestamp().saturating_mul(1000));
    let validity = cert.validity();
    Ok(Validity { from: moment(validity.not_before), until: moment(validity.not_after) })
}

/// True if those who trust an authority take an identity for that of a server now.
pub fn is_issued_by(authority: &CertifiedKey, identity: &CertifiedKey, now: Millis) -> bool {
    let at = UnixTime::since_unix_epoch(Duration::from_millis(u64::try_from(now.0).unwrap_or(0)));
    let (Ok(authority), Ok(cert)) = (authority.end_entity_cert(), identity.end_entity_cert()) else {
        return false;
    };
    let (Ok(anchor), Ok(cert)) = (webpki::anchor_from_trusted_cert(authority), EndEntityCert::try_from(cert))
    else {
        return false;
    };
    let usage = webpki::KeyUsage::server_auth();
    cert.verify_for_usage(webpki::ALL_VERIFICATION_ALGS, &[anchor], &[], at, usage, None, None).is_ok()
}

/// Reads an identity.
pub fn load(cert: &Path, key: &Path) -> Result<CertifiedKey, CertError> {
    let unreadable = |path: &Path, why: String| CertError::Read { path: path.to_owned(), why };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable(cert, error.to_string()))?;
    if chain.is_empty() {
        return Err(unreadable(cert, "it holds no certificate".to_owned()));
    }
    let key_der = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, error.to_string()))?;
    Ok(CertifiedKey::from_der(chain, key_der, &rustls::crypto::ring::default_provider())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_800_000_000_000);
    const YEAR: i64 = 365 * 24 * 3_600_000;

    fn loaded(pair: &Pair) -> CertifiedKey {
        let dir = tempfile::tempdir().unwrap();
        let (cert, key) = (dir.path().join("cert"), dir.path().join("key"));
        std::fs::write(&cert, &pair.cert).unwrap();
        std::fs::write(&key, &pair.key).unwrap();
        load(&cert, &key).unwrap()
    }

    fn issued(authority: &Pair, now: Millis) -> CertifiedKey {
        loaded(&issue(&authority.key, &["localhost".to_owned()], &[], now).unwrap())
    }

    #[test]
    fn what_is_issued_is_valid_as_long_as_is_said_and_is_of_its_authority() {
        let authority = new_authority(NOW).unwrap();
        let (ca, leaf) = (loaded(&authority), issued(&authority, NOW));
        assert_eq!(validity(&ca).unwrap(), Validity::starting(NOW, AUTHORITY_LASTS));
        assert_eq!(validity(&leaf).unwrap(), Validity::starting(NOW, LEAF_LASTS));
        assert!(is_issued_by(&ca, &leaf, NOW));
        assert!(!is_issued_by(&ca, &leaf, Millis(NOW.0 + YEAR)), "it has expired");
        assert!(!is_issued_by(&loaded(&new_authority(NOW).unwrap()), &leaf, NOW), "another authority");
    }

    #[test]
    fn who_trusts_an_authority_trusts_what_is_issued_after_it_was_renewed() {
        let old = new_authority(NOW).unwrap();
        let later = Millis(NOW.0 + 9 * YEAR);
        let new = renew_authority(&old.key, later).unwrap();
        let leaf = issued(&new, later);
        assert_ne!(old.cert, new.cert);
        assert!(is_issued_by(&loaded(&old), &leaf, later) && is_issued_by(&loaded(&new), &leaf, later));
    }

    #[test]
    fn a_file_without_a_certificate_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cert.pem");
        std::fs::write(&path, "garbage").unwrap();
        let error = load(&path, &path).unwrap_err().to_string();
        assert!(error.contains("cert.pem") && error.contains("it holds no certificate"), "{error}");
    }
}
