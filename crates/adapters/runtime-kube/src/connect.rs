//! From a kubeconfig to a client.

use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use thiserror::Error;

/// Why there is no client.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// The file says nothing that can be used.
    #[error("the kubeconfig {path} cannot be used: {source}")]
    Kubeconfig {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        source: KubeconfigError,
    },
    /// There is no file, and this is not a pod.
    #[error("no cluster was named: say --cluster-kubeconfig FILE ({0})")]
    NoCluster(String),
    /// The client cannot be made.
    #[error("no client for the cluster can be made: {0}")]
    Client(#[from] kube::Error),
}

/// A client for the cluster of a kubeconfig; without one, for the cluster this runs in. Nothing is asked yet.
pub async fn connect(kubeconfig: Option<&Path>) -> Result<Client, ConnectError> {
    let config = match kubeconfig {
        Some(path) => {
            let failed = |source| ConnectError::Kubeconfig { path: path.to_path_buf(), source };
            let file = Kubeconfig::read_from(path).map_err(failed)?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(failed)?
        }
        None => Config::incluster().map_err(|error| ConnectError::NoCluster(error.to_string()))?,
    };
    Ok(Client::try_from(config)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_kubeconfig_that_cannot_be_used_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("config");
        for text in [None, Some("not: [yaml"), Some("apiVersion: v1\nkind: Config\n")] {
            if let Some(text) = text {
                std::fs::write(&path, text).unwrap();
            }
            let Err(error) = connect(Some(&path)).await else { panic!("{text:?} was taken") };
            assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        }
    }
}
