//! `muster version`: what runs here and what runs there.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::session::Session;
use crate::cli::{Globals, VersionArgs, VersionOutput};
use crate::output::documents::{Language, render};
use crate::output::streams;
use crate::output::table::plain;

const OWN: &str = env!("CARGO_PKG_VERSION");

/// Prints the versions. A server that does not answer is an error, after what is known was printed.
pub async fn run(globals: &Globals, args: &VersionArgs) -> anyhow::Result<ExitCode> {
    let server = if args.client { None } else { Some(ask(globals).await) };
    let (server, failure) = match server {
        None => (None, None),
        Some(Ok(answer)) => (Some(answer), None),
        Some(Err(error)) => (None, Some(error)),
    };
    streams::print(&show(server.as_ref(), args.output))?;
    failure.map_or(Ok(ExitCode::SUCCESS), Err)
}

async fn ask(globals: &Globals) -> anyhow::Result<Value> {
    Ok(Session::open(globals).await?.client.version().await?)
}

fn show(server: Option<&Value>, output: VersionOutput) -> String {
    let language = match output {
        VersionOutput::Table => {
            let server =
                server.map(|server| format!("Server: {}\n", server_words(server))).unwrap_or_default();
            return format!("Client: {OWN}\n{server}");
        }
        VersionOutput::Json => Language::Json,
        VersionOutput::Yaml => Language::Yaml,
    };
    let mut versions = json!({"client": {"muster": OWN}});
    if let Some(server) = server {
        versions["server"] = server.clone();
    }
    render(language, &versions)
}

fn server_words(server: &Value) -> String {
    let text = |name: &str| plain(server[name].as_str().unwrap_or("?"));
    match server["muster"].as_str() {
        Some(version) => format!("{} (Kubernetes API {}.{})", plain(version), text("major"), text("minor")),
        None => format!("{} (a Kubernetes cluster)", text("gitVersion")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_both_sides() {
        let server = json!({"muster": "1.2.3", "major": "1", "minor": "36", "gitVersion": "x"});
        let text = show(Some(&server), VersionOutput::Table);
        assert_eq!(text, format!("Client: {OWN}\nServer: 1.2.3 (Kubernetes API 1.36)\n"));
        assert_eq!(server_words(&json!({"gitVersion": "v1.33.1"})), "v1.33.1 (a Kubernetes cluster)");
    }

    #[test]
    fn without_a_server_only_the_client_is_shown() {
        let json: Value = serde_json::from_str(&show(None, VersionOutput::Json)).unwrap();
        assert_eq!(json, json!({"client": {"muster": OWN}}));
    }
}
