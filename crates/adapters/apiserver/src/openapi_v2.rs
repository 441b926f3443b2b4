//! The old description of the API, of which kubectl still asks for parts, in protobuf alone.
//!
//! Says which kinds can be patched with a dry run, and nothing about their fields: kubectl lets pass what it finds no
//! description of, and the server checks that anyway. Without this document kubectl neither creates a list nor edits
//! several objects at once; one before 1.27 does not even diff.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::header::ACCEPT;
use hyper::{HeaderMap, StatusCode};
use serde_json::json;

use crate::kind::KindInfo;
use crate::protobuf::field;
use crate::registry::Registry;
use crate::respond::{self, Reply};

const TITLE: &str = "Muster";
const VERSION: &str = env!("CARGO_PKG_VERSION");
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// `/openapi/v2`.
pub fn document(registry: &Registry, headers: &HeaderMap) -> Reply {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    if !accept.is_some_and(|accept| accept.contains("protobuf")) {
        let info = json!({ "title": TITLE, "version": VERSION });
        return respond::document(StatusCode::OK, &json!({ "swagger": "2.0", "info": info, "paths": {} }));
    }
    let info = [field(1, TITLE.as_bytes()), field(2, VERSION.as_bytes())].concat();
    let paths: Vec<u8> = registry.kinds().iter().flat_map(|kind| field(2, &path_item(kind.info()))).collect();
    let document = [field(1, b"2.0"), field(2, &info), field(8, &paths)].concat();
    respond::with_type(StatusCode::OK, PROTOBUF, Full::new(Bytes::from(document)).boxed_unsync())
}

/// The path of an object, which has one operation: a patch with the parameter `dryRun`.
fn path_item(info: &KindInfo) -> Vec<u8> {
    let scope = if info.namespaced { "/namespaces/{namespace}" } else { "" };
    let path = format!("/apis/{}{scope}/{}/{{name}}", info.api_version(), info.plural);
    let dry_run = [field(2, b"query"), field(4, b"dryRun")].concat();
    let parameter = field(1, &field(2, &field(3, &dry_run)));
    let operation = [field(8, &parameter), field(13, &group_version_kind(info))].concat();
    [field(1, path.as_bytes()), field(2, &field(8, &operation))].concat()
}

fn group_version_kind(info: &KindInfo) -> Vec<u8> {
    let yaml = format!("group: {}\nkind: {}\nversion: {}\n", info.group, info.kind, info.version);
    [field(1, b"x-kubernetes-group-version-kind"), field(2, &field(2, yaml.as_bytes()))].concat()
}
