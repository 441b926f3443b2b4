//! Making something: fields from the schema of the API, then YAML that the server checks before anything is made.

use hyper::{Method, StatusCode};
use maud::{Markup, html};
use muster_ports::pages::Reply;
use serde_json::{Map, Value, json};

use crate::asking::API;
use crate::console::{go_to, page as as_page};
use crate::html::frame::{Page, document};
use crate::query::Query;
use crate::site::Visit;

/// What can be made here, with its plural.
const KINDS: [(&str, &str); 4] =
    [("Task", "tasks"), ("Job", "jobs"), ("Schedule", "schedules"), ("TaskGroup", "taskgroups")];
const YAML: &str = "application/yaml";

/// A field of a spec that fits into a form.
struct Field {
    name: String,
    about: String,
    sort: Sort,
}

enum Sort {
    Text,
    Number,
    Flag,
    Choice(Vec<String>),
}

/// What is to be made.
#[derive(Default)]
pub struct Draft {
    kind: String,
    fields: Vec<Field>,
    yaml: String,
    said: Option<(bool, String)>,
}

impl Draft {
    /// An empty one.
    pub fn of(visit: &Visit) -> Self {
        let kind = KINDS.iter().find(|(kind, _)| *kind == visit.query.text("kind")).unwrap_or(&KINDS[0]).0;
        Self { kind: kind.to_owned(), yaml: example(kind), ..Self::default() }
    }
}

/// What something of a kind may look like.
fn example(kind: &str) -> String {
    let command = "command: [echo, hello]";
    let spec = match kind {
        "Job" => format!(
            "  taskGroups:\n  - name: build\n    tasks:\n    - name: one\n      spec:\n        container:\n          {command}\n  - name: test\n    dependsOn: [build]\n    tasks:\n    - name: two\n      spec:\n        container:\n          {command}\n"
        ),
        "Schedule" => format!(
            "  schedulePolicy:\n    timeSpec: \"@daily\"\n  template:\n    spec:\n      container:\n        {command}\n"
        ),
        "TaskGroup" => format!("  tasks:\n  - name: one\n    spec:\n      container:\n        {command}\n"),
        _ => format!("  container:\n    {command}\n"),
    };
    format!(
        "apiVersion: muster.dev/v1alpha1\nkind: {kind}\nmetadata:\n  generateName: {}-\nspec:\n{spec}",
        kind.to_lowercase()
    )
}

/// The page.
pub fn page(draft: &Draft) -> Page {
    let fixed = html! {
        nav.tabs aria-label="Kinds" {
            @for (kind, _) in KINDS {
                a href={ "/ui/submit?kind=" (kind) } aria-current=[(kind == draft.kind).then_some("page")] { (kind) }
            }
            a href="/ui/submit/form" { "Task by form" }
        }
        @if let Some((good, said)) = &draft.said {
            p class=(if *good { "said" } else { "problem" }) role="alert" { (said) }
        }
        @if draft.fields.is_empty() { (editor(draft)) } @else { (form(draft)) }
    };
    Page { title: "Submit".to_owned(), fixed, live: html! {}, below: html! {} }
}

fn editor(draft: &Draft) -> Markup {
    html! {
        form.submit method="post" action="/ui/submit" {
            label { "Namespace " input name="namespace" value="default" required; }
            label.wide { "YAML" textarea name="yaml" rows="22" spellcheck="false" { (draft.yaml) } }
            button name="step" value="check" { "Check" }
            button name="step" value="create" { "Create" }
        }
    }
}

fn form(draft: &Draft) -> Markup {
    html! {
        form.submit.fields method="post" action="/ui/submit" {
            label { "Name " input name="metadata.name" placeholder="made up if empty"; }
            label { "Command, one word per line" textarea name="command" rows="3" placeholder="echo\nhello" {} }
            @for field in &draft.fields {
                label title=(field.about) {
                    (field.name)
                    @match &field.sort {
                        Sort::Text => input name={ "spec." (field.name) };,
                        Sort::Number => input type="number" name={ "spec." (field.name) };,
                        Sort::Flag => select name={ "spec." (field.name) } { option value="" {} option { "true" } option { "false" } },
                        Sort::Choice(words) => select name={ "spec." (field.name) } { option value="" {} @for word in words { option { (word) } } },
                    }
                    small { (field.about) }
                }
            }
            button name="step" value="fill" { "Go on to YAML" }
        }
    }
}

/// The form page, whose fields are those of the schema.
pub async fn form_page(visit: &Visit) -> Page {
    let fields = fields(visit, "Task").await;
    page(&Draft { kind: "Task by form".to_owned(), fields, ..Draft::default() })
}

