//! A busy system as its pages draw it. Pictures of it are kept where `MUSTER_PICTURES` says, for the documents; then the work
//! goes on for two minutes, so that there is something to see.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use muster_e2e::wait::{SOON, wait_for};
use serde_json::{Value, json};

use crate::world::World;

/// Kinds of work, and how many seconds each takes.
const KINDS: [(&str, u32); 4] = [("thumbnail", 1), ("transcode", 2), ("checksum", 0), ("index", 1)];
/// How long there is work when pictures are taken of it.
const SHOWN: Duration = Duration::from_mins(2);

#[test]
fn a_busy_system_is_drawn_and_pictures_of_it_are_kept_where_asked() {
    let world = World::new();
    let place = std::env::var_os("MUSTER_PICTURES");
    fill(&world);
    world.go("");
    wait_for("the queue is drawn", SOON, || world.browser.count("polygon") > 0);
    world.go("jobs/default/film");
    wait_for("the groups are drawn", SOON, || world.browser.count("svg rect, svg g") >= 4);
    world.browser.resize(420, 900);
    world.go("");
    let width = world.browser.run("return document.documentElement.scrollWidth - window.innerWidth");
    assert!(width.as_i64().is_some_and(|width| width <= 0), "a phone has to scroll sideways: {width}");
    let Some(place) = place else { return };
    take(&world, &place);
}

/// Work of several kinds: schedules, a job of several groups, and tasks that take a while.
fn fill(world: &World) {
    for (name, time) in [("backup", "30 2 * * MON-FRI"), ("tidy", "R/PT1H"), ("report", "0 8 1 * *")] {
        let template = json!({"spec": {"container": {"command": ["true"]}}});
        let spec = json!({"schedulePolicy": {"timeSpec": time}, "template": template});
        world.make("schedules", "Schedule", name, &spec);
    }
    for (kind, _) in KINDS {
        world.make("taskkinds", "TaskKind", kind, &json!({"priority": 1}));
    }
    let script = |script: &str| json!({"container": {"command": ["sh", "-c", script]}});
    let group = |name: &str, after: &[&str], count: u32, spec: Value| json!({"name": name, "dependsOn": after, "count": count, "tasks": [{"name": "step", "spec": spec}]});
    let groups = [
        group("fetch", &[], 1, script("sleep 1; echo fetched")),
        group("render", &["fetch"], 24, script("sleep 2; echo rendered")),
        group("sound", &["fetch"], 4, script("sleep 3; echo mixed")),
        group("cut", &["render", "sound"], 1, script("sleep 2; echo cut")),
        group("publish", &["cut"], 1, script("echo published")),
    ];
    world.make("jobs", "Job", "film", &json!({"taskGroups": groups}));
    for number in 0..12 {
        work(world, number);
    }
}

/// One more task among many.
fn work(world: &World, number: u64) {
    let (kind, seconds) = KINDS[usize::try_from(number % 4).unwrap_or(0)];
    let script = format!(
        "echo {kind} of clip {number} begins; for step in 1 2 3 4; do echo step $step of 4; sleep 0.{}; done; \
         sleep {seconds}; [ {} != 0 ] || {{ echo the clip is damaged >&2; exit 3; }}; echo done",
        number % 3,
        number % 13,
    );
    let spec = json!({
        "kind": kind, "priority": number % 5, "container": {"command": ["sh", "-c", script]},
        "subject": {"kind": "Application", "name": format!("clip-{number}")},
    });
    world.make("applications", "Application", &format!("clip-{number}"), &json!({}));
    world.make("tasks", "Task", &format!("{kind}-{number:03}"), &spec);
}

fn take(world: &World, place: &OsString) {
    world.browser.resize(1280, 900);
    world.go("");
    let begun = Instant::now();
    let mut number = 12;
    wait_for("two minutes of work are over", SHOWN * 2, || {
        // More comes in waves than two slots can do.
        let seconds = begun.elapsed().as_secs();
        let wanted = 12 + seconds * 3 / 2 + if seconds % 40 < 12 { 10 } else { 0 };
        while number < wanted {
            work(world, number);
            number += 1;
        }
        begun.elapsed() > SHOWN
    });
    let picture = |name: &str| world.browser.picture(&Path::new(place).join(format!("{name}.png")));
    let pages = [
        ("", "overview", ".cards"),
        ("tasks", "tasks", "table.tasks"),
        ("jobs/default/film", "job", "svg"),
        ("schedules", "schedules", "table"),
        ("tasks/default/transcode-001", "task", "#log"),
    ];
    for (path, name, shown) in pages {
        world.go(path);
        wait_for(name, SOON, || world.browser.count(shown) > 0);
        picture(name);
    }
    world.browser.prefer_dark();
    world.go("");
    picture("overview-dark");
    world.browser.resize(420, 900);
    world.go("");
    picture("overview-phone");
}
