//! What a list or a watch shows of each stored object: the object itself if it passes a filter, or what is derived
//! from it.

use muster_ports::store::{Change, ResourceName, Stored};

use crate::filter::Filter;

/// Turns stored objects into what a client sees.
pub trait Shows: Send {
    /// The kinds of the objects that are looked at, in this order; at least one.
    fn resources(&self) -> Vec<ResourceName>;

    /// Only objects of this namespace are looked at.
    fn namespace(&self) -> Option<&str>;

    /// Only the object at this path is looked at.
    fn only(&self) -> Option<&str> {
        None
    }

    /// Tells what is shown of an object.
    fn show(&self, stored: &Stored, out: &mut dyn FnMut(&[u8]));

    /// Tells what a change means: the word of a watch, and what it is about.
    fn show_change(&self, change: &Change, out: &mut dyn FnMut(&'static str, &[u8]));
}

impl Shows for Filter {
    fn resources(&self) -> Vec<ResourceName> {
        vec![self.kind.info().resource.clone()]
    }

    fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    fn show(&self, stored: &Stored, out: &mut dyn FnMut(&[u8])) {
        // The namespace was chosen already.
        if self.selects_all() || self.passes(stored) {
            out(stored.json());
        }
    }

    fn show_change(&self, change: &Change, out: &mut dyn FnMut(&'static str, &[u8])) {
        let (before, after) = match &change.previous {
            None => (false, !change.deleted && self.passes(&change.object)),
            Some(previous) if change.deleted => (self.passes(previous), false),
            Some(previous) => self.passes_around(previous, &change.object),
        };
        match (before, after) {
            (false, true) => out("ADDED", change.object.json()),
            (true, true) => out("MODIFIED", change.object.json()),
            (true, false) => {
                // What the client knew of it, at the revision at which it left.
                let last = change.previous.as_ref().map(|previous| previous.restamped(change.revision()));
                out("DELETED", last.as_ref().map_or(change.object.json(), Stored::json));
            }
            (false, false) => {}
        }
    }
}
