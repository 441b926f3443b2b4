//! No request on a part of a task harms, whatever it holds: it is carried out or refused in words, and a refused one
//! changes nothing.

use hyper::header::CONTENT_TYPE;
use muster_ports::blobs::{BlobKey, Blobs as _};
use proptest::prelude::*;
use serde_json::Value;

use crate::server::{Ask, Server, path, task};

const PARTS: [&str; 7] = ["log", "report", "attachments", "bucket", "explain", "retry", "nonsense"];
const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];
const MEDIA: [&str; 4] = ["application/json", "application/yaml", "application/x-tar", "text/plain"];

/// A path behind the part: plain, odd, or anything at all in percent-encoding.
fn rest() -> impl Strategy<Value = String> {
    let anything = prop::collection::vec(any::<u8>(), 0..12).prop_map(|bytes| {
        let escaped: Vec<_> = bytes.iter().map(|byte| format!("%{byte:02x}")).collect();
        escaped.concat()
    });
    let segment = prop_oneof![
        Just("a".to_owned()),
        Just("addon.log".to_owned()),
        Just("..".to_owned()),
        Just(".".to_owned()),
        Just("%2e%2e".to_owned()),
        anything,
    ];
    (prop::collection::vec(segment, 0..3), any::<bool>())
        .prop_map(|(segments, folder)| format!("/{}{}", segments.join("/"), if folder { "/" } else { "" }))
}

fn query() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "container",
        "attempt",
        "tailLines",
        "sinceSeconds",
        "sinceTime",
        "limitBytes",
        "activity",
        "dryRun",
    ]);
    let value = prop_oneof![
            Just("1".to_owned()),
            Just("0".to_owned()),
            Just("18446744073709551615".to_owned()),
            Just("4294967295".to_owned()),
            Just("2026-11-15T14:00:00Z".to_owned()),
            Just("9999-12-31T00:00:00Z".to_owned()),
            Just("All".to_owned()),
            "[ -~&&[^#]]{0,8}".prop_map(
                |text| text.replace(['%', '&', ' ', '"', '<', '>', '`', '{', '}', '|', '\\', '^'], "x")
            ),
        ];
    prop::collection::vec((name, value).prop_map(|(name, value)| format!("{name}={value}")), 0..3)
        .prop_map(|pairs| pairs.join("&"))
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(Vec::new()),
        Just(br#"{"completed": 1, "activity": ["a"]}"#.to_vec()),
        Just(br#"{"attempt": 4294967295, "sequence": 18446744073709551615, "increment": 18446744073709551615}"#.to_vec()),
        prop::collection::vec(any::<u8>(), 0..64),
        ".{0,64}".prop_map(String::into_bytes),
    ]
}

async fn judge(method: &str, place: &str, media: &str, body: Vec<u8>) {
    let server = Server::start().await;
    let uid = server.run_task(&task("a"), 1).await;
    server.logs.write(&uid, 1, "addon", "one\ntwo\n");
    let before = server.revision();
    let ask = Ask::new(method, place).body(body).header(CONTENT_TYPE, media);
    let answer = server.send(ask).await;
    assert!(answer.code < 500, "{method} {place}: {answer:?}");
    if answer.code >= 400 {
        let status: Value = answer.json();
        assert_eq!(status["kind"], "Status", "{method} {place}: {answer:?}");
        assert!(status["message"].as_str().is_some_and(|message| !message.is_empty()), "{answer:?}");
        assert_eq!(server.revision(), before, "{method} {place}: a refused request changed something");
        let files = server.blobs.list(&BlobKey::of_task(&uid).unwrap()).unwrap();
        assert!(files.is_empty(), "{method} {place}: a refused request left {files:?}");
    }
    let whole = BlobKey::new("tasks").unwrap();
    let outside = server.blobs.list(&whole).unwrap().into_iter().find(|file| !file.path.starts_with(&uid));
    assert_eq!(outside, None, "{method} {place}: a file left its task");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn no_request_on_a_part_of_a_task_harms(
        method in prop::sample::select(METHODS.to_vec()),
        part in prop::sample::select(PARTS.to_vec()),
        media in prop::sample::select(MEDIA.to_vec()),
        rest in rest(), query in query(), body in body(),
    ) {
        let place = format!("{}/a/{part}{rest}?{query}", path("tasks"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(judge(method, &place, media, body));
    }
}
