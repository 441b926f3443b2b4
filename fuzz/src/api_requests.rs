//! Requests as such: paths, queries, headers, pages, and the reviews that kubectl sends as protobuf.

use hyper::header::{COOKIE, ORIGIN};

use crate::Target;
use crate::api_server::{Answer, Ask, Server, judge, with_server};

pub const REQUEST: Target = Target {
    name: "request",
    property: "any request is answered with good JSON or a Status that says why not; a refusal changes nothing, and the server goes on",
    run: request,
};
pub const QUERY: Target = Target {
    name: "query",
    property: "as for requests, and selectors choose the same objects in a list, a watch and a delete",
    run: query,
};
pub const PAGE: Target = Target {
    name: "page",
    property: "any address and form of the console is answered, and never with a failure",
    run: page,
};
pub const PROTOBUF: Target = Target {
    name: "protobuf",
    property: "a review in protobuf is refused, or answered with a decision, the same one each time",
    run: protobuf,
};

const TASKS: &str = "/apis/muster.dev/v1alpha1/namespaces/default/tasks";
const SERVED: [&str; 12] = [
    "/api", "/apis", "/openapi", "/version", "/healthz", "/livez", "/readyz", "/metrics", "/tokens",
    "/backup", "/", "/ui",
];

/// A line with method and address, lines with headers, an empty line, a body.
fn read_request(input: &[u8]) -> Ask {
    let mut rest = input;
    let mut line = || {
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        let line = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = rest.get(end + 1..).unwrap_or_default();
        line
    };
    let first = line();
    let (method, target) = first.split_once(' ').unwrap_or(("GET", &first));
    let mut ask = Ask::new(method, target);
    loop {
        let line = line();
        let Some((name, value)) = line.split_once(':') else { break };
        ask.headers.push((name.to_owned(), value.trim().to_owned()));
    }
    ask.body = rest.to_vec();
    ask
}

fn request(input: &[u8]) {
    with_server(|server| {
        let ask = read_request(input);
        if is_page(&ask.target) || ask.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept")) {
            // The answer is not always JSON.
            let before = server.revision();
            let Some(answer) = server.try_glance(&ask) else { return };
            assert!(answer.code < 500 || answer.code == 504 || answer.code == 503, "{answer:?}");
            assert!(answer.code < 400 || server.revision() == before, "a refused request changed something");
        } else {
            server.ask(&ask);
        }
        let alive = server.glance(&Ask::new("GET", "/readyz"));
        assert_eq!(alive.code, 200, "{alive:?}");
    });
}

fn is_page(target: &str) -> bool {
    target.starts_with("/ui") || !SERVED.iter().any(|served| target.starts_with(served))
}

fn query(input: &[u8]) {
    let Ok(query) = str::from_utf8(input) else { return };
    with_server(|server| {
        let Some(listed) = server.ask(&Ask::new("GET", &format!("{TASKS}?{query}"))) else { return };
        let selects_only = query.split('&').all(|pair| {
            let name = pair.split('=').next().unwrap_or_default();
            ["labelSelector", "fieldSelector", ""].contains(&name)
        });
        if selects_only && listed.is_good() {
            let named = names(&listed.json()["items"]);
            let deleted = server.glance(&Ask::new("DELETE", &format!("{TASKS}?dryRun=All&{query}")));
            assert_eq!(names(&deleted.json()["items"]), named, "a delete chooses otherwise");
            let watched = server.glance(&Ask::new("GET", &format!("{TASKS}?watch=1&{query}")));
            let events =
                serde_json::Deserializer::from_slice(&watched.bytes).into_iter::<serde_json::Value>();
            let seen: Vec<_> = events.map(|event| name(&event.expect("an event")["object"])).collect();
            assert_eq!(sorted(seen), named, "a watch chooses otherwise");
        }
        for ask in [
            Ask::new("GET", &format!("{TASKS}/a?{query}")),
            Ask::new("GET", &format!("{TASKS}/a/log?{query}")),
            Ask::new("DELETE", &format!("{TASKS}/a?dryRun=All&{query}")),
        ] {
            server.ask(&ask);
        }
    });
}

fn name(object: &serde_json::Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn names(items: &serde_json::Value) -> Vec<String> {
    sorted(items.as_array().into_iter().flatten().map(name).collect())
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names
}

/// A line with a path below `/ui` and its query; a form, if anything follows.
fn page(input: &[u8]) {
    with_server(|server| {
        let (line, form) = crate::api_objects::first_line(input);
        let target = format!("/ui/{line}");
        let is_form = !form.is_empty();
        let mut ask = signed_in(server, Ask::new(if is_form { "POST" } else { "GET" }, &target));
        if is_form {
            ask = ask.body("application/x-www-form-urlencoded", form);
        }
        let Some(answer) = server.try_glance(&ask) else { return };
        assert!(answer.code < 500 || answer.code == 503, "{answer:?}");
        let policy = answer.headers.get("content-security-policy");
        // What is too long is refused before anybody knows that it is for the console.
        assert!(policy.is_some() || answer.code == 414, "an answer without a policy: {answer:?}");
        assert_plain(&answer);
    });
}

fn signed_in(server: &Server, ask: Ask) -> Ask {
    let ask = ask.header(&COOKIE, &format!("muster_token={}", server.secret));
    ask.header(&ORIGIN, "http://here").header(&hyper::header::HOST, "here")
}

/// Nothing of an address or a form becomes a script of a page.
fn assert_plain(answer: &Answer) {
    let text = String::from_utf8_lossy(&answer.bytes);
    let is_page =
        answer.headers.get("content-type").is_some_and(|found| found.as_bytes().starts_with(b"text/html"));
    assert!(!is_page || !text.contains("<planted"), "what was asked for is part of the page: {text}");
}

fn protobuf(input: &[u8]) {
    with_server(|server| {
        for (group, plural) in [
            ("authorization.k8s.io", "selfsubjectaccessreviews"),
            ("authorization.k8s.io", "selfsubjectrulesreviews"),
            ("authentication.k8s.io", "selfsubjectreviews"),
        ] {
            let target = format!("/apis/{group}/v1/{plural}");
            let ask = Ask::new("POST", &target).body("application/vnd.kubernetes.protobuf", input);
            let Some(answer) = server.try_glance(&ask) else { return };
            judge(&answer);
            let again = server.glance(&ask);
            assert_eq!(
                (again.code, &again.bytes),
                (answer.code, &answer.bytes),
                "another answer the second time"
            );
            if answer.is_good() {
                let decided = answer.json();
                assert!(decided["status"].is_object(), "{decided}");
                if plural == "selfsubjectaccessreviews" {
                    assert!(decided["status"]["allowed"].is_boolean(), "{decided}");
                }
            }
        }
    });
}
