//! The order of the groups of a Job: what is wrong with it, and in which order groups can be looked at.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use muster_types::job::JobGroup;

/// What is wrong with the dependencies of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Another group has the same name.
    Duplicate {
        /// The group.
        group: usize,
    },
    /// It depends on a group that is not there.
    Unknown {
        /// The group.
        group: usize,
        /// Which of its dependencies.
        dependency: usize,
    },
    /// Groups wait for each other, the first is named again at the end.
    Cycle {
        /// Their names, in order.
        names: Vec<String>,
    },
}

/// Everything that is wrong with the dependencies of some groups.
pub fn check(groups: &[JobGroup]) -> Vec<Fault> {
    let places = places(groups);
    let mut faults = Vec::new();
    for (group, each) in groups.iter().enumerate() {
        if places.get(each.name.as_str()) != Some(&group) {
            faults.push(Fault::Duplicate { group });
        }
        for (dependency, name) in each.depends_on.iter().enumerate() {
            if !places.contains_key(name.as_str()) {
                faults.push(Fault::Unknown { group, dependency });
            }
        }
    }
    faults.extend(find_cycle(groups, &places).map(|names| Fault::Cycle { names }));
    faults
}

/// Places of groups by name; the first of a name counts.
pub fn places(groups: &[JobGroup]) -> BTreeMap<&str, usize> {
    groups.iter().enumerate().rev().map(|(place, group)| (group.name.as_str(), place)).collect()
}

/// The groups in an order in which each comes after those it depends on. Those that wait for each other are left out.
pub fn order(groups: &[JobGroup]) -> Vec<usize> {
    let places = places(groups);
    let mut waits_for: Vec<usize> = Vec::with_capacity(groups.len());
    let mut dependents: Vec<Vec<usize>> = vec![Vec::new(); groups.len()];
    for (place, group) in groups.iter().enumerate() {
        let known: BTreeSet<usize> =
            group.depends_on.iter().filter_map(|name| places.get(name.as_str()).copied()).collect();
        waits_for.push(known.len());
        for dependency in known {
            dependents[dependency].push(place);
        }
    }
    let mut free: VecDeque<usize> = (0..groups.len()).filter(|place| waits_for[*place] == 0).collect();
    let mut order = Vec::with_capacity(groups.len());
    while let Some(place) = free.pop_front() {
        order.push(place);
        for &dependent in &dependents[place] {
            waits_for[dependent] -= 1;
            if waits_for[dependent] == 0 {
                free.push_back(dependent);
            }
        }
    }
    order
}

/// Names of groups that wait for each other.
fn find_cycle(groups: &[JobGroup], places: &BTreeMap<&str, usize>) -> Option<Vec<String>> {
    let ordered: BTreeSet<usize> = order(groups).into_iter().collect();
    let mut place = (0..groups.len()).find(|place| !ordered.contains(place))?;
    // Each of those left out waits for another one of them, so this walk comes back to where it was.
    let mut walked: Vec<usize> = Vec::new();
    loop {
        if let Some(start) = walked.iter().position(|seen| *seen == place) {
            let cycle = walked[start..].iter().chain([&place]);
            return Some(cycle.map(|place| groups[*place].name.clone()).collect());
        }
        walked.push(place);
        let dependencies = groups[place].depends_on.iter().filter_map(|name| places.get(name.as_str()));
        place = *dependencies.filter(|place| !ordered.contains(place)).min()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(edges: &[(&str, &[&str])]) -> Vec<JobGroup> {
        let group = |(name, needs): &(&str, &[&str])| JobGroup {
            name: (*name).to_owned(),
            depends_on: needs.iter().map(|need| (*need).to_owned()).collect(),
            ..JobGroup::default()
        };
        edges.iter().map(group).collect()
    }

    #[test]
    fn a_cycle_is_named_in_order() {
        let faults = check(&groups(&[("z", &["a"]), ("a", &["c"]), ("b", &["a"]), ("c", &["b"])]));
        let names = ["a", "c", "b", "a"].map(str::to_owned).to_vec();
        assert_eq!(faults, [Fault::Cycle { names }]);
        let faults = check(&groups(&[("a", &["a"])]));
        assert_eq!(faults, [Fault::Cycle { names: vec!["a".to_owned(), "a".to_owned()] }]);
    }

    #[test]
    fn unknown_and_doubled_names_are_found() {
        let faults = check(&groups(&[("a", &[]), ("b", &["a", "x"]), ("a", &[])]));
        assert_eq!(faults, [Fault::Unknown { group: 1, dependency: 1 }, Fault::Duplicate { group: 2 }]);
    }

    #[test]
    fn groups_come_after_those_they_depend_on() {
        let groups = groups(&[("c", &["a", "b", "a"]), ("b", &["a"]), ("a", &[]), ("d", &["d"])]);
        assert_eq!(order(&groups), [2, 1, 0]);
    }
}
