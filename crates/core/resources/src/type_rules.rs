//! A ResourceType, made ready to decide by: its expressions are compiled once, when the type is written or read.

use std::collections::BTreeSet;

use muster_expr::cel::{Budget, CelError, Program, Scope, Type, Value};
use muster_types::adapter_report::AVAILABLE;
use muster_types::condition::{Condition, ConditionStatus};
use muster_types::managed_resource::{EVALUATED, FORCE_DELETED, READY};
use muster_types::resource_type::{ConditionRule, ResourceTypeSpec};
use muster_types::{ManagedResource, Timestamp};
use serde_json::{Value as Json, json};

use crate::field_problem::FieldProblem;
use crate::report_check::refuse_condition_type;
use crate::root_conditions::is_decided;

/// Conditions that no rule can say.
const BUILT_IN: [&str; 4] = [AVAILABLE, READY, FORCE_DELETED, EVALUATED];
/// The reason of a condition whose rule gives none.
const BY_RULE: &str = "ByRule";
/// The reason of a condition whose rule has no value.
const RULE_FAILED: &str = "RuleFailed";
/// Characters of a reason that are kept.
const LONGEST_REASON: usize = 256;
/// Characters of a message that are kept.
const LONGEST_MESSAGE: usize = 2048;

/// Names that conditions know; the seed's `self.items` and `generationN` are among them.
const CONDITION_NAMES: [(&str, Type); 6] = [
    ("self", Type::Map),
    ("resource", Type::Map),
    ("available", Type::Bool),
    ("ready", Type::Bool),
    ("generation", Type::Int),
    ("generationN", Type::Int),
];
/// Names that `pulse.when` knows.
const PULSE_NAMES: [(&str, Type); 8] = [
    ("self", Type::Map),
    ("resource", Type::Map),
    ("available", Type::Bool),
    ("ready", Type::Bool),
    ("generation", Type::Int),
    ("generationN", Type::Int),
    ("age", Type::Duration),
    ("now", Type::Timestamp),
];

/// The rules of one type.
#[derive(Debug, Clone)]
pub struct TypeRules {
    spec: ResourceTypeSpec,
    when: Option<Program>,
    conditions: Vec<CompiledCondition>,
}

/// A condition said by expressions.
#[derive(Debug, Clone)]
struct CompiledCondition {
    r#type: String,
    when: Option<Program>,
    says: StatusRule,
}

/// Expressions for the status, the reason and the message of a condition.
#[derive(Debug, Clone)]
pub(crate) struct StatusRule {
    status: Program,
    reason: Option<Program>,
    message: Option<Program>,
}

/// What a [`StatusRule`] says.
pub(crate) struct Said {
    pub status: ConditionStatus,
    pub reason: String,
    pub message: String,
}

