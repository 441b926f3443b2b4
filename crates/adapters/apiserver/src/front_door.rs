//! The server as its pages ask it.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use muster_ports::pages::{Coming, Denied, FrontDoor, Reply, Unread, Visitor};
use muster_types::names::{GROUP, RESOURCES_GROUP};

use crate::access::{Ask, Role, allows};
use crate::api::Api;
use crate::kinds::INFRASTRUCTURE;
use crate::refusal::Refusal;

impl FrontDoor for Api {
    fn admit(&self, secret: Option<&str>) -> Result<Visitor, Denied> {
        let user = Self::admit(self, secret).map_err(|refusal| denied(&refusal))?;
        let may_write = matches!(user.role, Role::Admin | Role::Editor);
        // Pages show objects of all kinds and namespaces.
        let may_look = [GROUP, RESOURCES_GROUP]
            .iter()
            .all(|group| allows(&user, &Ask { verb: "list", group, resource: "*", ..Ask::default() }));
        let may_administer = INFRASTRUCTURE.iter().all(|names| {
            let (group, resource) = (names.group, names.plural);
            allows(&user, &Ask { verb: "patch", group, resource, ..Ask::default() })
        });
        Ok(Visitor { name: user.name, role: user.role.to_string(), may_look, may_write, may_administer })
    }

    fn read(self: Arc<Self>, body: Unread, most: usize) -> Coming<Result<Bytes, Denied>> {
        Box::pin(async move { self.read_body_up_to(body, most).await.map_err(|refusal| denied(&refusal)) })
    }

    fn ask(self: Arc<Self>, request: Request<Bytes>) -> Coming<Reply> {
        Box::pin(self.handle(request.map(Full::new)))
    }

    fn closing(&self) -> Coming<()> {
        let shutdown = self.shutdown.clone();
        Box::pin(async move { shutdown.requested().await })
    }
}

fn denied(refusal: &Refusal) -> Denied {
    Denied { code: refusal.code, why: refusal.to_string() }
}
