//! Whether a ResourceType is well formed, beyond its expressions.

use std::collections::BTreeSet;

use muster_types::resource_type::ResourceTypeSpec;
use muster_types::{Duration, name_rules};
use serde_json::Value as Json;

use crate::field_problem::FieldProblem;
use crate::type_rules::TypeRules;

/// Adapters one type may require.
const MOST_ADAPTERS: usize = 64;

/// Everything that is wrong with a type of this name.
pub fn check_type(name: &str, spec: &ResourceTypeSpec) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    check_names(name, spec, &mut problems);
    check_adapters(spec, &mut problems);
    for (field, interval) in
        [("spec.pulse.ready", spec.pulse.ready), ("spec.pulse.notReady", spec.pulse.not_ready)]
    {
        if interval.is_some_and(|interval| interval < Duration::from_secs(1)) {
            problems.push(FieldProblem::new(field, "", "must be at least 1s"));
        }
    }
    if spec.schema.as_ref().is_some_and(|schema| !schema.is_object()) {
        problems.push(FieldProblem::new("spec.schema", "", "must be a JSON Schema, which is a map"));
    }
    if let Some(parent) = &spec.parent {
        if parent.resource_type.is_empty() {
            problems.push(FieldProblem::new("spec.parent.resourceType", "", "name the type of the parent"));
        } else if parent.resource_type == name {
            let why = "a type cannot be its own parent";
            problems.push(FieldProblem::new("spec.parent.resourceType", &parent.resource_type, why));
        }
        if parent.field.is_empty() {
            let why = "name the field of the spec that names the parent";
            problems.push(FieldProblem::new("spec.parent.field", "", why));
        }
    }
    for (index, column) in spec.columns.iter().enumerate() {
        if column.name.is_empty() {
            problems.push(FieldProblem::new(format!("spec.columns[{index}].name"), "", "is needed"));
        }
        if !column.path.starts_with('.') {
            let why = "must start with a dot, as in .spec.region";
            problems.push(FieldProblem::new(format!("spec.columns[{index}].path"), &column.path, why));
        }
    }
    problems.extend(TypeRules::compile(spec).err().unwrap_or_default());
    problems
}

fn check_names(name: &str, spec: &ResourceTypeSpec, problems: &mut Vec<FieldProblem>) {
    let names = &spec.names;
    let is_kind = names.kind.starts_with(|c: char| c.is_ascii_uppercase())
        && names.kind.chars().all(|c| c.is_ascii_alphanumeric());
    if !is_kind || names.kind.len() > 63 {
        let why = "must be CamelCase: a capital letter, then letters and digits, at most 63";
        problems.push(FieldProblem::new("spec.names.kind", &names.kind, why));
    }
    if let Err(why) = name_rules::dns1123_label(&names.plural) {
        problems.push(FieldProblem::new("spec.names.plural", &names.plural, why));
    } else if names.plural != name {
        let why = format!("must be the name of the ResourceType, {name:?}");
        problems.push(FieldProblem::new("spec.names.plural", &names.plural, why));
    }
    let singular = std::iter::once(("spec.names.singular".to_owned(), names.singular()));
    let short = names.short_names.iter().enumerate();
    let short = short.map(|(index, name)| (format!("spec.names.shortNames[{index}]"), name.clone()));
    let mut seen = BTreeSet::from([names.plural.clone()]);
    for (field, text) in singular.chain(short) {
        if let Err(why) = name_rules::dns1123_label(&text) {
            problems.push(FieldProblem::new(field, text, why));
        } else if !seen.insert(text.clone()) && text != names.plural {
            problems.push(FieldProblem::new(field, text, "is given twice"));
        }
    }
}

fn check_adapters(spec: &ResourceTypeSpec, problems: &mut Vec<FieldProblem>) {
    if spec.adapters.len() > MOST_ADAPTERS {
        let why = format!("a type requires at most {MOST_ADAPTERS} adapters");
        problems.push(FieldProblem::new("spec.adapters", spec.adapters.len(), why));
    }
    let mut seen = BTreeSet::new();
    for (index, adapter) in spec.adapters.iter().enumerate() {
        let field = format!("spec.adapters[{index}]");
        if let Err(why) = name_rules::dns1123_label(adapter) {
            problems.push(FieldProblem::new(field, adapter, why));
        } else if !seen.insert(adapter) {
            problems.push(FieldProblem::new(field, adapter, "is given twice"));
        }
    }
}

/// The parent a spec names, if its type has one.
pub fn parent_name<'a>(spec: &ResourceTypeSpec, managed: &'a Json) -> Option<&'a str> {
    let parent = spec.parent.as_ref()?;
    managed.get(&parent.field)?.as_str()
}