impl TypeRules {
    /// Compiles every expression of a type, or says what is wrong with which.
    pub fn compile(spec: &ResourceTypeSpec) -> Result<Self, Vec<FieldProblem>> {
        let mut problems = Vec::new();
        let when = compile("spec.pulse.when", &spec.pulse.when, &PULSE_NAMES, Type::Bool, &mut problems);
        let mut types = BTreeSet::new();
        let mut conditions = Vec::new();
        for (index, rule) in spec.conditions.iter().enumerate() {
            let field = format!("spec.conditions[{index}]");
            if BUILT_IN.contains(&rule.r#type.as_str()) {
                let why = "cannot be said by a rule; it always means the same";
                problems.push(FieldProblem::new(format!("{field}.type"), &rule.r#type, why));
            } else if let Some(why) = refuse_condition_type(&rule.r#type) {
                problems.push(FieldProblem::new(format!("{field}.type"), &rule.r#type, why));
            } else if !types.insert(&rule.r#type) {
                problems.push(FieldProblem::new(format!("{field}.type"), &rule.r#type, "is given twice"));
            }
            conditions.extend(compile_condition(&field, rule, &mut problems));
        }
        if problems.is_empty() { Ok(Self { spec: spec.clone(), when, conditions }) } else { Err(problems) }
    }

    /// The type as it was written.
    pub fn spec(&self) -> &ResourceTypeSpec {
        &self.spec
    }

    /// Names of the adapters that must report.
    pub fn required(&self) -> &[String] {
        &self.spec.adapters
    }

    /// True if an adapter must report.
    pub fn requires(&self, adapter: &str) -> bool {
        self.spec.adapters.iter().any(|required| required == adapter)
    }

    /// The conditions its rules say of a resource whose Available and Ready are known.
    pub(crate) fn ruled_conditions(
        &self,
        resource: &ManagedResource,
        available: bool,
        ready: bool,
        now: Timestamp,
        budget: &Budget,
    ) -> Vec<Condition> {
        if self.conditions.is_empty() {
            return Vec::new();
        }
        let document = document_of(resource);
        let scope = scope_of(&document, resource, available, ready).within(budget);
        let generation = resource.metadata.generation;
        let say = |rule: &CompiledCondition| {
            let applies = rule.when.as_ref().map_or(Ok(true), |when| when.holds(&scope));
            let said = match applies {
                Ok(false) => return None,
                Ok(true) => rule.says.say(&scope),
                Err(error) => Err(error),
            };
            let said = said.unwrap_or_else(|error| Said {
                status: ConditionStatus::Unknown,
                reason: RULE_FAILED.to_owned(),
                message: error.to_string(),
            });
            Some(Condition {
                observed_generation: Some(generation),
                ..Condition::new(&rule.r#type, said.status, said.reason, said.message, now)
            })
        };
        self.conditions.iter().filter_map(say).collect()
    }

    /// Whether a pulse that is due by age is really made.
    pub(crate) fn pulses_now(
        &self,
        resource: &ManagedResource,
        oldest: Timestamp,
        now: Timestamp,
        budget: &Budget,
    ) -> Result<bool, CelError> {
        let Some(when) = &self.when else { return Ok(true) };
        let document = document_of(resource);
        let micros = |instant: Timestamp| instant.as_second().saturating_mul(1_000_000);
        let (available, ready) = (resource.status.is_available(), resource.status.is_ready());
        let scope = scope_of(&document, resource, available, ready)
            .within(budget)
            .with("age", Value::Duration(micros(now).saturating_sub(micros(oldest))))
            .with("now", Value::Timestamp(micros(now)));
        when.holds(&scope)
    }
}

fn scope_of<'a>(document: &'a Json, resource: &ManagedResource, available: bool, ready: bool) -> Scope<'a> {
    let generation = Value::Int(resource.metadata.generation);
    Scope::default()
        .with_json("self", document)
        .with_json("resource", document)
        .with("available", Value::Bool(available))
        .with("ready", Value::Bool(ready))
        .with("generation", generation.clone())
        .with("generationN", generation)
}

/// The resource as expressions see it: the object, and under `items` the reports that decide something.
fn document_of(resource: &ManagedResource) -> Json {
    let items: Vec<_> = resource.status.adapters.iter().filter(|standing| is_decided(standing)).collect();
    let items = items.into_iter().map(|standing| {
        json!({
            "adapter": standing.adapter,
            "observedGeneration": standing.observed_generation,
            "observed_generation": standing.observed_generation,
            "observedTime": standing.observed_time,
            "conditions": standing.conditions,
            "data": standing.data,
        })
    });
    json!({
        "kind": resource.kind,
        "metadata": resource.metadata,
        "spec": resource.spec,
        "items": items.collect::<Vec<_>>(),
    })
}

fn compile_condition(
    field: &str,
    rule: &ConditionRule,
    problems: &mut Vec<FieldProblem>,
) -> Option<CompiledCondition> {
    let names = &CONDITION_NAMES;
    let when = compile(&format!("{field}.when"), &rule.when, names, Type::Bool, problems);
    let texts = [&rule.status, &rule.reason, &rule.message];
    let says = StatusRule::compile(field, texts, names, problems)?;
    Some(CompiledCondition { r#type: rule.r#type.clone(), when, says })
}

impl StatusRule {
    /// Compiles the texts for status, reason and message.
    pub(crate) fn compile(
        field: &str,
        [status, reason, message]: [&String; 3],
        names: &[(&str, Type)],
        problems: &mut Vec<FieldProblem>,
    ) -> Option<Self> {
        if status.is_empty() {
            let why = "is needed: CEL that gives true, false, or one of 'True', 'False' and 'Unknown'";
            problems.push(FieldProblem::new(format!("{field}.status"), "", why));
        }
        let status = compile_status(&format!("{field}.status"), status, names, problems);
        let reason = compile(&format!("{field}.reason"), reason, names, Type::Text, problems);
        let message = compile(&format!("{field}.message"), message, names, Type::Text, problems);
        Some(Self { status: status?, reason, message })
    }

    /// What it says now.
    pub(crate) fn say(&self, scope: &Scope<'_>) -> Result<Said, CelError> {
        let text = |program: &Option<Program>, default: &str, most: usize| match program {
            Some(program) => program.evaluate_to_text(scope).map(|text| text.chars().take(most).collect()),
            None => Ok(default.to_owned()),
        };
        Ok(Said {
            status: status_of(&self.status, scope)?,
            reason: text(&self.reason, BY_RULE, LONGEST_REASON)?,
            message: text(&self.message, "", LONGEST_MESSAGE)?,
        })
    }
}

fn status_of(program: &Program, scope: &Scope<'_>) -> Result<ConditionStatus, CelError> {
    match program.evaluate(scope)? {
        Value::Bool(true) => Ok(ConditionStatus::True),
        Value::Bool(false) => Ok(ConditionStatus::False),
        other => {
            let word = if let Value::Text(text) = &other { &**text } else { other.type_name() };
            word.parse().map_err(|_| {
                let word: String = word.chars().take(LONGEST_REASON).collect();
                let message = format!("gives {word}, not true, false, 'True', 'False' or 'Unknown'");
                CelError { line: 1, column: 1, message }
            })
        }
    }
}

/// A status is a bool or a word; anything else that is known beforehand is refused.
fn compile_status(
    field: &str,
    text: &str,
    names: &[(&str, Type)],
    problems: &mut Vec<FieldProblem>,
) -> Option<Program> {
    if text.is_empty() {
        return None;
    }
    let compiled = Program::compile(text, names, Type::Bool).or_else(|error| {
        // The mistake that is shown is the one of the more usual form.
        Program::compile(text, names, Type::Text).map_err(|_| error)
    });
    compiled.map_err(|error| problems.push(FieldProblem::new(field, text, error))).ok()
}

/// Compiles one expression; an empty text is none.
pub(crate) fn compile(
    field: &str,
    text: &str,
    names: &[(&str, Type)],
    wanted: Type,
    problems: &mut Vec<FieldProblem>,
) -> Option<Program> {
    if text.is_empty() {
        return None;
    }
    let compiled = Program::compile(text, names, wanted);
    compiled.map_err(|error| problems.push(FieldProblem::new(field, text, error))).ok()
}
