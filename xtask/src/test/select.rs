//! What `--only` means: decides which cargo commands build and run the chosen tests.
//!
//! Pure: takes the packages, returns argument lists. Everything is built in one command with one set of features, so
//! that no crate is compiled twice and the server that the tests drive comes out of the same build.

use crate::workspace::Package;

/// Packages whose tests drive the server binary or somebody else's programs.
const DRIVERS: [&str; 3] = ["muster", "muster-apiserver", "muster-e2e"];

/// Packages whose tests drive a real Kubernetes.
const CLUSTER_DRIVERS: [&str; 1] = ["muster-e2e"];

/// The tests of one run.
#[derive(Debug, PartialEq)]
pub enum Selection {
    Everything,
    Package {
        name: String,
        has_library: bool,
    },
    Target {
        package: String,
        target: String,
    },
    /// Tests whose path contains the text, anywhere.
    Named(String),
}

pub fn choose_selection(only: Option<&str>, packages: &[Package]) -> Selection {
    let Some(only) = only else { return Selection::Everything };
    if let Some(package) = packages.iter().find(|package| answers_to(package, only)) {
        return Selection::Package { name: package.name.clone(), has_library: package.has_library };
    }
    let holds_target = |package: &&Package| package.tests.iter().any(|test| test == only);
    match packages.iter().find(holds_target) {
        Some(package) => Selection::Target { package: package.name.clone(), target: only.into() },
        None => Selection::Named(only.into()),
    }
}

fn answers_to(package: &Package, word: &str) -> bool {
    let last = package.dir.rsplit('/').next();
    package.name == word || package.dir == word.trim_end_matches('/') || last == Some(word)
}

impl Selection {
    /// Whether to set up other programs and build the server first.
    pub fn drives_tools(&self) -> bool {
        match self {
            Self::Everything | Self::Named(_) => true,
            Self::Package { name, .. } | Self::Target { package: name, .. } => {
                DRIVERS.contains(&name.as_str())
            }
        }
    }

    /// Whether a real Kubernetes has to run.
    pub fn drives_cluster(&self) -> bool {
        match self {
            Self::Everything | Self::Named(_) => true,
            Self::Package { name, .. } | Self::Target { package: name, .. } => {
                CLUSTER_DRIVERS.contains(&name.as_str())
            }
        }
    }

    /// Cargo commands that build all that the tests need.
    pub fn builds(&self) -> Vec<Vec<&str>> {
        match self {
            Self::Everything | Self::Named(_) => vec![vec!["build", "--workspace", "--all-targets"]],
            Self::Package { .. } | Self::Target { .. } if self.drives_tools() => {
                vec![vec!["build", "-p", "muster"]]
            }
            Self::Package { .. } | Self::Target { .. } => Vec::new(),
        }
    }

    /// Cargo commands that run the tests.
    pub fn tests(&self) -> Vec<Vec<&str>> {
        match self {
            Self::Everything | Self::Named(_) => vec![
                vec!["test", "--workspace", "--all-targets", "--no-fail-fast"],
                vec!["test", "--workspace", "--doc", "--no-fail-fast"],
            ],
            Self::Package { name, has_library } => {
                let mut commands = vec![vec!["test", "-p", name, "--all-targets", "--no-fail-fast"]];
                if *has_library {
                    commands.push(vec!["test", "-p", name, "--doc", "--no-fail-fast"]);
                }
                commands
            }
            Self::Target { package, target } => {
                vec![vec!["test", "-p", package, "--test", target, "--no-fail-fast"]]
            }
        }
    }

    /// The name filter that the test binaries apply themselves.
    pub fn harness_filter(&self) -> Option<&str> {
        match self {
            Self::Named(text) => Some(text),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages() -> Vec<Package> {
        let package = |name: &str, dir: &str, has_library, tests: &[&str]| Package {
            name: name.into(),
            dir: dir.into(),
            has_library,
            tests: tests.iter().map(|&test| test.into()).collect(),
            dependencies: Vec::new(),
        };
        vec![
            package("muster-types", "crates/types", true, &[]),
            package("muster-e2e", "e2e", true, &["kubectl_reads"]),
            package("xtask", "xtask", false, &[]),
        ]
    }

    #[test]
    fn a_package_answers_to_its_name_and_to_its_directory() {
        let expected = Selection::Package { name: "muster-types".into(), has_library: true };
        for word in ["muster-types", "crates/types", "crates/types/", "types"] {
            assert_eq!(choose_selection(Some(word), &packages()), expected, "{word}");
        }
    }

    #[test]
    fn a_test_target_is_found_in_its_package() {
        let expected = Selection::Target { package: "muster-e2e".into(), target: "kubectl_reads".into() };
        assert_eq!(choose_selection(Some("kubectl_reads"), &packages()), expected);
    }

    #[test]
    fn any_other_text_filters_test_names() {
        let chosen = choose_selection(Some("watch_resumes"), &packages());
        assert_eq!(chosen, Selection::Named("watch_resumes".into()));
        assert_eq!(chosen.harness_filter(), Some("watch_resumes"));
    }

    #[test]
    fn a_package_without_a_library_has_no_doc_tests_to_run() {
        let commands = |word| choose_selection(Some(word), &packages()).tests().len();
        assert_eq!((commands("types"), commands("xtask")), (2, 1));
    }

    #[test]
    fn the_server_is_built_for_the_packages_that_drive_it_only() {
        let e2e = choose_selection(Some("e2e"), &packages());
        let types = choose_selection(Some("types"), &packages());
        assert!(e2e.drives_tools() && e2e.builds() == [["build", "-p", "muster"]]);
        assert!(!types.drives_tools() && types.builds().is_empty());
        assert!(choose_selection(None, &packages()).drives_tools());
    }

    #[test]
    fn a_cluster_is_started_for_the_packages_that_drive_one_only() {
        let drives = |only| choose_selection(only, &packages()).drives_cluster();
        assert!(drives(None) && drives(Some("e2e")) && drives(Some("kubectl_reads")));
        assert!(!drives(Some("types")) && !drives(Some("xtask")));
    }
}
