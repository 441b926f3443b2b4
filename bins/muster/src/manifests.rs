//! Objects in files: YAML or JSON, one or many to a file, bare or in a `List`.
//!
//! Each document stands for itself: one that cannot be read is an error with its place, and the others are read.

use std::fmt;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use serde_json::Value;

use crate::job_controller::{is_job_controller, to_schedule};

/// What a file with objects is called.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];
/// Largest file.
const MAX_FILE: u64 = 256 * 1024 * 1024;
/// Deepest directory.
const MAX_DEPTH: usize = 32;

/// Where an object was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    source: String,
    document: usize,
    item: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, document {}", self.source, self.document)?;
        self.item.map_or(Ok(()), |item| write!(f, ", item {item}"))
    }
}

/// An object, or why there is none.
#[derive(Debug)]
pub struct Manifest {
    /// Where it was read.
    pub place: Place,
    /// The object.
    pub object: Result<Object, String>,
}

/// An object with the fields that every object has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// `group/version`.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace; empty if the object names none.
    pub namespace: String,
    /// Name; empty if it is to be generated.
    pub name: String,
    /// All of it.
    pub document: Value,
}

/// Reads all objects of files, directories and standard input (`-`).
///
/// A file that cannot be read is an error: nothing is done with half of what was asked for.
pub fn read(paths: &[PathBuf], recursive: bool) -> anyhow::Result<Vec<Manifest>> {
    let mut manifests = Vec::new();
    for path in paths {
        if is_stdin(path) {
            let text = read_limited(std::io::stdin().lock()).context("cannot read standard input")?;
            manifests.extend(split(&show(path), &text));
            continue;
        }
        for file in files_of(path, recursive)? {
            let fail = || format!("cannot read {}", file.display());
            let text = read_limited(fs::File::open(&file).with_context(fail)?).with_context(fail)?;
            manifests.extend(split(&file.display().to_string(), &text));
        }
    }
    if manifests.is_empty() {
        let shown: Vec<_> = paths.iter().map(|path| show(path)).collect();
        bail!("there are no objects in {}", shown.join(", "));
    }
    Ok(manifests)
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn show(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_owned() } else { path.display().to_string() }
}

fn read_limited(source: impl std::io::Read) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    source.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        bail!("it is larger than {} MiB; split it", MAX_FILE / 1024 / 1024);
    }
    String::from_utf8(bytes).map_err(|_| anyhow!("it is not UTF-8 text"))
}

fn files_of(path: &Path, recursive: bool) -> anyhow::Result<Vec<PathBuf>> {
    let shown = path.display();
    if ["http:", "https:"].iter().any(|scheme| path.starts_with(scheme)) {
        bail!("{shown} is a URL; fetch it first, for example with `curl -fsSL URL | muster apply -f -`");
    }
    let found = fs::metadata(path).with_context(|| format!("cannot read {shown}"))?;
    if !found.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    walk(path, if recursive { MAX_DEPTH } else { 1 }, &mut files)?;
    if files.is_empty() {
        let hint = if recursive { "" } else { "; -R looks in the directories below, too" };
        bail!("there are no .yaml, .yml or .json files in {shown}{hint}");
    }
    Ok(files)
}

/// Files in the order of their names; directories come after files, and links to directories are not followed.
fn walk(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let fail = || format!("cannot read {}", directory.display());
    if depth == 0 {
        return Ok(());
    }
    let mut entries =
        fs::read_dir(directory).with_context(fail)?.collect::<Result<Vec<_>, _>>().with_context(fail)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut below = Vec::new();
    for entry in entries {
        let path = entry.path();
        if entry.file_type().with_context(fail)?.is_dir() {
            below.push(path);
        } else if path.extension().is_some_and(|found| EXTENSIONS.iter().any(|known| found == *known)) {
            files.push(path);
        }
    }
    below.iter().try_for_each(|directory| walk(directory, depth - 1, files))
}

/// The objects of a text.
pub fn split(source: &str, text: &str) -> Vec<Manifest> {
    let mut manifests = Vec::new();
    let mut document = 0;
    for part in parts(text) {
        for value in values(&part) {
            document += 1;
            let place = Place { source: source.to_owned(), document, item: None };
            match value {
                Ok(value) => expand(place, value, &mut manifests),
                Err(why) => manifests.push(Manifest { place, object: Err(why) }),
            }
        }
    }
    manifests
}

/// A text between two document markers.
struct Part<'a> {
    text: &'a str,
    /// Lines before it.
    before: usize,
}

/// Cuts a text at its document markers. YAML has `---` at the start of a line nowhere else.
fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut start, mut before, mut offset) = (0, 0, 0);
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let is_marker = |mark: &str| {
            line.strip_prefix(mark)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
        };
        if is_marker("---") || is_marker("...") {
            parts.push(Part { text: &text[start..offset], before });
            // What stands behind the marker belongs to the next document.
            start = offset + "---".len();
            before = index;
        }
        offset += line.len();
    }
    parts.push(Part { text: &text[start..], before });
    parts
}

