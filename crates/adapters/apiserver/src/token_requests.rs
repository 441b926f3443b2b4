//! `/tokens`: making, listing and revoking access tokens.

use hyper::{Method, StatusCode};
use muster_types::strict;
use serde::Deserialize;
use serde_json::json;

use crate::access::{Ask, Role, TOKENS, TOKENS_GROUP, User};
use crate::api::Api;
use crate::refusal::Refusal;
use crate::respond::{self, Reply};
use crate::tokens::NewToken;

impl Api {
    /// Answers a request on tokens.
    pub(crate) async fn token_request(
        &self,
        method: &Method,
        name: Option<String>,
        user: &User,
        body: &[u8],
    ) -> Result<Reply, Refusal> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        struct Wanted {
            name: String,
            role: Role,
            adapter: Option<String>,
            lifetime_seconds: Option<i64>,
            uses: Option<u32>,
        }
        let verb = match (method, &name) {
            (&Method::GET, None) => "list",
            (&Method::POST, None) => "create",
            (&Method::DELETE, Some(_)) => "delete",
            _ => return Err(Refusal::method_not_allowed()),
        };
        self.authorize(user, &Ask { verb, group: TOKENS_GROUP, resource: TOKENS, ..Ask::default() }).await?;
        match name {
            None if verb == "list" => Ok(respond::document(StatusCode::OK, &self.tokens.list())),
            None => {
                let (wanted, _): (Wanted, _) = strict::from_slice(body).map_err(|error| {
                    Refusal::bad_request(format!("the body is not a token request: {error}"))
                })?;
                let now = self.clock.now();
                let made = self.tokens.make(
                    NewToken {
                        name: &wanted.name,
                        role: wanted.role,
                        adapter: wanted.adapter.as_deref(),
                        lifetime_seconds: wanted.lifetime_seconds,
                        uses: wanted.uses,
                    },
                    now,
                );
                let answer = json!({ "name": wanted.name, "role": wanted.role, "token": made.await? });
                Ok(respond::document(StatusCode::CREATED, &answer))
            }
            Some(name) => {
                self.tokens.revoke(&name).await?;
                Ok(respond::document(StatusCode::OK, &json!({ "name": name, "revoked": true })))
            }
        }
    }
}
