//! `muster adapter`: what an adapter would do.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use muster_client::client::Form;
use muster_resources::AdapterRules;
use muster_resources::dry_run::{DryRun, Made, dry_run};
use muster_types::{Adapter, JsonText, ManagedResource};

use super::session::Session;
use crate::adapter_env::adapter_env;
use crate::cli::{AdapterCommand, Globals};
use crate::manifests;
use crate::output::documents::{Language, render};
use crate::output::streams;

/// Carries out a verb.
pub async fn run(globals: &Globals, command: &AdapterCommand) -> anyhow::Result<ExitCode> {
    let AdapterCommand::DryRun { file, name, resource } = command;
    let adapter = read_adapter(file, name.as_deref())?;
    let rules = compile(&adapter)?;
    let session = Session::open(globals).await?;
    let resource = read_resource(&session, &adapter, resource).await?;
    let played = dry_run(&rules, &resource, &serde_json::to_value(adapter_env())?);
    let (text, is_well) = show(&resource, &played)?;
    streams::print(&text)?;
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read_adapter(file: &Path, name: Option<&str>) -> anyhow::Result<Adapter> {
    for manifest in manifests::read(&[file.to_owned()], false)? {
        let place = manifest.place;
        let object = manifest.object.map_err(|why| anyhow::anyhow!("{place}: {why}"))?;
        if object.kind == "Adapter" && name.is_none_or(|name| name == object.name) {
            return Adapter::from_document(&object.document).with_context(|| place.to_string());
        }
    }
    match name {
        Some(name) => bail!("{} has no Adapter of the name {name:?}", file.display()),
        None => bail!("{} has no Adapter", file.display()),
    }
}

fn compile(adapter: &Adapter) -> anyhow::Result<AdapterRules> {
    AdapterRules::compile(&adapter.metadata.name, &adapter.spec).map_err(|problems| {
        let problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("the adapter cannot be used: {}", problems.join("; "))
    })
}

async fn read_resource(session: &Session, adapter: &Adapter, named: &str) -> anyhow::Result<ManagedResource> {
    let Some((kind, name)) = named.split_once('/') else {
        bail!("--resource {named} is not KIND/NAME, such as cluster/blue");
    };
    let catalog = session.client.catalog().await?;
    let resource = catalog.find_one(kind)?;
    if resource.plural != adapter.spec.resource_type {
        bail!("{named} is not of the type {:?} that the adapter is for", adapter.spec.resource_type);
    }
    let object = session.client.get(resource, session.namespace(), name, Form::Objects).await?;
    ManagedResource::from_document(&object).with_context(|| format!("{named} is no managed resource"))
}

/// The steps as text, and whether all of them went well.
fn show(resource: &ManagedResource, played: &DryRun) -> anyhow::Result<(String, bool)> {
    let metadata = &resource.metadata;
    let mut text =
        format!("Resource: {} {}, generation {}\n", resource.kind, metadata.name, metadata.generation);
    let mut is_well = true;
    for (name, value) in &played.params {
        match value {
            Ok(value) => text.push_str(&format!("Param {name}: {value}\n")),
            Err(why) => {
                is_well = false;
                text.push_str(&format!("Param {name} has no value: {why}\n"));
            }
        }
    }
    for precondition in &played.preconditions {
        let expression = &precondition.expression;
        match &precondition.holds {
            Ok(true) => text.push_str(&format!("Precondition holds: {expression}\n")),
            Ok(false) => text.push_str(&format!(
                "Precondition does not hold: {expression}\nReport: Applied False, Available False, {}\n",
                precondition.message
            )),
            Err(why) => {
                is_well = false;
                text.push_str(&format!("Precondition {expression} has no value: {why}\n"));
            }
        }
    }
    let document = match &played.made {
        None => return Ok((text, is_well)),
        Some(Err(why)) => {
            text.push_str(&format!("The template has no value at {why}\n"));
            return Ok((text, false));
        }
        Some(Ok(Made::Nothing)) => {
            text.push_str("Nothing is to be cleaned up\n");
            return Ok((text, is_well));
        }
        Some(Ok(Made::Task(task))) => {
            text.push_str("Task:\n");
            task.to_document()?
        }
        Some(Ok(Made::Apply(manifest))) => {
            text.push_str("Applied to the cluster:\n");
            manifest.clone()
        }
        Some(Ok(Made::Delete(manifest))) => {
            text.push_str("Deleted from the cluster:\n");
            manifest.clone()
        }
        Some(Ok(Made::Call(call))) => {
            text.push_str("Call:\n");
            call.clone()
        }
    };
    text.push_str(&render(Language::Yaml, &document));
    Ok((text, is_well))
}
