//! What becomes of `${seq:N}`.

use std::collections::{BTreeMap, BTreeSet};

use muster_expr::Sequences;
use proptest::prelude::*;

/// Each text in turn, with one set of counters.
fn expand(texts: &[&str]) -> Vec<String> {
    let mut sequences = Sequences::new();
    texts.iter().map(|text| sequences.expand(text).into_owned()).collect()
}

#[test]
fn a_pool_counts_up_from_its_number() {
    assert_eq!(expand(&["${seq:8000}", "${seq:8000}", "port=${seq:8000}!"]), ["8000", "8001", "port=8002!"]);
    assert_eq!(expand(&["${seq:0}", "${seq:0}"]), ["0", "1"]);
}

#[test]
fn pools_are_independent() {
    assert_eq!(
        expand(&["${seq:8000}", "${seq:9000}", "${seq:8000}", "${seq:8001}"]),
        ["8000", "9000", "8001", "8001"]
    );
    assert_eq!(expand(&["${seq:1}-${seq:2}-${seq:1}", "${seq:2}"]), ["1-2-1", "3"]);
}

#[test]
fn one_text_gets_one_number_of_a_pool() {
    assert_eq!(expand(&["${seq:8000}:${seq:8000}", "${seq:8000}"]), ["8000:8000", "8001"]);
    assert_eq!(expand(&["${seq:8000}:${seq:08000}"]), ["8000:8000"]);
}

#[test]
fn counters_start_anew_for_each_attempt() {
    assert_eq!(expand(&["${seq:7}"]), expand(&["${seq:7}"]));
}

#[test]
fn what_is_no_macro_stays_as_it_is() {
    for text in [
        "",
        "seq:8000",
        "${seq:}",
        "${seq:x}",
        "${seq:-1}",
        "${seq:+1}",
        "${seq: 1}",
        "${seq:1",
        "${seq:1 }",
        "$seq:1}",
        "${SEQ:1}",
        "${seq:1.5}",
        "${seq:",
        "${port:1}",
        "${seq:18446744073709551616}",
        "${seq:٣}",
        "${",
    ] {
        assert_eq!(expand(&[text]), [text]);
    }
}

#[test]
fn text_that_is_no_macro_hides_none_behind_it() {
    assert_eq!(expand(&["${seq:${seq:5}}"]), ["${seq:5}"]);
    assert_eq!(expand(&["${seq:x}${seq:5}$${seq:5}"]), ["${seq:x}5$5"]);
    assert_eq!(expand(&["ü${seq:5}ü"]), ["ü5ü"]);
}

#[test]
fn a_pool_that_is_used_up_gives_no_number_twice() {
    let last = "${seq:18446744073709551615}";
    assert_eq!(expand(&[last, last]), ["18446744073709551615", last]);
}

proptest! {
    #[test]
    fn any_text_is_expanded(text in ".{0,60}", almost in "(\\$\\{seq:|[0-9]{0,3}|\\}|x){0,12}") {
        expand(&[&text, &almost]);
    }

    #[test]
    fn no_number_of_a_pool_is_given_to_two_texts(pools in prop::collection::vec(0_u64..5, 0..40)) {
        let texts: Vec<_> = pools.iter().map(|pool| format!("${{seq:{pool}}}")).collect();
        let numbers = expand(&texts.iter().map(String::as_str).collect::<Vec<_>>());
        let mut seen: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
        for (pool, number) in pools.iter().zip(numbers) {
            prop_assert!(seen.entry(*pool).or_default().insert(number.parse().unwrap()));
        }
        for (pool, numbers) in seen {
            let expected: BTreeSet<u64> = (pool..).take(numbers.len()).collect();
            prop_assert_eq!(numbers, expected);
        }
    }
}
