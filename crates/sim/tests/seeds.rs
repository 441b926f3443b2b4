//! Seeds in which everything must hold, and seeds in which a missing rule must be noticed.

use muster_sim::world::simulate;
use muster_tasks::settings::Rule;

/// Seeds that every run plays. `MUSTER_SIM_SEEDS` plays more, `MUSTER_SIM_SEED` one.
const SEEDS: u64 = 500;
/// Seeds within which a missing rule must be noticed.
const SEEDS_TO_NOTICE: u64 = 60;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn play(seed: u64, without: Option<Rule>) -> Result<muster_sim::world::Played, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(simulate(seed, without))
}

/// Plays a seed to its end; how many attempts were preempted, and how many members the engine handed on.
fn play_whole(seed: u64) -> Result<[u32; 2], String> {
    let again = |wrong| format!("seed {seed}: {wrong}\nplay it again with MUSTER_SIM_SEED={seed}");
    let played = play(seed, None).map_err(again)?;
    if played.tasks < 200 || played.faults < 20 {
        return Err(again(format!("it played too little: {played:?}")));
    }
    Ok([played.preempted, played.handed_on])
}

#[test]
fn every_seed_keeps_every_rule() {
    let seeds: Vec<u64> = match number("MUSTER_SIM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("MUSTER_SIM_SEEDS").unwrap_or(SEEDS)).collect(),
    };
    // Half of the seeds on each of two cores.
    let (one, other) = seeds.split_at(seeds.len() / 2);
    let played: Result<Vec<[u32; 2]>, String> = std::thread::scope(|scope| {
        let halves = [one, other].map(|half| {
            scope.spawn(move || half.iter().map(|seed| play_whole(*seed)).collect::<Result<Vec<_>, String>>())
        });
        let halves = halves.into_iter().map(|half| half.join().expect("no seed panics"));
        halves.collect::<Result<Vec<_>, String>>().map(|halves| halves.concat())
    });
    let played = played.unwrap_or_else(|wrong| panic!("{wrong}"));
    let is_enough = |counted: usize| seeds.len() < 100 || played.iter().any(|seed| seed[counted] > 0);
    assert!(is_enough(0), "no seed preempted anything");
    assert!(is_enough(1), "no member of a pipeline was submitted with the end of the one before it");
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
