//! No note to self is left in the tree: finish it, or write it where work is planned.

use super::{OWN_RULES, Tree, Violation, tree::has_extension};

const MARKS: [&str; 3] = ["TODO", "FIXME", "XXX"];
/// What people write; recorded data and lock files are not ours to finish.
const WRITTEN: [&str; 13] =
    ["rs", "toml", "md", "sh", "py", "yaml", "yml", "js", "ts", "css", "html", "sql", ""];

pub fn check(tree: &Tree) -> Vec<Violation> {
    let written =
        tree.files().filter(|(path, _)| has_extension(path, &WRITTEN) && !path.starts_with(OWN_RULES));
    written.flat_map(|(path, text)| check_file(path, text)).collect()
}

fn check_file(path: &str, text: &str) -> Vec<Violation> {
    let is_document = has_extension(path, &["md"]);
    let violation = |(index, line): (usize, &str)| {
        // A document may speak of the mark itself, in backticks.
        let parts = line.split('`').step_by(if is_document { 2 } else { 1 });
        let mark = parts.flat_map(words).find(|word| MARKS.contains(word))?;
        let advice = format!("`{mark}` is left; finish it or remove it");
        Some(Violation { path: path.into(), line: index + 1, rule: "leftover", advice })
    };
    text.lines().enumerate().filter_map(violation).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn marks_are_found_in_what_people_write() {
        assert_eq!(
            left("crates/a/src/lib.rs", "//! Docs.\n// TODO(me): later\n"),
            ["crates/a/src/lib.rs:2: leftover: `TODO` is left; finish it or remove it"]
        );
        assert_eq!(left("docs/a.md", "FIXME: write").len(), 1);
        assert_eq!(left(".ci/run", "# XXX\n").len(), 1);
        assert_eq!(left("Cargo.toml", "a = 1 # `TODO`\n").len(), 1, "backticks excuse only documents");
    }

    #[test]
    fn words_that_contain_a_mark_and_documents_that_quote_it_are_fine() {
        assert_eq!(left("a.sh", "mktemp /tmp/a.XXXXXX\n"), [""; 0]);
        assert_eq!(left("crates/a/src/lib.rs", "struct TODOS; fn todo() {}\n"), [""; 0]);
        assert_eq!(left("docs/a.md", "no `TODO` stays\n"), [""; 0]);
    }

    #[test]
    fn recorded_data_and_the_rules_themselves_are_left_alone() {
        assert_eq!(left("docs/openapi.json", "TODO"), [""; 0]);
        assert_eq!(left("xtask/src/tidy/leftovers.rs", "TODO"), [""; 0]);
        assert_eq!(left("xtask/src/main.rs", "TODO").len(), 1);
    }
}
