//! Events that are derived from what happened to objects.

use hyper::header::ACCEPT;
use serde_json::{Value, json};

use crate::server::{Ask, Server, TABLE, names, path, revision, task};
use crate::workflows::object;

const EVENTS: &str = "/api/v1/namespaces/default/events";
const NEW_EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

/// The clock of the server stands at 2023-11-14T22:13:20Z.
const RECENT: &str = "2023-11-14T22:10:00Z";
const OLD: &str = "2023-11-14T21:10:00Z";

fn record(kind: &str, count: u32, reason: &str, last: &str) -> Value {
    json!({"kind": kind, "count": count, "reason": reason, "last": last})
}

async fn happen(server: &Server, task: &str, records: &[Value]) {
    server.set_status(task, &json!({ "events": records })).await;
}

async fn server_with_events() -> Server {
    let server = Server::start().await;
    server.create(&task("a")).await;
    server.create(&task("b")).await;
    let records = [
        record("PodCreated", 1, "a-1", RECENT),
        record("PodFailed", 3, "exit code 2", RECENT),
        record("Postponed", 1, "old", OLD),
    ];
    happen(&server, "a", &records).await;
    happen(&server, "b", &[record("Timeout", 1, "after 2s", RECENT)]).await;
    server
}

fn briefs(list: &Value) -> Vec<String> {
    let brief = |event: &Value| {
        let text =
            |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let object = text("/involvedObject/name") + &text("/regarding/name");
        format!("{object} {} {} {}{}", text("/type"), text("/reason"), text("/message"), text("/note"))
    };
    list["items"].as_array().unwrap().iter().map(brief).collect()
}

#[tokio::test]
async fn records_of_the_last_hour_are_events() {
    let server = server_with_events().await;
    let expected =
        ["a Normal PodCreated a-1", "a Warning PodFailed exit code 2", "b Warning Timeout after 2s"];
    for place in [EVENTS, "/api/v1/events", NEW_EVENTS, "/apis/events.k8s.io/v1/events"] {
        let list = server.get(place).await.good();
        assert_eq!(briefs(&list), expected, "{place}");
        assert_eq!(list["kind"], "EventList");
    }
    assert_eq!(briefs(&server.get("/api/v1/namespaces/other/events").await.good()), [""; 0]);
    server.clock.advance(3_600_000);
    assert_eq!(briefs(&server.get(EVENTS).await.good()), [""; 0]);
}

#[tokio::test]
async fn an_event_has_the_fields_of_its_group() {
    let server = server_with_events().await;
    let stored = server.get(&format!("{}/a", path("tasks"))).await.good();
    let core = server.get(EVENTS).await.good();
    let failed = &core["items"][1];
    assert_eq!(
        (&failed["apiVersion"], &failed["kind"], &failed["count"]),
        (&json!("v1"), &json!("Event"), &json!(3))
    );
    assert_eq!(failed["lastTimestamp"], RECENT);
    assert_eq!(failed["firstTimestamp"], stored["metadata"]["creationTimestamp"]);
    assert_eq!(
        failed["involvedObject"],
        json!({
            "kind": "Task", "apiVersion": "muster.dev/v1alpha1", "namespace": "default", "name": "a",
            "uid": stored["metadata"]["uid"],
        })
    );
    assert_eq!(failed["metadata"]["resourceVersion"], stored["metadata"]["resourceVersion"]);
    let name = failed["metadata"]["name"].as_str().unwrap();
    let hash = name.strip_prefix("a.").unwrap();
    assert!(hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
    let new = server.get(NEW_EVENTS).await.good();
    let failed = &new["items"][1];
    assert_eq!(failed["apiVersion"], "events.k8s.io/v1");
    assert_eq!(failed["series"], json!({"count": 3, "lastObservedTime": "2023-11-14T22:10:00.000000Z"}));
    assert_eq!((&failed["regarding"]["name"], &failed["note"]), (&json!("a"), &json!("exit code 2")));
    assert_eq!(new["items"][0]["series"], json!(null));
    assert_eq!(failed["metadata"]["name"], name);
}

#[tokio::test]
async fn one_event_is_found_by_its_name() {
    let server = server_with_events().await;
    for place in [EVENTS, NEW_EVENTS] {
        let list = server.get(place).await.good();
        for event in list["items"].as_array().unwrap() {
            let found = server.get(&format!("{place}/{}", crate::server::name(event))).await.good();
            assert_eq!(&found, event);
        }
    }
    for name in ["a.0000000000000000", "nobody.0000000000000000", "a", "."] {
        server.get(&format!("{EVENTS}/{name}")).await.refused(404);
    }
}

#[tokio::test]
async fn errors_are_warnings() {
    let server = Server::start().await;
    server.create(&task("a")).await;
    let errors = json!([{"severity": "Error", "description": "(addon) no such file"}]);
    server.set_status("a", &json!({"state": "Failed", "terminated": RECENT, "errors": errors})).await;
    let list = server.get(EVENTS).await.good();
    assert_eq!(briefs(&list), ["a Warning TaskError (addon) no such file"]);
    assert_eq!(list["items"][0]["lastTimestamp"], RECENT);
}

#[tokio::test]
async fn the_same_thing_again_after_another_is_another_event() {
    let server = Server::start().await;
    server.create(&task("a")).await;
    let again = [
        record("Postponed", 1, "x", RECENT),
        record("Postponed", 1, "y", RECENT),
        record("Postponed", 1, "x", RECENT),
    ];
    happen(&server, "a", &again).await;
    let list = server.get(EVENTS).await.good();
    let mut all = names(&list);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 3);
}

