//! The files of the repository with their text, read once for all rules.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::run;

/// Directories that hold Rust code of ours.
const CODE: [&str; 5] = ["crates/", "bins/", "e2e/", "fuzz/", "xtask/"];

/// Paths relative to the root, with `/`, and their text (empty for what is not text).
#[derive(Debug, Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
    directories: BTreeSet<String>,
}

impl Tree {
    pub fn read(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        for path in list_files(root)? {
            let whole = root.join(&path);
            // Git also lists files deleted since; links and submodules are not ours to read.
            if whole.symlink_metadata().is_ok_and(|meta| meta.is_file()) {
                let bytes = fs::read(&whole).with_context(|| format!("cannot read {path}"))?;
                tree.add(path, String::from_utf8(bytes).unwrap_or_default());
            }
        }
        Ok(tree)
    }

    fn add(&mut self, path: String, text: String) {
        let mut parent = path.as_str();
        while let Some((directory, _)) = parent.rsplit_once('/') {
            self.directories.insert(directory.into());
            parent = directory;
        }
        self.files.insert(path, text);
    }

    pub fn len(&self) -> usize {
        self.files.len()
    }

    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Files in the directories that hold our code, of any sort.
    pub fn code_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| CODE.iter().any(|directory| path.starts_with(directory)))
    }

    pub fn rust_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.code_files().filter(|(path, _)| has_extension(path, &["rs"]))
    }

    pub fn text_of(&self, path: &str) -> &str {
        self.files.get(path).map_or("", String::as_str)
    }

    /// Whether a file or a directory with files has this path; the root is the empty path.
    pub fn contains(&self, path: &str) -> bool {
        path.is_empty() || self.files.contains_key(path) || self.directories.contains(path)
    }

    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.add((*path).into(), (*text).into());
        }
        tree
    }
}

/// Whether the file name ends in one of these extensions; `""` stands for none.
pub fn has_extension(path: &str, extensions: &[&str]) -> bool {
    let extension = Path::new(path).extension().unwrap_or_default();
    extensions.iter().any(|wanted| extension == *wanted)
}

/// Files tracked, or untracked and not ignored; without git or its data (an exported tree), all files not built.
fn list_files(root: &Path) -> Result<Vec<String>> {
    if run::find_in_path("git").is_none() || !root.join(".git").exists() {
        let mut files = Vec::new();
        walk(root, "", &mut files)?;
        return Ok(files);
    }
    let mut git = Command::new("git");
    // A checkout owned by another user, as in a container, is still the tree we were built from.
    git.current_dir(root).args(["-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"]);
    Ok(run::quietly(&mut git)?.split_terminator('\0').map(String::from).collect())
}

fn walk(root: &Path, directory: &str, files: &mut Vec<String>) -> Result<()> {
    let shown = root.join(directory);
    for entry in fs::read_dir(&shown).with_context(|| format!("cannot list {}", shown.display()))? {
        let entry = entry.with_context(|| format!("cannot list {}", shown.display()))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
        let kind = entry.file_type().with_context(|| format!("cannot look at {path}"))?;
        match (kind.is_dir(), path.as_str()) {
            (true, ".git" | "target") => {}
            (true, _) => walk(root, &path, files)?,
            (false, _) => files.push(path),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_exist_through_their_files() {
        let tree = Tree::of(&[("crates/types/src/lib.rs", "")]);
        assert!(
            tree.contains("crates/types") && tree.contains("crates/types/src/lib.rs") && tree.contains("")
        );
        assert!(!tree.contains("crates/type"));
    }

    #[test]
    fn an_exported_tree_without_git_is_walked_but_for_what_was_built() {
        let root = std::env::temp_dir().join(format!("xtask-tree-{}", std::process::id()));
        for path in ["src/lib.rs", "target/debug/junk.rs", "docs/target/kept.md"] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), "text").unwrap();
        }
        let tree = Tree::read(&root).unwrap();
        let paths: Vec<_> = tree.files().collect();
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(paths, [("docs/target/kept.md", "text"), ("src/lib.rs", "text")]);
    }

    #[test]
    fn a_file_without_extension_is_recognized() {
        assert!(has_extension(".ci/run", &[""]) && has_extension("a/b.rs", &["rs"]));
        assert!(!has_extension("a.d/run", &["d"]) && !has_extension("a.snap", &["rs", ""]));
    }
}
