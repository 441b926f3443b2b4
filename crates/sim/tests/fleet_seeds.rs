//! Seeds of a fleet in which everything must hold.

use muster_sim::fleet::{Played, simulate_fleet};

/// Seeds that every run plays. `MUSTER_SIM_SEEDS` plays more, `MUSTER_SIM_SEED` one.
const SEEDS: u64 = 200;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn play(seed: u64) -> Result<Played, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let again = |wrong| format!("seed {seed}: {wrong}\nplay it again with MUSTER_SIM_SEED={seed}");
    runtime.block_on(simulate_fleet(seed)).map_err(again)
}

#[test]
fn every_seed_ends_with_each_attempt_started_once_and_no_robot_overfull() {
    let seeds: Vec<u64> = match number("MUSTER_SIM_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("MUSTER_SIM_SEEDS").unwrap_or(SEEDS)).collect(),
    };
    let mut all = Played::default();
    for seed in &seeds {
        let played = play(*seed).unwrap_or_else(|wrong| panic!("{wrong}"));
        all.faults += played.faults;
        all.lost += played.lost;
        all.kept += played.kept;
        all.attempts += played.attempts;
    }
    let enough = all.faults > 500 && all.lost > 50 && all.kept > 10;
    assert!(seeds.len() < 50 || enough, "too little went wrong: {all:?}");
}

#[test]
fn the_same_seed_always_plays_the_same() {
    assert_eq!(play(7), play(7));
}
