//! Seeds in which every promise must hold, and seeds in which a missing rule must be noticed.

use muster_sim::world::{Played, simulate};
use muster_tasks::settings::Rule;

/// Seeds that every run plays. `MUSTER_SIM_SEEDS` plays more, `MUSTER_SIM_SEED` one.
const SEEDS: u64 = 200;
/// Seeds within which a missing rule must be noticed.
const SEEDS_TO_NOTICE: u64 = 100;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn play(seed: u64, without: Option<Rule>) -> Result<Played, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(simulate(seed, without))
}

fn play_whole(seed: u64) -> Result<Played, String> {
    play(seed, None)
        .map_err(|wrong| format!("seed {seed}: {wrong}\nplay it again with MUSTER_SIM_SEED={seed}"))
}

#[test]
fn every_seed_keeps_every_promise() {
    let seeds: Vec<u64> = match number("MUSTER_SIM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("MUSTER_SIM_SEEDS").unwrap_or(SEEDS)).collect(),
    };
    // Half of the seeds on each of two cores.
    let (one, other) = seeds.split_at(seeds.len() / 2);
    let played: Result<Vec<Played>, String> = std::thread::scope(|scope| {
        let halves = [one, other].map(|half| {
            scope.spawn(move || half.iter().map(|seed| play_whole(*seed)).collect::<Result<Vec<_>, String>>())
        });
        let halves = halves.into_iter().map(|half| half.join().expect("no seed panics"));
        halves.collect::<Result<Vec<_>, String>>().map(|halves| halves.concat())
    });
    let played = played.unwrap_or_else(|wrong| panic!("{wrong}"));
    let sum = |what: fn(&Played) -> u32| played.iter().map(|played| u64::from(what(played))).sum::<u64>();
    let count = seeds.len() as u64;
    assert!(count < 50 || sum(|it| it.tasks) > 30 * count, "too few tasks were made");
    assert!(count < 50 || sum(|it| it.faults) > 12 * count, "too little went wrong");
    assert!(count < 50 || sum(|it| it.preempted) > 0, "no seed preempted anything");
    assert!(count < 50 || sum(|it| it.messages) > 50 * count, "sinks heard too little");
    assert!(count < 50 || sum(|it| it.runs) > count, "schedules made too few runs");
}

#[test]
fn the_same_seed_always_plays_the_same() {
    assert_eq!(play(7, None), play(7, None));
}

#[test]
fn a_missing_rule_is_noticed_whichever_it_is() {
    for rule in Rule::ALL {
        let noticed = (0..SEEDS_TO_NOTICE).any(|seed| play(seed, Some(rule)).is_err());
        assert!(noticed, "nobody noticed that {rule:?} was not kept");
    }
}
