//! The workspace as cargo sees it: where it is, which packages it has and what they depend on.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::run;

/// Facts of `cargo metadata --no-deps`.
#[derive(Debug)]
pub struct Workspace {
    pub root: PathBuf,
    pub target_dir: PathBuf,
    pub packages: Vec<Package>,
}

/// One member of the workspace.
#[derive(Debug, Default, PartialEq)]
pub struct Package {
    pub name: String,
    /// Relative to the root, with `/`.
    pub dir: String,
    pub has_library: bool,
    /// Integration test targets.
    pub tests: Vec<String>,
    pub dependencies: Vec<Dependency>,
}

/// One line of a package's dependencies, of any sort (normal, dev, build).
#[derive(Debug, PartialEq)]
pub struct Dependency {
    pub name: String,
    /// Where it is, relative to the root, when it is a member of the workspace.
    pub dir: Option<String>,
}

/// Asks cargo about the workspace this program was built from.
pub fn load() -> Result<Workspace> {
    let manifest_dir = env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&manifest_dir).parent().context("xtask has no parent directory")?;
    let text = run::quietly(run::cargo(root).args(["metadata", "--no-deps", "--format-version", "1"]))?;
    parse(&text).context("cannot read the output of `cargo metadata`")
}

fn parse(text: &str) -> Result<Workspace> {
    let value: Value = serde_json::from_str(text)?;
    let root = PathBuf::from(string(&value, "workspace_root")?);
    let target_dir = PathBuf::from(string(&value, "target_directory")?);
    let packages =
        list(&value, "packages")?.iter().map(|p| parse_package(p, &root)).collect::<Result<_>>()?;
    Ok(Workspace { root, target_dir, packages })
}

fn parse_package(value: &Value, root: &Path) -> Result<Package> {
    let manifest = PathBuf::from(string(value, "manifest_path")?);
    let mut package = Package {
        name: string(value, "name")?.into(),
        dir: relative(manifest.parent().context("a manifest without a directory")?, root),
        ..Package::default()
    };
    for target in list(value, "targets")? {
        let kinds = list(target, "kind")?;
        if kinds.iter().any(|kind| kind == "lib") {
            package.has_library = true;
        } else if kinds.iter().any(|kind| kind == "test") {
            package.tests.push(string(target, "name")?.into());
        }
    }
    for dependency in list(value, "dependencies")? {
        let dir = dependency.get("path").and_then(Value::as_str).map(|path| relative(Path::new(path), root));
        package.dependencies.push(Dependency { name: string(dependency, "name")?.into(), dir });
    }
    Ok(package)
}

fn relative(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

fn string<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value.get(key).and_then(Value::as_str).with_context(|| format!("no string `{key}`"))
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value.get(key).and_then(Value::as_array).with_context(|| format!("no list `{key}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = r#"{
      "workspace_root": "/w", "target_directory": "/t",
      "packages": [{
        "name": "muster-ports", "manifest_path": "/w/crates/ports/Cargo.toml",
        "targets": [{"kind": ["lib"], "name": "muster_ports"}, {"kind": ["test"], "name": "conformance"}],
        "dependencies": [
          {"name": "muster-types", "kind": null, "path": "/w/crates/types"},
          {"name": "tokio", "kind": "dev"}
        ]
      }]
    }"#;

    #[test]
    fn metadata_becomes_packages_with_paths_relative_to_the_root() {
        let workspace = parse(METADATA).unwrap();
        assert_eq!(workspace.target_dir, Path::new("/t"));
        let expected = Package {
            name: "muster-ports".into(),
            dir: "crates/ports".into(),
            has_library: true,
            tests: vec!["conformance".into()],
            dependencies: vec![
                Dependency { name: "muster-types".into(), dir: Some("crates/types".into()) },
                Dependency { name: "tokio".into(), dir: None },
            ],
        };
        assert_eq!(workspace.packages, [expected]);
    }

    #[test]
    fn metadata_of_another_shape_is_refused_by_name() {
        let error = parse(r#"{"workspace_root": "/w"}"#).unwrap_err();
        assert_eq!(format!("{error:#}"), "no string `target_directory`");
    }
}
