//! TLS identities: the user's own, or generated and kept.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

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
    /// The authority of clients cannot be used.
    #[error("the authority of the cluster's API server cannot be used: {0}")]
    Authority(String),
    /// The key does not fit the certificate.
    #[error("the certificate and key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
}

/// PEM texts of a generated identity.
pub struct Generated {
    /// The certificate authority that clients trust.
    pub ca: String,
    /// The server's certificate.
    pub cert: String,
    /// The server's private key.
    pub key: String,
}

/// Makes an authority of its own and a certificate for these addresses. The authority's key is not kept: nobody can
/// sign with it again.
pub fn generate(names: &[String], addresses: &[IpAddr]) -> Result<Generated, CertError> {
    let mut ca = CertificateParams::default();
    ca.distinguished_name.push(DnType::CommonName, "muster");
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let ca_key = KeyPair::generate()?;
    let ca_cert = ca.self_signed(&ca_key)?;
    let issuer = Issuer::new(ca, ca_key);

    let mut leaf = CertificateParams::new(names.to_vec())?;
    leaf.distinguished_name.push(DnType::CommonName, "muster-server");
    leaf.subject_alt_names.extend(addresses.iter().map(|address| SanType::IpAddress(*address)));
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let cert = leaf.signed_by(&key, &issuer)?;
    Ok(Generated { ca: ca_cert.pem(), cert: cert.pem(), key: key.serialize_pem() })
}

/// Reads an identity.
pub fn load(cert: &Path, key: &Path) -> Result<CertifiedKey, CertError> {
    let unreadable = |path: &Path, why: String| CertError::Read { path: path.to_owned(), why };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect)
        .map_err(|error| unreadable(cert, error.to_string()))?;
    let key_der = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, error.to_string()))?;
    Ok(CertifiedKey::from_der(chain, key_der, &rustls::crypto::ring::default_provider())?)
}
