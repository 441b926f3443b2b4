//! Files that say where the API server is and who asks.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;

/// Users that have a token, with their groups; the first is for people and tests.
pub const USERS: [(&str, &str, &str); 4] = [
    ("admin", "admin", "system:masters"),
    ("controller-manager", "system:kube-controller-manager", ""),
    ("scheduler", "system:kube-scheduler", ""),
    ("kubelet", "system:node:muster", "system:nodes"),
];

/// Writes the file of a user. JSON is YAML.
pub fn write(path: &Path, server: &str, ca: &Path, token: &str) -> Result<()> {
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "muster-test",
        "clusters": [{ "name": "muster-test", "cluster": { "server": server, "certificate-authority": ca } }],
        "users": [{ "name": "muster-test", "user": { "token": token } }],
        "contexts": [{ "name": "muster-test", "context": { "cluster": "muster-test", "user": "muster-test" } }],
    });
    fs::write(path, text.to_string()).with_context(|| format!("cannot write {}", path.display()))
}

/// A token nobody can guess.
pub fn new_token() -> Result<String> {
    let mut bytes = [0; 16];
    let mut random = fs::File::open("/dev/urandom").context("cannot open /dev/urandom")?;
    std::io::Read::read_exact(&mut random, &mut bytes).context("cannot read /dev/urandom")?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}
