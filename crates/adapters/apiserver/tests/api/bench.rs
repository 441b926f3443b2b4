//! What a request of any sort is held against: a server with one object of each kind, and a judge of its answers.

use std::cell::RefCell;
use std::rc::Rc;

use hyper::header::{ACCEPT, CONTENT_TYPE};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::good_documents::good_objects;
use crate::server::{Answer, Ask, MERGE_PATCH, Server, TABLE, path};

/// The revision of a server that holds a token, the key of attempt tokens and one object of each kind.
pub const FRESH: u64 = 14;

pub type Outcome = Result<(), TestCaseError>;

/// A server that holds one object of each kind, made anew whenever something was changed.
pub struct Bench {
    runtime: Runtime,
    server: RefCell<Rc<Server>>,
}

impl Bench {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let server = runtime.block_on(furnished());
        Self { runtime, server: RefCell::new(Rc::new(server)) }
    }

    /// The object of this kind.
    pub fn get(&self, plural: &str) -> Value {
        let server = self.server.borrow().clone();
        self.runtime.block_on(server.get(&format!("{}/a", path(plural)))).json()
    }

    /// Sends a request, judges its answer, and lets `and_then` look at a good one.
    pub fn ask(&self, ask: Ask, and_then: impl AsyncFnOnce(&Server, &Answer) -> Outcome) -> Outcome {
        let server = self.server.borrow().clone();
        let outcome = self.runtime.block_on(async {
            let answer = server.glance(ask).await;
            judge(&answer)?;
            if answer.code >= 400 {
                prop_assert_eq!(server.revision(), FRESH, "a refused request changed something");
                return Ok(());
            }
            and_then(&server, &answer).await
        });
        if server.revision() != FRESH {
            self.server.replace(Rc::new(self.runtime.block_on(furnished())));
        }
        outcome
    }
}

async fn furnished() -> Server {
    let server = Server::start().await;
    for (plural, object) in good_objects() {
        // The second task is of the same name.
        drop(server.post(&path(plural), &object).await);
    }
    assert_eq!(server.revision(), FRESH);
    server
}

/// What every answer must be.
fn judge(answer: &Answer) -> Outcome {
    if answer.code < 400 {
        prop_assert!((200..300).contains(&answer.code), "{:?}", answer);
        return Ok(());
    }
    let status = serde_json::from_slice::<Value>(&answer.bytes);
    prop_assert!(status.is_ok(), "{:?}", answer);
    let status = status.unwrap();
    // Kubernetes answers so to a client that knows more than the server.
    let ahead = status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge";
    prop_assert!(answer.code < 500 || answer.code == 504 && ahead, "{:?}", answer);
    prop_assert_eq!((&status["kind"], &status["apiVersion"]), (&json!("Status"), &json!("v1")));
    prop_assert_eq!((&status["status"], &status["code"]), (&json!("Failure"), &json!(answer.code)));
    for field in ["message", "reason"] {
        prop_assert!(status[field].as_str().is_some_and(|text| !text.is_empty()), "{}: {:?}", field, answer);
    }
    prop_assert!(answer.headers[CONTENT_TYPE].to_str().unwrap().starts_with("application/json"));
    Ok(())
}

/// What was stored reads back as it was answered, in every form, and storing it again changes nothing.
pub async fn judge_stored(server: &Server, plural: &str, answer: &Answer) -> Outcome {
    let object = answer.json();
    let at = server.revision();
    let target = format!("{}/{}", path(plural), object["metadata"]["name"].as_str().unwrap());
    let stored = server.get(&target).await;
    prop_assert_eq!(&stored.bytes, &answer.bytes, "a get shows what was answered");
    let as_form = async |form: &str| server.send(Ask::new("GET", &target).header(ACCEPT, form)).await;
    let table = as_form(TABLE).await.json();
    let columns = table["columnDefinitions"].as_array().unwrap().len();
    prop_assert_eq!(table["rows"][0]["cells"].as_array().unwrap().len(), columns);
    let again = server.put(&target, &object).await;
    prop_assert_eq!(again.code, 200, "{:?}", again);
    prop_assert_eq!(&again.bytes, &answer.bytes, "what was read can be written back and changes nothing");
    if depth(&object) < 60 {
        let yaml = as_form("application/yaml").await;
        let from_yaml: Result<Value, _> = serde_saphyr::from_slice(&yaml.bytes);
        prop_assert_eq!(from_yaml.ok(), Some(object.clone()), "{}", String::from_utf8_lossy(&yaml.bytes));
        let yaml = Ask::new("PUT", &target).body(yaml.bytes).header(CONTENT_TYPE, "application/yaml");
        prop_assert_eq!(&server.send(yaml).await.bytes, &answer.bytes, "also as YAML");
    }
    let nothing = server.patch(&target, MERGE_PATCH, &json!({})).await;
    prop_assert_eq!(&nothing.bytes, &answer.bytes, "a patch of nothing changes nothing");
    prop_assert_eq!(server.revision(), at);
    Ok(())
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        Value::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// How often a property is tried.
const CASES: u32 = 256;

/// Runs a property on one bench.
pub fn check<S: Strategy>(strategy: S, property: impl Fn(&Bench, S::Value) -> Outcome) {
    let bench = Bench::new();
    let config = ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&strategy, |input| property(&bench, input));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}
