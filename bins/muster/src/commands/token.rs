//! `muster token`: who may use the server.

use std::process::ExitCode;

use muster_client::tokens::{NewToken, TokenInfo};
use muster_types::{Duration, Timestamp};
use serde_json::{Value, json};

use super::session::Session;
use crate::cli::{Globals, Output, TokenCommand};
use crate::data_dir::kubeconfig_text;
use crate::output::documents::{Language, render};
use crate::output::table::{align, plain};
use crate::output::{age, streams};
use crate::usage::UsageError;

/// Runs a verb of `token`.
pub async fn run(globals: &Globals, command: TokenCommand) -> anyhow::Result<ExitCode> {
    match command {
        TokenCommand::Create { name, role, adapter, ttl, uses, as_kubeconfig } => {
            let wanted = Wanted { name: &name, role: &role, adapter: adapter.as_deref(), ttl, uses };
            create(globals, wanted, as_kubeconfig).await
        }
        TokenCommand::List { output } => list(globals, output).await,
        TokenCommand::Revoke { names } => revoke(globals, &names).await,
    }
}

/// What a token is to be.
struct Wanted<'a> {
    name: &'a str,
    role: &'a str,
    adapter: Option<&'a str>,
    ttl: Option<Duration>,
    uses: Option<u32>,
}

async fn create(globals: &Globals, wanted: Wanted<'_>, as_kubeconfig: bool) -> anyhow::Result<ExitCode> {
    let Wanted { name, role, adapter, ttl, uses } = wanted;
    if adapter.is_some() && role != "reporter" {
        return Err(UsageError::new("token", "--adapter goes with --role reporter alone").into());
    }
    if uses.is_some() && role != "robot" {
        return Err(UsageError::new("token", "--uses goes with --role robot alone").into());
    }
    if ttl.is_some_and(|ttl| ttl.as_secs() == 0) {
        return Err(UsageError::new("token", "--ttl must be at least one second").into());
    }
    let session = Session::open(globals).await?;
    let lifetime_seconds = ttl.map(Duration::as_secs);
    let secret =
        session.client.create_token(&NewToken { name, role, adapter, lifetime_seconds, uses }).await?;
    let lasts = match ttl {
        Some(ttl) => format!("for {ttl}"),
        None if role == "robot" => "for 24h".to_owned(),
        None => "until it is revoked".to_owned(),
    };
    if as_kubeconfig {
        let authority = session.access.authority();
        let text = kubeconfig_text(session.access.url(), authority.as_deref(), name, secret.reveal());
        streams::print(&text)?;
        streams::note(format!(
            "kubeconfig of token \"{name}\" with role {role}, valid {lasts}; keep it private"
        ));
    } else {
        streams::print(&format!("{}\n", secret.reveal()))?;
        streams::note(format!(
            "token \"{name}\" with role {role}, valid {lasts}; the secret above is not shown again"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(globals: &Globals, output: Output) -> anyhow::Result<ExitCode> {
    let session = Session::open(globals).await?;
    let tokens = session.client.tokens().await?;
    streams::print(&show(&tokens, output, age::now()))?;
    Ok(ExitCode::SUCCESS)
}

async fn revoke(globals: &Globals, names: &[String]) -> anyhow::Result<ExitCode> {
    let session = Session::open(globals).await?;
    let mut code = ExitCode::SUCCESS;
    for name in names {
        match session.client.revoke_token(name).await {
            Ok(()) => streams::report(format!("token/{name} revoked"))?,
            Err(error) => {
                streams::note(format!("error: {error}"));
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

fn show(tokens: &[TokenInfo], output: Output, now: Timestamp) -> String {
    let language = match output {
        Output::Table | Output::Wide => return table(tokens, now),
        Output::Name => {
            return align(
                &tokens.iter().map(|token| vec![format!("token/{}", plain(&token.name))]).collect::<Vec<_>>(),
            );
        }
        Output::Json => Language::Json,
        Output::Yaml => Language::Yaml,
    };
    let items: Vec<Value> = tokens
        .iter()
        .map(|token| {
            json!({
                "name": token.name, "role": token.role, "adapter": token.adapter, "created": token.created,
                "expires": token.expires, "uses": token.uses, "robots": token.robots,
            })
        })
        .collect();
    render(language, &json!({"items": items}))
}

fn table(tokens: &[TokenInfo], now: Timestamp) -> String {
    let header = ["NAME", "ROLE", "AGE", "EXPIRES"].map(str::to_owned).to_vec();
    let rows = tokens.iter().map(|token| {
        let age = token.created.map_or_else(|| "<unknown>".to_owned(), |created| age::between(created, now));
        // A reporter is one of an adapter.
        let role = token.adapter.iter().fold(token.role.clone(), |role, adapter| format!("{role}/{adapter}"));
        vec![plain(&token.name), plain(&role), age, expiry(token.expires, now)]
    });
    align(&std::iter::once(header).chain(rows).collect::<Vec<_>>())
}

fn expiry(expires: Option<Timestamp>, now: Timestamp) -> String {
    match expires {
        None => "never".to_owned(),
        Some(expires) if expires <= now => format!("{} ago", age::between(expires, now)),
        Some(expires) => format!("in {}", age::between(now, expires)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens() -> Vec<TokenInfo> {
        let token = |name: &str, expires: Option<i64>| TokenInfo {
            name: name.into(),
            role: "viewer".into(),
            adapter: None,
            created: Some(Timestamp::from_second(0)),
            expires: expires.map(Timestamp::from_second),
            uses: None,
            robots: None,
        };
        vec![token("a", None), token("b", Some(3_600)), token("c", Some(200))]
    }

    #[test]
    fn the_table_says_when_tokens_end() {
        assert_eq!(
            show(&tokens(), Output::Table, Timestamp::from_second(300)),
            "NAME   ROLE     AGE   EXPIRES\n\
             a      viewer   5m    never\n\
             b      viewer   5m    in 55m\n\
             c      viewer   5m    100s ago\n"
        );
    }

    #[test]
    fn names_alone_are_for_scripts() {
        assert_eq!(show(&tokens()[..1], Output::Name, Timestamp::from_second(0)), "token/a\n");
    }
}
