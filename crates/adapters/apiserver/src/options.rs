//! The query parameters and delete options of a request, checked.

use std::time::Duration;

use muster_ports::store::Revision;
use muster_types::field_selector::FieldSelector;
use muster_types::label_selector::LabelSelector;
use serde::Deserialize;

use crate::refusal::Refusal;

/// Largest page a client gets at once when it asks for pages.
const MAX_PAGE: usize = 10_000;
/// Longest field manager name, as in Kubernetes.
const MAX_FIELD_MANAGER: usize = 128;

/// What to do about fields that a kind does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldValidation {
    /// Refuse the request.
    Strict,
    /// Drop them and warn.
    #[default]
    Warn,
    /// Drop them.
    Ignore,
}

/// How a given resource version is to be matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionMatch {
    /// Exactly that one.
    Exact,
    /// That one or a newer one.
    NotOlderThan,
}

/// Everything a query may say.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Only objects with these labels.
    pub labels: LabelSelector,
    /// Only objects with these field values.
    pub fields: FieldSelector,
    /// At most so many objects.
    pub limit: Option<usize>,
    /// Where the last page ended.
    pub continue_from: Option<String>,
    /// Follow changes.
    pub watch: bool,
    /// Send bookmarks in a watch.
    pub bookmarks: bool,
    /// Begin a watch with what is there.
    pub send_initial_events: Option<bool>,
    /// The revision to read at or watch from; `None` if absent, `Some(0)` is "any".
    pub resource_version: Option<Revision>,
    /// How it is to be matched.
    pub version_match: Option<VersionMatch>,
    /// End a watch after this time.
    pub timeout: Option<Duration>,
    /// Do everything but store.
    pub dry_run: bool,
    /// What to do about unknown fields.
    pub field_validation: FieldValidation,
    /// Who writes.
    pub field_manager: Option<String>,
    /// Take fields away from other managers.
    pub force: bool,
    /// What a table row carries of its object.
    pub include_object: IncludeObject,
    /// Deletion options given in the query.
    pub delete: DeleteOptions,
}

/// What a table row carries of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IncludeObject {
    /// The metadata.
    #[default]
    Metadata,
    /// All of it.
    Object,
    /// Nothing.
    None,
}

/// What happens to the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Propagation {
    /// They are deleted afterwards.
    Background,
    /// They are deleted first.
    Foreground,
    /// They stay and forget their owner.
    Orphan,
}

/// The body of a delete request.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeleteOptions {
    /// What happens to dependents.
    pub propagation_policy: Option<Propagation>,
    /// The old form of `propagationPolicy: Orphan`.
    pub orphan_dependents: Option<bool>,
    /// Seconds of grace; kept on the object.
    pub grace_period_seconds: Option<i64>,
    /// What the object must be.
    pub preconditions: Option<Preconditions>,
    /// `["All"]` changes nothing.
    pub dry_run: Vec<String>,
}

/// What an object must be for a delete to happen.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Preconditions {
    /// Its uid.
    pub uid: Option<String>,
    /// Its resource version.
    pub resource_version: Option<String>,
}

