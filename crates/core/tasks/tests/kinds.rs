//! Which kinds wait for which.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, also in what tests share")]

use std::collections::{BTreeMap, BTreeSet};

use muster_tasks::kinds::KindGraph;
use muster_types::TaskKind;
use muster_types::task_kind::TaskKindSpec;
use proptest::prelude::*;

/// One kind per line: `name: dependency dependency`.
fn graph(text: &str) -> KindGraph {
    let parts = |line| -> (String, Vec<String>) {
        let (name, on) = str::split_once(line, ':').unwrap();
        (name.trim().to_owned(), on.split_whitespace().map(str::to_owned).collect())
    };
    KindGraph::new(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(parts))
}

fn dependencies(graph: &KindGraph, kind: &str) -> String {
    graph.dependencies_of(kind).collect::<Vec<_>>().join(" ")
}

fn dependents(graph: &KindGraph, kind: &str) -> String {
    graph.dependents_of(kind).collect::<Vec<_>>().join(" ")
}

const SEEDED: &str = "
    language-discovery:
    tech-discovery: language-discovery
    analyzer: tech-discovery
";

#[test]
fn dependencies_reach_through_other_kinds() {
    let graph = graph(SEEDED);
    assert_eq!(dependencies(&graph, "analyzer"), "language-discovery tech-discovery");
    assert_eq!(dependencies(&graph, "tech-discovery"), "language-discovery");
    assert_eq!(dependencies(&graph, "language-discovery"), "");
    assert!(graph.depends("analyzer", "language-discovery"));
    assert!(!graph.depends("language-discovery", "analyzer"));
    assert!(!graph.depends("analyzer", "analyzer"));
}

#[test]
fn dependents_are_the_other_way_round() {
    let graph = graph(SEEDED);
    assert_eq!(dependents(&graph, "language-discovery"), "analyzer tech-discovery");
    assert_eq!(dependents(&graph, "analyzer"), "");
}

#[test]
fn a_kind_nobody_knows_depends_on_nothing() {
    let graph = graph(SEEDED);
    assert_eq!(dependencies(&graph, "nothing"), "");
    assert_eq!(dependents(&graph, "nothing"), "");
    assert!(!graph.depends("nothing", "analyzer"));
    assert!(!graph.depends("analyzer", "nothing"));
    assert_eq!(graph.id("nothing"), None);
    assert!(!KindGraph::default().depends("a", "b"));
}

#[test]
fn a_dependency_nobody_declared_counts() {
    let graph = graph("a: b");
    assert!(graph.depends("a", "b"));
    assert!(graph.is_declared("a"));
    assert!(!graph.is_declared("b"));
    assert!(!graph.is_declared("c"));
}

#[test]
fn numbers_answer_like_names() {
    let graph = graph(SEEDED);
    let [analyzer, language] = ["analyzer", "language-discovery"].map(|name| graph.id(name).unwrap());
    assert!(graph.depends_by_id(analyzer, language));
    assert!(!graph.depends_by_id(language, analyzer));
    assert_eq!(graph.name(analyzer), "analyzer");
    assert_eq!(KindGraph::default().name(analyzer), "");
    assert!(!KindGraph::default().depends_by_id(analyzer, language));
}

#[test]
fn the_graph_of_task_kinds_is_that_of_their_names() {
    let kind = |name: &str, on: &[&str]| {
        let dependencies = on.iter().map(|name| (*name).to_owned()).collect();
        TaskKind::new("default", name, TaskKindSpec { dependencies, ..TaskKindSpec::default() })
    };
    let graph = KindGraph::of_kinds(&[kind("a", &["b"]), kind("b", &["c"])]);
    assert_eq!(dependencies(&graph, "a"), "b c");
}

#[test]
fn no_circle_is_found_where_there_is_none() {
    assert_eq!(graph(SEEDED).find_cycle(), None);
    assert_eq!(graph("a: b c\nb: d\nc: d").find_cycle(), None);
    assert_eq!(graph("").find_cycle(), None);
}

#[test]
fn a_circle_is_named_from_its_first_kind_round_to_it() {
    assert_eq!(graph("a: a").find_cycle().unwrap(), ["a", "a"]);
    assert_eq!(graph("b: c\nc: a\na: b").find_cycle().unwrap(), ["a", "b", "c", "a"]);
    // Not the way to the circle, and the shorter one of two.
    assert_eq!(graph("a: b\nb: c e\nc: d\nd: b\ne: b").find_cycle().unwrap(), ["b", "e", "b"]);
}

#[test]
fn what_would_make_a_circle_is_told_before_it_does() {
    let graph = graph(SEEDED);
    assert_eq!(
        graph.would_cycle("language-discovery", ["analyzer"]).unwrap(),
        ["language-discovery", "analyzer", "tech-discovery", "language-discovery"]
    );
    assert_eq!(graph.would_cycle("new", ["new"]).unwrap(), ["new", "new"]);
    assert_eq!(graph.would_cycle("new", ["analyzer"]), None);
    assert_eq!(graph.would_cycle("analyzer", ["language-discovery", "unknown"]), None);
    // It replaces the dependencies the kind has.
    assert_eq!(
        graph.would_cycle("tech-discovery", ["analyzer"]).unwrap(),
        ["tech-discovery", "analyzer", "tech-discovery"]
    );
}

