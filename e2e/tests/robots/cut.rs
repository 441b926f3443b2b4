//! The network between a robot and its broker is cut, and heals.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use muster_e2e::agent::Agent;
use muster_e2e::wait::wait_for;
use serde_json::json;

use crate::world::{Kind, SOON, World};

crate::on_both_brokers!(
    a_robot_that_is_cut_off_goes_on_and_reports_when_it_is_back,
    a_task_that_ended_unseen_and_was_canceled_meanwhile_ends_with_its_log,
    a_task_that_cannot_wait_for_a_cut_robot_moves_and_the_old_copy_is_ended,
    a_task_that_may_not_run_unseen_is_stopped_by_its_robot,
    an_original_that_comes_back_in_time_is_kept_and_its_replacement_ended,
    an_original_that_comes_back_too_late_is_ended,
);

/// A cable that can be cut.
struct Cable {
    port: u16,
    cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Cable {
    fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port can be bound");
        let port = listener.local_addr().expect("it has an address").port();
        let cut = Arc::new(AtomicBool::new(false));
        let open: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (is_cut, streams) = (cut.clone(), open.clone());
        thread::spawn(move || {
            for incoming in listener.incoming().flatten() {
                if is_cut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(outgoing) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                let mut held = streams.lock().expect("nobody panicked");
                for (from, to) in [(&incoming, &outgoing), (&outgoing, &incoming)] {
                    let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else { continue };
                    thread::spawn(move || pump(from, to));
                }
                held.extend([incoming, outgoing]);
            }
        });
        Self { port, cut, open }
    }

    fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
        for stream in self.open.lock().expect("nobody panicked").drain(..) {
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    fn heal(&self) {
        self.cut.store(false, Ordering::SeqCst);
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 16 << 10];
    while let Ok(read) = from.read(&mut buffer)
        && read > 0
        && to.write_all(&buffer[..read]).is_ok()
    {}
    drop(to.shutdown(Shutdown::Both));
}

fn a_robot_that_is_cut_off_goes_on_and_reports_when_it_is_back(kind: Kind) {
    let world = World::new(kind, &[]);
    let cable = Cable::to(world.port);
    let _robot = world.start_robot("r1", cable.port, &[]);
    world.wait_for_phase("r1", "Online");
    world.waiting_task("unseen", &json!({}));
    world.wait_for_begun("unseen", 1);
    world.wait_for_state("unseen", "Running");
    cable.cut();
    world.wait_for_connection("r1", "False");
    world.let_go("unseen");
    wait_for("it ended unseen", SOON, || world.times("unseen", "ended") == 1);
    assert_eq!(world.get("tasks/unseen")["status"]["state"], "Running");
    assert_eq!(world.get("robots/r1")["status"]["phase"], "Online", "silence alone changes a phase");
    cable.heal();
    let ended = world.wait_for_state("unseen", "Succeeded");
    assert_eq!(ended["status"]["attempt"], 1);
    assert_eq!(world.log("unseen"), "begun\nended\n");
    world.wait_for_connection("r1", "True");
}

fn a_task_that_ended_unseen_and_was_canceled_meanwhile_ends_with_its_log(kind: Kind) {
    let mut world = World::new(kind, &[]);
    let cable = Cable::to(world.port);
    let _robot = world.start_robot("r1", cable.port, &[]);
    world.wait_for_phase("r1", "Online");
    world.waiting_task("unseen", &json!({}));
    world.wait_for_begun("unseen", 1);
    world.wait_for_state("unseen", "Running");
    cable.cut();
    world.wait_for_connection("r1", "False");
    world.let_go("unseen");
    wait_for("it ended unseen", SOON, || world.times("unseen", "ended") == 1);
    world.told(&["cancel", "unseen"]);
    // The next server tells the robot to end it before it hears that it has.
    world.server.kill();
    world.server.restart();
    cable.heal();
    wait_for("the task has ended", SOON, || {
        let state = world.get("tasks/unseen")["status"]["state"].clone();
        state == "Canceled" || state == "Succeeded"
    });
    assert_eq!(world.log("unseen"), "begun\nended\n");
}

fn a_task_that_cannot_wait_for_a_cut_robot_moves_and_the_old_copy_is_ended(kind: Kind) {
    let world = World::new(kind, &[]);
    let cable = Cable::to(world.port);
    let _first = world.start_robot("r1", cable.port, &[]);
    world.wait_for_phase("r1", "Online");
    let policy = json!({"disconnect": {"lostAfter": "1s"}, "killTimeout": "1s"});
    world.waiting_task("hasty", &policy);
    world.wait_for_begun("hasty", 1);
    world.wait_for_state("hasty", "Running");
    wait_until_busy(&world, "r1");
    let _second = world.robot("r2", &[]);
    cable.cut();
    world.wait_for_begun("hasty", 2);
    cable.heal();
    // The robot that returns is told to end what runs elsewhere now.
    wait_until_idle(&world, "r1");
    world.let_go("hasty");
    let ended = world.wait_for_state("hasty", "Succeeded");
    assert_eq!((&ended["status"]["attempt"], world.times("hasty", "ended")), (&json!(2), 1));
    assert_eq!(ended["status"]["attempts"][1]["robot"], "r2");
}

fn a_task_that_may_not_run_unseen_is_stopped_by_its_robot(kind: Kind) {
    let world = World::new(kind, &[]);
    let cable = Cable::to(world.port);
    let robot = world.start_robot("r1", cable.port, &[]);
    world.wait_for_phase("r1", "Online");
    let policy =
        json!({"disconnect": {"stopOnClientAfter": "1s"}, "killTimeout": "1s", "retry": {"lostLimit": 0}});
    world.waiting_task("guarded", &policy);
    world.wait_for_begun("guarded", 1);
    world.wait_for_state("guarded", "Running");
    cable.cut();
    wait_for("the robot has stopped it", SOON, || {
        let log = std::fs::read_to_string(robot.work_dir.join("agent.log")).unwrap_or_default();
        log.contains("the server was away for too long")
    });
    cable.heal();
    let failed = world.wait_for_state("guarded", "Failed");
    assert_eq!(failed["status"]["attempts"][0]["exitCode"], 143);
    assert_eq!(world.times("guarded", "ended"), 0);
}

/// A task whose robot was cut off for long enough that another one runs it too.
fn two_copies(world: &World, cable: &Cable, name: &str) -> [Agent; 2] {
    let first = world.start_robot("r1", cable.port, &[]);
    world.wait_for_phase("r1", "Online");
    let policy = json!({"disconnect": {"lostAfter": "1s", "reconcile": "keepOriginal"}, "killTimeout": "1s"});
    world.waiting_task(name, &policy);
    world.wait_for_begun(name, 1);
    world.wait_for_state(name, "Running");
    wait_until_busy(world, "r1");
    let second = world.robot("r2", &[]);
    cable.cut();
    world.wait_for_begun(name, 2);
    wait_until_busy(world, "r2");
    wait_for("the second attempt runs", SOON, || {
        let status = world.get(&format!("tasks/{name}"))["status"].clone();
        status["attempt"] == 2 && status["state"] == "Running" && status["original"] == 1
    });
    [first, second]
}

/// Waits until a robot has said that it runs one attempt. How many run is said with each heartbeat, not with each
/// change: a robot that was never seen busy may seem idle while it works.
fn wait_until_busy(world: &World, robot: &str) {
    wait_for(&format!("{robot} says that it works"), SOON, || {
        world.get(&format!("robots/{robot}"))["status"]["running"] == 1
    });
}

/// Waits until a robot that was seen busy is connected and runs nothing.
fn wait_until_idle(world: &World, robot: &str) {
    wait_for(&format!("{robot} runs nothing"), SOON, || {
        let robot = world.get(&format!("robots/{robot}"));
        let connected = robot["status"]["conditions"][0]["status"] == "True";
        connected && robot["status"].get("running").is_none_or(|running| running == 0)
    });
}

fn an_original_that_comes_back_in_time_is_kept_and_its_replacement_ended(kind: Kind) {
    let mut world = World::new(kind, &[]);
    let cable = Cable::to(world.port);
    let _robots = two_copies(&world, &cable, "kept");
    // What is awaited is known to the next server too.
    world.server.kill();
    world.server.restart();
    cable.heal();
    wait_for("the first attempt is the task's again", SOON, || {
        let status = world.get("tasks/kept")["status"].clone();
        status["attempt"] == 1 && status["state"] == "Running"
    });
    wait_until_idle(&world, "r2");
    world.let_go("kept");
    let ended = world.wait_for_state("kept", "Succeeded");
    assert_eq!((&ended["status"]["attempt"], world.times("kept", "ended")), (&json!(1), 1));
    let attempts = ended["status"]["attempts"].as_array().cloned().unwrap_or_default();
    let seen: Vec<_> = attempts.iter().map(|it| (it["robot"].clone(), it["reason"].clone())).collect();
    assert_eq!(seen[0], (json!("r2"), json!("OriginalReturned")), "{ended:#}");
    assert_eq!((&attempts[1]["robot"], &attempts[1]["exitCode"]), (&json!("r1"), &json!(0)), "{ended:#}");
    assert_eq!(world.log("kept"), "begun\nended\n");
    // Both robots take work, and the next attempt of anything has a number of its own.
    for robot in ["r1", "r2"] {
        world.task(&format!("next-{robot}"), "true", &json!({"targetRobot": robot}));
        world.wait_for_state(&format!("next-{robot}"), "Succeeded");
    }
}

fn an_original_that_comes_back_too_late_is_ended(kind: Kind) {
    let world = World::new(kind, &[]);
    let cable = Cable::to(world.port);
    let _robots = two_copies(&world, &cable, "late");
    // Both copies end, and only the end of one is heard.
    world.let_go("late");
    let ended = world.wait_for_state("late", "Succeeded");
    assert_eq!(ended["status"]["attempt"], 2, "{ended:#}");
    assert!(ended["status"].get("original").is_none(), "{ended:#}");
    wait_for("the other copy has ended too", SOON, || world.times("late", "ended") == 2);
    cable.heal();
    wait_until_idle(&world, "r1");
    let still = world.get("tasks/late");
    assert_eq!((&still["status"]["state"], &still["status"]["attempt"]), (&json!("Succeeded"), &json!(2)));
    let records = still["status"]["events"].to_string();
    assert!(records.contains("the attempt that replaced it ended first"), "{records}");
}
