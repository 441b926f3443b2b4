//! One request on a resource: who asks for what, and how the answer is to look.

use std::sync::Arc;

use hyper::HeaderMap;
use muster_ports::store::{Key, Stored};
use muster_types::Timestamp;

use crate::access::User;
use crate::api::Api;
use crate::kind::{Decoded, Input, Kind, KindInfo, Part, Writing};
use crate::negotiate::Form;
use crate::options::{FieldValidation, Options};
use crate::refusal::Refusal;
use crate::render::Renderer;
use crate::respond::{self, Reply};

/// A request on a resource, read and authorized.
pub struct Call {
    /// The server.
    pub api: Arc<Api>,
    /// The kind the path names.
    pub kind: Arc<dyn Kind>,
    /// The namespace, empty for cluster-wide kinds; `None` for all namespaces.
    pub namespace: Option<String>,
    /// The object, if the path names one.
    pub name: Option<String>,
    /// Which part of the object is meant.
    pub part: Part,
    /// What the query says.
    pub options: Options,
    /// How the answer is to look.
    pub form: Form,
    /// Who asks.
    pub user: User,
    /// The headers of the request.
    pub headers: HeaderMap,
    /// What the client should know besides the answer.
    pub warnings: Vec<String>,
}

impl Call {
    /// What the kind is called.
    pub fn info(&self) -> &KindInfo {
        self.kind.info()
    }

    /// The name in the path; empty for a collection.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }

    /// The namespace in the path; empty for cluster-wide kinds.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    /// The key of the object in the path.
    pub fn key(&self) -> Key {
        Key::new(&self.info().resource, self.namespace(), self.name())
    }

    /// The time, as metadata shows it.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_second(self.api.clock.now().0.div_euclid(1000))
    }

    /// Who writes, when, and over what.
    pub fn writing(&self) -> Writing<'_> {
        Writing { user: &self.user.name, now: self.now(), store: &self.api.store }
    }

    /// Who writes: the field manager given, or the first word of the user agent.
    pub fn manager(&self) -> String {
        let agent = self.headers.get(hyper::header::USER_AGENT).and_then(|agent| agent.to_str().ok());
        let word = agent.and_then(|agent| agent.split(['/', ' ']).next()).unwrap_or("unknown");
        self.options.field_manager.clone().unwrap_or_else(|| word.chars().take(128).collect())
    }

    /// The object in the path, if it is there.
    pub fn find(&self) -> Option<Stored> {
        self.api.store.get(&self.key())
    }

    /// The object in the path, or the refusal that says it is not there.
    pub fn fetch(&self) -> Result<Stored, Refusal> {
        self.find().ok_or_else(|| Refusal::not_found(self.info(), self.name()))
    }

    /// Reads an object and treats unknown fields as the client asked.
    pub fn decode(&mut self, input: Input<'_>) -> Result<Decoded, Refusal> {
        let decoded = self.kind.decode(input)?;
        if decoded.unknown.is_empty() {
            return Ok(decoded);
        }
        let named: Vec<_> =
            decoded.unknown.iter().map(|field| format!("unknown field \"{field}\"")).collect();
        match self.options.field_validation {
            FieldValidation::Ignore => {}
            FieldValidation::Warn => self.warnings.extend(named),
            FieldValidation::Strict => {
                let info = self.info();
                return Err(Refusal::undecodable(
                    &decoded.unknown[0],
                    &format!(
                        "{} in version \"{}\" cannot be handled as a {}: strict decoding error: {}",
                        info.kind,
                        info.version,
                        info.kind,
                        named.join(", ")
                    ),
                ));
            }
        }
        Ok(decoded)
    }

    /// How objects of this call are shown.
    pub fn renderer(&self) -> Renderer {
        Renderer::new(self.kind.clone(), self.form, self.options.include_object, self.api.clock.clone())
    }

    /// Answers with an object.
    pub fn show(&self, code: hyper::StatusCode, stored: &Stored) -> Result<Reply, Refusal> {
        if self.form == Form::Json {
            return Ok(respond::json(code, respond::stored_bytes(stored)));
        }
        self.show_json(code, stored.json())
    }

    /// Answers with an object that is not stored.
    pub fn show_json(&self, code: hyper::StatusCode, json: &[u8]) -> Result<Reply, Refusal> {
        let renderer = self.renderer();
        Ok(respond::with_type(code, renderer.content_type(), renderer.whole(json)?))
    }
}