#[tokio::test]
async fn events_are_selected_as_kubectl_does() {
    let server = server_with_events().await;
    let uid = server.get(&format!("{}/a", path("tasks"))).await.good()["metadata"]["uid"]
        .as_str()
        .unwrap()
        .to_owned();
    let described = format!(
        "involvedObject.name=a,involvedObject.namespace=default,involvedObject.kind=Task,involvedObject.uid={uid}"
    );
    for (selector, count) in [
        (described.as_str(), 2),
        ("regarding.name=b", 1),
        ("involvedObject.name=nobody", 0),
        ("involvedObject.name=a,involvedObject.kind=Pod", 0),
        ("involvedObject.name!=a", 1),
        ("type=Warning", 2),
        ("type!=Normal,reason=Timeout", 1),
        ("involvedObject.uid=other", 0),
    ] {
        let escaped = selector.replace('=', "%3D").replace('!', "%21");
        for root in ["/api/v1/namespaces/default/events", "/api/v1/events"] {
            let list = server.get(&format!("{root}?fieldSelector={escaped}")).await.good();
            assert_eq!(list["items"].as_array().unwrap().len(), count, "{root} {selector}");
        }
    }
    let message = server.get(&format!("{EVENTS}?fieldSelector=spec.kind%3Dk")).await.refused(400);
    assert!(message.contains("involvedObject.name"), "{message}");
    let labelled = server.get(&format!("{EVENTS}?labelSelector=a%3Db")).await.good();
    assert_eq!(briefs(&labelled), [""; 0]);
}

#[tokio::test]
async fn events_come_in_pages() {
    let server = server_with_events().await;
    let first = server.get(&format!("{EVENTS}?limit=2")).await.good();
    assert_eq!(briefs(&first).len(), 2);
    let next = first["metadata"]["continue"].as_str().unwrap();
    let second = server.get(&format!("{EVENTS}?limit=2&continue={next}")).await.good();
    assert_eq!(briefs(&second), ["b Warning Timeout after 2s"]);
    assert_eq!(second["metadata"]["continue"], json!(null));
}

#[tokio::test]
async fn a_table_of_events_has_the_columns_people_know() {
    let server = server_with_events().await;
    let table = server.send(Ask::new("GET", EVENTS).header(ACCEPT, TABLE)).await.good();
    let columns: Vec<_> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(columns, ["Last Seen", "Type", "Reason", "Object", "Message", "First Seen", "Count", "Name"]);
    let row = &table["rows"][1]["cells"];
    assert_eq!(
        row.as_array().unwrap()[..5],
        [json!("3m20s"), json!("Warning"), json!("PodFailed"), json!("task/a"), json!("exit code 2")]
    );
}

