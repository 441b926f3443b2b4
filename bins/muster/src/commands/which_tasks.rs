//! The tasks that a verb is about: by name, by selector, or all of the namespace.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use muster_client::client::{Form, Selectors};
use muster_client::{Resource, Scope};
use serde_json::Value;

use super::listing::each_page;
use super::session::Session;
use super::task_names::explain_missing;

/// Requests under way at once.
pub const AT_ONCE: usize = 32;

/// Tasks with these labels; without a selector all of the namespace.
pub async fn list(session: &Session, selector: Option<&str>) -> anyhow::Result<Vec<Value>> {
    let selectors = Selectors { labels: selector.map(str::to_owned), fields: None };
    let scope = Scope::Namespace(session.namespace());
    let tasks = Resource::tasks();
    let mut found = Vec::new();
    each_page(&session.client, &tasks, scope, &selectors, Form::Objects, None, |page| {
        found.extend(page.document["items"].as_array().cloned().unwrap_or_default());
        Ok(())
    })
    .await?;
    Ok(found)
}

/// Fails if one of the tasks is not there, and says which one may be meant.
pub async fn check_names(session: &Session, names: &[String]) -> anyhow::Result<Vec<Value>> {
    let (client, namespace) = (&session.client, session.namespace());
    stream::iter(names)
        .map(|name| async move {
            match client.get(&Resource::tasks(), namespace, name, Form::Objects).await {
                Ok(task) => Ok(task),
                Err(error) => Err(explain_missing(client, namespace, name, error).await),
            }
        })
        .buffered(AT_ONCE)
        .try_collect()
        .await
}
