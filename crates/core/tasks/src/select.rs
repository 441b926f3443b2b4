//! What a task runs: which addon, and which extensions beside it (seed 000, H46–H53).
//!
//! The [`Catalog`] holds the addons and extensions of one namespace with their patterns and selectors read once, and
//! [`Catalog::select`] chooses from it. It is asked again each time a task is considered, because the tags of the subject
//! may have changed; it remembers nothing of a task and is the same whatever order objects were put in.
//!
//! Rules:
//! - A task with containers of its own runs those and no addon.
//! - An addon that is named is taken by its name; its `task` and `selector` are not looked at. Otherwise the first *by
//!   name* is taken of those whose `task` matches the kind, whose selector holds and which are ready.
//! - A list of extensions, also an empty one, switches the choice by rule off. Each one named must extend the addon or
//!   state no addon; its selector is not looked at. Otherwise all that match addon and selector are taken, by name.
//! - What names a TaskKind that does not exist is not started, also if it names its addon: nobody could tell what it
//!   must wait for.
//! - Something is ready unless its Ready condition, seen at its present generation, says otherwise.
//!
//! An addon that cannot be judged (bad pattern, bad selector) or is not ready is passed over while another one will do;
//! if none does, the error names it, and of several the one that came closest. An extension is not one of several that
//! will do, so one that belongs to the addon and cannot be judged or is not ready fails the task, rather than have it
//! succeed with part of its work undone. One whose `addon` is a bad pattern belongs to no addon; [`Catalog::problems`]
//! tells, so that the object itself can say so.

use std::collections::BTreeMap;
use std::fmt;

use muster_expr::{NamePattern, NamePatternError, Selector, SelectorError};
use muster_types::application::Tag;
use muster_types::condition::{Condition, ConditionStatus, find_condition};
use muster_types::{Addon, Extension, Metadata, TaskKind, TaskSpec, Timestamp};
use thiserror::Error;

/// The condition without which nothing is selected.
const READY: &str = "Ready";

/// The addons and extensions of one namespace.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    addons: BTreeMap<String, Entry<Addon>>,
    extensions: BTreeMap<String, Entry<Extension>>,
}

/// An addon or extension with its rules as they were read.
#[derive(Debug, Clone)]
struct Entry<T> {
    object: T,
    /// Kinds an addon serves, or addons an extension extends.
    serves: Result<NamePattern, NamePatternError>,
    selector: Result<Selector, SelectorError>,
}

/// What a task runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection<'c> {
    /// The addon; `None` if the task runs containers of its own.
    pub addon: Option<&'c Addon>,
    /// What runs beside it: in the order the task names them, or by name if they were chosen by rule.
    pub extensions: Vec<&'c Extension>,
}

/// An addon or an extension by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// An addon.
    Addon(String),
    /// An extension.
    Extension(String),
}

/// Why nothing can be run for a task.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SelectError {
    /// The task names a kind that does not exist.
    #[error("task kind {kind:?} does not exist; create it, or submit the task again with another spec.kind")]
    KindNotFound {
        /// The kind it names.
        kind: String,
    },
    /// The task names an addon that does not exist.
    #[error("addon {addon:?} does not exist; create it, or submit the task again with another spec.addon")]
    AddonNotFound {
        /// The addon it names.
        addon: String,
    },
    /// No addon serves the kind for this subject.
    #[error("{}", describe_not_selected(kind, declined))]
    AddonNotSelected {
        /// The kind of the task; empty if it has none.
        kind: String,
        /// Addons of that kind whose selectors do not hold, by name.
        declined: Vec<String>,
    },
    /// The task names an extension that does not exist.
    #[error(
        "extension {extension:?} does not exist; create it, or submit the task again with other spec.extensions"
    )]
    ExtensionNotFound {
        /// The extension it names.
        extension: String,
    },
    /// The task names an extension of another addon.
    #[error("extension {extension:?} extends {extends:?} and not {}", describe_addon(addon))]
    ExtensionNotValid {
        /// The extension it names.
        extension: String,
        /// What that one extends.
        extends: String,
        /// The addon of the task; empty if it runs containers of its own.
        addon: String,
    },
    /// A selector cannot be read.
    #[error("the selector of {owner} is not valid: {error}")]
    SelectorNotValid {
        /// Whose selector.
        owner: Owner,
        /// What is wrong with it.
        error: SelectorError,
    },
    /// The pattern of addons of an extension cannot be read.
    #[error("the addon of extension {extension:?} is not valid: {error}")]
    ExtAddonNotValid {
        /// Whose pattern.
        extension: String,
        /// What is wrong with it.
        error: NamePatternError,
    },
    /// The pattern of kinds of an addon cannot be read.
    #[error("the task of addon {addon:?} is not valid: {error}")]
    AddonTaskNotValid {
        /// Whose pattern.
        addon: String,
        /// What is wrong with it.
        error: NamePatternError,
    },
    /// It says itself that it is not ready.
    #[error("{owner} is not ready: {why}")]
    NotReady {
        /// What is not ready.
        owner: Owner,
        /// What its condition says.
        why: String,
    },
}

