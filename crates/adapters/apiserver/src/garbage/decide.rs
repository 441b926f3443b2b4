//! What is to happen to an object whose owners or dependents come and go. Decides from values alone; never reads the
//! store or the time.

use std::collections::BTreeSet;

use muster_types::metadata::Metadata;

/// The finalizer of an object whose dependents go first.
pub const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object whose dependents stay.
pub const ORPHAN: &str = "orphan";

/// What an owner reference points at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// It is there, or of a kind we know nothing about.
    Solid,
    /// It is there and waits for its dependents to go.
    Waiting,
    /// It is there and goes without its dependents.
    Orphaning,
    /// It is not there.
    Absent,
}

/// What is to happen to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Nothing.
    Keep,
    /// It goes; with its dependents first if told so.
    Delete { foreground: bool },
    /// It forgets these owners.
    Forget(BTreeSet<String>),
    /// It no longer waits for its dependents.
    Release(&'static str),
    /// It stays until its dependents have gone, or have forgotten it.
    Wait(&'static str),
}

/// What is known of the dependents of an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dependents {
    /// There are some.
    pub any: bool,
    /// Some hold up the end of the object.
    pub blocking: bool,
}

/// What is to happen to an object, from what is known of it.
pub fn decide(metadata: &Metadata, owners: &[Owner], dependents: Dependents) -> Decision {
    let uids = |lost: fn(Owner) -> bool| {
        let lost = metadata.owner_references.iter().zip(owners).filter(|(_, owner)| lost(**owner));
        lost.map(|(reference, _)| reference.uid.clone()).collect::<BTreeSet<_>>()
    };
    // First of all, or two that own each other would wait for each other.
    if owners.contains(&Owner::Orphaning) {
        return Decision::Forget(uids(|owner| owner == Owner::Orphaning));
    }
    let deleting = metadata.deletion_timestamp.is_some();
    if deleting && has(metadata, ORPHAN) {
        return if dependents.any { Decision::Wait(ORPHAN) } else { Decision::Release(ORPHAN) };
    }
    if deleting && has(metadata, FOREGROUND) {
        return if dependents.blocking { Decision::Wait(FOREGROUND) } else { Decision::Release(FOREGROUND) };
    }
    let lost = uids(|owner| owner != Owner::Solid);
    if lost.is_empty() {
        Decision::Keep
    } else if owners.contains(&Owner::Solid) {
        Decision::Forget(lost)
    } else if deleting {
        Decision::Keep
    } else {
        Decision::Delete { foreground: owners.contains(&Owner::Waiting) && dependents.any }
    }
}

/// True if the object has this finalizer.
pub fn has(metadata: &Metadata, finalizer: &str) -> bool {
    metadata.finalizers.iter().any(|known| known == finalizer)
}

#[cfg(test)]
mod tests {
    use muster_types::Timestamp;
    use muster_types::metadata::OwnerReference;

    use super::*;

    const NONE: Dependents = Dependents { any: false, blocking: false };
    const SOME: Dependents = Dependents { any: true, blocking: false };
    const BLOCKING: Dependents = Dependents { any: true, blocking: true };

    /// Metadata with owners of the uids `0`, `1` and so on.
    fn owned_by(count: usize) -> Metadata {
        let owner = |uid: usize| OwnerReference { uid: uid.to_string(), ..OwnerReference::default() };
        Metadata { owner_references: (0..count).map(owner).collect(), ..Metadata::default() }
    }

    fn deleted(finalizer: &str, metadata: Metadata) -> Metadata {
        let deletion_timestamp = Some(Timestamp::from_second(0));
        Metadata { deletion_timestamp, finalizers: vec![finalizer.to_owned()], ..metadata }
    }

    fn forgets(uids: &[&str]) -> Decision {
        Decision::Forget(uids.iter().map(|&uid| uid.to_owned()).collect())
    }

    #[test]
    fn an_object_goes_when_no_owner_is_left() {
        assert_eq!(decide(&owned_by(0), &[], SOME), Decision::Keep);
        assert_eq!(decide(&owned_by(1), &[Owner::Solid], NONE), Decision::Keep);
        assert_eq!(decide(&owned_by(1), &[Owner::Absent], NONE), Decision::Delete { foreground: false });
        assert_eq!(decide(&owned_by(2), &[Owner::Absent, Owner::Solid], NONE), forgets(&["0"]));
    }

    #[test]
    fn dependents_of_an_owner_that_waits_go_before_it_with_theirs_before_them() {
        assert_eq!(decide(&owned_by(1), &[Owner::Waiting], NONE), Decision::Delete { foreground: false });
        assert_eq!(decide(&owned_by(1), &[Owner::Waiting], SOME), Decision::Delete { foreground: true });
        assert_eq!(decide(&owned_by(2), &[Owner::Solid, Owner::Waiting], SOME), forgets(&["1"]));
    }

    #[test]
    fn an_orphan_forgets_its_owner_and_stays_whatever_else_is_asked_of_it() {
        assert_eq!(decide(&owned_by(1), &[Owner::Orphaning], NONE), forgets(&["0"]));
        assert_eq!(decide(&owned_by(2), &[Owner::Absent, Owner::Orphaning], NONE), forgets(&["1"]));
        for finalizer in [ORPHAN, FOREGROUND, "example.com/hold"] {
            assert_eq!(
                decide(&deleted(finalizer, owned_by(1)), &[Owner::Orphaning], BLOCKING),
                forgets(&["0"])
            );
        }
    }

    #[test]
    fn an_owner_waits_for_what_its_policy_says_and_then_goes() {
        let orphaning = deleted(ORPHAN, owned_by(0));
        assert_eq!(decide(&orphaning, &[], SOME), Decision::Wait(ORPHAN));
        assert_eq!(decide(&orphaning, &[], NONE), Decision::Release(ORPHAN));
        let waiting = deleted(FOREGROUND, owned_by(0));
        assert_eq!(decide(&waiting, &[], BLOCKING), Decision::Wait(FOREGROUND));
        assert_eq!(decide(&waiting, &[], SOME), Decision::Release(FOREGROUND));
    }

    #[test]
    fn what_is_being_deleted_already_is_left_to_its_finalizers() {
        let held = deleted("example.com/hold", owned_by(1));
        assert_eq!(decide(&held, &[Owner::Absent], NONE), Decision::Keep);
    }
}
