//! Which bucket, and how it is reached: `s3://BUCKET/PREFIX`, and the variables that every client of S3 reads.

use std::fmt;
use std::time::Duration;

use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::{BackoffConfig, RetryConfig};
use thiserror::Error;

use super::connector::HyperConnector;
use super::tell;

/// How long a request is tried again, for requests that somebody waits for.
const PATIENCE: Duration = Duration::from_secs(20);
/// And how often.
const RETRIES: usize = 8;
/// How long the first pause is, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(5));

/// Why a bucket cannot be used.
#[derive(Debug, Error)]
pub enum PlaceError {
    /// The text names none.
    #[error("`{text}` names no bucket: {why}; write s3://BUCKET or s3://BUCKET/PREFIX")]
    NoPlace {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It was found and cannot be used, or not found.
    #[error(
        "the bucket of {place} cannot be used: {why}; AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and \
         AWS_SECRET_ACCESS_KEY say where the service is and who asks"
    )]
    Refused {
        /// The bucket and the prefix.
        place: String,
        /// What is wrong.
        why: String,
    },
}

/// A bucket and the beginning of all keys in it.
#[derive(Clone, PartialEq, Eq)]
pub struct S3Place {
    bucket: String,
    prefix: String,
    /// Settings for the client, by the names of their variables. Some are secrets: nothing here is ever shown.
    variables: Vec<(String, String)>,
}

impl fmt::Display for S3Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.prefix.as_str() {
            "" => write!(f, "s3://{}", self.bucket),
            prefix => write!(f, "s3://{}/{prefix}", self.bucket),
        }
    }
}

impl fmt::Debug for S3Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl S3Place {
    /// Reads `s3://BUCKET/PREFIX`. What it leaves open is in variables such as `AWS_REGION`.
    pub fn parse(
        text: &str,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, PlaceError> {
        let bad = |why| Err(PlaceError::NoPlace { text: text.to_owned(), why });
        let Some(rest) = text.strip_prefix("s3://") else { return bad("it does not begin with s3://") };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
        if bucket.is_empty() || !bucket.chars().all(plain) {
            return bad("the name of a bucket has letters, digits, `-` and `.`");
        }
        let prefix = prefix.trim_matches('/');
        if prefix.split('/').any(|part| matches!(part, "." | "..")) || prefix.contains("//") {
            return bad("no part of a prefix is empty, `.` or `..`");
        }
        let variables = variables.into_iter().filter(|(name, _)| name.starts_with("AWS_")).collect();
        Ok(Self { bucket: bucket.to_owned(), prefix: prefix.to_owned(), variables })
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn refused(&self, why: impl fmt::Display) -> PlaceError {
        PlaceError::Refused { place: self.to_string(), why: why.to_string() }
    }

    fn variable(&self, name: &str) -> Option<&str> {
        let found = self.variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    pub(super) fn connect(&self) -> Result<AmazonS3, PlaceError> {
        let mut builder = AmazonS3Builder::new();
        for (name, value) in &self.variables {
            if let Ok(key) = name.to_ascii_lowercase().parse() {
                builder = builder.with_config(key, value);
            }
        }
        let endpoint = self.variable("AWS_ENDPOINT_URL_S3").or_else(|| self.variable("AWS_ENDPOINT_URL"));
        let plain =
            endpoint.or_else(|| self.variable("AWS_ENDPOINT")).is_some_and(|url| url.starts_with("http://"));
        if plain && self.variable("AWS_ALLOW_HTTP") != Some("true") {
            return Err(self.refused(
                "the service is named by http://, which anybody can read; say AWS_ALLOW_HTTP=true if that is meant",
            ));
        }
        if let Some(endpoint) = endpoint {
            builder = builder.with_endpoint(endpoint);
        }
        let authority = self.variable("AWS_CA_BUNDLE").map(Into::into);
        let connector = HyperConnector::new(authority).map_err(|why| self.refused(why))?;
        let retry = RetryConfig {
            backoff: BackoffConfig { init_backoff: PAUSES.0, max_backoff: PAUSES.1, base: 2.0 },
            max_retries: RETRIES,
            retry_timeout: PATIENCE,
        };
        let built = builder
            .with_bucket_name(&self.bucket)
            .with_allow_http(plain)
            .with_retry(retry)
            .with_http_connector(connector)
            .build();
        built.map_err(|error| self.refused(tell(&error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<S3Place, PlaceError> {
        S3Place::parse(text, [("AWS_REGION".into(), "here".into()), ("HOME".into(), "/".into())])
    }

    #[test]
    fn a_bucket_and_a_prefix_are_read() {
        let place = parse("s3://work/of/muster/").unwrap();
        assert_eq!((place.bucket.as_str(), place.prefix()), ("work", "of/muster"));
        assert_eq!((place.variable("AWS_REGION"), place.variable("HOME")), (Some("here"), None));
        assert_eq!(parse("s3://work").unwrap().prefix(), "");
    }

    #[test]
    fn what_names_no_bucket_is_refused_in_words() {
        for text in ["/files", "s3://", "s3:///prefix", "s3://a b", "s3://work/a/../b", "s3://work/a//b"] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("write s3://BUCKET"), "{error}");
        }
    }

    #[test]
    fn a_place_that_is_shown_keeps_its_secrets() {
        let secret = [("AWS_SECRET_ACCESS_KEY".to_owned(), "hidden".to_owned())];
        let place = S3Place::parse("s3://work/of/muster", secret).unwrap();
        assert_eq!(format!("{place} {place:?}"), "s3://work/of/muster s3://work/of/muster");
    }

    #[test]
    fn a_service_without_tls_is_used_only_if_that_is_said() {
        let plain = [("AWS_ENDPOINT_URL".to_owned(), "http://127.0.0.1:1".to_owned())];
        let error = S3Place::parse("s3://work", plain).unwrap().connect().unwrap_err().to_string();
        assert!(error.contains("s3://work ") && error.contains("AWS_ALLOW_HTTP=true"), "{error}");
    }
}
