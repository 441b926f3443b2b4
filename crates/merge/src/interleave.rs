//! The order of a list that two writers share.
//!
//! Items the applied list names come in its order; items only the live list has keep their place among their
//! live neighbours. The order is stable: applying the same list to the result gives the result.

use std::collections::BTreeMap;

/// Where an item of the merged list comes from: its position in the live list, in the applied list, or in
/// both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) live: Option<usize>,
    pub(crate) applied: Option<usize>,
}

/// Merges the order of two lists of distinct keys.
pub(crate) fn interleave<K: Ord>(live: &[K], applied: &[K]) -> Vec<Origin> {
    let live_at = positions(live);
    let applied_at = positions(applied);
    let from_applied =
        |(index, key): (usize, &K)| Origin { live: live_at.get(key).copied(), applied: Some(index) };

    let mut out = Vec::with_capacity(live.len().max(applied.len()));
    let mut shared = applied.iter().filter(|key| live_at.contains_key(key));
    let mut next_shared = shared.next();
    let mut taken = 0;
    for (index, key) in live.iter().enumerate() {
        match applied_at.get(key) {
            None => out.push(Origin { live: Some(index), applied: None }),
            Some(&until) if next_shared == Some(key) => {
                out.extend(applied.iter().enumerate().take(until + 1).skip(taken).map(from_applied));
                taken = until + 1;
                next_shared = shared.next();
            }
            // Shared, but the applied list wants another one first: it comes when its turn does.
            Some(_) => {}
        }
    }
    out.extend(applied.iter().enumerate().skip(taken).map(from_applied));
    out
}

fn positions<K: Ord>(keys: &[K]) -> BTreeMap<&K, usize> {
    keys.iter().enumerate().map(|(index, key)| (key, index)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(live: &str, applied: &str) -> String {
        let (live, applied): (Vec<char>, Vec<char>) = (live.chars().collect(), applied.chars().collect());
        interleave(&live, &applied)
            .into_iter()
            .filter_map(|origin| origin.applied.map(|i| applied[i]).or(origin.live.map(|i| live[i])))
            .collect()
    }

    #[test]
    fn new_items_come_after_the_live_ones() {
        assert_eq!(merged("ab", "cd"), "abcd");
    }

    #[test]
    fn new_items_stay_beside_their_applied_neighbours() {
        assert_eq!(merged("abc", "axc"), "abxc");
    }

    #[test]
    fn shared_items_take_the_applied_order() {
        assert_eq!(merged("abc", "ca"), "bca");
        assert_eq!(merged("abc", "cba"), "cba");
    }

    #[test]
    fn the_order_is_stable() {
        for (live, applied) in [("abcde", "ecxa"), ("", "ab"), ("ab", ""), ("abcd", "dxbya")] {
            let once = merged(live, applied);
            assert_eq!(merged(&once, applied), once, "{live} {applied}");
        }
    }
}
