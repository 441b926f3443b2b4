//! `muster get`: objects as a table, as names or whole, once or as they change.

use std::process::ExitCode;

use anyhow::Context as _;
use muster_client::client::{Form, Selectors};
use muster_client::follow::{Change, Follow, News, revision_of};
use muster_client::{Catalog, Resource, Scope};
use serde_json::Value;

use super::listing::{each_page, scope, selectors};
use super::session::Session;
use super::targets::{Targets, find_all};
use crate::cli::{GetArgs, Globals, Output};
use crate::output::documents::{self, Language, List, hide_managed_fields};
use crate::output::streams;
use crate::output::table::{Look, Table, plain};
use crate::usage::UsageError;

/// Shows what was asked for.
pub async fn run(globals: &Globals, args: &GetArgs) -> anyhow::Result<ExitCode> {
    let targets = Targets::parse("get", &args.what)?;
    check(args, &targets)?;
    let session = Session::open(globals).await?;
    let catalog = session.client.catalog().await?;
    let getting = Getting { session: &session, catalog: &catalog, args };
    match (targets, args.watch) {
        (Targets::Collections(words), false) => getting.collections(&words).await,
        (Targets::Objects(objects), false) => getting.objects(&objects).await,
        (Targets::Collections(words), true) => {
            let resources = find_all(&catalog, &words)?;
            let [resource] = resources.as_slice() else {
                let plurals: Vec<_> = resources.iter().map(|resource| resource.plural.as_str()).collect();
                let message = format!("--watch shows one resource, not {}", plurals.join(", "));
                return Err(UsageError::new("get", message).into());
            };
            getting.watch_collection(resource).await
        }
        (Targets::Objects(objects), true) => {
            let [(word, name)] = objects.as_slice() else {
                return Err(UsageError::new("get", "--watch shows one object, or all of a resource").into());
            };
            getting.watch_object(catalog.find_one(word)?, name).await
        }
    }
}

fn check(args: &GetArgs, targets: &Targets) -> Result<(), UsageError> {
    let named = matches!(targets, Targets::Objects(_));
    let select = &args.select;
    if named && (select.selector.is_some() || select.field_selector.is_some()) {
        return Err(UsageError::new("get", "objects are chosen either by name or by selector"));
    }
    if named && select.all_namespaces {
        let message = "a name belongs to one namespace; give --namespace instead of --all-namespaces";
        return Err(UsageError::new("get", message));
    }
    Ok(())
}

/// One use of the verb.
struct Getting<'a> {
    session: &'a Session,
    catalog: &'a Catalog,
    args: &'a GetArgs,
}

impl Getting<'_> {
    async fn collections(&self, words: &[String]) -> anyhow::Result<ExitCode> {
        let resources = find_all(self.catalog, words)?;
        let several = resources.len() > 1;
        let limit = self.args.limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let mut printer = Printer::new(self.args, true);
        for resource in resources {
            printer.begin(resource, several);
            let listed = each_page(
                &self.session.client,
                resource,
                self.scope(),
                &selectors(&self.args.select),
                form(self.args.output),
                limit,
                |page| printer.list(resource, &page.document),
            )
            .await?;
            if listed.more {
                let count = limit.unwrap_or(0);
                streams::note(format!("there are more {} than the {count} shown", resource.plural));
            }
        }
        printer.end()?;
        if !printer.any && !matches!(self.args.output, Output::Json | Output::Yaml) {
            streams::note(self.nothing(words));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn nothing(&self, words: &[String]) -> String {
        let namespaced = find_all(self.catalog, words)
            .is_ok_and(|resources| resources.iter().any(|resource| resource.namespaced));
        if namespaced && !self.args.select.all_namespaces {
            format!("No resources found in {} namespace.", self.session.namespace())
        } else {
            "No resources found.".to_owned()
        }
    }

    async fn objects(&self, objects: &[(String, String)]) -> anyhow::Result<ExitCode> {
        let mut found: Vec<(&Resource, Vec<Value>)> = Vec::new();
        let mut code = ExitCode::SUCCESS;
        for (word, name) in objects {
            let resource = self.catalog.find_one(word)?;
            let namespace = self.session.namespace();
            match self.session.client.get(resource, namespace, name, form(self.args.output)).await {
                Ok(object) => match found.last_mut() {
                    Some((last, values)) if *last == resource => values.push(object),
                    _ => found.push((resource, vec![object])),
                },
                Err(error) if error.is_not_found() && self.args.ignore_not_found => {}
                Err(error) if error.is_not_found() => {
                    streams::note(format!("error: {error}"));
                    code = ExitCode::FAILURE;
                }
                Err(error) => return Err(error.into()),
            }
        }
        if found.is_empty() {
            return Ok(code);
        }
        let several = found.len() > 1;
        let mut printer = Printer::new(self.args, objects.len() > 1);
        for (resource, values) in found {
            printer.begin(resource, several);
            printer.objects(resource, values)?;
        }
        printer.end()?;
        Ok(code)
    }

    async fn watch_collection(&self, resource: &Resource) -> anyhow::Result<ExitCode> {
        let mut printer = Printer::new(self.args, false);
        printer.begin(resource, false);
        let revision = self.show_all(resource, &mut printer).await?;
        let selectors = selectors(&self.args.select);
        let form = form(self.args.output);
        let client = &self.session.client;
        let mut follow = Follow::new(client, resource, self.scope(), selectors, form, revision);
        loop {
            match follow.next().await? {
                News::Changed(change, object) => printer.change(resource, change, object)?,
                News::Lost(error) => streams::note(format!("{error}; trying again")),
                News::Back => {}
                News::Expired => {
                    streams::note("the server no longer has the changes since then; this is how it is now:");
                    follow.resume_at(self.show_all(resource, &mut printer).await?);
                }
            }
        }
    }

    async fn show_all(&self, resource: &Resource, printer: &mut Printer<'_>) -> anyhow::Result<String> {
        let listed = each_page(
            &self.session.client,
            resource,
            self.scope(),
            &selectors(&self.args.select),
            form(self.args.output),
            None,
            |page| printer.list(resource, &page.document),
        )
        .await?;
        Ok(listed.revision)
    }

    async fn watch_object(&self, resource: &Resource, name: &str) -> anyhow::Result<ExitCode> {
        let client = &self.session.client;
        let namespace = self.session.namespace();
        let form = form(self.args.output);
        let object = client.get(resource, namespace, name, form).await?;
        let revision = revision_of(&object).context("the object has no resourceVersion")?.to_owned();
        let mut printer = Printer::new(self.args, false);
        printer.begin(resource, false);
        printer.objects(resource, vec![object])?;
        let only = Selectors { labels: None, fields: Some(format!("metadata.name={name}")) };
        let mut follow = Follow::new(client, resource, Scope::Namespace(namespace), only, form, revision);
        loop {
            match follow.next().await? {
                News::Changed(change, object) => printer.change(resource, change, object)?,
                News::Lost(error) => streams::note(format!("{error}; trying again")),
                News::Back => {}
                News::Expired => {
                    let object = client.get(resource, namespace, name, form).await?;
                    follow.resume_at(revision_of(&object).unwrap_or_default().to_owned());
                    printer.objects(resource, vec![object])?;
                }
            }
        }
    }

    fn scope(&self) -> Scope<'_> {
        scope(&self.args.select, self.session.namespace())
    }
}

