//! Paths and methods that are not served.

use crate::place::{Place, task};

#[test]
fn paths_that_are_not_served_are_not_found() {
    let place = Place::new();
    let tasks = place.tasks();
    for path in [
        "/nonsense".to_owned(),
        "/".to_owned(),
        "/apis/muster.dev".to_owned() + "/v9",
        "/apis/nonsense.dev".to_owned(),
        "/apis/nonsense.dev/v1/tasks".to_owned(),
        "/apis/muster.dev/v1/tasks".to_owned(),
        "/apis/muster.dev/v1alpha1/nonsense".to_owned(),
        "/api/v1/pods".to_owned(),
        "/openapi/v3/apis/nonsense.dev/v1".to_owned(),
        format!("{tasks}/a/nonsense"),
        format!("{tasks}/a/status/more"),
        format!("{tasks}/%zz"),
    ] {
        place.refuses(
            place.http().request("GET", &path),
            404,
            "NotFound",
            &["could not find the requested resource"],
        );
    }
}

#[test]
fn objects_that_are_not_there_are_not_found_by_name() {
    let place = Place::new();
    for name in ["b", "B", "%2e%2e"] {
        let path = format!("{}/{name}", place.tasks());
        place.refuses(
            place.http().request("GET", &path),
            404,
            "NotFound",
            &["tasks.muster.dev", "not found"],
        );
    }
}

#[test]
fn a_new_object_of_an_unknown_kind_is_not_found() {
    let place = Place::new();
    let path = format!("/apis/muster.dev/v1alpha1/namespaces/{}/nonsense", place.namespace());
    let request = place.http().request("POST", &path).json(&task("b").to_string());
    place.refuses(request, 404, "NotFound", &[]);
}

#[test]
fn methods_that_a_path_does_not_have_are_refused() {
    let place = Place::new();
    let (tasks, one, status) = (place.tasks(), place.task(""), place.task("/status"));
    for (method, path) in [
        ("POST", &*one),
        ("PUT", &*tasks),
        ("PATCH", &*tasks),
        ("DELETE", &*status),
        ("POST", &*status),
        ("BREW", &*one),
        ("OPTIONS", &*tasks),
        ("POST", "/apis"),
        ("DELETE", "/apis/muster.dev/v1alpha1"),
        ("PUT", "/version"),
        ("POST", "/healthz"),
        ("PATCH", "/tokens"),
        ("PUT", "/metrics"),
    ] {
        let request = place.http().request(method, path).json("{}");
        place.refuses(request, 405, "MethodNotAllowed", &["does not allow this method"]);
    }
}

#[test]
fn a_status_that_a_kind_does_not_have_is_not_found() {
    let place = Place::new();
    let path = format!("/apis/muster.dev/v1alpha1/namespaces/{}/applications/x/status", place.namespace());
    place.refuses(place.http().request("GET", &path), 404, "NotFound", &[]);
}
