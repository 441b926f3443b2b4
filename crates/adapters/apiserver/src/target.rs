//! What a path means: which resource, in which namespace, which object, which subresource.

use std::borrow::Cow;
use std::fmt;

use crate::access::Ask;

/// The meaning of a request path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `/api`: versions of the core group.
    CoreVersions,
    /// `/apis`: all groups.
    Groups,
    /// `/apis/{group}`.
    Group(String),
    /// `/api/{version}` (empty group) or `/apis/{group}/{version}`.
    Resources {
        /// API group.
        group: String,
        /// API version.
        version: String,
    },
    /// A collection or an object in it.
    Resource(ResourcePath),
    /// `/openapi/v3`.
    OpenApiIndex,
    /// `/openapi/v3/apis/{group}/{version}`.
    OpenApi {
        /// API group.
        group: String,
        /// API version.
        version: String,
    },
    /// `/openapi/v2`.
    OldOpenApi,
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz`.
    Health(Probe),
    /// `/metrics`.
    Metrics,
    /// `/tokens` and `/tokens/{name}`.
    Tokens(Option<String>),
    /// `/backup`.
    Backup,
    /// Anything else.
    Unknown,
}

/// Which question a health probe asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// The old question for both.
    Health,
    /// Is the process alive?
    Live,
    /// Can it take requests?
    Ready,
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Health => "healthz",
            Self::Live => "livez",
            Self::Ready => "readyz",
        })
    }
}

/// A collection, an object or a subresource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourcePath {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Namespace, if the path names one.
    pub namespace: Option<String>,
    /// Plural.
    pub plural: String,
    /// Name, if the path names an object.
    pub name: Option<String>,
    /// Subresource, if the path names one.
    pub subresource: Option<String>,
    /// What follows the subresource.
    pub rest: Vec<String>,
    /// The path ends in `/`.
    pub folder: bool,
}

impl ResourcePath {
    /// What access is decided on.
    pub fn ask<'a>(&'a self, verb: &'a str, resource: &'a str) -> Ask<'a> {
        Ask {
            verb,
            group: &self.group,
            resource,
            namespace: self.namespace.as_deref().unwrap_or_default(),
            name: self.name.as_deref().unwrap_or_default(),
        }
    }

    /// The plural, with `/subresource` where there is one.
    pub fn resource(&self) -> String {
        match &self.subresource {
            None => self.plural.clone(),
            Some(subresource) => format!("{}/{subresource}", self.plural),
        }
    }
}

/// Reads a path. Percent-encoding is undone per segment.
pub fn parse_target(path: &str) -> Target {
    let Some(segments) =
        path.split('/').filter(|segment| !segment.is_empty()).map(percent_decode).collect::<Option<Vec<_>>>()
    else {
        return Target::Unknown;
    };
    let folder = path.ends_with('/');
    let segments: Vec<&str> = segments.iter().map(AsRef::as_ref).collect();
    match segments.as_slice() {
        ["api"] => Target::CoreVersions,
        ["apis"] => Target::Groups,
        ["apis", group] => Target::Group((*group).to_owned()),
        ["api", version] => Target::Resources { group: String::new(), version: (*version).to_owned() },
        ["apis", group, version] => {
            Target::Resources { group: (*group).to_owned(), version: (*version).to_owned() }
        }
        ["api", version, rest @ ..] => resource_path("", version, rest, folder),
        ["apis", group, version, rest @ ..] => resource_path(group, version, rest, folder),
        ["openapi", "v3"] => Target::OpenApiIndex,
        ["openapi", "v3", "api", version] => {
            Target::OpenApi { group: String::new(), version: (*version).to_owned() }
        }
        ["openapi", "v3", "apis", group, version] => {
            Target::OpenApi { group: (*group).to_owned(), version: (*version).to_owned() }
        }
        ["openapi", "v2"] => Target::OldOpenApi,
        ["version"] => Target::Version,
        ["healthz"] => Target::Health(Probe::Health),
        ["livez"] => Target::Health(Probe::Live),
        ["readyz"] => Target::Health(Probe::Ready),
        ["metrics"] => Target::Metrics,
        ["backup"] => Target::Backup,
        ["tokens"] => Target::Tokens(None),
        ["tokens", name] => Target::Tokens(Some((*name).to_owned())),
        _ => Target::Unknown,
    }
}

fn resource_path(group: &str, version: &str, rest: &[&str], folder: bool) -> Target {
    let (namespace, rest) = match rest {
        // `/api/v1/namespaces` and `/api/v1/namespaces/{name}` are the kind Namespace itself.
        ["namespaces"] | ["namespaces", _] => (None, rest),
        ["namespaces", namespace, rest @ ..] => (Some((*namespace).to_owned()), rest),
        _ => (None, rest),
    };
    let (plural, name, subresource, rest) = match rest {
        [plural] => (plural, None, None, &[][..]),
        [plural, name] => (plural, Some(*name), None, &[][..]),
        [plural, name, subresource, rest @ ..] => (plural, Some(*name), Some(*subresource), rest),
        [] => return Target::Unknown,
    };
    Target::Resource(ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace,
        plural: (*plural).to_owned(),
        name: name.map(str::to_owned),
        subresource: subresource.map(str::to_owned),
        rest: rest.iter().map(|&segment| segment.to_owned()).collect(),
        folder,
    })
}

/// Undoes percent-encoding; `None` if it is malformed or not UTF-8.
pub fn percent_decode(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(text.into());
    }
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let high = char::from(bytes.next()?).to_digit(16)?;
        let low = char::from(bytes.next()?).to_digit(16)?;
        out.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(out).ok().map(Cow::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> ResourcePath {
        match parse_target(path) {
            Target::Resource(resource) => resource,
            other => panic!("{path} is {other:?}"),
        }
    }

    #[test]
    fn a_namespaced_object_names_all_its_parts() {
        let path = resource("/apis/muster.dev/v1alpha1/namespaces/a/tasks/b/status");
        assert_eq!(
            (path.namespace.as_deref(), &*path.plural, path.name.as_deref(), path.subresource.as_deref()),
            (Some("a"), "tasks", Some("b"), Some("status"))
        );
    }

    #[test]
    fn what_follows_a_subresource_is_kept_with_how_it_ends() {
        let path = resource("/apis/muster.dev/v1alpha1/namespaces/a/tasks/b/bucket/c/d%20e/");
        assert_eq!(
            (path.rest.as_slice(), path.folder),
            (["c".to_owned(), "d e".to_owned()].as_slice(), true)
        );
    }

    #[test]
    fn a_collection_over_all_namespaces_has_no_namespace() {
        let path = resource("/apis/muster.dev/v1alpha1/tasks");
        assert_eq!((path.namespace, path.name), (None, None));
    }

    #[test]
    fn namespaces_are_a_kind_of_the_core_group() {
        let path = resource("/api/v1/namespaces/a");
        assert_eq!((&*path.plural, path.name.as_deref()), ("namespaces", Some("a")));
    }

    #[test]
    fn malformed_escapes_are_unknown() {
        assert_eq!(parse_target("/apis/%zz/v1/tasks"), Target::Unknown);
        assert_eq!(parse_target("/apis/%f"), Target::Unknown);
    }

    #[test]
    fn escaped_names_are_read() {
        assert_eq!(resource("/apis/g/v1/tasks/a%2Db").name.as_deref(), Some("a-b"));
    }

    proptest::proptest! {
        #[test]
        fn no_path_panics(path in ".*") {
            parse_target(&path);
        }
    }
}
