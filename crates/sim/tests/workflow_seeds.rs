//! Seeds of groups and jobs in which everything must hold.

use muster_sim::workflows::{WorkPlayed, simulate_workflows};

/// Seeds that every run plays. `MUSTER_SIM_SEED` plays one.
const SEEDS: u64 = 60;

fn play(seed: u64) -> Result<WorkPlayed, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(simulate_workflows(seed))
}

#[test]
fn groups_and_jobs_end_whatever_happens_and_nothing_is_made_twice() {
    let one = std::env::var("MUSTER_SIM_SEED").ok().and_then(|text| text.parse().ok());
    let seeds = one.map_or(0..SEEDS, |seed| seed..seed + 1);
    let mut all = WorkPlayed::default();
    for seed in seeds.clone() {
        match play(seed) {
            Ok(played) => {
                all.tasks += played.tasks;
                all.groups += played.groups;
                all.faults += played.faults;
            }
            Err(wrong) => panic!("seed {seed}: {wrong}\nplay it again with MUSTER_SIM_SEED={seed}"),
        }
    }
    let enough = seeds.count() == 1 || (all.tasks > 2_000 && all.groups > 400 && all.faults > 400);
    assert!(enough, "the seeds played too little: {all:?}");
}

#[test]
fn the_same_seed_always_plays_the_same() {
    assert_eq!(play(7), play(7));
}
