//! Keys and certificates of a cluster, made anew for each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::network;
use crate::{run, setup};

/// Signs what the cluster itself shows and trusts.
pub const CLUSTER_CA: &str = "ca";
/// Signs what the API server shows to servers it asks on behalf of others.
pub const PROXY_CA: &str = "front-proxy-ca";
/// The name the API server has towards such servers.
pub const PROXY_CLIENT: &str = "front-proxy-client";
const DAYS: &str = "3650";

/// Where the certificates are.
#[derive(Debug)]
pub struct Certificates {
    dir: PathBuf,
}

impl Certificates {
    /// Makes all of them.
    pub fn make(dir: &Path) -> Result<Self> {
        if run::find_in_path("openssl").is_none() {
            setup::install_on_machine(&["openssl"]).context("openssl is needed to make certificates")?;
        }
        let made = Self { dir: dir.into() };
        for ca in [CLUSTER_CA, PROXY_CA] {
            made.openssl(&["-subj", &format!("/CN={ca}")], ca)?;
        }
        let names = format!(
            "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:{},IP:{}",
            network::API,
            network::NODE,
        );
        made.leaf("apiserver", CLUSTER_CA, "/CN=kube-apiserver", &names)?;
        made.leaf("kubelet", CLUSTER_CA, "/CN=muster", &format!("IP:{}", network::NODE))?;
        made.leaf("kubelet-client", CLUSTER_CA, "/CN=kube-apiserver-kubelet-client", "DNS:kube-apiserver")?;
        made.leaf(PROXY_CLIENT, PROXY_CA, &format!("/CN={PROXY_CLIENT}"), "DNS:front-proxy")?;
        // Signs the tokens of service accounts; its certificate says nothing but which key that is.
        made.openssl(&["-subj", "/CN=service-accounts"], "service-accounts")?;
        Ok(made)
    }

    pub fn certificate(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.crt"))
    }

    pub fn key(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.key"))
    }

    fn leaf(&self, name: &str, ca: &str, subject: &str, names: &str) -> Result<()> {
        let (certificate, key) = (self.certificate(ca), self.key(ca));
        let names = format!("subjectAltName={names}");
        let signer =
            ["-CA", &certificate.to_string_lossy(), "-CAkey", &key.to_string_lossy()].map(String::from);
        let rest = [
            "-subj",
            subject,
            "-addext",
            &names,
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-addext",
            "extendedKeyUsage=serverAuth,clientAuth",
        ];
        let all: Vec<&str> = signer.iter().map(String::as_str).chain(rest).collect();
        self.openssl(&all, name)
    }

    fn openssl(&self, arguments: &[&str], name: &str) -> Result<()> {
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
        openssl.args(["-days", DAYS]).args(arguments);
        openssl.arg("-keyout").arg(self.key(name)).arg("-out").arg(self.certificate(name));
        run::quietly(&mut openssl).with_context(|| format!("cannot make the certificate `{name}`"))?;
        fs::metadata(self.key(name)).with_context(|| format!("openssl left no key `{name}`")).map(drop)
    }
}