#[test]
fn a_declaration_that_closes_a_circle_over_an_undeclared_kind_is_told() {
    assert_eq!(graph("a: b").would_cycle("b", ["a"]).unwrap(), ["b", "a", "b"]);
}

#[test]
fn replacing_a_dependency_that_made_a_circle_is_no_circle() {
    assert_eq!(graph("a: b\nb: a").would_cycle("b", ["c"]), None);
}

#[test]
fn kinds_in_a_circle_do_not_wait_for_one_another_for_ever() {
    let graph = graph("before: a\na: b\nb: c\nc: a after");
    assert_eq!(dependencies(&graph, "a"), "after");
    assert!(!graph.depends("a", "b"));
    assert!(!graph.depends("b", "a"));
    assert_eq!(dependencies(&graph, "before"), "a after b c");
    assert_eq!(dependents(&graph, "after"), "a b before c");
}

type Kinds = Vec<(u8, Vec<u8>)>;

fn any_kinds() -> impl Strategy<Value = Kinds> {
    prop::collection::vec((0_u8..12, prop::collection::vec(0_u8..14, 0..4)), 0..12)
}

fn graph_of(kinds: &Kinds) -> KindGraph {
    KindGraph::new(kinds.iter().map(|(name, on)| (name.to_string(), on.iter().map(u8::to_string))))
}

/// Pairs (a, b) where a way leads from a down to b: relations are joined until nothing is new.
fn naive_reach(kinds: &Kinds) -> BTreeSet<(u8, u8)> {
    let mut reach: BTreeSet<(u8, u8)> =
        kinds.iter().flat_map(|(name, on)| on.iter().map(move |on| (*name, *on))).collect();
    loop {
        let joined: BTreeSet<_> = reach
            .iter()
            .flat_map(|(a, b)| reach.iter().filter(move |(c, _)| b == c).map(move |(_, d)| (*a, *d)))
            .collect();
        let known = reach.len();
        reach.extend(joined);
        if reach.len() == known {
            return reach;
        }
    }
}

proptest! {
    #[test]
    fn the_closure_is_the_naive_one_without_circles(kinds in any_kinds()) {
        let (graph, reach) = (graph_of(&kinds), naive_reach(&kinds));
        for a in 0..14 {
            let expected: BTreeSet<String> = (0..14)
                .filter(|b| reach.contains(&(a, *b)) && !reach.contains(&(*b, a)))
                .map(|b| b.to_string())
                .collect();
            let found: BTreeSet<String> = graph.dependencies_of(&a.to_string()).map(str::to_owned).collect();
            prop_assert_eq!(found, expected);
            for b in 0..14 {
                let depends = graph.depends(&a.to_string(), &b.to_string());
                prop_assert_eq!(depends, reach.contains(&(a, b)) && !reach.contains(&(b, a)));
                let is_dependent = graph.dependents_of(&b.to_string()).any(|name| name == a.to_string());
                prop_assert_eq!(is_dependent, depends);
            }
        }
    }

    #[test]
    fn a_circle_is_found_when_there_is_one_and_is_one(kinds in any_kinds()) {
        let has_circle = naive_reach(&kinds).iter().any(|(a, b)| a == b);
        let found = graph_of(&kinds).find_cycle();
        prop_assert_eq!(found.is_some(), has_circle);
        if let Some(circle) = found {
            let mut direct: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for (name, on) in &kinds {
                direct.entry(name.to_string()).or_default().extend(on.iter().map(u8::to_string));
            }
            prop_assert_eq!(circle.first(), circle.last());
            for step in circle.windows(2) {
                prop_assert!(direct[&step[0]].contains(&step[1]));
            }
        }
    }

    #[test]
    fn what_would_make_a_circle_does(kinds in any_kinds(), name in 0_u8..12, on in prop::collection::vec(0_u8..14, 0..4)) {
        let told = graph_of(&kinds).would_cycle(&name.to_string(), on.iter().map(u8::to_string).collect::<Vec<_>>().iter().map(String::as_str));
        let mut changed: Kinds = kinds.into_iter().filter(|(other, _)| *other != name).collect();
        changed.push((name, on));
        prop_assert_eq!(told.is_some(), naive_reach(&changed).contains(&(name, name)));
    }

    #[test]
    fn the_order_of_kinds_does_not_matter(kinds in any_kinds()) {
        let mut turned = kinds.clone();
        turned.reverse();
        let (one, other) = (graph_of(&kinds), graph_of(&turned));
        prop_assert_eq!(one.find_cycle(), other.find_cycle());
        for name in (0..14).map(|kind| kind.to_string()) {
            prop_assert_eq!(dependencies(&one, &name), dependencies(&other, &name));
        }
    }
}
