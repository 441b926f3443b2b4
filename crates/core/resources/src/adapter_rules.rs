//! An Adapter, made ready to act: its expressions and templates are compiled once, when it is written or read.

use std::collections::BTreeSet;

use muster_expr::cel::{Program, Template, Type};
use muster_types::adapter::AdapterSpec;
use muster_types::adapter_action::HttpAction;
use muster_types::task_template::EmbeddedTask;
use serde_json::Value as Json;

use crate::field_problem::FieldProblem;
use crate::report_check::refuse_condition_type;
use crate::type_rules::{StatusRule, compile};

/// What expressions of an adapter know before it acts.
const BEFORE: [(&str, Type); 5] = [
    ("resource", Type::Map),
    ("event", Type::Map),
    ("env", Type::Map),
    ("params", Type::Map),
    ("done", Type::List),
];

/// The rules of one adapter.
#[derive(Debug, Clone)]
pub struct AdapterRules {
    /// Its name.
    pub name: String,
    /// As it was written.
    pub spec: AdapterSpec,
    /// Its params, in order.
    pub params: Vec<(String, Program)>,
    /// What must hold, and what to say if it does not.
    pub preconditions: Vec<(Program, String)>,
    /// What it does.
    pub action: ActionRules,
    /// What it does when the resource is deleted.
    pub delete: Option<ActionRules>,
    /// Conditions that its report says.
    pub(crate) report: Vec<(String, StatusRule)>,
    /// The data of its report.
    pub(crate) report_data: Option<Program>,
}

/// What an adapter does.
#[derive(Debug, Clone)]
pub enum ActionRules {
    /// Makes a task.
    Task(Template),
    /// Applies a manifest.
    Manifest(Template),
    /// Calls a URL.
    Http(Box<HttpRules>),
    /// Deletes what was applied.
    DeleteManifest(Template),
}

/// A call, and what its answers mean.
#[derive(Debug, Clone)]
pub struct HttpRules {
    /// Everything that is sent.
    pub request: Template,
    /// The work goes on.
    pub in_progress: Option<Program>,
    /// The work is done.
    pub succeeded: Option<Program>,
    /// The work failed.
    pub failed: Option<Program>,
}

impl AdapterRules {
    /// Compiles every expression of an adapter, or says what is wrong with which.
    pub fn compile(name: &str, spec: &AdapterSpec) -> Result<Self, Vec<FieldProblem>> {
        let mut problems = Vec::new();
        let params = compile_params(spec, &mut problems);
        let preconditions = compile_preconditions(spec, &mut problems);
        let action = compile_action(spec, &mut problems);
        let delete = compile_delete(spec, &mut problems);
        let (report, report_data) = compile_report(spec, action.as_ref(), &mut problems);
        if spec.lifecycle.ttl.is_some_and(muster_types::Duration::is_zero) {
            problems.push(FieldProblem::new("spec.lifecycle.ttl", "0s", "must be longer than nothing"));
        }
        match action {
            Some(action) if problems.is_empty() => Ok(Self {
                name: name.to_owned(),
                spec: spec.clone(),
                params,
                preconditions,
                action,
                delete,
                report,
                report_data,
            }),
            _ => Err(problems),
        }
    }
}

fn compile_params(spec: &AdapterSpec, problems: &mut Vec<FieldProblem>) -> Vec<(String, Program)> {
    let mut seen = BTreeSet::new();
    let mut params = Vec::new();
    for (index, param) in spec.params.iter().enumerate() {
        let field = format!("spec.params[{index}]");
        let is_name = param.name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && param.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name {
            let why = "must consist of letters, digits and '_', so that expressions can say params.name";
            problems.push(FieldProblem::new(format!("{field}.name"), &param.name, why));
        } else if !seen.insert(&param.name) {
            problems.push(FieldProblem::new(format!("{field}.name"), &param.name, "is given twice"));
        }
        if param.value.is_empty() {
            let why = "is needed: CEL that gives the value";
            problems.push(FieldProblem::new(format!("{field}.value"), "", why));
        }
        let value = compile(&format!("{field}.value"), &param.value, &BEFORE, Type::Any, problems);
        params.extend(value.map(|value| (param.name.clone(), value)));
    }
    params
}

fn compile_preconditions(spec: &AdapterSpec, problems: &mut Vec<FieldProblem>) -> Vec<(Program, String)> {
    let mut preconditions = Vec::new();
    for (index, precondition) in spec.preconditions.iter().enumerate() {
        let field = format!("spec.preconditions[{index}].expression");
        if precondition.expression.is_empty() {
            problems.push(FieldProblem::new(&field, "", "is needed: CEL that gives true or false"));
        }
        let program = compile(&field, &precondition.expression, &BEFORE, Type::Bool, problems);
        let message = if precondition.message.is_empty() {
            format!("not true: {}", precondition.expression)
        } else {
            precondition.message.clone()
        };
        preconditions.extend(program.map(|program| (program, message)));
    }
    preconditions
}

fn compile_action(spec: &AdapterSpec, problems: &mut Vec<FieldProblem>) -> Option<ActionRules> {
    match (&spec.task, &spec.manifest, &spec.http) {
        (Some(task), None, None) => compile_task("spec.task", task, problems),
        (None, Some(manifest), None) => {
            check_manifest(&manifest.template, problems);
            let template = compile_template("spec.manifest.template", &manifest.template, problems)?;
            Some(ActionRules::Manifest(template))
        }
        (None, None, Some(http)) => compile_http("spec.http", http, problems),
        _ => {
            problems.push(FieldProblem::new("spec", "", "give exactly one of task, manifest and http"));
            None
        }
    }
}