impl SelectError {
    /// One CamelCase word, as the seed has them.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::KindNotFound { .. } => "KindNotFound",
            Self::AddonNotFound { .. } => "AddonNotFound",
            Self::AddonNotSelected { .. } => "AddonNotSelected",
            Self::ExtensionNotFound { .. } => "ExtensionNotFound",
            Self::ExtensionNotValid { .. } => "ExtensionNotValid",
            Self::SelectorNotValid { .. } => "SelectorNotValid",
            Self::ExtAddonNotValid { .. } => "ExtAddonNotValid",
            Self::AddonTaskNotValid { .. } => "AddonTaskNotValid",
            Self::NotReady { .. } => "NotReady",
        }
    }
}

impl Catalog {
    /// Puts an addon in, in place of the one of its name.
    pub fn put_addon(&mut self, addon: Addon) {
        let entry = Entry {
            serves: NamePattern::parse(&addon.spec.task),
            selector: Selector::parse(&addon.spec.selector),
            object: addon,
        };
        self.addons.insert(entry.object.metadata.name.clone(), entry);
    }

    /// Takes an addon out.
    pub fn remove_addon(&mut self, name: &str) {
        self.addons.remove(name);
    }

    /// Puts an extension in, in place of the one of its name.
    pub fn put_extension(&mut self, extension: Extension) {
        let entry = Entry {
            serves: NamePattern::parse(&extension.spec.addon),
            selector: Selector::parse(&extension.spec.selector),
            object: extension,
        };
        self.extensions.insert(entry.object.metadata.name.clone(), entry);
    }

    /// Takes an extension out.
    pub fn remove_extension(&mut self, name: &str) {
        self.extensions.remove(name);
    }

    /// The addon of this name.
    pub fn addon(&self, name: &str) -> Option<&Addon> {
        self.addons.get(name).map(|entry| &entry.object)
    }

    /// The extension of this name.
    pub fn extension(&self, name: &str) -> Option<&Extension> {
        self.extensions.get(name).map(|entry| &entry.object)
    }

    /// Everything in the catalog that cannot be judged, whether or not a task needs it: addons first, by name.
    pub fn problems(&self) -> impl Iterator<Item = SelectError> {
        self.addons
            .values()
            .flat_map(Entry::problems)
            .chain(self.extensions.values().flat_map(Entry::problems))
    }

    /// The Ready condition an addon should have, if it has another; `None` as well if there is no such addon.
    pub fn judge_addon(&self, name: &str, now: Timestamp) -> Option<Condition> {
        self.addons.get(name)?.judgement(now)
    }

    /// The same of an extension.
    pub fn judge_extension(&self, name: &str, now: Timestamp) -> Option<Condition> {
        self.extensions.get(name)?.judgement(now)
    }

