//! The page about the protocol tells the truth: each of its payloads is one.

use muster_fleet_mqtt::messages::{
    ConnectionNews, Dispatch, Heartbeat, KnownAttempts, LogPiece, Register, Response, Status,
};
use muster_fleet_mqtt::{DEFAULT_PREFIX, Topics};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/fleet-protocol.md");
    std::fs::read_to_string(path).expect("the page is there")
}

/// True if a text is a message of a sort and says nothing that the sort does not have.
fn is_whole<T: DeserializeOwned + Serialize>(text: &str) -> bool {
    let Ok(message) = serde_json::from_str::<T>(text) else { return false };
    let (Ok(Value::Object(read)), Ok(Value::Object(given))) =
        (serde_json::to_value(message), serde_json::from_str(text))
    else {
        return false;
    };
    // Empty texts need not be written.
    given.iter().all(|(name, value)| read.contains_key(name) || *value == "")
}

#[test]
fn every_payload_of_the_page_is_one() {
    let mut seen = 0;
    for section in page().split("\n## ").skip(1) {
        let title = section.lines().next().unwrap_or_default();
        for block in section.split("```json\n").skip(1) {
            let text = block.split("```").next().unwrap_or_default();
            let whole = match title {
                "register" => is_whole::<Register>(text),
                "response" => is_whole::<Response>(text),
                "heartbeat" => is_whole::<Heartbeat>(text),
                "connection" => is_whole::<ConnectionNews>(text),
                "dispatch" => is_whole::<Dispatch>(text),
                "status" => is_whole::<Status>(text),
                "state" => is_whole::<KnownAttempts>(text),
                "log" => is_whole::<LogPiece>(text),
                other => panic!("{other} is no message"),
            };
            assert!(whole, "{title}: {text}");
            seen += 1;
        }
    }
    assert_eq!(seen, 10);
}

#[test]
fn every_topic_of_the_protocol_is_on_the_page() {
    let (page, topics) = (page(), Topics::new(DEFAULT_PREFIX));
    let robot = |topic: String| topic.replace("/ID/", "/{id}/").replace("/UID/", "/{uid}/");
    for topic in [
        topics.register(),
        topics.heartbeat(),
        topics.response("ID"),
        topics.connection("ID"),
        topics.dispatch("ID"),
        topics.state("ID"),
        topics.status("ID", "UID"),
        topics.log("ID", "UID"),
    ] {
        let shown = robot(topic).replace("k8s4r/", "");
        assert!(page.contains(&format!("`{shown}`")), "{shown}");
    }
}
