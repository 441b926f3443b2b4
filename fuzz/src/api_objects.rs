//! Objects as clients send them, in JSON and in YAML.

use serde_json::{Value, json};

use crate::Target;
use crate::api_patches::is_dry_run;
use crate::api_server::{Answer, Ask, JSON as JSON_MEDIA, Server, YAML as YAML_MEDIA, with_server};

const READ_BACK: &str = "an object is refused and nothing changed, or it reads back as it was answered in JSON, YAML and as a table, \
                         and writing it again changes nothing";

pub const JSON: Target =
    Target { name: "object_json", property: READ_BACK, run: |input| create(JSON_MEDIA, input) };
pub const YAML: Target =
    Target { name: "object_yaml", property: READ_BACK, run: |input| create(YAML_MEDIA, input) };
pub const UPDATE: Target = Target { name: "object_update", property: READ_BACK, run: update };

fn create(media: &str, input: &[u8]) {
    with_server(|server| {
        let collection = collection_for(server, input);
        let Some(answer) = server.ask(&Ask::new("POST", &collection).body(media, input)) else { return };
        if !answer.is_good() || answer.json()["kind"].as_str().is_none_or(|kind| kind.ends_with("List")) {
            return;
        }
        let made = answer.json();
        let name = made["metadata"]["name"].as_str().expect("an object has a name");
        server.judge_stored(&format!("{collection}/{name}"), &answer);
    });
}

/// The first line is a path below the API with its query; the rest is the object that is put there.
fn update(input: &[u8]) {
    with_server(|server| {
        let (line, body) = first_line(input);
        let (path, query) = line.split_once('?').unwrap_or((&line, ""));
        let target = format!("/apis/{path}");
        // Without a revision every update is refused: what is there now is what is changed.
        let Some(before) = server.ask(&Ask::new("GET", &target)).filter(Answer::is_good) else {
            return;
        };
        let body = match serde_json::from_slice::<Value>(body) {
            Ok(mut object) if object.is_object() && before.json().is_object() => {
                let before = before.json();
                if !object["metadata"].is_object() {
                    object["metadata"] = json!({});
                }
                for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
                    if object["metadata"].get(field).is_none() {
                        object["metadata"][field] = before["metadata"][field].clone();
                    }
                }
                object.to_string().into_bytes()
            }
            _ => body.to_vec(),
        };
        let asked = server.ask(&Ask::new("PUT", &format!("{target}?{query}")).body(JSON_MEDIA, body));
        let Some(answer) = asked.filter(Answer::is_good) else { return };
        if is_dry_run(query) || path.matches('/').count() > 5 && !path.ends_with("/status") {
            return;
        }
        server.judge_stored(target.trim_end_matches("/status"), &answer);
    });
}

/// The first line of an input, and the rest.
pub fn first_line(input: &[u8]) -> (String, &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let rest = input.get(end + 1..).unwrap_or_default();
    (String::from_utf8_lossy(&input[..end]).into_owned(), rest)
}

/// The collection of the kind that an object names, as far as that can be told; tasks if it cannot.
fn collection_for(server: &Server, input: &[u8]) -> String {
    let text = String::from_utf8_lossy(input);
    let kind = word_after(&text, "kind").unwrap_or_default();
    let version = word_after(&text, "apiVersion").unwrap_or_default();
    let named = json!({"apiVersion": version, "kind": kind});
    let task = json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Task"});
    server.collection_of(&named).or_else(|| server.collection_of(&task)).expect("tasks are served")
}

/// The first word that follows a key, in JSON or YAML.
fn word_after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let rest = text.split_once(key)?.1;
    let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || "\"':".contains(c));
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "./-".contains(c))).unwrap_or(rest.len());
    Some(&rest[..end])
}
