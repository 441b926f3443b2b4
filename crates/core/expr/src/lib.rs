//! The small languages inside manifests: rules on tags, names or patterns of names, numbers handed out by macros, and CEL.
//!
//! Is: text in, values out; every reader refuses with the place and the reason, has limits, and never panics. Is not: a
//! place that knows tasks, addons or where any text came from.
//!
//! Start here: [`Selector`] for `tag:Language=Java && !tag:Legacy`, [`NamePattern`] for `analyzer` or `analyzer-.*`,
//! [`Sequences`] for `${seq:8000}`, [`cel::Program`] for `resource.spec.size > 3`.

#![warn(missing_docs)]

pub mod cel;
pub mod name_pattern;
pub mod selector;
pub mod sequence;

pub use name_pattern::{NamePattern, NamePatternError};
pub use selector::{Selector, SelectorError};
pub use sequence::Sequences;
