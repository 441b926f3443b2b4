//! Which form a request body is in and which form the answer takes.

use hyper::HeaderMap;
use hyper::header::{ACCEPT, CONTENT_TYPE};
use muster_merge::PatchKind;
use serde_json::Value;

use crate::refusal::Refusal;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The object or list itself.
    Json,
    /// The object or list as YAML.
    Yaml,
    /// Rows for people.
    Table {
        /// `v1` or `v1beta1` of `meta.k8s.io`.
        version: &'static str,
    },
    /// Metadata only.
    Metadata {
        /// `v1` or `v1beta1` of `meta.k8s.io`.
        version: &'static str,
    },
}

/// Levels of YAML that are read. Each takes many times the stack that one of JSON takes.
const YAML_DEPTH: usize = 64;
/// Bytes of text in a YAML document, aliases replaced by what they stand for.
const YAML_TEXT: usize = 16 << 20;

/// Chooses the first form in `Accept` that the server has.
pub fn choose_form(headers: &HeaderMap) -> Result<Form, Refusal> {
    let Some(accept) = headers.get(ACCEPT) else { return Ok(Form::Json) };
    let accept = accept.to_str().map_err(|_| Refusal::not_acceptable())?;
    accept.split(',').find_map(form_of).ok_or_else(Refusal::not_acceptable)
}

fn form_of(range: &str) -> Option<Form> {
    let mut parts = range.split(';').map(str::trim);
    let media = parts.next()?.to_ascii_lowercase();
    let (mut kind, mut version, mut group) = (None, "", "");
    for part in parts {
        match part.split_once('=') {
            Some(("as", value)) => kind = Some(value),
            Some(("v", value)) => version = value,
            Some(("g", value)) => group = value,
            _ => {}
        }
    }
    let version = match version {
        "v1beta1" => "v1beta1",
        "v1" => "v1",
        _ if kind.is_some() => return None,
        _ => "v1",
    };
    match (media.as_str(), kind) {
        ("application/json" | "application/*" | "*/*" | "", None) => Some(Form::Json),
        ("application/yaml", None) => Some(Form::Yaml),
        ("application/json", Some("Table")) if group == "meta.k8s.io" => Some(Form::Table { version }),
        ("application/json", Some("PartialObjectMetadata" | "PartialObjectMetadataList"))
            if group == "meta.k8s.io" =>
        {
            Some(Form::Metadata { version })
        }
        _ => None,
    }
}

/// True if the client takes aggregated discovery; the version it wants.
pub fn aggregated_discovery(headers: &HeaderMap) -> Option<&'static str> {
    let accept = headers.get(ACCEPT)?.to_str().ok()?;
    let wanted = accept.split(',').find(|range| range.contains("as=APIGroupDiscoveryList"))?;
    if wanted.contains("v=v2beta1") { Some("v2beta1") } else { Some("v2") }
}

/// The media type of the body, without parameters.
pub fn media_type(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A body that holds an object.
#[derive(Debug)]
pub enum ObjectBody<'a> {
    /// JSON text.
    Json(&'a [u8]),
    /// A document that was YAML.
    Value(Value),
}

/// Reads the body of a create or update.
pub fn object_body<'a>(headers: &HeaderMap, body: &'a [u8]) -> Result<ObjectBody<'a>, Refusal> {
    match media_type(headers).as_str() {
        "" | "application/json" => Ok(ObjectBody::Json(body)),
        "application/yaml" | "text/yaml" | "application/x-yaml" => parse_yaml(body).map(ObjectBody::Value),
        other => Err(Refusal::unsupported_media_type(other, "application/json, application/yaml")),
    }
}

/// How a patch is to be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchForm {
    /// A change of the stored object.
    Change(PatchKind),
    /// A server-side apply.
    Apply,
}

/// Reads the content type of a patch.
pub fn patch_form(headers: &HeaderMap) -> Result<PatchForm, Refusal> {
    match media_type(headers).as_str() {
        "application/json-patch+json" => Ok(PatchForm::Change(PatchKind::Json)),
        "application/merge-patch+json" => Ok(PatchForm::Change(PatchKind::Merge)),
        "application/strategic-merge-patch+json" => Ok(PatchForm::Change(PatchKind::Strategic)),
        "application/apply-patch+yaml" | "application/apply-patch+json" => Ok(PatchForm::Apply),
        other => {
            let accepted = "application/json-patch+json, application/merge-patch+json, \
                            application/strategic-merge-patch+json, application/apply-patch+yaml";
            Err(Refusal::unsupported_media_type(other, accepted))
        }
    }
}

/// Parses YAML, of which JSON is a part. Depth, size and aliases are bounded by the parser's budget.
pub fn parse_yaml(text: &[u8]) -> Result<Value, Refusal> {
    // JSON is parsed as what it is: faster, and with its own rules for numbers.
    let braced = text.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    let not_json = match braced.then(|| serde_json::from_slice(text)) {
        Some(Ok(value)) => return Ok(value),
        Some(Err(error)) => format!("neither valid JSON ({error}) nor "),
        None => "not ".to_owned(),
    };
    let text = std::str::from_utf8(text).map_err(|_| Refusal::bad_request("the body is not UTF-8 text"))?;
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: YAML_DEPTH, max_total_scalar_bytes: YAML_TEXT },
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| Refusal::bad_request(format!("the body is {not_json}valid YAML: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &str) -> Result<Form, Refusal> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, value.parse().unwrap());
        choose_form(&headers)
    }

    #[test]
    fn what_kubectl_get_sends_gives_a_table() {
        let header = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(accept(header).unwrap(), Form::Table { version: "v1" });
    }

    #[test]
    fn protobuf_with_json_as_second_choice_gives_json() {
        assert_eq!(accept("application/vnd.kubernetes.protobuf,application/json").unwrap(), Form::Json);
    }

    #[test]
    fn protobuf_alone_is_not_acceptable() {
        assert_eq!(accept("application/vnd.kubernetes.protobuf").unwrap_err().code, 406);
    }

    proptest::proptest! {
        #[test]
        fn no_yaml_panics(text in "[ -~\n]{0,200}") {
            drop(parse_yaml(text.as_bytes()));
        }
    }
}