impl Options {
    /// Reads a query string. Unknown parameters are ignored, as in Kubernetes.
    pub fn parse(query: &str) -> Result<Self, Refusal> {
        let mut options = Self::default();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let spaced = value.replace('+', " ");
            let decoded = crate::target::percent_decode(&spaced);
            let value = decoded.ok_or_else(|| refuse(name, "is not valid percent-encoded text"))?;
            if !value.is_empty() {
                options.set(name, &value)?;
            }
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Refusal> {
        match name {
            "labelSelector" => {
                self.labels =
                    value.parse::<LabelSelector>().map_err(|error| refuse(name, &error.to_string()))?;
            }
            "fieldSelector" => {
                self.fields =
                    value.parse::<FieldSelector>().map_err(|error| refuse(name, &error.to_string()))?;
            }
            "limit" => {
                let limit: usize = number(name, value)?;
                self.limit = (limit > 0).then_some(limit.min(MAX_PAGE));
            }
            "continue" => self.continue_from = Some(value.to_owned()),
            "watch" => self.watch = boolean(name, value)?,
            "allowWatchBookmarks" => self.bookmarks = boolean(name, value)?,
            "sendInitialEvents" => self.send_initial_events = Some(boolean(name, value)?),
            "resourceVersion" => self.resource_version = Some(Revision(number(name, value)?)),
            "resourceVersionMatch" => {
                self.version_match = Some(match value {
                    "Exact" => VersionMatch::Exact,
                    "NotOlderThan" => VersionMatch::NotOlderThan,
                    _ => return Err(refuse(name, "must be Exact or NotOlderThan")),
                });
            }
            "timeoutSeconds" => self.timeout = Some(Duration::from_secs(number(name, value)?)),
            "dryRun" => match value {
                "All" => self.dry_run = true,
                _ => return Err(refuse(name, "must be All")),
            },
            "fieldValidation" => {
                self.field_validation = match value {
                    "Strict" => FieldValidation::Strict,
                    "Warn" => FieldValidation::Warn,
                    "Ignore" => FieldValidation::Ignore,
                    _ => return Err(refuse(name, "must be Strict, Warn or Ignore")),
                };
            }
            "fieldManager" => {
                if value.len() > MAX_FIELD_MANAGER || value.chars().any(char::is_control) {
                    return Err(refuse(name, "must be at most 128 printable characters"));
                }
                self.field_manager = Some(value.to_owned());
            }
            "force" => self.force = boolean(name, value)?,
            "includeObject" => {
                self.include_object = match value {
                    "Metadata" => IncludeObject::Metadata,
                    "Object" => IncludeObject::Object,
                    "None" => IncludeObject::None,
                    _ => return Err(refuse(name, "must be Metadata, Object or None")),
                };
            }
            "propagationPolicy" => {
                self.delete.propagation_policy = Some(match value {
                    "Background" => Propagation::Background,
                    "Foreground" => Propagation::Foreground,
                    "Orphan" => Propagation::Orphan,
                    _ => return Err(refuse(name, "must be Background, Foreground or Orphan")),
                });
            }
            "orphanDependents" => self.delete.orphan_dependents = Some(boolean(name, value)?),
            "gracePeriodSeconds" => self.delete.grace_period_seconds = Some(number(name, value)?),
            _ => {}
        }
        Ok(())
    }
}

impl DeleteOptions {
    /// These options with what the body says on top.
    pub fn overlaid(self, body: Self) -> Self {
        Self {
            propagation_policy: body.propagation_policy.or(self.propagation_policy),
            orphan_dependents: body.orphan_dependents.or(self.orphan_dependents),
            grace_period_seconds: body.grace_period_seconds.or(self.grace_period_seconds),
            preconditions: body.preconditions.or(self.preconditions),
            dry_run: body.dry_run,
        }
    }

    /// What happens to dependents; in the background unless told otherwise.
    pub fn propagation(&self) -> Result<Propagation, Refusal> {
        match (self.propagation_policy, self.orphan_dependents) {
            (Some(_), Some(_)) => {
                Err(Refusal::bad_request("orphanDependents and propagationPolicy cannot both be set"))
            }
            (Some(policy), None) => Ok(policy),
            (None, Some(true)) => Ok(Propagation::Orphan),
            (None, Some(false) | None) => Ok(Propagation::Background),
        }
    }
}

/// A parameter that makes no sense.
pub fn refuse(name: &str, why: &str) -> Refusal {
    Refusal::bad_request(format!("query parameter {name}: {why}"))
}

/// A parameter that is a number.
pub fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, Refusal> {
    value.parse().map_err(|_| refuse(name, &format!("\"{value}\" is not a number in range")))
}

/// A parameter that is true or false.
pub fn boolean(name: &str, value: &str) -> Result<bool, Refusal> {
    match value {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err(refuse(name, &format!("\"{value}\" is neither true nor false"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_never_larger_than_the_limit_of_the_server() {
        assert_eq!(Options::parse("limit=99999999").unwrap().limit, Some(MAX_PAGE));
        assert_eq!(Options::parse("limit=0").unwrap().limit, None);
    }

    #[test]
    fn a_refused_parameter_is_named() {
        let refusal = Options::parse("dryRun=Some").unwrap_err();
        assert!(refusal.to_string().contains("dryRun"), "{refusal}");
    }

    #[test]
    fn both_ways_of_saying_orphan_at_once_are_refused() {
        let options = Options::parse("propagationPolicy=Orphan&orphanDependents=true").unwrap();
        assert!(options.delete.propagation().is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_query_panics(query in ".*") {
            drop(Options::parse(&query));
        }
    }
}
