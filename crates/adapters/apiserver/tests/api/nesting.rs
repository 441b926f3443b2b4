//! Deep nesting, and documents that grow when they are read.

use hyper::header::CONTENT_TYPE;
use serde_json::{Value, json};

use crate::bad_input::{post, post_yaml, refuse, with};
use crate::server::{APPLY_PATCH, Ask, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Server, path, task};

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

#[tokio::test]
async fn deep_nesting_is_refused_before_it_can_hurt() {
    let server = Server::start().await;
    server.create(&task("a")).await;
    let json = |levels: usize| task("b").to_string().replace("[\"true\"]", &nested(levels));
    let data =
        |levels: usize| with("/spec/data", json!("DATA")).to_string().replace("\"DATA\"", &nested(levels));
    let target = format!("{}/a", path("tasks"));
    let merge = |levels: usize| {
        let body = json!({"spec": {"data": "DATA"}}).to_string().replace("\"DATA\"", &nested(levels));
        Ask::new("PATCH", &target).body(body).header(CONTENT_TYPE, MERGE_PATCH)
    };
    refuse(
        &server,
        vec![
            (post(json(200)), 400, ""),
            (post(json(1_000_000)), 400, ""),
            (post(data(130)), 400, "recursion"),
            (post(data(1_000_000)), 400, "recursion"),
            (post_yaml(data(1_000_000)), 400, ""),
            (post_yaml(format!("a:\n{}", "- ".repeat(100_000))), 400, ""),
            (merge(200), 400, ""),
            (merge(1_000_000), 400, ""),
            (Ask::new("DELETE", &target).body(nested(100_000)), 400, ""),
        ],
    )
    .await;
}

#[tokio::test]
async fn yaml_of_any_depth_is_read_or_refused() {
    let server = Server::start().await;
    let shapes: [fn(usize) -> String; 5] = [
        |depth| format!("a: {}1{}", "{\"a\": ".repeat(depth), "}".repeat(depth)),
        |depth| format!("a: {}{}", "[".repeat(depth), "]".repeat(depth)),
        |depth| format!("a:\n  {}", "- ".repeat(depth)),
        |depth| (0..depth).map(|level| " ".repeat(level) + "a:\n").collect(),
        |depth| format!("a:\n  {}", "? ".repeat(depth)),
    ];
    for shape in shapes {
        for depth in [1, 30, 60, 61, 62, 63, 64, 65, 66, 120, 1000, 2000] {
            // The review answers with what it was asked, whatever that is.
            let ask =
                Ask::new("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews").body(shape(depth));
            let answer = server.send(ask).await;
            assert!(matches!(answer.code, 201 | 400), "{depth}: {answer:?}");
            assert!(answer.code == 400 || depth <= 64, "{depth}");
        }
    }
}

#[tokio::test]
async fn yaml_that_grows_when_it_is_read_is_refused() {
    let server = Server::start().await;
    let mut laughs = "a0: &a0 [lol]\n".to_owned();
    for number in 1..30 {
        let before = number - 1;
        laughs.push_str(&format!("a{number}: &a{number} [*a{before}, *a{before}]\n"));
    }
    let long = format!("a: &a {}\nb: [{}]", "x".repeat(1_000_000), vec!["*a"; 90].join(", "));
    refuse(&server, vec![(post_yaml(laughs), 400, "YAML"), (post_yaml(long), 400, "YAML")]).await;
}

/// Whatever nesting is let in can be read, changed and applied again, by every way in.
#[tokio::test]
async fn what_is_nested_as_deep_as_is_allowed_can_still_be_changed() {
    for (levels, media) in
        [100, 110, 115, 118, 120, 122, 124, 125, 126, 127, 128, 140].into_iter().flat_map(|levels| {
            ["json", "yaml", MERGE_PATCH, JSON_PATCH, STRATEGIC_PATCH, APPLY_PATCH]
                .map(|media| (levels, media))
        })
    {
        let server = Server::start().await;
        let data = nested(levels);
        let fill = |value: Value| value.to_string().replace("\"DATA\"", &data);
        let target = format!("{}/new", path("tasks"));
        // What was not submitted can be changed in every part.
        let held = |mut object: Value| {
            object["spec"]["suspend"] = json!(true);
            object
        };
        let whole = || fill(held(with("/spec/data", json!("DATA"))));
        let ask = match media {
            "json" => post(whole()),
            // Flow style is YAML too, once something precedes it.
            "yaml" => post_yaml(format!("---\n{}", whole())),
            APPLY_PATCH => Ask::new("PATCH", &format!("{target}?fieldManager=m")).body(whole()),
            JSON_PATCH => Ask::new("PATCH", &target)
                .body(fill(json!([{"op": "add", "path": "/spec/data", "value": "DATA"}]))),
            _ => Ask::new("PATCH", &target).body(fill(json!({"spec": {"data": "DATA"}}))),
        };
        let ask = if media.contains('/') { ask.header(CONTENT_TYPE, media) } else { ask };
        if media.contains("patch") && media != APPLY_PATCH {
            server.create(&held(task("new"))).await;
        }
        let answer = server.send(ask).await;
        if answer.code >= 400 {
            answer.refused(400);
            continue;
        }
        let stored = server.get(&target).await.good();
        let seen = format!("{levels} levels by {media}");
        assert_eq!(server.put(&target, &stored).await.code, 200, "{seen}");
        let label = json!({"metadata": {"labels": {"l": "1"}}});
        assert_eq!(server.patch(&target, MERGE_PATCH, &label).await.code, 200, "{seen}");
        let config = json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Task", "spec": {"locator": "x"}});
        let applied = server.apply(&target, "other", &config).await;
        assert_eq!(applied.code, 200, "{seen}: {applied:?}");
        assert_eq!(
            server.patch(&target, MERGE_PATCH, &json!({"spec": {"data": null}})).await.code,
            200,
            "{seen}"
        );
        server.delete(&target).await.good();
    }
}
