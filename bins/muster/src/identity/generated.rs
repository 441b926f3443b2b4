//! A generated authority and certificate in the data directory.
//!
//! The authority stays, because kubeconfigs that were copied name it; the certificate below it is short and made again in time.
//! Both are judged by what is in the files: a crash between two of them leaves a pair that does not fit, which is made again.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use muster_apiserver::certs::{self, Pair};
use muster_types::Millis;
use rustls::sign::CertifiedKey;

use super::Identity;
use crate::data_dir::{DataDir, write_private};

/// The files, and whom the certificate is for.
pub struct Generated {
    authority: Files,
    leaf: Files,
    /// The names that the certificate was made for.
    record: PathBuf,
    names: Vec<String>,
    addresses: Vec<IpAddr>,
}

/// A certificate and its key.
struct Files {
    cert: PathBuf,
    key: PathBuf,
}

/// What is known of the authority.
enum Authority {
    Good(CertifiedKey),
    /// It ends soon, or its certificate is lost. Its key stays.
    Due,
    /// There is none.
    Missing,
    /// It cannot sign.
    Unusable(String),
}

impl Files {
    fn load(&self) -> Result<CertifiedKey, certs::CertError> {
        certs::load(&self.cert, &self.key)
    }

    fn write(&self, pair: &Pair) -> anyhow::Result<()> {
        write_private(&self.key, &pair.key)?;
        write_private(&self.cert, &pair.cert)
    }
}

impl Generated {
    /// That of a data directory.
    pub fn new(data: &DataDir, names: Vec<String>, addresses: Vec<IpAddr>) -> Self {
        let file = |name: &str| data.path().join(name);
        Self {
            authority: Files { cert: data.authority(), key: file("tls-ca-key.pem") },
            leaf: Files { cert: file("tls-cert.pem"), key: file("tls-key.pem") },
            record: file("tls-names"),
            names,
            addresses,
        }
    }

