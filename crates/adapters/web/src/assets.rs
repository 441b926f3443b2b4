//! Files that pages use. They are part of the program, and named after what is in them so that they are kept for good.

use std::sync::LazyLock;

use hyper::StatusCode;
use hyper::header::{CACHE_CONTROL, HeaderValue};
use muster_ports::pages::Reply;

use crate::reply::whole;

const STYLE: &str = include_str!("assets/console.css");
const SCRIPT: &str = include_str!("assets/console.js");

/// Where the style is.
pub static STYLE_PATH: LazyLock<String> = LazyLock::new(|| address(STYLE, "css"));
/// Where the script is.
pub static SCRIPT_PATH: LazyLock<String> = LazyLock::new(|| address(SCRIPT, "js"));

fn address(text: &str, ending: &str) -> String {
    // FNV-1a: it only has to differ from one version of the program to the next.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("/ui/assets/console-{hash:016x}.{ending}")
}

/// A file, if there is one of this name.
pub fn find(path: &str) -> Option<Reply> {
    let (text, kind) = match path {
        path if path == *STYLE_PATH => (STYLE, "text/css; charset=utf-8"),
        path if path == *SCRIPT_PATH => (SCRIPT, "text/javascript; charset=utf-8"),
        _ => return None,
    };
    let mut reply = whole(StatusCode::OK, kind, text);
    reply
        .headers_mut()
        .insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    Some(reply)
}
