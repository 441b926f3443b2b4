//! What tasks are made of besides themselves: kinds, addons, extensions and subjects, as committed.

use std::collections::{BTreeMap, BTreeSet};

use muster_ports::store::{Change, Key, ResourceName, Store};
use muster_tasks::absent::{Absent, Reference};
use muster_tasks::kinds::KindGraph;
use muster_tasks::select::{Catalog, SelectError, Selection};
use muster_tasks::view::TaskView;
use muster_types::application::Tag;
use muster_types::names::RESOURCES_GROUP;
use muster_types::resource_type::ResourceScope;
use muster_types::task_kind::Require;
use muster_types::{Addon, Application, Extension, JsonText, ResourceType, Task, TaskKind};

/// Where applications are kept.
const APPLICATIONS: &str = "applications.muster.dev";
/// The kind of subjects that need not be declared.
const APPLICATION: &str = "Application";

/// Kinds of ours that tasks may be about as well, and where they are kept.
const OWN_SUBJECTS: [(&str, &str); 6] = [
    ("Robot", "robots.muster.dev"),
    ("Task", "tasks.muster.dev"),
    ("TaskGroup", "taskgroups.muster.dev"),
    ("Job", "jobs.muster.dev"),
    ("Schedule", "schedules.muster.dev"),
    ("KubeJob", "kubejobs.muster.dev"),
];

/// The catalogs of all namespaces.
#[derive(Debug, Default)]
pub struct Catalogs {
    spaces: BTreeMap<String, Space>,
    /// The kinds changed since somebody asked.
    kinds_changed: bool,
    /// Declared kinds, which tasks may be about.
    declared: BTreeMap<String, Declared>,
    /// What appeared or changed since somebody asked.
    news: Vec<CatalogNews>,
    kind_gone: bool,
}

/// A kind that somebody declared.
#[derive(Debug)]
struct Declared {
    /// The name of its ResourceType.
    by: String,
    resource: ResourceName,
    is_namespaced: bool,
}

/// Something that tasks may have waited for.
#[derive(Debug)]
pub enum CatalogNews {
    /// It is there.
    Appeared(Absent),
    /// Addons, extensions or tags of this namespace are others.
    SelectionChanged(String),
}

#[derive(Debug, Default)]
struct Space {
    catalog: Catalog,
    kinds: BTreeMap<String, TaskKind>,
    applications: BTreeMap<String, Vec<Tag>>,
}

impl Catalogs {
    /// Takes in a change of an object that tasks are made of. An object that cannot be read is left out, and the tasks that
    /// need it say so.
    pub fn observe(&mut self, change: &Change) {
        let json = change.object.json();
        let namespace = change.object.namespace().to_owned();
        let name = change.object.name().to_owned();
        let gone = change.deleted;
        let resource = change.resource.as_str();
        if !gone {
            self.note_news(resource, &namespace, &name);
        }
        if resource == "resourcetypes.muster.dev" {
            self.observe_type(&name, read::<ResourceType>(json, gone));
            return;
        }
        let space = self.spaces.entry(namespace).or_default();
        match resource {
            "addons.muster.dev" => match read::<Addon>(json, gone) {
                Some(addon) => space.catalog.put_addon(addon),
                None => space.catalog.remove_addon(&name),
            },
            "extensions.muster.dev" => match read::<Extension>(json, gone) {
                Some(extension) => space.catalog.put_extension(extension),
                None => space.catalog.remove_extension(&name),
            },
            "taskkinds.muster.dev" => {
                self.kinds_changed = true;
                match read::<TaskKind>(json, gone) {
                    Some(kind) => drop(space.kinds.insert(name, kind)),
                    None => self.kind_gone |= space.kinds.remove(&name).is_some(),
                }
            }
            APPLICATIONS => match read::<Application>(json, gone) {
                Some(application) => drop(space.applications.insert(name, application.spec.tags)),
                None => drop(space.applications.remove(&name)),
            },
            _ => {}
        }
    }

    /// Writes down what tasks may have waited for.
    fn note_news(&mut self, resource: &str, namespace: &str, name: &str) {
        let absent = |what| CatalogNews::Appeared(Absent { namespace: namespace.to_owned(), what });
        let name = name.to_owned();
        match resource {
            "taskkinds.muster.dev" => self.news.push(absent(Reference::Kind(name))),
            "addons.muster.dev" => self.news.push(absent(Reference::Addon(name))),
            APPLICATIONS => self.news.push(absent(Reference::Subject { kind: APPLICATION.to_owned(), name })),
            "extensions.muster.dev" => {}
            other => {
                let of_resource = |(_, declared): &(&String, &Declared)| declared.resource.as_str() == other;
                let declared = self.declared.iter().find(of_resource).map(|(kind, _)| kind.as_str());
                let own = || OWN_SUBJECTS.iter().find(|(_, own)| *own == other).map(|(kind, _)| *kind);
                if let Some(kind) = declared.or_else(own) {
                    self.news.push(absent(Reference::Subject { kind: kind.to_owned(), name }));
                }
                return;
            }
        }
        if resource != "taskkinds.muster.dev" {
            self.news.push(CatalogNews::SelectionChanged(namespace.to_owned()));
        }
    }

