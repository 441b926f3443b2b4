//! Whatever bytes come in: no panic, no fault of ours, a refusal is a `Status` and changes nothing, and what is
//! accepted reads back as it was answered.

use std::cell::RefCell;
use std::rc::Rc;

use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::mutation::{good_objects, good_patches, spoiled};
use crate::server::{
    APPLY_PATCH, Answer, Ask, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Server, TABLE, path,
};

const CASES: u32 = 256;
/// The revision of a server that holds a token and one object of each kind.
const FRESH: u64 = 7;

type Outcome = Result<(), TestCaseError>;

/// A server that holds one object of each kind, made anew whenever something was changed.
struct Bench {
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
    fn get(&self, plural: &str) -> Value {
        let server = self.server.borrow().clone();
        self.runtime.block_on(server.get(&format!("{}/a", path(plural)))).json()
    }

    /// Sends a request, judges its answer, and lets `and_then` look at a good one.
    fn ask(&self, ask: Ask, and_then: impl AsyncFnOnce(&Server, &Answer) -> Outcome) -> Outcome {
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
async fn judge_stored(server: &Server, plural: &str, answer: &Answer) -> Outcome {
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

/// Runs a property on one bench.
fn check<S: Strategy>(strategy: S, property: impl Fn(&Bench, S::Value) -> Outcome) {
    let bench = Bench::new();
    let config = ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() };
    let outcome = TestRunner::new(config).run(&strategy, |input| property(&bench, input));
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// Bytes from anything to nearly a document.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let tokens = vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "\"kind\":\"Task\"",
        "\"apiVersion\":\"muster.dev/v1alpha1\"",
        "\"metadata\":{",
        "null",
        "true",
        "-",
        "- ",
        "\n",
        "  ",
        "1e5",
        "0",
        "---\n",
        "...",
        "&a ",
        "*a",
        "|",
        ">",
        "!!str",
        "? ",
        "# ",
        "%YAML 1.2\n",
        "<<: ",
        "\\u0000",
        "\\ud800",
        "kind: Task\n",
        "op",
        "/",
        "~",
    ];
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..64),
        ".{0,64}".prop_map(String::into_bytes),
        prop::collection::vec(prop::sample::select(tokens), 0..24)
            .prop_map(|tokens| tokens.concat().into_bytes()),
    ]
}

/// Everything that takes a body.
fn ways_in() -> Vec<(&'static str, String, &'static str)> {
    let (all, one) = (path("tasks"), format!("{}/a", path("tasks")));
    let (status, apply) = (format!("{one}/status"), format!("{one}?fieldManager=m&force=true"));
    vec![
        ("POST", all.clone(), "application/json"),
        ("POST", all.clone(), "application/yaml"),
        ("PUT", one.clone(), "application/json"),
        ("PUT", one.clone(), "application/yaml"),
        ("PUT", status.clone(), "application/json"),
        ("PATCH", one.clone(), JSON_PATCH),
        ("PATCH", one.clone(), MERGE_PATCH),
        ("PATCH", one.clone(), STRATEGIC_PATCH),
        ("PATCH", status, MERGE_PATCH),
        ("PATCH", apply, APPLY_PATCH),
        ("DELETE", one, "application/json"),
        ("DELETE", all, "application/yaml"),
        ("POST", "/tokens".to_owned(), "application/json"),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".to_owned(), "application/json"),
        ("POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews".to_owned(), "application/json"),
        ("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews".to_owned(), "application/json"),
    ]
}

#[test]
fn no_bytes_in_any_body_harm() {
    check((prop::sample::select(ways_in()), bytes()), |bench, ((method, target, media), body)| {
        let ask = Ask::new(method, &target).body(body).header(CONTENT_TYPE, media);
        bench.ask(ask, async |_, _| Ok(()))
    });
}

#[test]
fn a_spoiled_object_is_refused_or_created_as_answered() {
    check((prop::sample::select(good_objects()), spoiled()), |bench, ((plural, good), spoiled)| {
        let mut good = good;
        good["metadata"]["name"] = json!("new");
        let media = if spoiled.yaml { "application/yaml" } else { "application/json" };
        let ask = Ask::new("POST", &path(plural)).body(spoiled.apply(&good)).header(CONTENT_TYPE, media);
        bench.ask(ask, async |server, answer| judge_stored(server, plural, answer).await)
    });
}