async fn fields(visit: &Visit, kind: &str) -> Vec<Field> {
    let document = visit.read("/openapi/v3/apis/muster.dev/v1alpha1").await.document;
    let schemas = &document["components"]["schemas"];
    let follow = |schema: &Value| -> Value {
        let reference = schema["$ref"].as_str().or_else(|| schema["allOf"][0]["$ref"].as_str());
        let name = reference.and_then(|text| text.rsplit('/').next());
        name.map_or_else(|| schema.clone(), |name| schemas[name].clone())
    };
    let found =
        schemas.as_object().into_iter().flatten().find(|(name, _)| name.rsplit('.').next() == Some(kind));
    let Some((_, schema)) = found else { return Vec::new() };
    let spec = follow(&schema["properties"]["spec"]);
    let properties = spec["properties"].as_object().cloned().unwrap_or_default();
    properties.iter().filter_map(|(name, schema)| field(name, schema, &follow(schema))).collect()
}

fn field(name: &str, schema: &Value, followed: &Value) -> Option<Field> {
    let about = schema["description"].as_str().or(followed["description"].as_str()).unwrap_or_default();
    let words = followed["enum"]
        .as_array()
        .map(|words| words.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    let sort = match (words, followed["type"].as_str()) {
        (Some(words), _) => Sort::Choice(words),
        (None, Some("string")) => Sort::Text,
        (None, Some("integer" | "number")) => Sort::Number,
        (None, Some("boolean")) => Sort::Flag,
        _ => return None,
    };
    Some(Field { name: name.to_owned(), about: about.to_owned(), sort })
}

/// Carries out a step.
pub async fn carry_out(visit: &Visit, form: &Query) -> Reply {
    let draft = match form.text("step") {
        "fill" => Draft { kind: "Task".to_owned(), yaml: filled(form), ..Draft::default() },
        step => match send(visit, form, step == "create").await {
            Ok(made) => return go_to(&made),
            Err(draft) => draft,
        },
    };
    let code = if draft.said.as_ref().is_some_and(|(good, _)| !good) {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    as_page(code, document(visit, &page(&draft)))
}

/// The YAML of what was filled in.
fn filled(form: &Query) -> String {
    let mut spec = Map::new();
    for (name, value) in form.pairs().filter(|(_, value)| !value.is_empty()) {
        let Some(field) = name.strip_prefix("spec.") else { continue };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        spec.insert(field.to_owned(), value);
    }
    let command: Vec<_> =
        form.text("command").lines().map(str::trim).filter(|word| !word.is_empty()).collect();
    if !command.is_empty() {
        spec.insert("container".to_owned(), json!({ "command": command }));
    }
    let metadata = match form.text("metadata.name") {
        "" => json!({"generateName": "task-"}),
        name => json!({ "name": name }),
    };
    let task =
        json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": metadata, "spec": spec});
    serde_saphyr::to_string(&task).unwrap_or_default()
}

/// Has the server check or make it. Where it was made, or the draft with what is wrong.
async fn send(visit: &Visit, form: &Query, make: bool) -> Result<String, Draft> {
    let yaml = form.text("yaml").to_owned();
    let kind = yaml.lines().find_map(|line| line.strip_prefix("kind:")).map(str::trim).unwrap_or_default();
    let kind = kind.trim_matches(['"', '\'']).to_owned();
    let failed = |said: String| Draft {
        kind: kind.clone(),
        yaml: yaml.clone(),
        said: Some((false, said)),
        ..Draft::default()
    };
    let Some((_, plural)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        let known: Vec<_> = KINDS.iter().map(|(kind, _)| *kind).collect();
        return Err(failed(format!("A line `kind:` must name one of {}.", known.join(", "))));
    };
    let namespace = form.text("namespace");
    let namespace = if namespace.is_empty() { "default" } else { namespace };
    if muster_types::name_rules::dns1123_label(namespace).is_err() {
        return Err(failed(format!("{namespace:?} is not a namespace.")));
    }
    let dry = if make { "" } else { "&dryRun=All" };
    let path = format!("{API}/namespaces/{namespace}/{plural}?fieldValidation=Strict{dry}");
    let answer = visit.ask(Method::POST, &path, YAML, yaml.clone()).await;
    if !answer.code.is_success() {
        return Err(failed(answer.message().to_owned()));
    }
    if !make {
        let said = Some((true, "The server would take this.".to_owned()));
        return Err(Draft { said, ..failed(String::new()) });
    }
    let name = answer.document["metadata"]["name"].as_str().unwrap_or_default();
    Ok(match *plural {
        "taskgroups" => format!("/ui/tasks?text={name}"),
        plural => format!("/ui/{plural}/{namespace}/{name}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_filled_in_becomes_yaml() {
        let form = Query::parse(
            b"spec.priority=7&spec.kind=k&spec.suspend=true&spec.addon=&command=echo%0Aa%20b&metadata.name=",
        );
        let document: Value = serde_saphyr::from_str(&filled(&form)).unwrap();
        assert_eq!(
            document["spec"],
            json!({
                "priority": 7, "kind": "k", "suspend": true, "container": {"command": ["echo", "a b"]},
            })
        );
        assert_eq!(document["metadata"]["generateName"], "task-");
    }
}