/// The documents of a part: none, one, or in JSON several in a row.
fn values(part: &Part<'_>) -> Vec<Result<Value, String>> {
    let is_blank = |line: &str| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#') || line.starts_with('%')
    };
    if part.text.lines().all(is_blank) {
        return Vec::new();
    }
    if part.text.trim_start().starts_with('{') {
        return json_values(part);
    }
    vec![parse_yaml(part.text).map_err(|_| yaml_error(part))]
}

fn json_values(part: &Part<'_>) -> Vec<Result<Value, String>> {
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(part.text).into_iter() {
        match value {
            Ok(value) => values.push(Ok(value)),
            // It may be YAML that begins with a brace.
            Err(error) if values.is_empty() => {
                values.push(parse_yaml(part.text).map_err(|_| json_error(part, &error)));
            }
            Err(error) => values.push(Err(json_error(part, &error))),
        }
    }
    values
}

fn parse_yaml(text: &str) -> Result<Value, serde_saphyr::Error> {
    // The user's own file, limited in size: a long list is no attack. Aliases keep their limits.
    let budget = serde_saphyr::budget! {
        max_events: 1_000_000_000,
        max_nodes: 1_000_000_000,
        max_total_scalar_bytes: usize::MAX,
        max_depth: 128,
    };
    let options = serde_saphyr::options! { budget: budget, with_snippet: false };
    serde_saphyr::from_str_with_options(text, options)
}

/// The error with the lines of the file, not of the document.
fn yaml_error(part: &Part<'_>) -> String {
    let padded = "\n".repeat(part.before) + part.text;
    match parse_yaml(&padded) {
        Ok(_) => "the document cannot be read".to_owned(),
        Err(error) => {
            format!("not valid YAML: {}", error.render_with_formatter(&serde_saphyr::UserMessageFormatter))
        }
    }
}

fn json_error(part: &Part<'_>, error: &serde_json::Error) -> String {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = error.to_string();
    let words = text.strip_suffix(&place).unwrap_or(&text);
    format!("not valid JSON: line {} column {}: {words}", part.before + error.line(), error.column())
}

/// The object in a document, or the objects of a list.
fn expand(place: Place, document: Value, manifests: &mut Vec<Manifest>) {
    let listed = document["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).map(str::to_owned);
    match (document, listed) {
        (Value::Object(mut fields), Some(kind)) if fields.get("items").is_some_and(Value::is_array) => {
            let items = fields.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take);
            let api_version = fields.get("apiVersion").cloned().filter(|_| !kind.is_empty());
            let kind = (!kind.is_empty()).then_some(Value::String(kind));
            for (index, mut item) in items.unwrap_or_default().into_iter().enumerate() {
                let place = Place { item: Some(index + 1), ..place.clone() };
                take_type(&mut item, "apiVersion", api_version.as_ref());
                take_type(&mut item, "kind", kind.as_ref());
                manifests.push(Manifest { object: object(item), place });
            }
        }
        (document, _) => manifests.push(Manifest { object: object(document), place }),
    }
}

/// An item of a list of one kind need not say what it is: it is what the list is of.
fn take_type(item: &mut Value, field: &str, of_list: Option<&Value>) {
    if let (Value::Object(item), Some(of_list)) = (item, of_list) {
        item.entry(field).or_insert_with(|| of_list.clone());
    }
}

