//! The variables of this process that adapters of managed resources may read.

use std::collections::BTreeMap;

/// A flag of the server, which is no adapter's business.
const FLAG: &str = "MUSTER_ADAPTER_KUBECONFIG";
/// They begin with this, which adapters do not see.
const PREFIX: &str = "MUSTER_ADAPTER_";

/// What adapters may read. A variable that is no text is left out.
pub fn adapter_env() -> BTreeMap<String, String> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.to_str()?.strip_prefix(PREFIX)?.to_owned(), value.into_string().ok()?))
    };
    std::env::vars_os().filter(|(name, _)| name != FLAG).filter_map(text).collect()
}
