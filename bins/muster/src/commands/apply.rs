//! `muster apply`: objects as files describe them.
//!
//! Objects are applied one after another, in the order of the files, because tasks of the same priority start in the
//! order in which they were made. One that fails does not keep the others from being applied.

use std::process::ExitCode;

use anyhow::anyhow;
use muster_client::client::{ApplyOptions, Outcome, Written};
use muster_client::{Catalog, ClientError, Resource};
use muster_types::Resource as _;
use muster_types::resource_type::ResourceTypeSpec;

use super::session::Session;
use crate::cli::{ApplyArgs, Globals};
use crate::manifests::{self, Object};
use crate::output::progress::Progress;
use crate::output::streams;

/// Applies all objects of the files.
pub async fn run(globals: &Globals, args: &ApplyArgs) -> anyhow::Result<ExitCode> {
    let manifests = manifests::read(&args.files.files, args.files.recursive)?;
    let session = Session::open(globals).await?;
    let mut catalog = session.client.catalog().await?;
    // A type that was applied a moment ago may declare the kind of what comes next.
    let mut declared = false;
    let options = ApplyOptions {
        manager: args.field_manager.clone(),
        force: args.force_conflicts,
        dry_run: args.dry_run,
    };
    let total = manifests.len();
    let mut progress = Progress::new("applied", total);
    let mut failed = 0;
    for (done, manifest) in manifests.into_iter().enumerate() {
        progress.step(done);
        let outcome = match manifest.object {
            Ok(object) => {
                if declared && catalog.find_kind(&object.api_version, &object.kind).is_err() {
                    catalog = session.client.catalog().await?;
                    declared = false;
                }
                declared |= object.kind == ResourceTypeSpec::NAMES.kind;
                apply_one(&session, &catalog, &object, &options).await
            }
            Err(why) => Err(anyhow!(why)),
        };
        progress.clear();
        match outcome {
            Ok((name, written)) => {
                for warning in &written.warnings {
                    streams::note(format!("warning: {}: {warning}", manifest.place));
                }
                streams::report(result_line(&name, written.outcome, args.dry_run))?;
            }
            Err(error) if is_end_of_server(&error) => {
                let left = total - done;
                return Err(error.context(format!("{left} of {total} objects were not applied")));
            }
            Err(error) => {
                failed += 1;
                streams::note(format!("error: {}: {error:#}{}", manifest.place, conflict_hint(&error)));
            }
        }
    }
    if failed > 0 {
        let noun = if total == 1 { "object" } else { "objects" };
        streams::note(format!("error: {failed} of {total} {noun} failed"));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

async fn apply_one(
    session: &Session,
    catalog: &Catalog,
    object: &Object,
    options: &ApplyOptions,
) -> anyhow::Result<(String, Written)> {
    let resource = catalog.find_kind(&object.api_version, &object.kind)?;
    let in_resource = |error: anyhow::Error| error.context(label(resource, object));
    let namespace = session.namespace_of(&object.namespace).map_err(in_resource)?;
    let written = if object.name.is_empty() {
        session.client.create(resource, namespace, &object.document, options).await
    } else {
        session.client.apply(resource, namespace, &object.name, &object.document, options).await
    };
    let written = written.map_err(|error| in_resource(error.into()))?;
    let name = written.object["metadata"]["name"].as_str().unwrap_or(&object.name);
    Ok((resource.name_of(name), written))
}

fn label(resource: &Resource, object: &Object) -> String {
    let generated = || object.document["metadata"]["generateName"].as_str().unwrap_or_default();
    resource.name_of(if object.name.is_empty() { generated() } else { &object.name })
}

fn result_line(name: &str, outcome: Outcome, dry_run: bool) -> String {
    let word = match outcome {
        Outcome::Created => "created",
        Outcome::Configured => "configured",
        Outcome::Unchanged => "unchanged",
    };
    format!("{name} {word}{}", if dry_run { " (dry run)" } else { "" })
}

/// What an apply can do about fields that belong to somebody else.
fn conflict_hint(error: &anyhow::Error) -> &'static str {
    let is_conflict = error.chain().any(|link| {
        link.downcast_ref::<ClientError>().is_some_and(|error| {
            matches!(error, ClientError::Refused(refused) if error.is_conflict() && refused.message.starts_with("Apply failed"))
        })
    });
    if is_conflict { "; --force-conflicts takes the fields over" } else { "" }
}

/// True if the next object would fail for the same reason.
fn is_end_of_server(error: &anyhow::Error) -> bool {
    error.chain().any(|link| {
        link.downcast_ref::<ClientError>().is_some_and(|error| {
            matches!(error, ClientError::Unreachable { .. } | ClientError::Untrusted { .. })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_say_what_happened_or_would() {
        assert_eq!(result_line("task.muster.dev/a", Outcome::Created, false), "task.muster.dev/a created");
        assert_eq!(result_line("t/a", Outcome::Unchanged, true), "t/a unchanged (dry run)");
    }
}