#[test]
fn a_spoiled_update_is_refused_or_stored_as_answered() {
    let strategy = (prop::sample::select(good_objects()), spoiled(), any::<bool>());
    check(strategy, |bench, ((plural, mut good), spoiled, of_status)| {
        let target = format!("{}/a", path(plural));
        good["metadata"] = bench.get(plural)["metadata"].clone();
        if of_status {
            good["status"] = json!({
                "state": "Running", "attempt": 1, "started": "2026-11-15T14:00:00Z", "message": "m", "total": 10,
                "attempts": [{"number": 1, "runtime": "pod", "startedAt": "2026-11-15T14:00:00Z", "exitCode": 1}],
                "errors": [{"severity": "Error", "description": "d"}], "result": {"any": 1},
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-15T14:00:00Z"}],
            });
        }
        let media = if spoiled.yaml { "application/yaml" } else { "application/json" };
        let target = if of_status { format!("{target}/status") } else { target };
        let ask = Ask::new("PUT", &target).body(spoiled.apply(&good)).header(CONTENT_TYPE, media);
        bench.ask(ask, async |server, answer| judge_stored(server, plural, answer).await)
    });
}

#[test]
fn a_spoiled_patch_is_refused_or_stored_as_answered() {
    let plurals: Vec<_> = good_objects().into_iter().map(|(plural, _)| plural).collect();
    let strategy =
        (prop::sample::select(good_patches()), prop::sample::select(plurals), spoiled(), any::<bool>());
    check(strategy, |bench, ((media, good), plural, mut spoiled, of_status)| {
        spoiled.yaml &= media == APPLY_PATCH;
        let part = if of_status { "/status" } else { "" };
        let query = if media == APPLY_PATCH { "?fieldManager=m&force=true" } else { "" };
        let target = format!("{}/a{part}{query}", path(plural));
        let ask = Ask::new("PATCH", &target).body(spoiled.apply(&good)).header(CONTENT_TYPE, media);
        bench.ask(ask, async |server, answer| judge_stored(server, plural, answer).await)
    });
}

#[test]
fn spoiled_delete_options_are_refused_or_obeyed() {
    let good = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "propagationPolicy": "Foreground",
        "preconditions": {"uid": null, "resourceVersion": null}, "dryRun": [],
    });
    check((spoiled(), any::<bool>()), move |bench, (spoiled, of_all)| {
        let target = if of_all { path("tasks") } else { format!("{}/a", path("tasks")) };
        let ask = Ask::new("DELETE", &target).body(spoiled.apply(&good));
        bench.ask(ask, async |server, _| {
            let left = server.get(&format!("{}/a", path("tasks"))).await.json();
            prop_assert!(
                left["metadata"]["deletionTimestamp"].is_string() || server.revision() == FRESH,
                "{}",
                left
            );
            Ok(())
        })
    });
}

fn parameter() -> impl Strategy<Value = String> {
    let names = vec![
        "labelSelector",
        "fieldSelector",
        "limit",
        "continue",
        "watch",
        "allowWatchBookmarks",
        "sendInitialEvents",
        "resourceVersion",
        "resourceVersionMatch",
        "timeoutSeconds",
        "dryRun",
        "fieldValidation",
        "fieldManager",
        "force",
        "includeObject",
        "propagationPolicy",
        "orphanDependents",
        "gracePeriodSeconds",
        "pretty",
        "",
    ];
    let values = vec![
        "",
        "1",
        "0",
        "-1",
        "true",
        "false",
        "All",
        "Strict",
        "Exact",
        "NotOlderThan",
        "Orphan",
        "Metadata",
        "5",
        "7",
        "8",
        "99999999999999999999",
        "a=b",
        "a in (b,c)",
        "!a",
        "a>1",
        "metadata.name=a",
        "status.state!=Running",
        "Ny9kZWZhdWx0L2E",
    ];
    let selector = "[a-z!=<>(), .\\\\/]{0,20}";
    let value = prop_oneof![
        3 => prop::sample::select(values).prop_map(str::to_owned),
        2 => selector.prop_map(|text| text),
        1 => ".{0,12}",
    ];
    (prop::sample::select(names), value, 0..8_u8).prop_map(|(name, value, raw)| {
        let encode = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
            // Escapes that are not: now and then the encoding is wrong too.
            _ if raw == 0 => "%zz".to_owned(),
            _ => format!("%{byte:02x}"),
        };
        format!("{name}={}", value.bytes().map(encode).collect::<String>())
    })
}