    /// What is in the files.
    pub fn load(&self) -> anyhow::Result<Identity> {
        let path = &self.authority.cert;
        let trust = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Identity { certified: self.leaf.load()?, trust })
    }

    /// Makes again what is due.
    pub fn renew(&self, now: Millis) -> anyhow::Result<()> {
        let authority = self.renew_authority(now)?;
        if self.is_leaf_good(&authority, now) {
            return Ok(());
        }
        let leaf = certs::issue(&read(&self.authority.key)?, &self.names, &self.addresses, now)?;
        self.leaf.write(&leaf)?;
        write_private(&self.record, &self.wanted())?;
        tracing::info!("a new server certificate is valid for 90 days");
        Ok(())
    }

    fn renew_authority(&self, now: Millis) -> anyhow::Result<CertifiedKey> {
        let pair = match self.judge_authority(now)? {
            Authority::Good(authority) => return Ok(authority),
            Authority::Due => certs::renew_authority(&read(&self.authority.key)?, now)?,
            Authority::Missing => certs::new_authority(now)?,
            Authority::Unusable(why) => {
                tracing::warn!(
                    "a new certificate authority replaces {}, which cannot sign: {why}; clients with a copy of the old \
                     kubeconfig or authority need the new one",
                    self.authority.cert.display()
                );
                certs::new_authority(now)?
            }
        };
        self.authority.write(&pair)?;
        Ok(self.authority.load()?)
    }

    fn judge_authority(&self, now: Millis) -> anyhow::Result<Authority> {
        Ok(match (exists(&self.authority.cert)?, exists(&self.authority.key)?) {
            (false, false) => Authority::Missing,
            (false, true) => Authority::Due,
            (true, false) => Authority::Unusable("an earlier version threw its key away".to_owned()),
            (true, true) => match self.authority.load() {
                Err(error) => Authority::Unusable(error.to_string()),
                Ok(authority) if certs::validity(&authority)?.is_authority_due(now) => Authority::Due,
                Ok(authority) => Authority::Good(authority),
            },
        })
    }

    fn is_leaf_good(&self, authority: &CertifiedKey, now: Millis) -> bool {
        let is_valid = |leaf: &CertifiedKey| certs::validity(leaf).is_ok_and(|found| !found.is_leaf_due(now));
        fs::read_to_string(&self.record).is_ok_and(|found| found == self.wanted())
            && self
                .leaf
                .load()
                .is_ok_and(|leaf| is_valid(&leaf) && certs::is_issued_by(authority, &leaf, now))
    }

    fn wanted(&self) -> String {
        format!("{:?} {:?}", self.names, self.addresses)
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// False only of a file that is not there. One that cannot be read is an error: clients trust what is in it.
fn exists(path: &Path) -> anyhow::Result<bool> {
    match fs::File::open(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const NOW: Millis = Millis(1_800_000_000_000);

    fn after(days: i64) -> Millis {
        Millis(NOW.0 + days * 24 * 3_600_000)
    }

    struct World {
        dir: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            Self { dir: tempfile::tempdir().unwrap() }
        }

        fn generated(&self, names: &[&str]) -> Generated {
            let data = DataDir::choose(Some(self.dir.path())).unwrap();
            Generated::new(&data, names.iter().map(|&name| name.to_owned()).collect(), Vec::new())
        }

        /// Renews, and returns what is in `tls-ca.pem` and `tls-cert.pem` after it.
        fn renewed(&self, names: &[&str], now: Millis) -> (String, String) {
            self.generated(names).renew(now).unwrap();
            (self.text("tls-ca.pem"), self.text("tls-cert.pem"))
        }

        fn text(&self, name: &str) -> String {
            fs::read_to_string(self.dir.path().join(name)).unwrap()
        }

        /// True if a client that trusts this authority takes the server's certificate.
        fn is_trusted_by(&self, authority: &str, now: Millis) -> bool {
            let path = self.dir.path().join("copy.pem");
            fs::write(&path, authority).unwrap();
            let authority = certs::load(&path, &self.dir.path().join("tls-ca-key.pem")).unwrap();
            certs::is_issued_by(&authority, &self.generated(&[]).load().unwrap().certified, now)
        }
    }

    #[test]
    fn what_is_not_due_stays() {
        let world = World::new();
        let before = world.renewed(&["a"], NOW);
        assert_eq!(world.renewed(&["a"], NOW), before);
        assert_eq!(world.renewed(&["a"], after(59)), before);
    }

    #[test]
    fn a_certificate_that_ends_soon_is_renewed_below_the_authority_that_clients_trust() {
        for days in [61, 100, 2000] {
            let world = World::new();
            let (ca, leaf) = world.renewed(&["a"], NOW);
            let (same, renewed) = world.renewed(&["a"], after(days));
            assert_eq!(same, ca);
            assert_ne!(renewed, leaf);
            assert!(world.is_trusted_by(&ca, after(days)));
        }
    }

    #[test]
    fn other_names_need_another_certificate_and_no_other_authority() {
        let world = World::new();
        let (ca, leaf) = world.renewed(&["a"], NOW);
        let (same, other) = world.renewed(&["a", "b"], NOW);
        assert_eq!(same, ca);
        assert_ne!(other, leaf);
    }

    #[test]
    fn an_authority_that_ends_keeps_its_key_and_its_clients() {
        let world = World::new();
        let (ca, _) = world.renewed(&["a"], NOW);
        let late = after(3300);
        let (renewed, _) = world.renewed(&["a"], late);
        assert_ne!(renewed, ca);
        assert!(world.is_trusted_by(&ca, late) && world.is_trusted_by(&renewed, late));
    }

    #[test]
    fn an_authority_whose_certificate_is_lost_keeps_its_clients() {
        let world = World::new();
        let (ca, _) = world.renewed(&["a"], NOW);
        fs::remove_file(world.dir.path().join("tls-ca.pem")).unwrap();
        world.renewed(&["a"], NOW);
        assert!(world.is_trusted_by(&ca, NOW));
    }

    #[test]
    fn an_authority_without_a_key_is_replaced() {
        let world = World::new();
        let (ca, leaf) = world.renewed(&["a"], NOW);
        fs::remove_file(world.dir.path().join("tls-ca-key.pem")).unwrap();
        let (new_ca, new_leaf) = world.renewed(&["a"], NOW);
        assert!(new_ca != ca && new_leaf != leaf);
        assert!(world.is_trusted_by(&new_ca, NOW));
    }

    #[test]
    fn a_pair_that_a_crash_tore_is_made_again() {
        for torn in ["tls-ca-key.pem", "tls-ca.pem", "tls-key.pem", "tls-cert.pem"] {
            let (world, other) = (World::new(), World::new());
            world.renewed(&["a"], NOW);
            other.renewed(&["a"], NOW);
            fs::copy(other.dir.path().join(torn), world.dir.path().join(torn)).unwrap();
            let (ca, _) = world.renewed(&["a"], NOW);
            assert!(world.is_trusted_by(&ca, NOW), "{torn}");
        }
    }

    #[test]
    fn the_key_of_the_authority_is_for_its_owner_alone() {
        let world = World::new();
        world.renewed(&["a"], NOW);
        let mode = fs::metadata(world.dir.path().join("tls-ca-key.pem")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
