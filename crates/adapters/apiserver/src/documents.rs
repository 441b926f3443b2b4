//! What the server says of itself: health, version, discovery, schemas, metrics.

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, StatusCode};
use muster_ports::store::Standing;
use serde_json::{Value, json};

use crate::access::User;
use crate::api::Api;
use crate::negotiate::aggregated_discovery;
use crate::refusal::Refusal;
use crate::respond::{self, Reply};
use crate::target::{Probe, Target};
use crate::{discovery, openapi, openapi_v2};

impl Api {
    /// What anybody may ask.
    pub(crate) fn public(&self, target: &Target, query: &str) -> Reply {
        match target {
            Target::Health(_) if self.shutdown.is_requested() => {
                respond::text(StatusCode::SERVICE_UNAVAILABLE, "shutting down")
            }
            Target::Health(Probe::Ready) if self.waits_for_cluster() => respond::text(
                StatusCode::SERVICE_UNAVAILABLE,
                "waiting for the cluster to say how its API server is known",
            ),
            Target::Health(Probe::Ready) if self.trouble().is_some() => respond::text(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("[-]store: {}\n", self.trouble().unwrap_or_default()),
            ),
            Target::Health(probe) if query.contains("verbose") => respond::text(
                StatusCode::OK,
                format!(
                    "[+]store ok: revision {}, durability fsync\n{probe} check passed\n",
                    self.store.revision()
                ),
            ),
            Target::Health(_) => respond::text(StatusCode::OK, "ok"),
            _ => respond::document(StatusCode::OK, &version()),
        }
    }

    /// Why another server of the same store should be asked, if one should.
    fn trouble(&self) -> Option<String> {
        if !self.store.is_shared() {
            return None;
        }
        match &*self.store.standing().borrow() {
            Standing::Good => None,
            Standing::Away(why) | Standing::Broken(why) => Some(why.clone()),
        }
    }

    /// True until it is known whom requests are taken from.
    fn waits_for_cluster(&self) -> bool {
        self.parts.cluster.as_ref().is_some_and(|cluster| cluster.proxy.borrow().is_none())
    }

    /// What anybody with a token may ask, metrics excepted.
    pub(crate) async fn document(
        &self,
        target: &Target,
        user: &User,
        headers: &HeaderMap,
    ) -> Result<Reply, Refusal> {
        let registry = &self.registry;
        let found = match target {
            Target::CoreVersions | Target::Groups => {
                let core = *target == Target::CoreVersions;
                if let Some(version) = aggregated_discovery(headers) {
                    let document = discovery::aggregated(registry, version, core);
                    let mut reply = respond::document(StatusCode::OK, &document);
                    let content_type = format!(
                        "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
                    );
                    if let Ok(value) = content_type.parse() {
                        reply.headers_mut().insert(CONTENT_TYPE, value);
                    }
                    return Ok(reply);
                }
                Some(if core { discovery::core_versions() } else { discovery::groups(registry) })
            }
            Target::Group(name) => discovery::group(registry, name),
            Target::Resources { group, version } => discovery::resources(registry, group, version),
            Target::OpenApiIndex => Some(openapi::index(registry, &self.openapi_entries)),
            Target::OpenApi { group, version } => openapi::document(registry, group, version),
            Target::OldOpenApi => return Ok(openapi_v2::document(registry, headers)),
            Target::Metrics => {
                self.authorize_path(user, "/metrics").await?;
                let text = self.metrics.render(&self.store, self.watches.taken());
                let mut reply = respond::text(StatusCode::OK, text);
                let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
                return Ok(reply);
            }
            _ => None,
        };
        found.map(|document| respond::document(StatusCode::OK, &document)).ok_or_else(Refusal::no_such_path)
    }
}

/// What `/version` says. The numbers are those of the Kubernetes API conventions that are followed.
fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": concat!("v1.36.0+muster-", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
        "muster": env!("CARGO_PKG_VERSION"),
    })
}
