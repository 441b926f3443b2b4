//! How the cluster's own API server is known: what the cluster publishes for servers that stand behind it.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use muster_ports::delegate::FrontProxy;
use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::watch;

use crate::watch_one::watch_one;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "extension-apiserver-authentication";

/// Follows what the cluster publishes, from within the runtime of tokio this is called in. Nothing is known until it was read.
pub fn watch_trust(client: Client) -> watch::Receiver<Option<Arc<FrontProxy>>> {
    let (known, seen) = watch::channel(None);
    let (published, mut news) = unbounded_channel();
    let api: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    tokio::spawn(watch_one(api, NAME.to_owned(), published));
    tokio::spawn(async move {
        while let Some(published) = news.recv().await {
            observe(published.as_ref(), &known);
        }
    });
    seen
}

fn observe(published: Option<&ConfigMap>, known: &watch::Sender<Option<Arc<FrontProxy>>>) {
    let Some(proxy) = published.and_then(read_proxy) else {
        // The last that was known stays: an empty answer is no reason to turn everybody away.
        tracing::error!(
            "the ConfigMap {NAME} in {NAMESPACE} does not say how the API server of the cluster is known; start that server \
             with --requestheader-client-ca-file"
        );
        return;
    };
    known.send_if_modified(|before| {
        let is_new = before.as_deref() != Some(&proxy);
        if is_new {
            tracing::info!("it is known how the API server of the cluster proves itself");
            *before = Some(Arc::new(proxy));
        }
        is_new
    });
}

fn read_proxy(published: &ConfigMap) -> Option<FrontProxy> {
    let data = published.data.as_ref()?;
    let list = |key: &str| -> Vec<String> {
        data.get(key).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    };
    let proxy = FrontProxy {
        authorities: data.get("requestheader-client-ca-file")?.clone(),
        names: list("requestheader-allowed-names"),
        user_headers: list("requestheader-username-headers"),
        uid_headers: list("requestheader-uid-headers"),
        group_headers: list("requestheader-group-headers"),
        extra_prefixes: list("requestheader-extra-headers-prefix"),
    };
    (!proxy.user_headers.is_empty()).then_some(proxy)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(data: &Value) -> Option<FrontProxy> {
        read_proxy(&serde_json::from_value(json!({ "data": data })).unwrap())
    }

    #[test]
    fn what_the_cluster_publishes_is_read() {
        let proxy = read(&json!({
            "client-ca-file": "other",
            "requestheader-client-ca-file": "pem",
            "requestheader-allowed-names": "[\"front-proxy-client\"]",
            "requestheader-username-headers": "[\"X-Remote-User\"]",
            "requestheader-group-headers": "[\"X-Remote-Group\"]",
            "requestheader-extra-headers-prefix": "[\"X-Remote-Extra-\"]",
        }))
        .unwrap();
        assert_eq!((proxy.authorities.as_str(), proxy.names), ("pem", vec!["front-proxy-client".to_owned()]));
        assert_eq!(proxy.user_headers, ["X-Remote-User"]);
    }

    #[test]
    fn a_cluster_without_a_front_proxy_is_trusted_by_nobody() {
        assert_eq!(read(&json!({ "client-ca-file": "pem" })), None);
        assert_eq!(read(&json!({ "requestheader-client-ca-file": "pem" })), None);
    }
}
