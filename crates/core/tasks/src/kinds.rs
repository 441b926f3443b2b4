//! Which kinds of task must be done before which: the dependencies of TaskKinds, closed over once.
//!
//! Decides nothing about tasks. Built from the declared kinds whenever one of them changes; every question after that is
//! a look-up. Dependencies on kinds that nobody declared count like any other.
//!
//! Invariant: [`KindGraph::depends`] is a strict order, so two kinds never wait for each other. Kinds that depend on one
//! another in a circle are refused by the API; where a store holds some all the same, the kinds *of the circle* do not
//! wait for one another, and everything outside of it waits as ever.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use muster_types::TaskKind;

/// A kind as a number, valid in the graph that gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindId(u32);

impl KindId {
    fn index(self) -> usize {
        self.0 as usize
    }
}

/// The dependencies between kinds, which have whatever names the caller gives them.
#[derive(Debug, Clone, Default)]
pub struct KindGraph {
    ids: BTreeMap<String, KindId>,
    /// By number, which is the order of names: the graph is the same whatever order the kinds came in.
    kinds: Vec<Node>,
}

#[derive(Debug, Clone, Default)]
struct Node {
    name: String,
    declared: bool,
    /// What the TaskKind itself names.
    direct: Vec<KindId>,
    /// What must be done before this kind, directly or through others.
    dependencies: Vec<KindId>,
    /// What waits for this kind, directly or through others.
    dependents: Vec<KindId>,
}

impl KindGraph {
    /// The graph of the declared kinds: each name with the names it depends on. Of two kinds with one name the
    /// dependencies are put together.
    pub fn new<N, D>(kinds: impl IntoIterator<Item = (N, D)>) -> Self
    where
        N: Into<String>,
        D: IntoIterator<Item: Into<String>>,
    {
        let mut declared: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (name, dependencies) in kinds {
            declared.entry(name.into()).or_default().extend(dependencies.into_iter().map(Into::into));
        }
        let names: BTreeSet<&String> = declared.keys().chain(declared.values().flatten()).collect();
        let ids: BTreeMap<String, KindId> =
            (0..).zip(&names).map(|(number, name)| ((*name).clone(), KindId(number))).collect();
        let node = |name: &&String| {
            let on = declared.get(*name);
            let direct = on.into_iter().flatten().filter_map(|on| ids.get(on).copied()).collect();
            Node { name: (*name).clone(), declared: on.is_some(), direct, ..Node::default() }
        };
        let kinds = names.iter().map(node).collect();
        let mut graph = Self { ids, kinds };
        graph.close();
        graph
    }