    /// Chooses what a task runs. `kind` is the TaskKind it names, if that exists; `tags` are those of its subject, none
    /// if it has no subject or that is gone.
    pub fn select(
        &self,
        task: &TaskSpec,
        kind: Option<&TaskKind>,
        tags: &[Tag],
    ) -> Result<Selection<'_>, SelectError> {
        if !task.kind.is_empty() && kind.is_none() {
            return Err(SelectError::KindNotFound { kind: task.kind.clone() });
        }
        let addon = if is_inline(task) {
            None
        } else if task.addon.is_empty() {
            Some(self.choose_addon(&task.kind, tags)?)
        } else {
            Some(self.named_addon(&task.addon)?)
        };
        let extensions = match (&task.extensions, addon) {
            (Some(names), addon) => self.named_extensions(names, addon)?,
            (None, Some(addon)) => self.choose_extensions(addon, tags)?,
            (None, None) => vec![],
        };
        Ok(Selection { addon, extensions })
    }

    fn named_addon(&self, name: &str) -> Result<&Addon, SelectError> {
        let found = self.addons.get(name);
        let entry = found.ok_or_else(|| SelectError::AddonNotFound { addon: name.to_owned() })?;
        entry.ready()
    }

    fn choose_addon(&self, kind: &str, tags: &[Tag]) -> Result<&Addon, SelectError> {
        let mut declined = vec![];
        let mut closest: Option<(Distance, SelectError)> = None;
        for entry in self.addons.values() {
            match entry.judge(kind, tags) {
                Ok(Judgement::Fits(addon)) => return Ok(addon),
                Ok(Judgement::SelectorDeclines) => declined.push(entry.object.metadata.name.clone()),
                Ok(Judgement::ServesOthers) => {}
                Err((distance, error)) => {
                    if closest.as_ref().is_none_or(|(closest, _)| distance < *closest) {
                        closest = Some((distance, error));
                    }
                }
            }
        }
        let none = || SelectError::AddonNotSelected { kind: kind.to_owned(), declined };
        Err(closest.map_or_else(none, |(_, error)| error))
    }

    fn named_extensions<'c>(
        &'c self,
        names: &[String],
        addon: Option<&Addon>,
    ) -> Result<Vec<&'c Extension>, SelectError> {
        let addon = addon.map_or("", |addon| &addon.metadata.name);
        let mut extensions: Vec<&Extension> = vec![];
        for name in names {
            let found = self.extensions.get(name);
            let entry = found.ok_or_else(|| SelectError::ExtensionNotFound { extension: name.clone() })?;
            let extends = entry.serves()?;
            if !extends.as_str().is_empty() && !extends.matches(addon) {
                return Err(SelectError::ExtensionNotValid {
                    extension: name.clone(),
                    extends: extends.to_string(),
                    addon: addon.to_owned(),
                });
            }
            let extension = entry.ready()?;
            // Naming one twice does not run it twice.
            if !extensions.iter().any(|other| other.metadata.name == extension.metadata.name) {
                extensions.push(extension);
            }
        }
        Ok(extensions)
    }

    fn choose_extensions(&self, addon: &Addon, tags: &[Tag]) -> Result<Vec<&Extension>, SelectError> {
        let mut extensions = vec![];
        for entry in self.extensions.values() {
            match entry.judge(&addon.metadata.name, tags) {
                Ok(Judgement::Fits(extension)) => extensions.push(extension),
                Ok(Judgement::SelectorDeclines | Judgement::ServesOthers)
                | Err((Distance::PatternNotRead, _)) => {}
                Err((Distance::NotReady | Distance::SelectorNotRead, error)) => return Err(error),
            }
        }
        Ok(extensions)
    }
}

/// What was found out about an addon or extension that could be judged.
enum Judgement<'c, T> {
    Fits(&'c T),
    SelectorDeclines,
    ServesOthers,
}

/// How far from being chosen something is that could not be, the closest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    /// Everything fits, but it is not ready.
    NotReady,
    /// It is meant for this kind or addon; whether for this subject cannot be told.
    SelectorNotRead,
    /// What it is meant for cannot be told.
    PatternNotRead,
}

/// What addons and extensions have in common.
trait Selectable {
    fn metadata(&self) -> &Metadata;
    fn conditions(&self) -> &[Condition];
    fn owner(&self) -> Owner;
    fn bad_pattern(&self, error: NamePatternError) -> SelectError;
}

impl Selectable for Addon {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn conditions(&self) -> &[Condition] {
        &self.status.conditions
    }

    fn owner(&self) -> Owner {
        Owner::Addon(self.metadata.name.clone())
    }

    fn bad_pattern(&self, error: NamePatternError) -> SelectError {
        SelectError::AddonTaskNotValid { addon: self.metadata.name.clone(), error }
    }
}

impl Selectable for Extension {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    fn conditions(&self) -> &[Condition] {
        &self.status.conditions
    }

