//! Who looks: a token in a cookie that no script can read and no other site can use.

use hyper::HeaderMap;
use hyper::header::{COOKIE, HOST, HeaderName, HeaderValue, ORIGIN};

/// Name of the cookie.
const NAME: &str = "muster_token";
/// How long somebody stays signed in.
const SECONDS: u32 = 12 * 60 * 60;
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The token that a browser sent.
pub fn secret(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == NAME).map(|(_, value)| value)
}

/// The header that signs somebody in. `None` for a text that cannot be a token.
pub fn remember(secret: &str, headers: &HeaderMap) -> Option<HeaderValue> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~+/=:".contains(&byte);
    if secret.is_empty() || !secret.bytes().all(is_plain) {
        return None;
    }
    let secure = if text(headers, &ORIGIN).starts_with("https://") { "; Secure" } else { "" };
    let cookie = format!("{NAME}={secret}; Path=/ui; HttpOnly; SameSite=Strict; Max-Age={SECONDS}{secure}");
    HeaderValue::try_from(cookie).ok()
}

/// The header that signs somebody out.
pub fn forget() -> HeaderValue {
    HeaderValue::from_static("muster_token=; Path=/ui; HttpOnly; SameSite=Strict; Max-Age=0")
}

/// True if a request that changes something comes from a page of this console. Browsers say where it comes from; what
/// says nothing is not a browser, and has the API.
pub fn is_ours(headers: &HeaderMap) -> bool {
    let (origin, host) = (text(headers, &ORIGIN), text(headers, &HOST));
    let from = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
    match text(headers, &FETCH_SITE) {
        "" => from.is_some_and(|from| !host.is_empty() && from == host),
        site => site == "same-origin" && from.is_none_or(|from| from == host || host.is_empty()),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn a_token_is_found_among_cookies() {
        assert_eq!(secret(&headers(&[("cookie", "a=b; muster_token=x.y; c=d")])), Some("x.y"));
        assert_eq!(secret(&headers(&[("cookie", "not_muster_token=x")])), None);
        assert_eq!(secret(&HeaderMap::new()), None);
    }

    #[test]
    fn what_is_no_token_is_not_put_into_a_header() {
        for bad in ["", "a b", "a;b", "a\r\nSet-Cookie: x", "ä"] {
            assert!(remember(bad, &HeaderMap::new()).is_none(), "{bad:?}");
        }
        let plain = remember("abc", &HeaderMap::new()).unwrap();
        let plain = plain.to_str().unwrap();
        assert!(plain.contains("HttpOnly") && plain.contains("SameSite=Strict") && !plain.contains("Secure"));
        let safe = remember("abc", &headers(&[("origin", "https://a")])).unwrap();
        assert!(safe.to_str().unwrap().ends_with("; Secure"));
    }

    #[test]
    fn only_pages_of_this_console_may_change_something() {
        for (ours, pairs) in [
            (true, vec![("host", "a:1"), ("origin", "http://a:1")]),
            (true, vec![("host", "a:1"), ("origin", "http://a:1"), ("sec-fetch-site", "same-origin")]),
            (false, vec![("host", "a:1"), ("origin", "http://b:1")]),
            (false, vec![("host", "a:1"), ("origin", "null")]),
            (false, vec![("host", "a:1")]),
            (false, vec![("host", "a:1"), ("origin", "http://a:1"), ("sec-fetch-site", "cross-site")]),
            (false, vec![("host", "a:1"), ("origin", "http://b:1"), ("sec-fetch-site", "same-origin")]),
        ] {
            assert_eq!(is_ours(&headers(&pairs)), ours, "{pairs:?}");
        }
    }
}
