//! How writes by several writers merge.
//!
//! **Is**: the merge rules of the Kubernetes API as pure functions over JSON values: server-side apply with
//! field ownership and conflicts, ownership tracking of other writes, and the three patch formats. Text in,
//! text out: time is a string passed in, objects are [`serde_json::Value`], refusals are values with reasons.
//!
//! **Is not**: a validator (a [`Schema`] here only says what merges how), a store, a converter between API
//! versions, or anything that reads a clock. It does not know which fields a subresource may write, nor does
//! it set `resourceVersion` or `generation`.
//!
//! **Start here**: build a [`Schema`] once per kind; then
//!
//! - [`apply()`] for `PATCH` with `application/apply-patch+yaml`;
//! - [`patch()`] for the other `PATCH`es, and
//! - [`track_update()`] on what `PUT` and those `PATCH`es are about to store.
//!
//! ```
//! use muster_merge::{Apply, ApplyError, Schema, apply};
//! use serde_json::json;
//!
//! let schema = Schema::free_form();
//! let request = Apply {
//!     live: None,
//!     config: &json!({"metadata": {"name": "web"}, "spec": {"replicas": 1}}),
//!     manager: "alice",
//!     force: false,
//!     subresource: None,
//!     schema: &schema,
//!     api_version: "v1",
//!     now: "2026-01-01T00:00:00Z",
//! };
//! let live = apply(request)?;
//! let config = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2}});
//! let refused = apply(Apply { live: Some(&live), config: &config, manager: "bob", ..request });
//! assert_eq!(
//!     refused.unwrap_err().to_string(),
//!     "apply failed with 1 conflict: conflict with \"alice\": .spec.replicas"
//! );
//! # Ok::<(), ApplyError>(())
//! ```

#![cfg_attr(
    test,
    allow(clippy::needless_pass_by_value, reason = "tests read better without & before every json!")
)]

mod apply;
mod check_config;
mod collect;
mod combine;
mod compare;
mod conflict;
mod depth;
mod field_set;
mod fields_v1;
mod interleave;
mod json_patch;
mod last_applied;
mod managed_fields;
mod patch;
mod path;
mod prune;
mod schema;
mod shape;
mod size;
mod strategic;
mod track;

pub use apply::{Apply, ApplyError, BEFORE_FIRST_APPLY, apply};
pub use collect::fields_of;
pub use conflict::Conflict;
pub use depth::TooDeep;
pub use field_set::FieldSet;
pub use fields_v1::FieldsV1Error;
pub use managed_fields::{Entry, ManagedFields, ManagedFieldsError, Operation, Writer};
pub use patch::{PatchError, PatchKind, patch};
pub use path::{PathElement, PathElementError};
pub use schema::{Schema, SchemaError};
pub use track::{ANCIENT_CHANGES, MAX_UPDATERS, Update, track_update};