    fn owner(&self) -> Owner {
        Owner::Extension(self.metadata.name.clone())
    }

    fn bad_pattern(&self, error: NamePatternError) -> SelectError {
        SelectError::ExtAddonNotValid { extension: self.metadata.name.clone(), error }
    }
}

impl<T: Selectable> Entry<T> {
    /// Whether this is to be taken for a kind or an addon, and these tags.
    fn judge(&self, name: &str, tags: &[Tag]) -> Result<Judgement<'_, T>, (Distance, SelectError)> {
        if !self.serves().map_err(|error| (Distance::PatternNotRead, error))?.matches(name) {
            return Ok(Judgement::ServesOthers);
        }
        let selector = self.selector().map_err(|error| (Distance::SelectorNotRead, error))?;
        let has = |category: &str, tag: Option<&str>| {
            tags.iter().any(|its| its.category == category && tag.is_none_or(|tag| tag == its.tag))
        };
        if !selector.matches(has) {
            return Ok(Judgement::SelectorDeclines);
        }
        self.ready().map(Judgement::Fits).map_err(|error| (Distance::NotReady, error))
    }

    fn serves(&self) -> Result<&NamePattern, SelectError> {
        self.serves.as_ref().map_err(|error| self.object.bad_pattern(error.clone()))
    }

    fn selector(&self) -> Result<&Selector, SelectError> {
        let invalid = |error: &SelectorError| SelectError::SelectorNotValid {
            owner: self.object.owner(),
            error: error.clone(),
        };
        self.selector.as_ref().map_err(invalid)
    }

    fn problems(&self) -> impl Iterator<Item = SelectError> {
        self.serves().err().into_iter().chain(self.selector().err())
    }

    /// The Ready condition it should have, unless it has it. One that somebody else set for this generation stays.
    fn judgement(&self, now: Timestamp) -> Option<Condition> {
        let present = self.object.metadata().generation;
        let known = find_condition(self.object.conditions(), READY);
        if known.is_some_and(|known| known.observed_generation.is_none_or(|seen| seen == present)) {
            return None;
        }
        let mut condition = match self.problems().next() {
            None => Condition::new(READY, ConditionStatus::True, "Checked", "its rules can be read", now),
            Some(error) => {
                Condition::new(READY, ConditionStatus::False, error.reason(), error.to_string(), now)
            }
        };
        condition.observed_generation = Some(present);
        Some(condition)
    }

    /// The object, unless it says itself that it is not ready.
    fn ready(&self) -> Result<&T, SelectError> {
        let present = self.object.metadata().generation;
        match find_condition(self.object.conditions(), READY) {
            Some(ready)
                if !ready.is_true() && ready.observed_generation.is_none_or(|seen| seen == present) =>
            {
                Err(SelectError::NotReady { owner: self.object.owner(), why: describe_condition(ready) })
            }
            _ => Ok(&self.object),
        }
    }
}

/// True if the task runs containers of its own.
fn is_inline(task: &TaskSpec) -> bool {
    task.container.is_some() || !task.containers.is_empty()
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addon(name) => write!(f, "addon {name:?}"),
            Self::Extension(name) => write!(f, "extension {name:?}"),
        }
    }
}

fn describe_condition(condition: &Condition) -> String {
    match (condition.message.as_str(), condition.reason.as_str()) {
        ("", "") => format!("its condition Ready is {}", condition.status),
        ("", reason) => reason.to_owned(),
        (message, _) => message.to_owned(),
    }
}

fn describe_addon(name: &str) -> String {
    if name.is_empty() { "a task with containers of its own".to_owned() } else { format!("addon {name:?}") }
}

fn describe_not_selected(kind: &str, declined: &[String]) -> String {
    const NAMED: usize = 8;
    if kind.is_empty() {
        return "the task names no kind, addon or container; there is nothing to run".to_owned();
    }
    if declined.is_empty() {
        return format!("no addon serves task kind {kind:?}; create one or set spec.addon");
    }
    let mut names = declined.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if declined.len() > NAMED {
        names.push_str(&format!(" and {} more", declined.len() - NAMED));
    }
    format!(
        "no addon selected for task kind {kind:?}: the tags of the subject do not match the selectors of {names}"
    )
}
