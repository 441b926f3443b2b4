//! Documents name only what exists: repository paths in backticks, and links to files.

use super::{Tree, Violation, tree::has_extension};

/// First components that make a word in backticks a path of this repository.
const ROOTS: [&str; 10] =
    ["crates", "bins", "e2e", "fuzz", "xtask", "docs", "deploy", "examples", ".ci", ".cargo"];
/// Speaks of the past, and so of files that are gone.
const HISTORY: &str = "CHANGELOG.md";

pub fn check_paths(tree: &Tree) -> Vec<Violation> {
    let documents = tree.files().filter(|(path, _)| has_extension(path, &["md"]) && *path != HISTORY);
    documents.flat_map(|(path, text)| check_document(path, text, tree)).collect()
}

fn check_document(document: &str, text: &str, tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, line) in prose_lines(text) {
        let spans = code_spans(line).flat_map(str::split_whitespace).filter_map(repository_path);
        let links = link_targets(line).map(|target| resolve(document, target));
        for path in spans.map(String::from).chain(links).filter(|path| !tree.contains(up_to_wildcard(path))) {
            let advice = format!("`{path}` does not exist; correct the document");
            violations.push(Violation { path: document.into(), line: number, rule: "document-path", advice });
        }
    }
    violations
}

/// Numbered lines outside of fenced blocks.
fn prose_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

/// The text between backticks.
fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The word as a path of the repository, when it looks like one.
fn repository_path(word: &str) -> Option<&str> {
    let word = word.trim_start_matches("./").trim_end_matches([',', ';', ':', '.', ')', '/']);
    let path = match word.rsplit_once(':') {
        Some((path, line)) if line.bytes().all(|byte| byte.is_ascii_digit()) => path,
        _ => word,
    };
    let (root, _) = path.split_once('/')?;
    let plain =
        path.chars().all(|c| c.is_ascii_alphanumeric() || "._-/*".contains(c)) && !path.contains("...");
    (plain && ROOTS.contains(&root)).then_some(path)
}

/// Targets of `[text](target)` that are files.
fn link_targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', ' ', '#']).next()?;
        let elsewhere = target.is_empty() || target.starts_with('/') || target.contains(':');
        (!elsewhere).then_some(target)
    })
}

/// A link as a path from the root; one that leaves the root resolves to itself and exists nowhere.
fn resolve(document: &str, target: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            ".." if parts.pop().is_none() => return target.into(),
            "" | "." | ".." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The part of a path before a component with `*`: that much must exist.
fn up_to_wildcard(path: &str) -> &str {
    match path.find('*') {
        Some(star) => path[..star].rsplit_once('/').map_or("", |(directory, _)| directory),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named_but_missing(document: &str, text: &str) -> Vec<String> {
        let tree = Tree::of(&[
            (document, text),
            ("crates/types/src/lib.rs", ""),
            ("examples/hello.yaml", ""),
            ("docs/guide.md", ""),
        ]);
        check_paths(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn paths_that_exist_are_fine_however_they_are_written() {
        let text = "\
`crates/types`, `crates/types/src/lib.rs:12`, `crates/*`, `./examples/hello.yaml`, `docs/`
`kubectl apply -f examples/hello.yaml` and [guide](docs/guide.md#start) and [site](https://example.org/x)
";
        assert_eq!(named_but_missing("README.md", text), [""; 0]);
    }

    #[test]
    fn a_path_that_does_not_exist_is_found_with_its_line() {
        assert_eq!(
            named_but_missing("README.md", "fine\nsee `crates/gone/src/lib.rs`.\n"),
            ["README.md:2: document-path: `crates/gone/src/lib.rs` does not exist; correct the document"]
        );
        assert_eq!(named_but_missing("README.md", "run `muster apply -f examples/gone.yaml`").len(), 1);
        assert_eq!(named_but_missing("README.md", "`crates/gone/*`").len(), 1);
    }

    #[test]
    fn links_are_followed_from_the_document_they_are_in() {
        assert_eq!(named_but_missing("docs/a.md", "[g](guide.md) [h](../examples/hello.yaml)"), [""; 0]);
        assert_eq!(named_but_missing("docs/a.md", "[g](docs/guide.md)").len(), 1);
        assert_eq!(named_but_missing("README.md", "[g](../outside.md)").len(), 1);
    }

    #[test]
    fn words_that_are_no_paths_of_ours_are_left_alone() {
        let text = "`application/json` `apis/muster/v1` `/crates/gone` `docs/<name>.md` `and/or` crates/gone\n\
                    ```\ncrates/gone `crates/gone`\n```\n";
        assert_eq!(named_but_missing("README.md", text), [""; 0]);
    }

    #[test]
    fn the_history_may_name_what_is_gone() {
        assert_eq!(named_but_missing("CHANGELOG.md", "removed `crates/gone`"), [""; 0]);
    }
}
