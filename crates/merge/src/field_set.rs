//! A set of fields, as a tree of paths.
//!
//! A node of the tree may be a member itself (the `.` of FieldsV1), have members beneath it, or both. Nodes
//! that are neither do not exist, so equality of trees is equality of sets. Nobody owns the whole object: the
//! root is never a member. The stored spelling is in `fields_v1.rs`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use crate::path::PathElement;

/// A set of fields of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    member: bool,
    children: BTreeMap<PathElement, FieldSet>,
}

impl FieldSet {
    /// Whether no field is in the set.
    pub fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    /// Whether the field at `path` is in the set.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path.split_first() {
            None => self.member,
            Some((first, rest)) => self.children.get(first).is_some_and(|child| child.contains(rest)),
        }
    }

    /// Whether every field of `other` is in this set.
    pub fn is_superset(&self, other: &Self) -> bool {
        other.difference(self).is_empty()
    }

    /// The fields in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.absorb(other);
        out
    }

    /// The fields in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut out = Self { member: self.member && other.member, ..Self::default() };
        for (element, child) in &self.children {
            if let Some(theirs) = other.children.get(element) {
                out.attach(element.clone(), child.intersection(theirs));
            }
        }
        out
    }

    /// The fields in this set and not in `other`. Removing a field does not remove the fields beneath it.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut out = Self { member: self.member && !other.member, ..Self::default() };
        for (element, child) in &self.children {
            let rest = match other.children.get(element) {
                Some(theirs) => child.difference(theirs),
                None => child.clone(),
            };
            out.attach(element.clone(), rest);
        }
        out
    }

    /// The fields of this set that a write to `changed` touches: those it names, and those beneath a field it
    /// wrote as one piece.
    #[must_use]
    pub fn touched_by(&self, changed: &Self) -> Self {
        if changed.member && changed.children.is_empty() {
            return self.clone();
        }
        let mut out = Self { member: self.member && changed.member, ..Self::default() };
        for (element, child) in &self.children {
            if let Some(theirs) = changed.children.get(element) {
                out.attach(element.clone(), child.touched_by(theirs));
            }
        }
        out
    }

    /// Every field of the set as conflicts show it (`.spec.containers[name="x"].image`), parents first.
    pub fn paths(&self) -> Vec<String> {
        let mut out = Vec::new();
        // Visiting everything never breaks.
        let _all: ControlFlow<()> = self.visit_paths(&mut String::new(), &mut |path| {
            out.push(path.to_owned());
            ControlFlow::Continue(())
        });
        out
    }

    /// Visits every field as [`Self::paths`] shows it, until told to stop.
    pub(crate) fn visit_paths(
        &self,
        prefix: &mut String,
        visit: &mut impl FnMut(&str) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if self.member {
            visit(prefix)?;
        }
        for (element, child) in &self.children {
            let parent = prefix.len();
            prefix.push_str(&element.to_string());
            child.visit_paths(prefix, visit)?;
            prefix.truncate(parent);
        }
        ControlFlow::Continue(())
    }

    /// Adds the fields of `other`.
    pub(crate) fn absorb(&mut self, other: &Self) {
        self.member |= other.member;
        for (element, child) in &other.children {
            if let Some(known) = self.children.get_mut(element) {
                known.absorb(child);
            } else {
                self.children.insert(element.clone(), child.clone());
            }
        }
    }

    /// A node that is a member with nothing beneath it.
    pub(crate) fn leaf() -> Self {
        Self { member: true, ..Self::default() }
    }

    pub(crate) fn is_member(&self) -> bool {
        self.member
    }

    /// Makes this node itself a member.
    #[must_use]
    pub(crate) fn into_member(mut self) -> Self {
        self.member = true;
        self
    }

    /// Makes this node itself no member.
    pub(crate) fn forget_member(&mut self) {
        self.member = false;
    }

    pub(crate) fn child(&self, element: &PathElement) -> Option<&Self> {
        self.children.get(element)
    }

    pub(crate) fn children(&self) -> impl Iterator<Item = (&PathElement, &Self)> {
        self.children.iter()
    }

    /// Puts a subtree under `element`; an empty one leaves no trace.
    pub(crate) fn attach(&mut self, element: PathElement, child: Self) {
        if !child.is_empty() {
            self.children.insert(element, child);
        }
    }

    /// Takes the subtree under `element` out.
    pub(crate) fn detach(&mut self, element: &PathElement) -> Option<Self> {
        self.children.remove(element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn set(fields: Value) -> FieldSet {
        FieldSet::from_fields_v1(&fields).unwrap()
    }

    #[test]
    fn union_has_the_fields_of_both() {
        let both = set(json!({"f:a": {}})).union(&set(json!({"f:a": {"f:b": {}}, "f:c": {}})));
        assert_eq!(both, set(json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}})));
    }

    #[test]
    fn intersection_has_only_shared_fields() {
        let shared = set(json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}))
            .intersection(&set(json!({"f:a": {"f:b": {}}, "f:d": {}})));
        assert_eq!(shared, set(json!({"f:a": {"f:b": {}}})));
    }

    #[test]
    fn difference_of_a_parent_keeps_its_children() {
        let rest = set(json!({"f:a": {".": {}, "f:b": {}}})).difference(&set(json!({"f:a": {}})));
        assert_eq!(rest, set(json!({"f:a": {"f:b": {}}})));
    }

    #[test]
    fn difference_with_itself_is_empty() {
        let fields = set(json!({"f:a": {".": {}, "f:b": {"v:1": {}}}}));
        assert!(fields.difference(&fields).is_empty());
    }

    #[test]
    fn a_field_written_as_one_piece_touches_everything_beneath_it() {
        let owned = set(json!({"f:a": {"f:b": {}}, "f:c": {}}));
        assert_eq!(owned.touched_by(&set(json!({"f:a": {}}))), set(json!({"f:a": {"f:b": {}}})));
    }

    #[test]
    fn a_new_sibling_touches_nothing() {
        let owned = set(json!({"f:a": {"f:b": {}}}));
        assert!(owned.touched_by(&set(json!({"f:a": {".": {}, "f:x": {}}}))).is_empty());
    }

    #[test]
    fn contains_tells_members_from_their_parents() {
        let fields = set(json!({"f:a": {"f:b": {}}}));
        let (a, b) = (PathElement::field("a"), PathElement::field("b"));
        assert!(fields.contains(&[a.clone(), b]));
        assert!(!fields.contains(&[a]));
        assert!(!fields.contains(&[]));
    }

    #[test]
    fn paths_read_as_kubernetes_prints_them() {
        let fields = set(json!({
            "f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {"v:\"x/y\"": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"x\"}": {".": {}, "f:image": {}}}, "f:list": {"i:0": {}}},
        }));
        assert_eq!(
            fields.paths(),
            [
                r#".metadata.finalizers[="x/y"]"#,
                ".metadata.labels.a",
                r#".spec.containers[name="x"]"#,
                r#".spec.containers[name="x"].image"#,
                ".spec.list[0]",
            ]
        );
    }
}