fn form(output: Output) -> Form {
    match output {
        Output::Table | Output::Wide => Form::Table,
        Output::Json | Output::Yaml => Form::Objects,
        Output::Name => Form::Metadata,
    }
}

/// Prints objects in the form that was asked for, as they come.
struct Printer<'a> {
    args: &'a GetArgs,
    table: Table,
    /// Documents are the items of a list.
    list: Option<List>,
    /// Something was printed.
    any: bool,
}

impl<'a> Printer<'a> {
    fn new(args: &'a GetArgs, many: bool) -> Self {
        let language = language(args.output);
        let list = language.filter(|_| many).map(List::new);
        Self { args, table: Table::default(), list, any: false }
    }

    /// What follows is of this resource; `several` says that there are others.
    fn begin(&mut self, resource: &Resource, several: bool) {
        self.table = Table::new(Look {
            wide: self.args.output == Output::Wide,
            namespace: self.args.select.all_namespaces && resource.namespaced,
            no_headers: self.args.no_headers,
            prefix: if several { resource.name_of("") } else { String::new() },
        });
    }

    /// A table or a list, as the server sent it.
    fn list(&mut self, resource: &Resource, document: &Value) -> anyhow::Result<()> {
        if form(self.args.output) == Form::Table {
            return self.rows(document, "");
        }
        let items = document["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().try_for_each(|item| self.object(resource, item.clone()))
    }

    /// Objects of one resource, or a table of one row for each.
    fn objects(&mut self, resource: &Resource, mut values: Vec<Value>) -> anyhow::Result<()> {
        if form(self.args.output) != Form::Table {
            return values.into_iter().try_for_each(|value| self.object(resource, value));
        }
        let rows: Vec<Value> = values
            .iter_mut()
            .filter_map(|value| value["rows"].as_array_mut().map(std::mem::take))
            .flatten()
            .collect();
        let mut table = values.into_iter().next().unwrap_or_default();
        table["rows"] = Value::Array(rows);
        self.rows(&table, "")
    }

    fn change(&mut self, resource: &Resource, change: Change, value: Value) -> anyhow::Result<()> {
        match (form(self.args.output), change) {
            (Form::Table, Change::Present) => self.rows(&value, ""),
            (Form::Table, Change::Deleted) => self.rows(&value, "(deleted)"),
            (_, _) => self.object(resource, value),
        }
    }

    fn rows(&mut self, table: &Value, remark: &str) -> anyhow::Result<()> {
        let another = self.any && !self.table.has_rows();
        let text = self.table.render(table, remark)?;
        if text.is_empty() {
            return Ok(());
        }
        let before = if another { "\n" } else { "" };
        self.any = true;
        Ok(streams::print(&format!("{before}{text}"))?)
    }

    fn object(&mut self, resource: &Resource, mut object: Value) -> anyhow::Result<()> {
        let first = !std::mem::replace(&mut self.any, true);
        let Some(language) = language(self.args.output) else {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            return Ok(streams::print(&format!("{}\n", resource.name_of(&plain(name))))?);
        };
        if !self.args.show_managed_fields {
            hide_managed_fields(&mut object);
        }
        fill_type(resource, &mut object);
        let text = match &mut self.list {
            Some(list) => list.item(&object),
            None if first || language == Language::Json => documents::render(language, &object),
            None => format!("---\n{}", documents::render(language, &object)),
        };
        Ok(streams::print(&text)?)
    }

    fn end(&mut self) -> anyhow::Result<()> {
        match &self.list {
            Some(list) => Ok(streams::print(list.end())?),
            None => Ok(()),
        }
    }
}

fn language(output: Output) -> Option<Language> {
    match output {
        Output::Json => Some(Language::Json),
        Output::Yaml => Some(Language::Yaml),
        Output::Table | Output::Wide | Output::Name => None,
    }
}

/// Items of a list may leave out what the list says of all of them.
fn fill_type(resource: &Resource, object: &mut Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.entry("apiVersion").or_insert_with(|| resource.api_version().into());
        fields.entry("kind").or_insert_with(|| resource.kind.clone().into());
    }
}
