//! `muster delete`: objects by name, by file, by selector, or all of a resource.
//!
//! All objects are marked first and waited for afterwards, so that those that depend on each other can go.

use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use muster_client::client::{DeleteOptions, Deleted, Form, Propagation, Selectors};
use muster_client::follow::{Change, Follow, News, revision_of};
use muster_client::{Catalog, ClientError, Resource, Scope};
use serde_json::Value;

use super::listing::{each_page, scope, selectors};
use super::session::Session;
use super::targets::{Targets, find_all};
use crate::cli::{Cascade, DeleteArgs, Globals};
use crate::manifests;
use crate::output::streams;
use crate::usage::UsageError;

/// Requests under way at once.
const AT_ONCE: usize = 16;
/// How long a user waits without asking why.
const A_WHILE: Duration = Duration::from_secs(1);

/// An object to be deleted.
#[derive(Debug, Clone)]
struct Victim {
    resource: Resource,
    namespace: String,
    name: String,
    /// Its identity, where it was seen before: its successor of the same name is spared.
    uid: Option<String>,
}

impl Victim {
    fn label(&self) -> String {
        self.resource.name_of(&self.name)
    }
}

/// Deletes what was asked for.
pub async fn run(globals: &Globals, args: &DeleteArgs) -> anyhow::Result<ExitCode> {
    let chosen = Chosen::of(args)?;
    let session = Session::open(globals).await?;
    let catalog = session.client.catalog().await?;
    let mut failed = false;
    let victims = choose(&session, &catalog, args, chosen, &mut failed).await?;
    if victims.is_empty() && !failed {
        streams::note("No resources found.");
        return Ok(ExitCode::SUCCESS);
    }
    let options = DeleteOptions {
        propagation: match args.cascade {
            Cascade::Background => Propagation::Background,
            Cascade::Foreground => Propagation::Foreground,
            Cascade::Orphan => Propagation::Orphan,
        },
        dry_run: args.dry_run,
        uid: None,
    };
    let mut marked = Vec::new();
    let mut outcomes = stream::iter(victims)
        .map(|victim| {
            let options = DeleteOptions { uid: victim.uid.clone(), ..options.clone() };
            let client = &session.client;
            async move {
                let outcome =
                    client.delete(&victim.resource, &victim.namespace, &victim.name, &options).await;
                (victim, outcome)
            }
        })
        .buffered(AT_ONCE);
    while let Some((victim, outcome)) = outcomes.next().await {
        match outcome {
            Ok(_) if args.dry_run => streams::report(format!("{} deleted (dry run)", victim.label()))?,
            Ok(Deleted::Gone) => streams::report(format!("{} deleted", victim.label()))?,
            Ok(Deleted::Marked(_)) if !args.wait => streams::report(format!("{} deleting", victim.label()))?,
            Ok(Deleted::Marked(object)) => marked.push((victim, object)),
            Err(error) if error.is_not_found() && args.ignore_not_found => {}
            Err(error @ ClientError::Unreachable { .. }) => return Err(error.into()),
            Err(error) => {
                streams::note(format!("error: {error}"));
                failed = true;
            }
        }
    }
    drop(outcomes);
    if !wait_for_all(&session, &marked, args.timeout.map(muster_types::Duration::as_std)).await? {
        failed = true;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// How the objects are chosen.
enum Chosen {
    Files(Vec<manifests::Manifest>),
    Named(Vec<(String, String)>),
    Selected(Vec<String>),
}

impl Chosen {
    fn of(args: &DeleteArgs) -> anyhow::Result<Self> {
        if !args.files.is_empty() {
            return Ok(Self::Files(manifests::read(&args.files, args.recursive)?));
        }
        let select = &args.select;
        let selected = args.all || select.selector.is_some() || select.field_selector.is_some();
        let refuse = |message: &str| Err(UsageError::new("delete", message).into());
        match Targets::parse("delete", &args.what)? {
            Targets::Collections(words) if selected => Ok(Self::Selected(words)),
            Targets::Collections(_) => {
                refuse("which ones? Name objects, or choose them with --selector or --all")
            }
            Targets::Objects(_) if selected => refuse("objects are chosen either by name or by selector"),
            Targets::Objects(_) if select.all_namespaces => {
                refuse("a name belongs to one namespace; give --namespace instead of --all-namespaces")
            }
            Targets::Objects(objects) => Ok(Self::Named(objects)),
        }
    }
}

/// The objects that are meant; what is wrong with some of them is said at once.
async fn choose(
    session: &Session,
    catalog: &Catalog,
    args: &DeleteArgs,
    chosen: Chosen,
    failed: &mut bool,
) -> anyhow::Result<Vec<Victim>> {
    match chosen {
        Chosen::Named(objects) => objects
            .into_iter()
            .map(|(word, name)| {
                let resource = catalog.find_one(&word)?.clone();
                let namespace = session.namespace().to_owned();
                Ok(Victim { resource, namespace, name, uid: None })
            })
            .collect(),
        Chosen::Files(manifests) => {
            let mut victims = Vec::new();
            for manifest in manifests {
                match from_file(session, catalog, manifest.object) {
                    Ok(victim) => victims.push(victim),
                    Err(error) => {
                        streams::note(format!("error: {}: {error:#}", manifest.place));
                        *failed = true;
                    }
                }
            }
            Ok(victims)
        }
        Chosen::Selected(words) => {
            let mut victims = Vec::new();
            for resource in find_all(catalog, &words)? {
                let scope = scope(&args.select, session.namespace());
                let selectors = selectors(&args.select);
                each_page(&session.client, resource, scope, &selectors, Form::Metadata, None, |page| {
                    let items = page.document["items"].as_array().map(Vec::as_slice).unwrap_or_default();
                    victims.extend(items.iter().map(|item| seen(resource, item)));
                    Ok(())
                })
                .await?;
            }
            Ok(victims)
        }
    }
}

fn from_file(
    session: &Session,
    catalog: &Catalog,
    object: Result<manifests::Object, String>,
) -> anyhow::Result<Victim> {
    let object = object.map_err(|why| anyhow::anyhow!(why))?;
    if object.name.is_empty() {
        anyhow::bail!("{} has no metadata.name, so it cannot be told which one to delete", object.kind);
    }
    let resource = catalog.find_kind(&object.api_version, &object.kind)?.clone();
    let namespace = session.namespace_of(&object.namespace)?.to_owned();
    Ok(Victim { resource, namespace, name: object.name, uid: None })
}

fn seen(resource: &Resource, item: &Value) -> Victim {
    let text = |name: &str| item["metadata"][name].as_str().unwrap_or_default().to_owned();
    let uid = Some(text("uid")).filter(|uid| !uid.is_empty());
    Victim { resource: resource.clone(), namespace: text("namespace"), name: text("name"), uid }
}

/// Waits until marked objects are gone. False if some are still there.
async fn wait_for_all(
    session: &Session,
    marked: &[(Victim, Value)],
    timeout: Option<Duration>,
) -> anyhow::Result<bool> {
    let deadline = timeout.map(|timeout| tokio::time::Instant::now() + timeout);
    let mut all_gone = true;
    for (victim, object) in marked {
        let gone = wait_patiently(session, victim, object);
        let outcome = match deadline {
            Some(deadline) => tokio::time::timeout_at(deadline, gone).await.ok(),
            None => Some(gone.await),
        };
        if let Some(gone) = outcome {
            gone?;
            streams::report(format!("{} deleted", victim.label()))?;
        } else {
            streams::note(format!(
                "error: {} is marked for deletion but still there; it waits for {}",
                victim.label(),
                reasons(object)
            ));
            all_gone = false;
        }
    }
    Ok(all_gone)
}

/// Waits, and says what for if that takes a while.
async fn wait_patiently(session: &Session, victim: &Victim, object: &Value) -> Result<(), ClientError> {
    let mut gone = pin!(wait_for(session, victim, object["metadata"]["uid"].as_str()));
    tokio::select! {
        gone = &mut gone => return gone,
        () = tokio::time::sleep(A_WHILE) => {
            streams::note(format!("{} waits for {}", victim.label(), reasons(object)));
        }
    }
    gone.await
}

async fn wait_for(session: &Session, victim: &Victim, uid: Option<&str>) -> Result<(), ClientError> {
    let Victim { resource, namespace, name, .. } = victim;
    loop {
        let object = match session.client.get(resource, namespace, name, Form::Metadata).await {
            Ok(object) if object["metadata"]["uid"].as_str() == uid => object,
            Ok(_) => return Ok(()),
            Err(error) if error.is_not_found() => return Ok(()),
            Err(error) => return Err(error),
        };
        let revision = revision_of(&object).unwrap_or_default().to_owned();
        let only = Selectors { labels: None, fields: Some(format!("metadata.name={name}")) };
        let scope = Scope::Namespace(namespace);
        let mut follow = Follow::new(&session.client, resource, scope, only, Form::Metadata, revision);
        loop {
            match follow.next().await? {
                News::Changed(Change::Deleted, _) => return Ok(()),
                News::Changed(Change::Present, _) | News::Back => {}
                News::Lost(error) => streams::note(format!("{error}; trying again")),
                News::Expired => break,
            }
        }
    }
}

fn reasons(object: &Value) -> String {
    let finalizers = object["metadata"]["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<_> = finalizers.iter().filter_map(Value::as_str).collect();
    if names.is_empty() { "the server".to_owned() } else { format!("finalizers: {}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_deletion_waits_for_is_named() {
        assert_eq!(reasons(&json!({"metadata": {"finalizers": ["a/b", "c/d"]}})), "finalizers: a/b, c/d");
        assert_eq!(reasons(&json!({})), "the server");
    }
}
