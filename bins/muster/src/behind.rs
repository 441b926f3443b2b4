//! A server behind the API server of a cluster: whose users it knows, and who is told to trust it.

use std::sync::Arc;

use muster_apiserver::cluster_users::ClusterUsers;
use muster_apiserver::tls::KnownProxy;
use muster_cluster_access::{ClusterDelegate, keep_authority, watch_trust};
use muster_runtime_kube::connect;
use muster_types::names::{GROUP, RESOURCES_GROUP, VERSION};

use crate::cli::UpArgs;

/// What is shared with the cluster. Nothing waits for it: it may be away.
pub struct Behind {
    /// Its users.
    pub users: ClusterUsers,
    tell: Box<dyn Fn(&str) + Send + Sync>,
}

impl Behind {
    /// Makes it, if that is asked for.
    pub async fn prepare(args: Option<&UpArgs>) -> anyhow::Result<Option<Self>> {
        let Some(args) = args.filter(|args| args.aggregated) else { return Ok(None) };
        let client = connect(args.pods.cluster_kubeconfig.as_deref()).await?;
        let users = ClusterUsers {
            delegate: Arc::new(ClusterDelegate::new(client.clone())),
            proxy: watch_trust(client.clone()),
        };
        let tell = Box::new(move |authority: &str| keep_authority(&client, &service_names(), authority));
        Ok(Some(Self { users, tell }))
    }

    /// How the API server of the cluster is known.
    pub fn proxy(&self) -> KnownProxy {
        self.users.proxy.clone()
    }

    /// Tells the API server of the cluster which authority the certificate of this server is of.
    pub fn tell_authority(&self, authority: &str) {
        (self.tell)(authority);
    }
}

/// The APIServices of all groups that are served: `VERSION.GROUP`.
fn service_names() -> Vec<String> {
    [GROUP, RESOURCES_GROUP].into_iter().map(|group| format!("{VERSION}.{group}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_has_its_api_service() {
        assert_eq!(service_names(), ["v1alpha1.muster.dev", "v1alpha1.resources.muster.dev"]);
    }
}
