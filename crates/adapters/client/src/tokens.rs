//! Access tokens of the server.

use std::fmt;

use hyper::Method;
use muster_types::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::Client;
use crate::error::ClientError;
use crate::query::segment;
use crate::transport::Ask;

/// What is known of a token; nothing of it is secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenInfo {
    /// Its name.
    pub name: String,
    /// What it may do.
    pub role: String,
    /// The adapter that a reporter reports for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// When it ends.
    pub expires: Option<Timestamp>,
    /// How many robots can join with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uses: Option<u32>,
    /// Those that have joined with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robots: Option<Vec<String>>,
}

/// What a token is to be.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewToken<'a> {
    /// Whom or what it is for.
    pub name: &'a str,
    /// What it may do.
    pub role: &'a str,
    /// The adapter that a reporter reports for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapter: Option<&'a str>,
    /// How long it is valid, if the server is not to choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetime_seconds: Option<u64>,
    /// How many robots can join with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses: Option<u32>,
}

/// What a token is worth. It is shown once, on purpose, and never by accident.
#[derive(Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The secret itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[derive(Deserialize)]
struct Made {
    token: Secret,
}

#[derive(Deserialize)]
struct All {
    items: Vec<TokenInfo>,
}

impl Client {
    /// Makes a token and returns its secret, which the server shows only now.
    pub async fn create_token(&self, wanted: &NewToken<'_>) -> Result<Secret, ClientError> {
        let ask = Ask::send(Method::POST, "/tokens", &json!(wanted));
        let made: Made = self.transport().read(ask).await.map_err(explain)?;
        Ok(made.token)
    }

    /// All tokens, by name.
    pub async fn tokens(&self) -> Result<Vec<TokenInfo>, ClientError> {
        let all: All = self.transport().read(Ask::get("/tokens")).await.map_err(explain)?;
        Ok(all.items)
    }

    /// Makes a token worthless.
    pub async fn revoke_token(&self, name: &str) -> Result<(), ClientError> {
        let path = format!("/tokens/{}", segment(name));
        let ask = Ask { method: Method::DELETE, ..Ask::get(&path) };
        let _: Value = self.transport().read(ask).await?;
        Ok(())
    }
}

/// A cluster has no such path: it has its own ways to let people in.
fn explain(error: ClientError) -> ClientError {
    match error {
        ClientError::Refused(mut refused) if refused.code.as_u16() == 404 => {
            refused.message =
                format!("{} has no tokens of Muster; a cluster has accounts of its own", refused.url);
            "NotFound".clone_into(&mut refused.reason);
            ClientError::Refused(refused)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown_by_accident() {
        let made: Made = serde_json::from_str(r#"{"token": "muster_abc"}"#).unwrap();
        assert_eq!(format!("{:?}", made.token), "Secret(…)");
        assert_eq!(made.token.reveal(), "muster_abc");
    }
}