fn object(document: Value) -> Result<Object, String> {
    let document = if is_job_controller(&document) { to_schedule(&document)? } else { document };
    let Value::Object(fields) = &document else {
        return Err("not an object with apiVersion, kind and metadata".to_owned());
    };
    let text = |value: Option<&Value>, field: &str| match value {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("{field} must be text; put it in quotes")),
    };
    let needed = |field: &str| {
        let found = text(fields.get(field), field)?;
        if found.is_empty() { Err(format!("{field} is missing")) } else { Ok(found) }
    };
    let metadata = fields.get("metadata").unwrap_or(&Value::Null);
    let (api_version, kind) = (needed("apiVersion")?, needed("kind")?);
    let name = text(metadata.get("name"), "metadata.name")?;
    let generated = text(metadata.get("generateName"), "metadata.generateName")?;
    if name.is_empty() && generated.is_empty() {
        return Err(format!("{kind} has neither metadata.name nor metadata.generateName"));
    }
    let namespace = text(metadata.get("namespace"), "metadata.namespace")?;
    Ok(Object { api_version, kind, namespace, name, document })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Place and name, or place and error, of each object.
    fn said(text: &str) -> Vec<String> {
        let line = |manifest: &Manifest| match &manifest.object {
            Ok(object) => format!("{}: {} {}", manifest.place, object.kind, object.name),
            Err(why) => format!("{}: {why}", manifest.place),
        };
        split("f", text).iter().map(line).collect()
    }

    const A: &str = "apiVersion: v1\nkind: Task\nmetadata: {name: a}\n";

    #[test]
    fn documents_are_counted_and_empty_ones_are_not() {
        let text = format!("# a comment\n---\n{A}---\n\n---\n# nothing\n--- # last\n{A}...\n");
        assert_eq!(said(&text), ["f, document 1: Task a", "f, document 2: Task a"]);
    }

    #[test]
    fn a_document_may_begin_on_the_line_of_its_marker() {
        assert_eq!(said("--- {apiVersion: v1, kind: T, metadata: {name: a}}"), ["f, document 1: T a"]);
    }

    #[test]
    fn a_broken_document_harms_only_itself_and_names_the_line_of_the_file() {
        let text = format!("{A}---\na: [1,\n---\n{A}");
        let said = said(&text);
        assert_eq!((said[0].as_str(), said[2].as_str()), ("f, document 1: Task a", "f, document 3: Task a"));
        assert!(
            said[1].starts_with("f, document 2: not valid YAML: ") && said[1].contains("line 5"),
            "{}",
            said[1]
        );
    }

    #[test]
    fn json_may_hold_several_objects_in_a_row() {
        let one = r#"{"apiVersion": "v1", "kind": "T", "metadata": {"name": "a"}}"#;
        assert_eq!(said(&format!("{one}\n{one}")), ["f, document 1: T a", "f, document 2: T a"]);
        assert_eq!(
            said(&format!("{one}\n{{\"a\" 1}}")),
            ["f, document 1: T a", "f, document 2: not valid JSON: line 2 column 6: expected `:`"]
        );
        assert_eq!(said("{apiVersion: v1, kind: T, metadata: {name: a}}"), ["f, document 1: T a"]);
    }

    #[test]
    fn lists_are_taken_apart() {
        let text = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: T, metadata: {name: a}}\n- {kind: T}\n";
        assert_eq!(
            said(text),
            ["f, document 1, item 1: T a", "f, document 1, item 2: apiVersion is missing"]
        );
    }

    #[test]
    fn items_of_a_list_of_one_kind_are_of_that_kind() {
        let text = "apiVersion: v1\nkind: TList\nitems:\n- {metadata: {name: a}}\n- {kind: U, metadata: {name: b}}\n";
        assert_eq!(said(text), ["f, document 1, item 1: T a", "f, document 1, item 2: U b"]);
        let text = "apiVersion: v1beta3\nkind: JobControllerList\nitems:\n- id: a\n  desiredState: {schedulePolicy: {}}\n";
        assert_eq!(said(text), ["f, document 1, item 1: Schedule a"]);
        let mixed = "apiVersion: v1\nkind: List\nitems:\n- {metadata: {name: a}}\n";
        assert_eq!(said(mixed), ["f, document 1, item 1: apiVersion is missing"]);
    }

    #[test]
    fn what_every_object_has_is_asked_for() {
        for (text, why) in [
            ("- a", "not an object with apiVersion, kind and metadata"),
            ("apiVersion: v1", "kind is missing"),
            ("apiVersion: 1\nkind: T", "apiVersion must be text; put it in quotes"),
            ("apiVersion: v1\nkind: T", "T has neither metadata.name nor metadata.generateName"),
            ("apiVersion: v1\nkind: T\nmetadata: {name: 1}", "metadata.name must be text; put it in quotes"),
        ] {
            assert_eq!(said(text), [format!("f, document 1: {why}")]);
        }
        assert_eq!(said("apiVersion: v1\nkind: T\nmetadata: {generateName: a-}"), ["f, document 1: T "]);
    }

    #[test]
    fn windows_line_ends_and_a_marker_inside_of_a_value_are_understood() {
        let text = "apiVersion: v1\r\nkind: T\r\nmetadata: {name: a}\r\nspec: |\r\n  ---\r\n  x\r\n---\r\n";
        assert_eq!(said(text), ["f, document 1: T a"]);
    }

    #[test]
    fn a_directory_gives_its_files_by_name_and_those_below_when_asked() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("a-below");
        fs::create_dir(&below).unwrap();
        for path in [
            dir.path().join("b.yaml"),
            dir.path().join("a.json"),
            dir.path().join("c.txt"),
            below.join("d.yml"),
        ] {
            fs::write(path, "").unwrap();
        }
        let names = |recursive| -> Vec<String> {
            let files = files_of(dir.path(), recursive).unwrap();
            files.iter().filter_map(|file| Some(file.file_name()?.to_str()?.to_owned())).collect()
        };
        assert_eq!(names(false), ["a.json", "b.yaml"]);
        assert_eq!(names(true), ["a.json", "b.yaml", "d.yml"]);
    }

    #[test]
    fn a_directory_without_objects_and_a_url_say_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let said = |path: &Path| files_of(path, false).unwrap_err().to_string();
        assert!(said(dir.path()).ends_with("; -R looks in the directories below, too"));
        assert!(said(Path::new("https://h/a.yaml")).contains("curl"));
    }

    #[test]
    fn a_list_longer_than_the_parsers_usual_budget_is_read() {
        let item = "- {apiVersion: v1, kind: T, metadata: {name: a, labels: {a: b, c: d}}}\n";
        let text = format!("kind: List\nitems:\n{}", item.repeat(40_000));
        assert_eq!(split("f", &text).len(), 40_000);
    }
}
