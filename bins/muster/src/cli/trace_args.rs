//! Flags of `up` about traces.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use muster_outbound::Otlp;
use muster_ports::telemetry::Telemetry;
use muster_ports::traces::Tracer;
use muster_types::metadata::StringMap;
use tokio::task::JoinHandle;

/// How long the last spans may take to be sent.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Where traces of tasks are sent.
#[derive(Debug, Clone, Default, Args)]
#[allow(clippy::struct_field_names, reason = "the names of the flags")]
#[command(next_help_heading = "Traces")]
pub struct TraceArgs {
    /// Send traces of tasks to the OpenTelemetry collector at this URL, such as <http://127.0.0.1:4318> [default: send none]
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_parser = parse_endpoint)]
    pub otlp_endpoint: Option<String>,
    /// Headers of every request to it, as NAME=VALUE,NAME=VALUE; better in a file or in the environment
    #[arg(
        long,
        value_name = "HEADERS",
        env = "OTEL_EXPORTER_OTLP_HEADERS",
        hide_env_values = true,
        value_parser = parse_headers
    )]
    pub otlp_headers: Option<Headers>,
    /// File with what --otlp-headers would say
    #[arg(long, value_name = "FILE", env = "MUSTER_OTLP_HEADERS_FILE", conflicts_with = "otlp_headers")]
    pub otlp_headers_file: Option<PathBuf>,
}

/// Headers, which may be secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers(StringMap);

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// What sends traces, until everybody who makes them is gone.
pub struct Sending(Option<JoinHandle<()>>);

impl TraceArgs {
    /// Starts to send, if that is asked for.
    pub fn start(&self, telemetry: &Telemetry) -> (Tracer, Sending) {
        let Some(endpoint) = &self.otlp_endpoint else { return (Tracer::default(), Sending(None)) };
        // An error says that somebody did it before.
        drop(rustls::crypto::ring::default_provider().install_default());
        let headers = self.otlp_headers.clone().unwrap_or_default().0;
        let (tracer, spans) = Tracer::new();
        let sending = tokio::spawn(Otlp::new(endpoint, headers, telemetry.clone()).run(spans));
        (tracer, Sending(Some(sending)))
    }
}

impl Sending {
    /// Waits until the last spans were sent, for a while.
    pub async fn finish(self) {
        if let Some(sending) = self.0 {
            // What is not sent by then is lost.
            drop(tokio::time::timeout(LAST_WORDS, sending).await);
        }
    }
}

fn parse_endpoint(text: &str) -> Result<String, String> {
    let uri: hyper::Uri = text.parse().map_err(|error| format!("not a URL: {error}"))?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.authority().is_some() => Ok(text.to_owned()),
        _ => {
            Err("expected http://HOST:PORT or https://HOST:PORT; traces are sent as OTLP over HTTP"
                .to_owned())
        }
    }
}

pub(super) fn parse_headers(text: &str) -> Result<Headers, String> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        // The value may be a secret: it is not repeated.
        let (name, value) = pair.split_once('=').ok_or("expected NAME=VALUE,NAME=VALUE")?;
        hyper::header::HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("{name:?} is not the name of a header"))?;
        hyper::header::HeaderValue::from_str(value)
            .map_err(|_| format!("the value of {name} is not one of a header"))?;
        Ok((name.to_owned(), value.to_owned()))
    });
    pairs.collect::<Result<_, String>>().map(Headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_and_their_values_are_not_shown() {
        let headers = parse_headers("authorization=Bearer abc, x-team=a=b,").unwrap();
        assert_eq!(headers.0["authorization"], "Bearer abc");
        assert_eq!(headers.0["x-team"], "a=b");
        assert!(!format!("{headers:?}").contains("abc"));
        assert_eq!(parse_headers("").unwrap(), Headers::default());
    }

    #[test]
    fn bad_headers_and_endpoints_are_refused_without_their_values() {
        for text in ["secret", "a b=secret", "a=secret\u{7}"] {
            assert!(!parse_headers(text).unwrap_err().contains("secret"), "{text:?}");
        }
        assert!(parse_endpoint("http://127.0.0.1:4318").is_ok());
        for text in ["127.0.0.1:4318", "grpc://a:1", "http://", ""] {
            assert!(parse_endpoint(text).is_err(), "{text:?}");
        }
    }
}