#[tokio::test]
async fn a_watch_tells_what_happens_to_tasks() {
    let server = server_with_events().await;
    let at = revision(&server.get(EVENTS).await.good());
    let mut watch = server.watch(&format!("{EVENTS}?watch=true&resourceVersion={at}")).await;
    let created = record("PodCreated", 1, "a-1", RECENT);
    happen(&server, "a", &[created.clone(), record("PodFailed", 4, "exit code 2", RECENT)]).await;
    server.set_status("a", &json!({"message": "nothing happened"})).await;
    happen(
        &server,
        "a",
        &[created, record("PodFailed", 4, "exit code 2", RECENT), record("PodRunning", 1, "a-2", RECENT)],
    )
    .await;
    server.delete(&format!("{}/b", path("tasks"))).await.good();
    let seen: Vec<_> = watch.ready();
    let words: Vec<_> =
        seen.iter().map(|e| (e.word.as_str(), e.object["reason"].as_str().unwrap())).collect();
    assert_eq!(words, [("MODIFIED", "PodFailed"), ("ADDED", "PodRunning"), ("DELETED", "Timeout")]);
    let revisions: Vec<_> = seen.iter().map(|event| revision(&event.object)).collect();
    assert!(revisions.is_sorted() && revisions[2] == server.revision(), "{revisions:?}");
}

