//! Types, resources and reports that make no sense. Each is refused with words, and nothing changes.

use muster_e2e::http::Request;
use serde_json::{Value, json};

use crate::place::{Place, blamed, check_status};

const TYPES: &str = "/apis/muster.dev/v1alpha1/resourcetypes";

/// A kind of its own in a namespace of its own, with one resource `a`.
struct Declared {
    place: Place<'static>,
    plural: String,
}

impl Declared {
    /// Declares a kind; `word` tells it from those of other tests.
    fn new(word: &str) -> Self {
        let declared = Self { place: Place::new(), plural: format!("{word}s") };
        let answer = declared.place.http().post(TYPES, &declared.resource_type(&json!({})).to_string());
        assert_eq!(answer.code, 201, "{}", answer.text());
        let answer = declared.post(&declared.resource("a", &json!({"n": 1}))).send();
        assert_eq!(answer.code, 201, "{}", answer.text());
        declared
    }

    fn kind(&self) -> String {
        let word = self.plural.trim_end_matches('s');
        format!("{}{}", word[..1].to_uppercase(), &word[1..])
    }

    /// Its type, with some of the spec changed.
    fn resource_type(&self, change: &Value) -> Value {
        let mut spec = json!({
            "names": {"kind": self.kind(), "plural": self.plural},
            "adapters": ["dns"],
            "schema": {"type": "object", "properties": {
                "n": {"type": "integer", "minimum": 1},
                "list": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "string"}}}},
            }},
        });
        for (field, value) in change.as_object().expect("a change is an object") {
            spec[field] = value.clone();
        }
        json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": "ResourceType", "metadata": {"name": self.plural}, "spec": spec,
        })
    }

    fn resource(&self, name: &str, spec: &Value) -> Value {
        json!({
            "apiVersion": "resources.muster.dev/v1alpha1", "kind": self.kind(), "metadata": {"name": name},
            "spec": spec,
        })
    }

    fn path(&self) -> String {
        format!("/apis/resources.muster.dev/v1alpha1/namespaces/{}/{}", self.place.namespace(), self.plural)
    }

    fn post(&self, object: &Value) -> Request {
        self.place.http().request("POST", &self.path()).json(&object.to_string())
    }

    fn report(&self, report: &Value) -> Request {
        self.place.http().request("PUT", &format!("{}/a/statuses", self.path())).json(&report.to_string())
    }

    fn read(&self) -> Value {
        self.place.http().get(&format!("{}/a", self.path())).json()
    }

    /// Checks that a request is refused and that the resource `a` is as it was.
    #[track_caller]
    fn refuses(&self, request: Request, code: u16, reason: &str, words: &[&str]) -> Value {
        let before = self.read();
        let status = check_status(&request.send(), code, reason, words);
        assert_eq!(self.read(), before);
        status
    }
}

fn good_report() -> Value {
    let conditions = ["Applied", "Available", "Health"].map(|name| json!({"type": name, "status": "True"}));
    json!({"adapter": "dns", "observedGeneration": 1, "conditions": conditions})
}

/// A good report with some fields changed.
fn report(change: &Value) -> Value {
    let mut report = good_report();
    for (field, value) in change.as_object().expect("a change is an object") {
        report[field] = value.clone();
    }
    report
}

#[test]
fn specs_that_the_schema_does_not_allow_are_refused_with_the_path() {
    let declared = Declared::new("plain");
    for (spec, field) in [
        (json!({"n": 0}), "spec.n"),
        (json!({"n": "many"}), "spec.n"),
        (json!({"list": [{"x": "good"}, {"x": 2}]}), "spec.list[1].x"),
        (json!({"list": {}}), "spec.list"),
        (json!([1]), "spec"),
        (json!("text"), "spec"),
    ] {
        let request = declared.post(&declared.resource("b", &spec));
        let status = declared.refuses(request, 422, "Invalid", &[field]);
        assert_eq!(blamed(&status), [field], "{status}");
    }
    let unknown = declared.post(&declared.resource("b", &json!({"list": [{"y": 1}]})));
    let strict =
        declared.place.http().request("POST", &format!("{}?fieldValidation=Strict", declared.path()));
    let body = declared.resource("b", &json!({"list": [{"y": 1}]})).to_string();
    declared.refuses(strict.json(&body), 400, "BadRequest", &["spec.list[0].y"]);
    assert_eq!(unknown.send().json()["spec"], json!({"list": [{}]}));
}