    /// The graph of the TaskKinds of one namespace, by their names in it.
    pub fn of_kinds<'a>(kinds: impl IntoIterator<Item = &'a TaskKind>) -> Self {
        Self::new(kinds.into_iter().map(|kind| (&kind.metadata.name, &kind.spec.dependencies)))
    }

    /// The number of a kind that is declared or depended on.
    pub fn id(&self, name: &str) -> Option<KindId> {
        self.ids.get(name).copied()
    }

    /// The name of a kind; empty for a number of another graph.
    pub fn name(&self, id: KindId) -> &str {
        self.kinds.get(id.index()).map_or("", |kind| &kind.name)
    }

    /// True if there is a TaskKind of this name.
    pub fn is_declared(&self, name: &str) -> bool {
        self.node(name).is_some_and(|kind| kind.declared)
    }

    /// True if tasks of `kind` wait for tasks of `on`, directly or through other kinds.
    pub fn depends(&self, kind: &str, on: &str) -> bool {
        self.id(kind).zip(self.id(on)).is_some_and(|(kind, on)| self.depends_by_id(kind, on))
    }

    /// [`Self::depends`] for kinds whose numbers are known.
    pub fn depends_by_id(&self, kind: KindId, on: KindId) -> bool {
        self.kinds.get(kind.index()).is_some_and(|kind| kind.dependencies.binary_search(&on).is_ok())
    }

    /// Everything tasks of this kind wait for, directly or through other kinds, by name.
    pub fn dependencies_of(&self, kind: &str) -> impl Iterator<Item = &str> {
        self.node(kind).into_iter().flat_map(|kind| &kind.dependencies).map(|id| self.name(*id))
    }

    /// Everything that waits for tasks of this kind, directly or through other kinds, by name.
    pub fn dependents_of(&self, kind: &str) -> impl Iterator<Item = &str> {
        self.node(kind).into_iter().flat_map(|kind| &kind.dependents).map(|id| self.name(*id))
    }

    /// A circle of dependencies, if there is one: the kinds on the way, the first one again at the end. The same graph
    /// always names the same circle, one of the shortest through the first name that is on any.
    pub fn find_cycle(&self) -> Option<Vec<String>> {
        let (first, path) =
            self.ids.values().find_map(|id| Some((*id, self.path(self.direct(*id), *id)?)))?;
        Some([first].iter().chain(&path).map(|id| self.name(*id).to_owned()).collect())
    }

    /// The circle there would be through `name` if it were declared with these dependencies in place of those it has.
    pub fn would_cycle<'a>(
        &self,
        name: &str,
        dependencies: impl IntoIterator<Item = &'a str>,
    ) -> Option<Vec<String>> {
        let mut from = vec![];
        for dependency in dependencies {
            if dependency == name {
                return Some(vec![name.to_owned(), name.to_owned()]);
            }
            from.extend(self.id(dependency));
        }
        from.sort_unstable();
        let target = self.id(name)?;
        let path = self.path(&from, target)?;
        Some([target].iter().chain(&path).map(|id| self.name(*id).to_owned()).collect())
    }

    fn node(&self, name: &str) -> Option<&Node> {
        self.kinds.get(self.id(name)?.index())
    }

    /// Fills in what each kind waits for and what waits for it.
    fn close(&mut self) {
        let below = self.reach();
        let reaches = |from: KindId, to: KindId| {
            below.get(from.index()).is_some_and(|met| met.binary_search(&to).is_ok())
        };
        let ids: Vec<KindId> = self.ids.values().copied().collect();
        for (id, met) in ids.iter().zip(&below) {
            for other in met.iter().filter(|other| !reaches(**other, *id)) {
                if let Some(kind) = self.kinds.get_mut(id.index()) {
                    kind.dependencies.push(*other);
                }
                if let Some(kind) = self.kinds.get_mut(other.index()) {
                    kind.dependents.push(*id);
                }
            }
        }
    }

    /// For each kind, every kind met on the way down from it, in order.
    fn reach(&self) -> Vec<Vec<KindId>> {
        let mut met_by: Vec<Option<KindId>> = vec![None; self.kinds.len()];
        let below = |id: &KindId| {
            let mut met = vec![];
            let mut open = self.direct(*id).to_vec();
            while let Some(next) = open.pop() {
                if let Some(mark) = met_by.get_mut(next.index()).filter(|mark| **mark != Some(*id)) {
                    *mark = Some(*id);
                    met.push(next);
                    open.extend(self.direct(next));
                }
            }
            met.sort_unstable();
            met
        };
        self.ids.values().map(below).collect()
    }

    /// One of the shortest ways from any of these to `to`, both ends included.
    fn path(&self, from: &[KindId], to: KindId) -> Option<Vec<KindId>> {
        let mut came_from: BTreeMap<KindId, Option<KindId>> = from.iter().map(|id| (*id, None)).collect();
        let mut open: VecDeque<KindId> = from.iter().copied().collect();
        while let Some(id) = open.pop_front() {
            if id == to {
                let mut path = vec![id];
                let mut at = id;
                while let Some(before) = came_from.get(&at).copied().flatten() {
                    path.push(before);
                    at = before;
                }
                path.reverse();
                return Some(path);
            }
            for next in self.direct(id) {
                came_from.entry(*next).or_insert_with(|| {
                    open.push_back(*next);
                    Some(id)
                });
            }
        }
        None
    }

    fn direct(&self, id: KindId) -> &[KindId] {
        self.kinds.get(id.index()).map_or(&[], |kind| &kind.direct)
    }
}
