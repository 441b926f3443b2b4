//! The API server: Kubernetes API conventions over a store, generic over kinds.
//!
//! Is: discovery, decoding, validation, the verbs, watches, access, and the sockets.
//! Is not: a place for what kinds mean. A kind is a type in `muster-types`, a [`kind::Strategy`] in [`kinds`] and a
//! line in [`kinds::registry`]. Kinds that users declare are served by [`managed`], all by the same code.
//!
//! Start here: [`api::Api::handle`] turns a request into an answer; [`serve::serve`] puts it on a socket.

pub mod access;
pub mod api;
pub mod attempt_tokens;
pub mod backup;
mod backup_requests;
mod call;
pub mod certs;
pub mod cluster_users;
mod continuation;
mod declared;
mod decode;
mod discovery;
mod documents;
mod encode;
mod events;
pub mod expired_tokens;
mod field_path;
mod filter;
mod freshness;
mod front_door;
pub mod front_proxy;
pub mod garbage;
mod granted_change;
mod ids;
mod impersonation;
pub mod kind;
pub mod kinds;
mod managed;
mod metadata_rules;
mod metrics;
mod namespaces;
mod negotiate;
mod openapi;
mod openapi_v2;
mod options;
pub mod parts;
mod protobuf;
mod query;
pub mod refusal;
pub mod registry;
mod render;
pub mod renewal;
mod respond;
mod reviews;
pub mod serve;
mod shares;
mod shows;
pub mod shutdown;
mod status_rules;
mod subresources;
mod target;
pub mod tls;
mod token_requests;
pub mod tokens;
mod typed;
mod validity;
mod verbs;
