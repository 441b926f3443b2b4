//! Kinds that users declare: one code for all of them, told apart by their ResourceType.

pub mod column_path;
mod documents;
mod family;
mod managed_kind;

pub use family::resource_of;
pub use managed_kind::ManagedKind;