#[tokio::test]
async fn a_watch_of_one_task_begins_with_what_is_there() {
    let server = server_with_events().await;
    let query = "watch=true&fieldSelector=involvedObject.name%3Db";
    let mut watch = server.watch(&format!("{EVENTS}?{query}")).await;
    happen(&server, "a", &[record("Canceled", 1, "by ada", RECENT)]).await;
    happen(&server, "b", &[record("Canceled", 1, "by ada", RECENT)]).await;
    let words: Vec<_> = watch
        .ready()
        .iter()
        .map(|e| format!("{} {}", e.word, e.object["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(words, ["ADDED Timeout", "ADDED Canceled", "DELETED Timeout"]);
}

#[tokio::test]
async fn events_cannot_be_written() {
    let server = server_with_events().await;
    let before = server.revision();
    server.post(EVENTS, &json!({})).await.refused(405);
    server.delete(EVENTS).await.refused(405);
    let one = format!("{EVENTS}/{}", names(&server.get(EVENTS).await.good())[0]);
    server.put(&one, &json!({})).await.refused(405);
    server.delete(&one).await.refused(405);
    server.get(&format!("{one}/status")).await.refused(404);
    assert_eq!(server.revision(), before);
}

#[tokio::test]
async fn discovery_names_events_in_both_groups() {
    let server = Server::start().await;
    for place in ["/api/v1", "/apis/events.k8s.io/v1"] {
        let listed = server.get(place).await.good();
        let events =
            listed["resources"].as_array().unwrap().iter().find(|one| one["name"] == "events").cloned();
        assert_eq!(events.unwrap()["verbs"], json!(["get", "list", "watch"]), "{place}");
    }
    let groups = server.get("/apis").await.good().to_string();
    assert!(groups.contains("events.k8s.io/v1"), "{groups}");
}

/// A job that failed and a schedule that makes runs, beside two tasks.
async fn server_with_other_kinds() -> Server {
    let server = server_with_events().await;
    let tasks = json!([{"name": "t", "spec": {"container": {"command": ["true"]}}}]);
    let groups = json!([{"name": "g", "tasks": tasks}]);
    server.post(&path("jobs"), &object("Job", "a", &json!({"taskGroups": groups}))).await.good();
    let schedule = json!({
        "schedulePolicy": {"timeSpec": "@daily"}, "template": {"spec": {"container": {"command": ["true"]}}},
    });
    server.post(&path("schedules"), &object("Schedule", "nightly", &schedule)).await.good();
    let condition = |r#type: &str, status: &str, reason: &str, message: &str| json!({"type": r#type, "status": status, "lastTransitionTime": RECENT, "reason": reason, "message": message});
    let failed =
        json!({"state": "Failed", "conditions": [condition("Failed", "True", "Failed", "1 of 2 failed")]});
    server.set_status_of("jobs", "a", &failed).await;
    let conditions = [
        condition("Ready", "False", "TemplateNotFound", "no Job named x"),
        condition("Suspended", "False", "Resumed", ""),
        condition("Exhausted", "Unknown", "", ""),
    ];
    let runs = json!({"made": 4, "lastScheduledTime": RECENT, "conditions": conditions});
    server.set_status_of("schedules", "nightly", &runs).await;
    server
}

#[tokio::test]
async fn conditions_of_other_kinds_are_events() {
    let server = server_with_other_kinds().await;
    let all = server.get(EVENTS).await.good();
    let expected = [
        "a Warning Failed Failed is True: 1 of 2 failed",
        "nightly Warning TemplateNotFound Ready is False: no Job named x",
        "nightly Normal Resumed Suspended is False",
        "nightly Normal RunMade a run was made",
        "a Normal PodCreated a-1",
        "a Warning PodFailed exit code 2",
        "b Warning Timeout after 2s",
    ];
    assert_eq!(briefs(&all), expected);
    let job = &all["items"][0]["involvedObject"];
    assert_eq!((&job["kind"], &job["apiVersion"]), (&json!("Job"), &json!("muster.dev/v1alpha1")));
    assert_eq!(all["items"][3]["count"], 4);
    for event in all["items"].as_array().unwrap() {
        let found = server.get(&format!("{EVENTS}/{}", crate::server::name(event))).await.good();
        assert_eq!(&found, event);
    }
    let of_job = format!("{EVENTS}?fieldSelector=involvedObject.kind%3DJob,involvedObject.name%3Da");
    assert_eq!(briefs(&server.get(&of_job).await.good()), expected[..1]);
    let table = server.send(Ask::new("GET", &of_job).header(ACCEPT, TABLE)).await.good();
    assert_eq!(table["rows"][0]["cells"][3], "job/a");
}

#[tokio::test]
async fn pages_go_on_from_one_kind_to_the_next() {
    let server = server_with_other_kinds().await;
    let all = briefs(&server.get(EVENTS).await.good());
    let mut paged = Vec::new();
    let mut query = String::new();
    loop {
        let page = server.get(&format!("{EVENTS}?limit=1{query}")).await.good();
        paged.extend(briefs(&page));
        let Some(next) = page["metadata"]["continue"].as_str() else { break };
        query = format!("&continue={next}");
        assert!(paged.len() < all.len(), "{paged:?}");
    }
    assert_eq!(paged, all);
}

#[tokio::test]
async fn a_watch_tells_of_all_kinds_in_the_order_of_changes() {
    let server = server_with_other_kinds().await;
    let mut watch = server.watch(&format!("{EVENTS}?watch=true")).await;
    happen(&server, "b", &[record("Timeout", 2, "after 2s", RECENT)]).await;
    server.delete(&format!("{}/a", path("jobs"))).await.good();
    let words: Vec<_> = watch
        .ready()
        .iter()
        .map(|e| format!("{} {}", e.word, e.object["reason"].as_str().unwrap()))
        .collect();
    assert_eq!(
        words[..7],
        ["Failed", "TemplateNotFound", "Resumed", "RunMade", "PodCreated", "PodFailed", "Timeout"]
            .map(|reason| format!("ADDED {reason}"))
    );
    assert_eq!(words[7..], ["MODIFIED Timeout", "DELETED Failed"]);
}

#[tokio::test]
async fn a_schedule_says_which_of_its_runs_ended_how() {
    let server = server_with_other_kinds().await;
    let run = |name: &str, state: &str| json!({"kind": "Task", "name": name, "state": state, "at": RECENT});
    let conditions = json!([
        {"type": "Failing", "status": "True", "lastTransitionTime": RECENT, "reason": "ConsecutiveFailures", "message": "the last 3 runs failed"},
    ]);
    let status = json!({
        "made": 0, "lastScheduledTime": null, "conditions": conditions,
        "recentRuns": [run("nightly-2", "Failed"), run("nightly-1", "Succeeded")],
    });
    server.set_status_of("schedules", "nightly", &status).await;
    let of_schedule = format!("{EVENTS}?fieldSelector=involvedObject.kind%3DSchedule");
    let expected = [
        "nightly Warning ConsecutiveFailures Failing is True: the last 3 runs failed",
        "nightly Warning RunFailed Task nightly-2 ended: Failed",
        "nightly Normal RunSucceeded Task nightly-1 ended: Succeeded",
    ];
    assert_eq!(briefs(&server.get(&of_schedule).await.good()), expected);
    let table = server.send(Ask::new("GET", &path("schedules/nightly")).header(ACCEPT, TABLE)).await.good();
    assert!(table["rows"][0]["cells"].to_string().contains("Failed"), "{table}");
}
