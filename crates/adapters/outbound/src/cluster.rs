//! Objects of a Kubernetes cluster, applied and deleted. Applying the same twice does nothing twice.

use std::path::PathBuf;

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, oneshot};
use kube::{Client, Config};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::http::chain;

/// Who owns the fields that are applied.
const MANAGER: &str = "muster-adapter";

/// A cluster, connected when it is first needed.
pub struct Cluster {
    kubeconfig: Option<PathBuf>,
    client: OnceCell<Client>,
}

impl Cluster {
    /// The cluster of a kubeconfig, or the one this server runs in.
    pub fn new(kubeconfig: Option<PathBuf>) -> Self {
        Self { kubeconfig, client: OnceCell::new() }
    }

    /// Makes an object be as the manifest says. The answer is the object as the cluster has it.
    pub async fn apply(&self, manifest: Value) -> Result<Value, String> {
        let (api, object, name) = self.find(manifest).await?;
        let params = PatchParams::apply(MANAGER).force();
        let applied =
            api.patch(&name, &params, &Patch::Apply(&object)).await.map_err(|error| chain(&error))?;
        serde_json::to_value(applied).map_err(|error| error.to_string())
    }

    /// Deletes an object. The answer is the object while it is there, null when it is gone.
    pub async fn delete(&self, manifest: Value) -> Result<Value, String> {
        let (api, _, name) = self.find(manifest).await?;
        match api.delete(&name, &DeleteParams::background()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Value::Null),
            Err(error) => return Err(chain(&error)),
        }
        let left = api.get_opt(&name).await.map_err(|error| chain(&error))?;
        left.map_or(Ok(Value::Null), |left| serde_json::to_value(left).map_err(|error| error.to_string()))
    }

    async fn find(&self, manifest: Value) -> Result<(Api<DynamicObject>, DynamicObject, String), String> {
        let client = self.client().await?;
        let object: DynamicObject =
            serde_json::from_value(manifest).map_err(|error| format!("not an object: {error}"))?;
        let types = object.types.as_ref().ok_or("the object has no apiVersion and kind")?;
        let kind = GroupVersionKind::try_from(types).map_err(|error| error.to_string())?;
        let found = oneshot::pinned_kind(&client, &kind).await;
        let (resource, about) = found.map_err(|error| format!("{}: {}", kind.kind, chain(&error)))?;
        let name = object.metadata.name.clone().ok_or("the object has no name")?;
        let api = match about.scope {
            Scope::Cluster => Api::all_with(client, &resource),
            Scope::Namespaced => match &object.metadata.namespace {
                Some(namespace) => Api::namespaced_with(client, namespace, &resource),
                None => Api::default_namespaced_with(client, &resource),
            },
        };
        Ok((api, object, name))
    }

    async fn client(&self) -> Result<Client, String> {
        self.client.get_or_try_init(|| self.connect()).await.cloned()
    }

    async fn connect(&self) -> Result<Client, String> {
        let config = match &self.kubeconfig {
            Some(path) => {
                let kubeconfig = Kubeconfig::read_from(path).map_err(|error| chain(&error))?;
                let options = KubeConfigOptions::default();
                Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| chain(&error))?
            }
            None => Config::incluster().map_err(|_| {
                "this server knows no cluster; start it with --adapter-kubeconfig FILE".to_owned()
            })?,
        };
        Client::try_from(config).map_err(|error| chain(&error))
    }
}
