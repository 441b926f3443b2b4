//! Reading a collection page by page.

use muster_client::client::{Form, Page, PageRequest, Selectors};
use muster_client::{Client, Resource, Scope};

use crate::cli::SelectArgs;

/// Objects that are asked for at once.
const PAGE: usize = 500;

/// Which objects, in the terms of a client.
pub fn selectors(args: &SelectArgs) -> Selectors {
    Selectors { labels: args.selector.clone(), fields: args.field_selector.clone() }
}

/// Which namespaces.
pub fn scope<'a>(args: &SelectArgs, namespace: &'a str) -> Scope<'a> {
    if args.all_namespaces { Scope::All } else { Scope::Namespace(namespace) }
}

/// A list that was read to its end or to its limit.
#[derive(Debug)]
pub struct Listed {
    /// The revision of the first page, which the others share.
    pub revision: String,
    /// The limit was reached and there is more.
    pub more: bool,
}

/// Hands each page of a list to `take`.
pub async fn each_page(
    client: &Client,
    resource: &Resource,
    scope: Scope<'_>,
    selectors: &Selectors,
    form: Form,
    limit: Option<usize>,
    mut take: impl FnMut(&Page) -> anyhow::Result<()>,
) -> anyhow::Result<Listed> {
    let mut left = limit.unwrap_or(usize::MAX);
    let mut from: Option<String> = None;
    let mut revision = String::new();
    loop {
        let request = PageRequest { limit: PAGE.min(left), from: from.as_deref() };
        let page = client.list(resource, scope, selectors, form, request).await?;
        take(&page)?;
        if revision.is_empty() {
            revision.clone_from(&page.revision);
        }
        left = left.saturating_sub(PAGE);
        match page.next {
            None => return Ok(Listed { revision, more: false }),
            Some(_) if left == 0 => return Ok(Listed { revision, more: true }),
            Some(next) => from = Some(next),
        }
    }
}
