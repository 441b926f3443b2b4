//! Names of tasks as people write them, and what they may have meant.

use anyhow::Context as _;
use muster_client::client::{Form, PageRequest, Selectors};
use muster_client::{Client, ClientError, Resource, Scope};

use super::tracking::name_of;

/// Letters and digits of an id; two of them twice, so that a byte tells one.
const ALPHABET: &[u8; 32] = b"bcdfghjklmnpqrstvwxz0123456789bc";
/// Letters of an id.
const LETTERS: usize = 6;
/// Names that are looked at for one that is meant.
const LOOKED_AT: usize = 500;

/// The name in `NAME`, `task/NAME` or `task.muster.dev/NAME`.
pub fn bare(word: &str) -> &str {
    match word.split_once('/') {
        Some(("task" | "tasks" | "mtask" | "task.muster.dev" | "tasks.muster.dev", name)) => name,
        _ => word,
    }
}

/// The name as scripts read it.
pub fn with_resource(name: &str) -> String {
    Resource::tasks().name_of(name)
}

/// A name that is not taken: what it begins with, and random letters.
pub fn fresh_name(stem: &str) -> anyhow::Result<String> {
    Ok(format!("{stem}-{}", fresh_id()?))
}

/// Random letters and digits, without vowels, so that they are no word.
pub fn fresh_id() -> anyhow::Result<String> {
    let mut bytes = [0; LETTERS];
    getrandom::fill(&mut bytes).context("this machine gives no random numbers")?;
    Ok(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect())
}

/// The bare names, each once.
pub fn all_bare(words: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for word in words {
        if !names.iter().any(|name| name == bare(word)) {
            names.push(bare(word).to_owned());
        }
    }
    names
}

/// Says of a task that is not there which one may be meant.
pub async fn explain_missing(
    client: &Client,
    namespace: &str,
    name: &str,
    error: ClientError,
) -> anyhow::Error {
    if !error.is_not_found() {
        return error.into();
    }
    let page = PageRequest { limit: LOOKED_AT, from: None };
    let tasks = Resource::tasks();
    let scope = Scope::Namespace(namespace);
    let Ok(page) = client.list(&tasks, scope, &Selectors::default(), Form::Metadata, page).await else {
        return error.into();
    };
    let items = page.document["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<&str> = items.iter().map(name_of).collect();
    if names.contains(&name) {
        // It is there; something else of it is not.
        return error.into();
    }
    let hint = match choose_similar(name, &names) {
        similar if similar.is_empty() => "`muster get tasks` shows those there are".to_owned(),
        similar => format!("did you mean {}?", similar.join(" or ")),
    };
    anyhow::anyhow!("there is no task \"{name}\" in namespace {namespace}; {hint}")
}

/// At most three names that are like another.
fn choose_similar<'a>(name: &str, names: &[&'a str]) -> Vec<&'a str> {
    let mut found: Vec<(usize, &str)> = Vec::new();
    for known in names {
        let begins = known.starts_with(name) || name.starts_with(known);
        let distance = if begins { 0 } else { distance(name, known) };
        if distance <= 1 + name.len() / 6 {
            found.push((distance, known));
        }
    }
    found.sort_unstable();
    found.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Letters that have to be put in, left out or exchanged.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, letter) in one.chars().enumerate() {
        let mut corner = line;
        row[0] = line + 1;
        for (column, found) in other.iter().enumerate() {
            let exchanged = corner + usize::from(letter != *found);
            corner = row[column + 1];
            row[column + 1] = exchanged.min(row[column] + 1).min(corner + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_stand_behind_its_resource() {
        let names = ["a", "task/a", "task.muster.dev/a", "mtask/a"].map(str::to_owned);
        assert_eq!(all_bare(&names), ["a"]);
        assert_eq!(bare("addon/a"), "addon/a");
    }

    #[test]
    fn similar_names_are_found_and_others_are_not() {
        let names = ["build-x7k2p", "build-9qq2p", "test-x7k2p", "analyze-inventory"];
        assert_eq!(choose_similar("analyse-inventory", &names), ["analyze-inventory"]);
        assert_eq!(choose_similar("build", &names), ["build-9qq2p", "build-x7k2p"]);
        assert!(choose_similar("zzz", &names).is_empty());
    }

    #[test]
    fn distances_count_what_has_to_be_changed() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!((distance("", "abc"), distance("abc", "abc")), (3, 0));
    }
}