    fn observe_type(&mut self, name: &str, declared: Option<ResourceType>) {
        self.declared.retain(|_, declared| declared.by != name);
        let Some(it) = declared else { return };
        let what = Reference::SubjectKind(it.spec.names.kind.clone());
        self.news.push(CatalogNews::Appeared(Absent { namespace: String::new(), what }));
        let is_namespaced = it.spec.scope() == ResourceScope::Namespaced;
        let resource = ResourceName::new(&format!("{}.{RESOURCES_GROUP}", it.spec.names.plural));
        self.declared.insert(it.spec.names.kind, Declared { by: name.to_owned(), resource, is_namespaced });
    }

    /// True if a kind went since the last call: tasks that wait may name it.
    pub fn take_kind_gone(&mut self) -> bool {
        std::mem::take(&mut self.kind_gone)
    }

    /// What appeared or changed since the last call.
    pub fn take_news(&mut self) -> Vec<CatalogNews> {
        std::mem::take(&mut self.news)
    }

    /// Something that a task names and that does not exist, as far as can be told before it is selected for.
    pub fn absent(&self, task: &TaskView, store: &Store) -> Option<Absent> {
        let (namespace, _) = task.path.split_once('/')?;
        let absent = |what| Some(Absent { namespace: namespace.to_owned(), what });
        let space = self.spaces.get(namespace);
        if let Some((kind, name)) = task.subject.split_once('/')
            && let Some(absent) = self.absent_subject(namespace, kind, name, store)
        {
            return Some(absent);
        }
        if !task.kind.is_empty() && !space.is_some_and(|space| space.kinds.contains_key(&task.kind)) {
            return absent(Reference::Kind(task.kind.clone()));
        }
        if !task.addon.is_empty() && space.is_none_or(|space| space.catalog.addon(&task.addon).is_none()) {
            return absent(Reference::Addon(task.addon.clone()));
        }
        None
    }

    /// The subject of a task, if it does not exist: it may have gone while the task waited.
    pub fn absent_subject_of(&self, task: &Task, store: &Store) -> Option<Absent> {
        let subject = task.spec.subject.as_ref()?;
        self.absent_subject(&task.metadata.namespace, &subject.kind, &subject.name, store)
    }

    fn absent_subject(&self, namespace: &str, kind: &str, name: &str, store: &Store) -> Option<Absent> {
        let absent = |namespace: &str, what| Some(Absent { namespace: namespace.to_owned(), what });
        let subject = || Reference::Subject { kind: kind.to_owned(), name: name.to_owned() };
        if kind == APPLICATION {
            let space = self.spaces.get(namespace);
            let exists = space.is_some_and(|space| space.applications.contains_key(name));
            return if exists { None } else { absent(namespace, subject()) };
        }
        let own = OWN_SUBJECTS.iter().find(|(own, _)| *own == kind);
        let (resource, namespace) = match (self.declared.get(kind), own) {
            (Some(declared), _) if declared.is_namespaced => (declared.resource.clone(), namespace),
            (Some(declared), _) => (declared.resource.clone(), ""),
            (None, Some((_, resource))) => (ResourceName::new(resource), namespace),
            (None, None) => return absent("", Reference::SubjectKind(kind.to_owned())),
        };
        let exists = store.get(&Key::new(&resource, namespace, name)).is_some();
        if exists { None } else { absent(namespace, subject()) }
    }

    /// The catalog of a namespace.
    pub fn of(&self, namespace: &str) -> Option<&Catalog> {
        self.spaces.get(namespace).map(|space| &space.catalog)
    }

    /// What a task runs, chosen now.
    pub fn select(&self, task: &Task) -> Result<Selection<'_>, SelectError> {
        static EMPTY: std::sync::LazyLock<Space> = std::sync::LazyLock::new(Space::default);
        let space = self.spaces.get(&task.metadata.namespace).unwrap_or(&EMPTY);
        let subject = task.spec.subject.as_ref().filter(|subject| subject.kind == APPLICATION);
        let tags =
            subject.and_then(|subject| space.applications.get(&subject.name)).map_or(&[][..], Vec::as_slice);
        space.catalog.select(&task.spec, space.kinds.get(&task.spec.kind), tags)
    }

    /// The kind of a task, if it names one that exists.
    pub fn kind(&self, task: &Task) -> Option<&TaskKind> {
        self.spaces.get(&task.metadata.namespace)?.kinds.get(&task.spec.kind)
    }

    /// The kinds of all namespaces, their priorities, and those whose dependencies must succeed, named `namespace/name`, if
    /// they changed since the last call.
    pub fn changed_kinds(&mut self) -> Option<(KindGraph, BTreeMap<String, i32>, BTreeSet<String>)> {
        if !std::mem::take(&mut self.kinds_changed) {
            return None;
        }
        let all =
            || self.spaces.iter().flat_map(|(space, it)| it.kinds.values().map(move |kind| (space, kind)));
        let graph = KindGraph::new(all().map(|(space, kind)| {
            let needs = kind.spec.dependencies.iter().map(move |need| format!("{space}/{need}"));
            (format!("{space}/{}", kind.metadata.name), needs)
        }));
        let priorities = all().filter_map(|(space, kind)| {
            Some((format!("{space}/{}", kind.metadata.name), kind.spec.priority?))
        });
        let strict = all().filter(|(_, kind)| kind.spec.require == Some(Require::Succeeded));
        let strict = strict.map(|(space, kind)| format!("{space}/{}", kind.metadata.name));
        Some((graph, priorities.collect(), strict.collect()))
    }
}

fn read<T: JsonText>(json: &[u8], gone: bool) -> Option<T> {
    if gone { None } else { T::from_json(json).ok() }
}
