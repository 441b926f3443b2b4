//! `/backup`: everything a server keeps, for admins.

use std::sync::Arc;

use hyper::Method;

use crate::access::{Ask, TOKENS_GROUP, User};
use crate::api::Api;
use crate::backup;
use crate::refusal::Refusal;
use crate::respond::{self, Reply};
use crate::subresources::archive;

impl Api {
    /// Sends a backup, which is made while it is sent.
    pub(crate) async fn backup_request(
        self: &Arc<Self>,
        method: &Method,
        user: &User,
    ) -> Result<Reply, Refusal> {
        if method != Method::GET {
            return Err(Refusal::method_not_allowed());
        }
        // With it everybody's secrets can be guessed at: whoever may make tokens may have it.
        self.authorize(
            user,
            &Ask { verb: "get", group: TOKENS_GROUP, resource: "backups", ..Ask::default() },
        )
        .await?;
        if self.store.is_shared() {
            self.catch_up().await?;
        }
        let (store, blobs, now) = (self.store.clone(), self.parts.blobs.clone(), self.clock.now());
        let chunks = archive::send(move |out| backup::pack(&store, blobs.as_deref(), now, out));
        Ok(respond::stream("application/x-tar", chunks))
    }
}
