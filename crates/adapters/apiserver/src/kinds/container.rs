//! Rules on containers, wherever they stand.

use std::collections::BTreeSet;

use muster_types::container::{Container, Resources};
use muster_types::{Quantity, name_rules};
use serde_json::{Value, json};

use crate::refusal::Causes;

/// Longest command line, environment included, as Linux has it.
const MAX_COMMAND: usize = 128 * 1024;

/// No program starts in less memory; whoever asks for less meant another unit.
const MIN_MEMORY: u64 = 4 << 20;

/// Says what is wrong with a container.
pub fn validate(at: &str, container: &Container, causes: &mut Causes) {
    if !container.name.is_empty()
        && let Err(why) = name_rules::dns1123_label(&container.name)
    {
        causes.invalid(format!("{at}.name"), &container.name, why);
    }
    if container.image.is_empty() && container.command.is_empty() {
        causes.required(format!("{at}.command"), "a container needs an image, a command, or both");
    }
    let mut names = BTreeSet::new();
    for (index, variable) in container.env.iter().enumerate() {
        let field = format!("{at}.env[{index}].name");
        if variable.name.is_empty() || variable.name.contains(['=', '\0']) {
            causes.invalid(field, &variable.name, "must not be empty and must not contain '='");
        } else if !names.insert(&variable.name) {
            causes.invalid(field, &variable.name, "is given twice");
        }
        if variable.value.contains('\0') {
            let field = format!("{at}.env[{index}].value");
            causes.invalid(field, variable.value.replace('\0', "\\0"), "must not contain a NUL byte");
        }
    }
    validate_resources(&format!("{at}.resources"), &container.resources, causes);
    let texts = container.command.iter().chain(&container.args);
    let length: usize = texts.clone().map(|text| text.len() + 1).sum();
    if length > MAX_COMMAND {
        causes.invalid(
            format!("{at}.command"),
            length,
            format!("must be at most {MAX_COMMAND} bytes with its args"),
        );
    }
    if texts.clone().any(|text| text.contains('\0')) {
        causes.invalid(format!("{at}.command"), "", "must not contain a NUL byte");
    }
}

/// Says what is wrong with amounts. Zero is no limit, as in Kubernetes.
pub fn validate_resources(at: &str, resources: &Resources, causes: &mut Causes) {
    let too_little = |memory: &&Quantity| (1..MIN_MEMORY).contains(&memory.value());
    if let Some(memory) = resources.memory.as_ref().filter(too_little) {
        let floor = Quantity::of_bytes(MIN_MEMORY);
        let number = memory.as_str().trim_end_matches(|c: char| !c.is_ascii_digit());
        let meant = format!("{number}Mi").parse().ok().filter(|meant: &Quantity| meant.value() >= MIN_MEMORY);
        let hint = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        let why = format!("must be at least {floor}, a number without a unit counts bytes{hint}");
        causes.invalid(format!("{at}.memory"), memory.as_str(), why);
    }
}

/// What a container runs, in one cell.
pub fn cell(container: &Container) -> Value {
    let command = container.command.join(" ");
    let shown = if container.image.is_empty() { &command } else { &container.image };
    json!(shown.chars().take(60).collect::<String>())
}
