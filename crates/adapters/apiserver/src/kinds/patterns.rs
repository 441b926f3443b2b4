//! Rules on the small languages inside addons and extensions: what does not parse is refused with the place.

use muster_expr::{NamePattern, Selector};

use crate::refusal::Causes;

/// Says what is wrong with a rule on tags.
pub fn validate_selector(at: &str, text: &str, causes: &mut Causes) {
    if let Err(error) = Selector::parse(text) {
        causes.invalid(at, text, error);
    }
}

/// Says what is wrong with a name or a pattern of names.
pub fn validate_names(at: &str, text: &str, causes: &mut Causes) {
    if let Err(error) = NamePattern::parse(text) {
        causes.invalid(at, text, error.why);
    }
}
