//! Seeds in which schedules must make each run once and lose none.

use muster_sim::schedules::{Played, simulate};

/// Seeds that every run plays. `MUSTER_SIM_SEED` plays one.
const SEEDS: u64 = 20;

fn play(seed: u64) -> Result<Played, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(simulate(seed))
}

#[test]
fn every_occurrence_is_made_at_most_once_and_none_is_lost_where_the_policy_keeps_it() {
    let one = std::env::var("MUSTER_SIM_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = one.map_or(0..SEEDS, |seed| seed..seed + 1);
    let (mut runs, mut triggered, mut faults) = (0, 0, 0);
    for seed in seeds.clone() {
        let played = play(seed).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        runs += played.runs;
        triggered += played.triggered;
        faults += played.faults;
    }
    let played = u32::try_from(seeds.end - seeds.start).unwrap();
    assert!(
        runs >= played * 100 && faults >= played * 20,
        "too little was played: {runs} runs, {faults} faults"
    );
    assert!(one.is_some() || triggered > played, "too little was triggered: {triggered}");
}

#[test]
fn the_same_seed_of_schedules_always_plays_the_same() {
    assert_eq!(play(7), play(7));
}