#[test]
fn no_query_harms() {
    let query = prop::collection::vec(parameter(), 0..5).prop_map(|parameters| parameters.join("&"));
    let methods = prop::sample::select(vec!["GET", "GET", "GET", "DELETE", "POST", "PUT", "PATCH", "HEAD"]);
    check((methods, any::<bool>(), query), |bench, (method, named, query)| {
        let target = if named { format!("{}/a", path("tasks")) } else { path("tasks") };
        let ask = Ask::new(method, &format!("{target}?{query}")).header(CONTENT_TYPE, MERGE_PATCH).body("{}");
        bench.ask(ask, async |_, _| Ok(()))
    });
}

#[test]
fn no_path_harms() {
    let segments = vec![
        "api",
        "apis",
        "v1",
        "muster.dev",
        "v1alpha1",
        "namespaces",
        "default",
        "tasks",
        "a",
        "status",
        "openapi",
        "v3",
        "tokens",
        "admin",
        "version",
        "healthz",
        "metrics",
        "",
        ".",
        "..",
        "%2F",
        "%2e%2e",
        "%00",
        "%",
        "%ff",
        "authorization.k8s.io",
        "selfsubjectaccessreviews",
        "applications",
        "log",
    ];
    let segment = prop_oneof![
        4 => prop::sample::select(segments).prop_map(str::to_owned),
        1 => "[!-~&&[^?#<>\"{}`^|\\\\]]{0,12}",
    ];
    let target = prop::collection::vec(segment, 0..9).prop_map(|segments| format!("/{}", segments.join("/")));
    let methods =
        prop::sample::select(vec!["GET", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"]);
    check((methods, target), |bench, (method, target)| {
        prop_assume!(target.parse::<hyper::Uri>().is_ok());
        bench.ask(Ask::new(method, &target), async |_, _| Ok(()))
    });
}

#[test]
fn no_header_harms() {
    let words = vec![
        "application/json",
        "application/yaml",
        "*/*",
        "as=Table",
        "v=v1",
        "v=v1beta1",
        "g=meta.k8s.io",
        "as=APIGroupDiscoveryList",
        ";",
        ",",
        "=",
        " ",
        "q=0.5",
        "Bearer ",
        "bearer",
        "Basic ",
        "muster_",
        "charset=utf-8",
        "application/merge-patch+json",
    ];
    let header = || {
        prop_oneof![
            prop::collection::vec(prop::sample::select(words.clone()), 0..8)
                .prop_map(|words| words.concat().into_bytes()),
            prop::collection::vec(any::<u8>(), 0..40),
        ]
        .prop_filter_map("is no header", |bytes| HeaderValue::from_bytes(&bytes).ok())
    };
    let methods = prop::sample::select(vec!["GET", "POST", "PATCH", "DELETE"]);
    let targets =
        prop::sample::select(vec!["/apis".to_owned(), path("tasks"), format!("{}/a", path("tasks"))]);
    let strategy = (methods, targets, header(), header(), prop::option::of(header()));
    check(strategy, |bench, (method, target, accept, content, authorization)| {
        let ask =
            Ask::new(method, &target).body("{}").raw_header(ACCEPT, accept).raw_header(CONTENT_TYPE, content);
        let ask = match authorization {
            Some(authorization) => ask.raw_header(AUTHORIZATION, authorization),
            None => ask,
        };
        bench.ask(ask, async |_, _| Ok(()))
    });
}

#[test]
fn a_selector_that_is_taken_selects_the_same_in_a_list_a_watch_and_a_delete() {
    let labels = "[a-c]{1,2}( ?(=|==|!=|in|notin|>|<) ?\\(?[a-c0-3]{0,2}(,[a-c])?\\)?)?(,!?[a-c])?";
    let fields =
        "(metadata\\.name|metadata\\.namespace|status\\.state|spec\\.kind|none)(=|==|!=)[a-zA-Z\\\\=,]{0,8}";
    let encode = |text: &str| {
        text.bytes().flat_map(|byte| format!("%{byte:02x}").into_bytes()).map(char::from).collect::<String>()
    };
    check((labels, fields, any::<bool>()), |bench, (labels, fields, both)| {
        let fields = if both { format!("&fieldSelector={}", encode(&fields)) } else { String::new() };
        let query = format!("labelSelector={}{fields}", encode(&labels));
        bench.ask(Ask::new("GET", &format!("{}?{query}", path("tasks"))), async |server, answer| {
            let listed = answer.json()["items"].as_array().unwrap().len();
            let watched = server.watch(&format!("{}?watch=1&{query}", path("tasks"))).await.ready().len();
            let deleted = server.delete(&format!("{}?dryRun=All&{query}", path("tasks"))).await.json();
            prop_assert_eq!((watched, deleted["items"].as_array().unwrap().len()), (listed, listed));
            Ok(())
        })
    });
}
