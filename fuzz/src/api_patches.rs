//! The three patches and server-side apply, as clients send them.
//!
//! The first line of an input is the plural of a kind, `/status` if that part is meant, and a query; the rest is the body. What is
//! patched is the object `a` of that kind.

use serde_json::Value;

use crate::Target;
use crate::api_objects::first_line;
use crate::api_server::{Answer, Ask, MERGE_PATCH, Server, with_server};
use crate::json_reference;

const STORED: &str = "a patch is refused and nothing changed, or what it made reads back as it was answered and can be written again";

pub const MERGE: Target = Target {
    name: "patch_merge",
    property: "as for patches, and free-form data becomes what RFC 7396 says",
    run: |input| patch(MERGE_PATCH, input),
};
pub const STRATEGIC: Target = Target {
    name: "patch_strategic",
    property: STORED,
    run: |input| patch("application/strategic-merge-patch+json", input),
};
pub const JSON: Target =
    Target { name: "patch_json", property: STORED, run: |input| patch("application/json-patch+json", input) };
pub const APPLY: Target = Target {
    name: "apply",
    property: "as for patches, and applying the same again changes nothing",
    run: |input| patch("application/apply-patch+yaml", input),
};

fn patch(media: &str, input: &[u8]) {
    with_server(|server| {
        let (line, body) = first_line(input);
        let (place, query) = line.split_once('?').unwrap_or((&line, ""));
        let (plural, part) = place.split_once('/').unwrap_or((place, ""));
        let Some(kind) = server.registry.kinds().into_iter().find(|kind| kind.info().plural == plural) else {
            return;
        };
        let main = format!("{}/a", crate::api_server::collection(kind.info()));
        let target = if part.is_empty() { main.clone() } else { format!("{main}/{part}") };
        let is_apply = media.contains("apply");
        let query = match query {
            "" if is_apply => "fieldManager=m&force=true",
            query => query,
        };
        let before = server.glance(&Ask::new("GET", &main));
        let ask = Ask::new("PATCH", &format!("{target}?{query}")).body(media, body);
        let Some(answer) = server.ask(&ask).filter(Answer::is_good) else { return };
        if is_dry_run(query) {
            let after = server.glance(&Ask::new("GET", &main));
            assert_eq!(after.bytes, before.bytes, "a dry run changed something");
            return;
        }
        if is_apply {
            apply_again(server, &ask, &answer);
        }
        if media == MERGE_PATCH && part.is_empty() {
            compare_data(&before, body, &answer);
        }
        // Of an object that is being deleted and lost its last finalizer nothing is left.
        if server.glance(&Ask::new("GET", &main)).is_good() {
            server.judge_stored(&main, &answer);
        }
    });
}

/// Whether a query asks for a dry run. Where that was read, its value was, too.
pub fn is_dry_run(query: &str) -> bool {
    query
        .split('&')
        .any(|pair| pair.split_once('=').is_some_and(|(name, value)| name == "dryRun" && !value.is_empty()))
}

fn apply_again(server: &Server, ask: &Ask, answer: &Answer) {
    let at = server.revision();
    let again = server.glance(ask);
    // A revision that was asked for is an older one now.
    if again.is_good() && json_reference::is_exact(&answer.json()) {
        assert_eq!(
            (&again.bytes, server.revision()),
            (&answer.bytes, at),
            "applying the same again changed something"
        );
    }
}

/// Data has no schema: what becomes of it is what the standard says.
fn compare_data(before: &Answer, patch: &[u8], answer: &Answer) {
    let Ok(patch) = serde_json::from_slice::<Value>(patch) else { return };
    let data = |object: &Value| object.pointer("/spec/data").cloned().unwrap_or(Value::Null);
    let (before, after) = (before.json(), answer.json());
    if before.is_object() && after["kind"] == "Task" && patch.is_object() {
        let wanted = data(&json_reference::merge_patch(&before, &patch));
        assert_eq!(data(&after), wanted, "the patch was {patch}");
    }
}
