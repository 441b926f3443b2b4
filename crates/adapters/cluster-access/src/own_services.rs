//! The APIServices that send requests to this server: they are told which authority its certificate is of.

use k8s_openapi::ByteString;
use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::APIService;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Error};
use serde_json::json;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::sleep;

use crate::watch_one::{FIRST_PAUSE, LONGEST_PAUSE, watch_one};

/// Whose fields these are.
const MANAGER: &str = "muster";

/// Writes the authority (PEM) into the APIServices of these names, and again whenever it is lost, from within the runtime of
/// tokio this is called in.
pub fn keep_authority(client: &Client, services: &[String], authority: &str) {
    for name in services {
        let (api, name) = (Api::<APIService>::all(client.clone()), name.clone());
        let authority = ByteString(authority.as_bytes().to_vec());
        let (changed, mut news) = unbounded_channel();
        tokio::spawn(watch_one(api.clone(), name.clone(), changed));
        tokio::spawn(async move {
            while let Some(service) = news.recv().await {
                match service.and_then(|service: APIService| service.spec) {
                    None => tracing::warn!(
                        name,
                        "there is no such APIService; apply deploy/server to the cluster"
                    ),
                    Some(spec) if spec.ca_bundle.as_ref() == Some(&authority) => {}
                    Some(_) => write(&api, &name, &authority).await,
                }
            }
        });
    }
}

/// Tries until it is written, less and less often.
async fn write(api: &Api<APIService>, name: &str, authority: &ByteString) {
    let change = json!({ "spec": { "caBundle": authority, "insecureSkipTLSVerify": false } });
    let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    let mut pause = FIRST_PAUSE;
    loop {
        match api.patch(name, &params, &Patch::Merge(&change)).await {
            Ok(_) => return tracing::info!(name, "the APIService trusts this server"),
            // It is gone; when it comes back, that is seen.
            Err(Error::Api(status)) if status.code == 404 => return,
            Err(Error::Api(status)) if status.code == 403 => tracing::error!(
                name,
                message = status.message,
                "the APIService cannot be told whom to trust; give this server a ClusterRole with the verb patch on apiservices"
            ),
            Err(error) => tracing::warn!(name, %error, "the APIService cannot be told whom to trust now"),
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