fn compile_delete(spec: &AdapterSpec, problems: &mut Vec<FieldProblem>) -> Option<ActionRules> {
    match (spec.delete.as_ref(), spec.manifest.as_ref()) {
        (None, None) => None,
        (None, Some(manifest)) => {
            let template = Template::compile(&manifest.template, &BEFORE).ok()?;
            Some(ActionRules::DeleteManifest(template))
        }
        (Some(delete), _) => match (&delete.task, &delete.http) {
            (Some(task), None) => compile_task("spec.delete.task", task, problems),
            (None, Some(http)) => compile_http("spec.delete.http", http, problems),
            _ => {
                problems.push(FieldProblem::new("spec.delete", "", "give exactly one of task and http"));
                None
            }
        },
    }
}

fn compile_task(field: &str, task: &EmbeddedTask, problems: &mut Vec<FieldProblem>) -> Option<ActionRules> {
    let spec = &task.spec;
    let has_program = spec.container.is_some()
        || !spec.containers.is_empty()
        || !spec.addon.is_empty()
        || !spec.kind.is_empty();
    if !has_program {
        let why = "has nothing to run; give a container, an addon or a kind";
        problems.push(FieldProblem::new(format!("{field}.spec"), "", why));
    }
    let document = serde_json::to_value(task).ok()?;
    let template = compile_template(field, &document, problems)?;
    // Fields of a task are texts; only its free documents take values as they are.
    let template = template.map_entries(|_, part| {
        part.map_entries(
            |key, value| if matches!(key, "data" | "config") { value } else { value.into_text() },
        )
    });
    Some(ActionRules::Task(template))
}

fn compile_template(field: &str, document: &Json, problems: &mut Vec<FieldProblem>) -> Option<Template> {
    let compiled = Template::compile(document, &BEFORE);
    compiled
        .map_err(|error| {
            problems.push(FieldProblem::new(format!("{field}{}", error.path), "", error.message));
        })
        .ok()
}

fn check_manifest(template: &Json, problems: &mut Vec<FieldProblem>) {
    for name in ["apiVersion", "kind"] {
        if template.get(name).and_then(Json::as_str).is_none_or(str::is_empty) {
            problems.push(FieldProblem::new(format!("spec.manifest.template.{name}"), "", "is needed"));
        }
    }
    let metadata = template.get("metadata");
    if metadata.and_then(|metadata| metadata.get("name")).and_then(Json::as_str).is_none_or(str::is_empty) {
        let why = "is needed, so that applying twice does nothing twice";
        problems.push(FieldProblem::new("spec.manifest.template.metadata.name", "", why));
    }
}

fn compile_http(field: &str, http: &HttpAction, problems: &mut Vec<FieldProblem>) -> Option<ActionRules> {
    if !http.url.starts_with("http://") && !http.url.starts_with("https://") {
        let why = "must start with http:// or https://";
        problems.push(FieldProblem::new(format!("{field}.url"), &http.url, why));
    }
    let names = after("response");
    let mut program =
        |name: &str, text: &str| compile(&format!("{field}.{name}"), text, &names, Type::Bool, problems);
    let (in_progress, succeeded, failed) = (
        program("inProgress", &http.in_progress),
        program("succeeded", &http.succeeded),
        program("failed", &http.failed),
    );
    // Expressions over the answer are no part of what is sent.
    let sent = HttpAction {
        in_progress: String::new(),
        succeeded: String::new(),
        failed: String::new(),
        ..http.clone()
    };
    let request = compile_template(field, &serde_json::to_value(sent).ok()?, problems)?;
    let request = request.map_entries(|key, value| if key == "body" { value } else { value.into_text() });
    Some(ActionRules::Http(Box::new(HttpRules { request, in_progress, succeeded, failed })))
}

/// The names that are known after an adapter acted, what it got among them.
fn after(got: &'static str) -> Vec<(&'static str, Type)> {
    let mut names = BEFORE.to_vec();
    names.push((got, Type::Any));
    names
}

type CompiledReport = (Vec<(String, StatusRule)>, Option<Program>);

fn compile_report(
    spec: &AdapterSpec,
    action: Option<&ActionRules>,
    problems: &mut Vec<FieldProblem>,
) -> CompiledReport {
    let names = after(action.map_or("task", ActionRules::gets));
    let mut seen = BTreeSet::new();
    let mut report = Vec::new();
    for (index, rule) in spec.report.iter().enumerate() {
        let field = format!("spec.report[{index}]");
        if let Some(why) = refuse_condition_type(&rule.r#type) {
            problems.push(FieldProblem::new(format!("{field}.type"), &rule.r#type, why));
        } else if !seen.insert(&rule.r#type) {
            problems.push(FieldProblem::new(format!("{field}.type"), &rule.r#type, "is given twice"));
        }
        let texts = [&rule.status, &rule.reason, &rule.message];
        let says = StatusRule::compile(&field, texts, &names, problems);
        report.extend(says.map(|says| (rule.r#type.clone(), says)));
    }
    (report, compile("spec.reportData", &spec.report_data, &names, Type::Any, problems))
}

impl ActionRules {
    /// What expressions call what it got.
    pub fn gets(&self) -> &'static str {
        match self {
            Self::Task(_) => "task",
            Self::Manifest(_) | Self::DeleteManifest(_) => "object",
            Self::Http(_) => "response",
        }
    }
}
