//! Which crate may depend on which. The table below is the architecture; `Cargo.toml` files must agree with it.

use super::{Tree, Violation};
use crate::workspace::{Dependency, Package};

/// What the packages at one place may depend on. The first line that matches a package decides.
struct Layer {
    /// A directory, or all directories in one (`crates/core/*`).
    at: &'static str,
    /// Places in the workspace; `*` is any.
    may_use: &'static [&'static str],
    /// Packages from outside that would break the layer's promise, in tests too.
    never: &'static [&'static str],
}

const LAYERS: &[Layer] = &[
    Layer { at: "crates/types", may_use: &[], never: &["tokio"] },
    Layer { at: "crates/merge", may_use: &[], never: &["tokio"] },
    Layer { at: "crates/core/*", may_use: &["crates/types", "crates/core/expr"], never: &["tokio"] },
    Layer { at: "crates/ports", may_use: &["crates/types"], never: &[] },
    Layer { at: "crates/egress", may_use: &[], never: &[] },
    Layer { at: "crates/engine", may_use: &["crates/types", "crates/core/*", "crates/ports"], never: &[] },
    Layer { at: "crates/exec", may_use: &["crates/types"], never: &[] },
    Layer {
        at: "crates/sim",
        may_use: &["crates/types", "crates/core/*", "crates/ports", "crates/engine"],
        never: &[],
    },
    Layer {
        at: "crates/adapters/apiserver",
        may_use: &["crates/types", "crates/core/*", "crates/ports", "crates/merge"],
        never: &[],
    },
    Layer {
        at: "crates/adapters/web",
        may_use: &["crates/types", "crates/core/*", "crates/ports"],
        never: &[],
    },
    Layer {
        at: "crates/adapters/runtime-process",
        may_use: &["crates/types", "crates/ports", "crates/exec"],
        never: &[],
    },
    Layer {
        at: "crates/adapters/outbound",
        may_use: &["crates/types", "crates/ports", "crates/egress"],
        never: &[],
    },
    Layer {
        at: "crates/adapters/relay-sinks",
        may_use: &["crates/types", "crates/ports", "crates/egress"],
        never: &[],
    },
    Layer { at: "crates/adapters/*", may_use: &["crates/types", "crates/ports"], never: &[] },
    Layer { at: "bins/*", may_use: &["*"], never: &[] },
    Layer { at: "e2e", may_use: &["*"], never: &[] },
    Layer { at: "fuzz", may_use: &["*"], never: &[] },
    Layer { at: "xtask", may_use: &[], never: &["tokio"] },
];

pub fn check(packages: &[Package], tree: &Tree) -> Vec<Violation> {
    packages.iter().flat_map(|package| check_package(package, tree)).collect()
}

fn check_package(package: &Package, tree: &Tree) -> Vec<Violation> {
    let manifest = format!("{}/Cargo.toml", package.dir);
    let text = tree.text_of(&manifest);
    let violation =
        |line, advice| Violation { path: manifest.clone(), line, rule: "dependency-edge", advice };
    let Some(layer) = LAYERS.iter().find(|layer| matches(layer.at, &package.dir)) else {
        return vec![violation(
            1,
            format!("{} has no layer; add it to {}/edges.rs", package.dir, super::OWN_RULES),
        )];
    };
    let refusals = package.dependencies.iter().filter_map(|dependency| {
        refuse(layer, package, dependency).map(|advice| violation(line_of(&dependency.name, text), advice))
    });
    refusals.collect()
}

/// Why the layer may not have this dependency.
fn refuse(layer: &Layer, package: &Package, dependency: &Dependency) -> Option<String> {
    let name = &dependency.name;
    match &dependency.dir {
        Some(dir) if *dir == package.dir || layer.may_use.iter().any(|place| matches(place, dir)) => None,
        Some(dir) => Some(match layer.may_use {
            [] => format!("{} depends on no other crate here, so not on {dir}; remove {name}", layer.at),
            places => format!("{} may use {}, not {dir}; remove {name}", layer.at, places.join(", ")),
        }),
        None if layer.never.contains(&name.as_str()) => {
            Some(format!("{} never uses {name}; remove it", layer.at))
        }
        None => None,
    }
}

fn matches(pattern: &str, dir: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some("") => true,
        Some(parent) => dir.strip_prefix(parent).is_some_and(|rest| !rest.is_empty() && !rest.contains('/')),
        None => pattern == dir,
    }
}

/// The line of a manifest that names a dependency, or the first.
fn line_of(name: &str, manifest: &str) -> usize {
    let names_it = |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
    manifest.lines().position(names_it).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: &str, to: &str) -> Vec<String> {
        let name = to.rsplit('/').next().unwrap_or(to).to_string();
        let dir = to.contains('/').then(|| to.to_string());
        let package = Package {
            name: "p".into(),
            dir: from.into(),
            dependencies: vec![Dependency { name, dir }],
            ..Package::default()
        };
        let tree = Tree::of(&[(&format!("{from}/Cargo.toml"), "[dependencies]\nports.workspace = true\n")]);
        check(&[package], &tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn arrows_of_the_design_are_allowed() {
        for (from, to) in [
            ("crates/ports", "crates/types"),
            ("crates/core/tasks", "crates/types"),
            ("crates/core/tasks", "crates/core/expr"),
            ("crates/engine", "crates/core/tasks"),
            ("crates/engine", "crates/ports"),
            ("crates/adapters/apiserver", "crates/merge"),
            ("crates/adapters/apiserver", "crates/core/tasks"),
            ("crates/adapters/runtime-process", "crates/exec"),
            ("crates/adapters/store-sql", "crates/ports"),
            ("crates/adapters/outbound", "crates/egress"),
            ("crates/adapters/relay-sinks", "crates/egress"),
            ("crates/adapters/store-sql", "tokio"),
            ("bins/muster", "crates/adapters/apiserver"),
            ("e2e", "crates/adapters/client"),
        ] {
            assert_eq!(edge(from, to), [""; 0], "{from} -> {to}");
        }
    }

    #[test]
    fn arrows_against_the_design_are_refused() {
        for (from, to) in [
            ("crates/types", "crates/merge"),
            ("crates/merge", "crates/types"),
            ("crates/ports", "crates/engine"),
            ("crates/core/tasks", "crates/ports"),
            ("crates/core/tasks", "crates/core/fleet"),
            ("crates/core/tasks", "tokio"),
            ("crates/types", "tokio"),
            ("crates/engine", "crates/adapters/apiserver"),
            ("crates/adapters/store-sql", "crates/merge"),
            ("crates/adapters/store-sql", "crates/egress"),
            ("crates/egress", "crates/ports"),
            ("crates/adapters/store-sql", "crates/exec"),
            ("crates/adapters/web", "crates/adapters/apiserver"),
            ("crates/adapters/web", "crates/engine"),
            ("xtask", "crates/types"),
        ] {
            assert_eq!(edge(from, to).len(), 1, "{from} -> {to}");
        }
    }

    #[test]
    fn a_refusal_names_the_line_and_the_way_out() {
        assert_eq!(
            edge("crates/core/tasks", "crates/ports"),
            [
                "crates/core/tasks/Cargo.toml:2: dependency-edge: crates/core/* may use crates/types, crates/core/expr, \
              not crates/ports; remove ports"
            ]
        );
    }

    #[test]
    fn a_crate_in_no_layer_is_refused() {
        assert!(edge("crates/core", "serde")[0].contains("crates/core has no layer"));
    }
}
