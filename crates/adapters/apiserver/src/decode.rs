//! Reading objects, with the fields in them that their type does not know, or the field that is wrong.

use serde::Deserializer;
use serde::de::DeserializeOwned;

use crate::kind::{Input, KindInfo};
use crate::refusal::Refusal;
use crate::strict::Strict;

/// Enough to help; a hostile body may hold millions.
const MOST_UNKNOWN: usize = 64;

/// An object and the paths of unknown fields in it.
pub fn decode<T: DeserializeOwned>(info: &KindInfo, input: Input<'_>) -> Result<(T, Vec<String>), Refusal> {
    let mut unknown = Vec::new();
    let object = match input {
        Input::Json(json) => {
            let mut deserializer = serde_json::Deserializer::from_slice(json);
            let object = decode_from(&mut deserializer, &mut unknown);
            // What follows the object is part of the same mistake.
            object.and_then(|object| deserializer.end().map(|()| object)).map_err(|error| {
                let again = &mut serde_json::Deserializer::from_slice(json);
                explain::<T, _>(info, again, &error)
            })?
        }
        Input::Value(value) => {
            decode_from(value, &mut unknown).map_err(|error| explain::<T, _>(info, value, &error))?
        }
    };
    Ok((object, unknown))
}

fn decode_from<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
    unknown: &mut Vec<String>,
) -> Result<T, D::Error> {
    serde_ignored::deserialize(Strict(deserializer), |path| {
        if unknown.len() < MOST_UNKNOWN {
            // Options in the types show up as `?` in the path.
            unknown.push(path.to_string().replace("?.", "").replace(".?", ""));
        }
    })
}

/// Decodes again, slowly, to name the field that is wrong.
fn explain<'de, T: DeserializeOwned, D>(info: &KindInfo, again: D, error: &serde_json::Error) -> Refusal
where
    D: Deserializer<'de, Error = serde_json::Error>,
{
    let (path, error) = match serde_path_to_error::deserialize::<_, T>(Strict(again)) {
        Err(traced) => (traced.path().to_string(), traced.into_inner().to_string()),
        Ok(_) => (String::new(), error.to_string()),
    };
    let place = if path == "." || path.is_empty() { String::new() } else { format!("{path}: ") };
    let message = format!(
        "{} in version \"{}\" cannot be handled as a {}: {place}{error}",
        info.kind, info.version, info.kind
    );
    Refusal::undecodable(&path, &message)
}
