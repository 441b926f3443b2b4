//! Seeds in which managed resources must keep their promises whatever becomes of reports.

use muster_sim::resources::{Played, simulate};

/// Seeds that every run plays. `MUSTER_SIM_SEED` plays one.
const SEEDS: u64 = 20;

fn play(seed: u64) -> Result<Played, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(simulate(seed))
}

#[test]
fn lost_late_doubled_and_reordered_reports_never_make_a_resource_say_what_is_not_so() {
    let one = std::env::var("MUSTER_SIM_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = one.map_or(0..SEEDS, |seed| seed..seed + 1);
    let mut all = Played::default();
    for seed in seeds.clone() {
        let played = play(seed).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        all.tasks += played.tasks;
        all.pulses += played.pulses;
        all.ready += played.ready;
        all.gone += played.gone;
        all.faults += played.faults;
    }
    let played = u32::try_from(seeds.end - seeds.start).unwrap();
    assert!(
        all.tasks >= played * 30
            && all.pulses >= played * 30
            && all.ready >= played * 5
            && all.faults >= played * 20,
        "too little was played: {all:?}"
    );
    assert!(one.is_some() || all.gone >= played, "too little went: {all:?}");
}

#[test]
fn the_same_seed_of_resources_always_plays_the_same() {
    assert_eq!(play(7), play(7));
}
