//! The data directory: database, identity, token and kubeconfig, readable by their owner alone.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};

/// Where the server keeps what it must not lose.
#[derive(Debug, Clone)]
pub struct DataDir(PathBuf);

impl DataDir {
    /// The directory that was asked for, or the user's.
    pub fn choose(asked: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(path) = asked {
            let path = std::path::absolute(path)
                .with_context(|| format!("cannot use the data directory {}", path.display()))?;
            return Ok(Self(path));
        }
        let variable =
            |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        variable("XDG_DATA_HOME")
            .or_else(|| variable("HOME").map(|home| home.join(".local/share")))
            .map(|base| Self(base.join("muster")))
            .ok_or_else(|| {
                anyhow!("neither HOME nor XDG_DATA_HOME is set; name the data directory with --data DIR")
            })
    }

    /// Makes the directory if it is not there, for its owner alone.
    pub fn create(&self) -> anyhow::Result<()> {
        let fail = || {
            let path = self.0.display();
            format!("cannot use the data directory {path}; choose another one with --data DIR")
        };
        fs::create_dir_all(&self.0).with_context(fail)?;
        fs::set_permissions(&self.0, Permissions::from_mode(0o700)).with_context(fail)
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A directory in it, made if it is not there, for its owner alone.
    pub fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let path = self.0.join(name);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.with_context(|| format!("cannot use {}", path.display()))?;
        Ok(path)
    }

    /// The database.
    pub fn database(&self) -> PathBuf {
        self.0.join("muster.db")
    }

    /// The secret of the admin token.
    pub fn admin_token(&self) -> PathBuf {
        self.0.join("admin-token")
    }

    /// The kubeconfig of the server in this directory.
    pub fn kubeconfig(&self) -> PathBuf {
        self.0.join("kubeconfig")
    }

    /// The authority of the generated certificate.
    pub fn authority(&self) -> PathBuf {
        self.0.join("tls-ca.pem")
    }
}

/// The text of a kubeconfig with one cluster, one user and one context.
pub fn kubeconfig_text(server: &str, ca: Option<&str>, user: &str, token: &str) -> String {
    let trust = ca
        .map(|ca| format!("    certificate-authority-data: {}\n", base64(ca.as_bytes())))
        .unwrap_or_default();
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: muster\nclusters:\n- name: muster\n  cluster:\n    \
         server: {server}\n{trust}users:\n- name: \"{user}\"\n  user:\n    token: {token}\ncontexts:\n- name: muster\n  \
         context:\n    cluster: muster\n    user: \"{user}\"\n    namespace: default\n"
    )
}

/// The URL by which clients on this machine reach the server.
pub fn server_url(scheme: &str, address: SocketAddr) -> String {
    let host = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => "127.0.0.1".to_owned(),
        IpAddr::V6(ip) if ip.is_unspecified() => "[::1]".to_owned(),
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    };
    format!("{scheme}://{host}:{}", address.port())
}

/// Writes a file that only its owner can read, replacing it whole.
pub fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    replace_private(path, text, File::sync_all)
}

/// The same for what is made again when it is lost, so that nobody has to wait for the disk.
pub fn rewrite_private(path: &Path, text: &str) -> anyhow::Result<()> {
    replace_private(path, text, |_| Ok(()))
}

fn replace_private(
    path: &Path,
    text: &str,
    settle: impl FnOnce(&File) -> io::Result<()>,
) -> anyhow::Result<()> {
    let fail = || format!("cannot write {}", path.display());
    let beside = path.with_extension("new");
    if beside.exists() {
        fs::remove_file(&beside).with_context(fail)?;
    }
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside).with_context(fail)?;
    file.write_all(text.as_bytes()).and_then(|()| settle(&file)).with_context(fail)?;
    fs::rename(&beside, path).with_context(fail)
}

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for position in 0..4 {
            let digit = usize::try_from(group >> (18 - 6 * position) & 63).unwrap_or(0);
            text.push(if position <= chunk.len() { char::from(ALPHABET[digit]) } else { '=' });
        }
    }
    text
}

/// Tells this data directory from any other, for ever.
pub fn server_id(data: &Path) -> anyhow::Result<String> {
    let path = data.join("server-id");
    if let Ok(kept) = fs::read_to_string(&path) {
        return Ok(kept.trim().to_owned());
    }
    let id = random_word()?;
    write_private(&path, &id)?;
    Ok(id)
}

/// A word that nobody else has.
pub fn random_word() -> anyhow::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| anyhow!("there is no randomness: {error}"))?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_pads_as_the_standard_says() {
        assert_eq!(
            ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes())),
            ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]
        );
    }

    #[test]
    fn private_files_are_for_their_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        write_private(&path, "a").unwrap();
        write_private(&path, "b").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "b");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn an_address_for_everybody_is_reached_through_loopback() {
        assert_eq!(server_url("https", "0.0.0.0:7400".parse().unwrap()), "https://127.0.0.1:7400");
        assert_eq!(server_url("https", "[::]:1".parse().unwrap()), "https://[::1]:1");
    }

    #[test]
    fn a_data_directory_has_one_id_for_ever() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let id = server_id(one.path()).unwrap();
        assert_eq!(server_id(one.path()).unwrap(), id);
        assert_ne!(server_id(two.path()).unwrap(), id);
    }
}
