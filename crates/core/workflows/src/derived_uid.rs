//! Uids of what is made for an owner: derived, so that no randomness is needed, and in the order of their places.

use muster_types::Millis;

use crate::mix::mix;

/// Bits of a place: more than the members of any group.
const PLACE_BITS: u32 = 17;

/// A version 7 uuid. Of two that are made at the same time for one owner, the one at the lower place is smaller; those of
/// different owners differ because the rest is drawn from the whole uid of the owner.
pub fn derived_uid(now: Millis, owner: &str, place: u32) -> String {
    let time = u128::try_from(now.0.max(0)).unwrap_or(0) & 0xffff_ffff_ffff;
    let place = u128::from(place) & ((1 << PLACE_BITS) - 1);
    let rest = u128::from(mix(owner, 0)) & ((1 << (74 - PLACE_BITS)) - 1);
    let free = (place << (74 - PLACE_BITS)) | rest;
    let uid = (time << 80) | (0x7 << 76) | ((free >> 62) << 64) | (0b10 << 62) | (free & ((1 << 62) - 1));
    let hex = format!("{uid:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn uids_are_version_7_and_in_the_order_of_places() {
        let uid =
            |place| derived_uid(Millis(1_800_000_000_000), "0190b0a0-0000-7000-8000-000000000001", place);
        assert_eq!(&uid(0)[14..15], "7");
        assert!(matches!(&uid(0)[19..20], "8" | "9" | "a" | "b"), "{}", uid(0));
        assert!((0..100_000).step_by(97).map(uid).is_sorted());
    }

    #[test]
    fn groups_of_one_job_give_their_tasks_different_uids() {
        let now = Millis(1_800_000_000_000);
        let groups = (0..100).map(|group| derived_uid(now, "0190b0a0-0000-7000-8000-000000000001", group));
        let tasks = groups.flat_map(|group| (0..100).map(move |task| derived_uid(now, &group, task)));
        assert_eq!(tasks.collect::<BTreeSet<_>>().len(), 10_000);
    }
}
