//! `muster report`: what a script tells of the task it is an attempt of.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use http_body_util::BodyExt as _;
use hyper::Method;
use hyper::body::Incoming;
use muster_client::addon::{self, Addon, Sent};
use serde_json::{Map, Value, json};

use super::attempt_env::AttemptEnv;
use super::document_arg;
use crate::cli::{BucketCommand, Globals, ReportAdd, ReportArgs, ReportCommand};
use crate::output::documents::{Language, render};
use crate::output::streams;

/// Sends one request.
pub async fn run(globals: &Globals, args: &ReportArgs) -> anyhow::Result<ExitCode> {
    let addon = addon_of(globals)?;
    match &args.command {
        None => {
            let method = if args.add.replace { Method::PUT } else { Method::POST };
            let report = addon.report(method, Some(&document(&args.add)?)).await?;
            if let Some(why) = report["ignored"].as_str() {
                streams::note(format!("the report changed nothing: {why}"));
            }
        }
        Some(ReportCommand::Show) => {
            streams::print(&render(Language::Json, &addon.report(Method::GET, None).await?))?;
        }
        Some(ReportCommand::Clear) => drop(addon.report(Method::DELETE, None).await?),
        Some(ReportCommand::Attach { file, name, activity }) => {
            let name = match (name, file.file_name()) {
                (Some(name), _) => name.clone(),
                (None, Some(own)) if file.as_os_str() != "-" => own.to_string_lossy().into_owned(),
                _ => bail!("standard input has no name; give one with --name"),
            };
            addon.attach(&name, *activity, source(file).await?).await?;
        }
        Some(ReportCommand::Bucket(command)) => bucket(&addon, command).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The task that the environment names.
fn addon_of(globals: &Globals) -> anyhow::Result<Addon> {
    let attempt = AttemptEnv::read()?;
    let namespace = globals.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let authority = attempt.authority(globals)?;
    Ok(Addon::new(&attempt.url, attempt.token, &namespace, &attempt.task, authority)?)
}

/// What is added to the report.
fn document(add: &ReportAdd) -> anyhow::Result<Value> {
    let mut document = Map::new();
    if !add.activity.is_empty() {
        let lines = add.activity.iter().flat_map(|text| text.lines());
        document.insert("activity".to_owned(), lines.map(str::to_owned).collect());
    }
    let numbers = [("total", add.total), ("completed", add.completed), ("increment", add.increment)];
    for (name, number) in numbers {
        if let Some(number) = number {
            document.insert(name.to_owned(), number.into());
        }
    }
    if !add.error.is_empty() {
        let errors = add.error.iter().map(|text| json!({"severity": add.severity, "description": text}));
        document.insert("errors".to_owned(), errors.collect());
    }
    if let Some(result) = &add.result {
        document.insert("result".to_owned(), document_arg::read("--result", result)?);
    }
    Ok(Value::Object(document))
}

/// What is sent: a file, or standard input.
async fn source(path: &Path) -> anyhow::Result<Sent> {
    let path = if path.as_os_str() == "-" { Path::new("/dev/stdin") } else { path };
    addon::file(path).await.with_context(|| format!("cannot read {}", path.display()))
}

async fn bucket(addon: &Addon, command: &BucketCommand) -> anyhow::Result<()> {
    match command {
        BucketCommand::Put { path, file } => {
            let body = source(file).await?;
            drop(addon.bucket(Method::PUT, path, "application/octet-stream", body).await?);
        }
        BucketCommand::Delete { path } => {
            drop(addon.bucket(Method::DELETE, path, "", addon::empty()).await?);
        }
        BucketCommand::Get { path, output } => {
            let answer = addon.bucket(Method::GET, path, "", addon::empty()).await?;
            match output {
                None => copy(answer.into_body(), io::stdout().lock()).await?,
                Some(file) => {
                    let fail = || format!("cannot write {}", file.display());
                    let target = std::fs::File::create(file).with_context(fail)?;
                    copy(answer.into_body(), target).await.with_context(fail)?;
                }
            }
        }
    }
    Ok(())
}

async fn copy(mut body: Incoming, mut target: impl io::Write) -> anyhow::Result<()> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.context("the server ended the answer too early")?.into_data() {
            target.write_all(&data)?;
        }
    }
    Ok(target.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_given_is_reported() {
        let add = ReportAdd { severity: "Error".to_owned(), ..ReportAdd::default() };
        assert_eq!(document(&add).unwrap(), json!({}));
        let add = ReportAdd {
            activity: vec!["one\ntwo".to_owned(), "three".to_owned()],
            total: Some(9),
            increment: Some(1),
            error: vec!["bad".to_owned()],
            severity: "Warning".to_owned(),
            result: Some("[1]".to_owned()),
            ..ReportAdd::default()
        };
        let expected = json!({
            "activity": ["one", "two", "three"], "total": 9, "increment": 1,
            "errors": [{"severity": "Warning", "description": "bad"}], "result": [1],
        });
        assert_eq!(document(&add).unwrap(), expected);
    }
}
