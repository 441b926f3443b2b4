//! The server as its pages ask it.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use muster_ports::pages::{Coming, Denied, FrontDoor, Reply, Visitor};

use crate::access::{Ask, Role, allows};
use crate::api::Api;
use crate::kinds::INFRASTRUCTURE;

impl FrontDoor for Api {
    fn admit(&self, secret: Option<&str>) -> Result<Visitor, Denied> {
        let user = Self::admit(self, secret)
            .map_err(|refusal| Denied { code: refusal.code, why: refusal.to_string() })?;
        let may_write = matches!(user.role, Role::Admin | Role::Editor);
        let may_look = may_write || user.role == Role::Viewer;
        let may_administer = INFRASTRUCTURE.iter().all(|names| {
            let (group, resource) = (names.group, names.plural);
            allows(&user, &Ask { verb: "patch", group, resource, ..Ask::default() })
        });
        Ok(Visitor { name: user.name, role: user.role.to_string(), may_look, may_write, may_administer })
    }

    fn ask(self: Arc<Self>, request: Request<Bytes>) -> Coming<Reply> {
        Box::pin(self.handle(request.map(Full::new)))
    }

    fn closing(&self) -> Coming<()> {
        let shutdown = self.shutdown.clone();
        Box::pin(async move { shutdown.requested().await })
    }
}