#[test]
fn expressions_that_do_not_compile_are_refused_with_their_position() {
    let declared = Declared::new("formula");
    let rule = |status: &str| json!({"conditions": [{"type": "Small", "status": status}]});
    let path = format!("{TYPES}/{}", declared.plural);
    for (change, field, words) in [
        (rule("self.items.all(i,"), "spec.conditions[0].status", ["line 1", "column"]),
        (rule("self.spec.n +"), "spec.conditions[0].status", ["line 1", "column"]),
        (rule("1 + 1"), "spec.conditions[0].status", ["line 1", "bool"]),
        (rule("nobody.knows"), "spec.conditions[0].status", ["line 1", "nobody"]),
        (rule(&"1 + ".repeat(5000)), "spec.conditions[0].status", ["4096", "bytes"]),
        (json!({"pulse": {"when": "age > 'x'"}}), "spec.pulse.when", ["line 1", "column"]),
        (
            json!({"conditions": [{"type": "Ready", "status": "true"}]}),
            "spec.conditions[0].type",
            ["Ready", "rule"],
        ),
    ] {
        let mut changed = declared.resource_type(&change);
        let stored = declared.place.http().get(&path).json();
        changed["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
        let request = declared.place.http().request("PUT", &path).json(&changed.to_string());
        let status = declared.refuses(request, 422, "Invalid", &words);
        assert_eq!(blamed(&status), [field], "{status}");
        assert_eq!(declared.place.http().get(&path).json(), stored);
    }
}

#[test]
fn an_expression_that_would_run_too_long_is_stopped_and_harms_its_own_condition_alone() {
    let declared = Declared::new("endless");
    let slow =
        "self.spec.list.all(a, self.spec.list.all(b, self.spec.list.all(c, a.x == b.x && b.x == c.x)))";
    let change = json!({"spec": {"conditions": [{"type": "Slow", "status": slow}]}}).to_string();
    let path = format!("{TYPES}/{}", declared.plural);
    let answer = declared.place.http().patch(&path, "merge-patch+json", &change);
    assert_eq!(answer.code, 200, "{}", answer.text());
    let list = vec![json!({"x": "same"}); 500];
    let answer = declared.post(&declared.resource("b", &json!({ "list": list }))).send();
    assert_eq!(answer.code, 201, "{}", answer.text());
    let made = answer.json();
    let conditions = made["status"]["conditions"].as_array().expect("conditions");
    let slow = conditions.iter().find(|condition| condition["type"] == "Slow").expect("the condition");
    assert_eq!((&slow["status"], &slow["reason"]), (&json!("Unknown"), &json!("RuleFailed")));
    assert!(slow["message"].as_str().unwrap_or_default().contains("steps"), "{slow}");
    assert!(conditions.iter().any(|condition| condition["type"] == "Ready"));
}

#[test]
fn reports_that_make_no_sense_are_refused() {
    let declared = Declared::new("reported");
    let condition = |name: &str, status: &str| json!({"type": name, "status": status});
    let three = ["Applied", "Available", "Health"].map(|name| condition(name, "True"));
    let twice: Vec<Value> = three.iter().cloned().chain([condition("Health", "False")]).collect();
    for (change, code, reason, words) in [
        (json!({"conditions": three[..2]}), 422, "Invalid", ["conditions", "Health is missing"]),
        (json!({ "conditions": twice }), 422, "Invalid", ["conditions[3].type", "twice"]),
        (
            json!({"conditions": [condition("Applied", "Yes")]}),
            400,
            "BadRequest",
            ["conditions[0].status", "Yes"],
        ),
        (json!({"conditions": [{"status": "True"}]}), 400, "BadRequest", ["conditions[0]", "type"]),
        (json!({"adapter": "nobody"}), 422, "Invalid", ["adapter", "no adapter of this type"]),
        (json!({"adapter": ""}), 422, "Invalid", ["adapter", "name the adapter"]),
        (json!({"observedGeneration": -1}), 422, "Invalid", ["observedGeneration", "at least 1"]),
        (json!({"observedGeneration": "one"}), 400, "BadRequest", ["observedGeneration", "one"]),
        (json!({"observedTime": "2001-01-01T00:00:00Z"}), 422, "Invalid", ["observedTime", "30 minutes"]),
        (json!({"observedTime": "2999-01-01T00:00:00Z"}), 422, "Invalid", ["observedTime", "future"]),
        (json!({"data": "x".repeat(65_537)}), 422, "Invalid", ["data", "65536"]),
        (json!({"progress": 1}), 400, "BadRequest", ["unknown field", "progress"]),
    ] {
        declared.refuses(declared.report(&report(&change)), code, reason, &words);
    }
    let huge = json!({"data": "x".repeat(4 * 1024 * 1024)});
    declared.refuses(declared.report(&report(&huge)), 413, "RequestEntityTooLarge", &["larger than"]);
    for body in ["", "[]", "{\"adapter\": 1}", "nonsense: ["] {
        let request =
            declared.place.http().request("PUT", &format!("{}/a/statuses", declared.path())).json(body);
        declared.refuses(request, 400, "BadRequest", &["report"]);
    }
}

#[test]
fn reports_that_come_too_late_or_too_early_change_nothing_and_say_so() {
    let declared = Declared::new("late");
    let change = json!({"spec": {"n": 2}}).to_string();
    let path = format!("{}/a", declared.path());
    assert_eq!(declared.place.http().patch(&path, "merge-patch+json", &change).code, 200);
    assert_eq!(declared.report(&report(&json!({"observedGeneration": 2}))).send().code, 200);
    let before = declared.read();
    for (change, reason) in [
        (json!({"observedGeneration": 1}), "StaleGeneration"),
        (json!({"observedGeneration": 3}), "FutureGeneration"),
        (json!({"observedGeneration": 2, "uid": "another"}), "OtherResource"),
    ] {
        let answer = declared.report(&report(&change)).send();
        assert_eq!(answer.code, 200, "{}", answer.text());
        let answer = answer.json();
        assert_eq!((&answer["outcome"], &answer["reason"]), (&json!("Discarded"), &json!(reason)));
    }
    assert_eq!(declared.read(), before);
}

#[test]
fn a_report_on_what_is_deleted_is_not_found() {
    let declared = Declared::new("gone");
    let path = format!("{}/nobody/statuses", declared.path());
    let request = declared.place.http().request("PUT", &path).json(&good_report().to_string());
    declared.refuses(request, 404, "NotFound", &["nobody"]);
    let nowhere = format!("{}/a/statuses", declared.path().replace("gones", "nowheres"));
    let request = declared.place.http().request("PUT", &nowhere).json(&good_report().to_string());
    declared.refuses(request, 404, "NotFound", &[]);
}

#[test]
fn types_that_make_no_sense_are_refused_and_nothing_is_served() {
    let declared = Declared::new("sound");
    let other = |names: Value| {
        let plural = names["plural"].clone();
        json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": "ResourceType", "metadata": {"name": plural},
            "spec": {"names": names},
        })
    };
    for (object, field) in [
        (other(json!({"kind": "Sound", "plural": "others"})), "spec.names.kind"),
        (
            other(json!({"kind": "Other", "plural": "others", "shortNames": ["mtask"]})),
            "spec.names.shortNames[0]",
        ),
        (other(json!({"kind": "Other", "plural": "others", "singular": "sound"})), "spec.names.singular"),
        (other(json!({"kind": "other", "plural": "others"})), "spec.names.kind"),
    ] {
        let request = declared.place.http().request("POST", TYPES).json(&object.to_string());
        let status = declared.refuses(request, 422, "Invalid", &[field]);
        assert!(blamed(&status).contains(&field), "{status}");
        assert_eq!(declared.place.http().get("/apis/resources.muster.dev/v1alpha1/others").code, 404);
    }
    let request = declared.place.http().request("DELETE", &format!("{TYPES}/sounds"));
    declared.refuses(request, 409, "Conflict", &["sounds of this type are left: 1"]);
}
