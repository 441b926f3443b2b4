//! `muster up`: what it says when it cannot start, and what it leaves on the disk.

use std::fs;
use std::net::TcpListener;

use crate::world::{Served, World, mode};

#[test]
fn a_port_that_is_taken_is_an_error_that_names_the_flag() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("there are free ports");
    let address = taken.local_addr().expect("a listener has an address").to_string();
    World::new().muster(&["up", "--listen", &address]).fails(&format!(
        "{address} is in use by another program; choose another address with --listen, for example --listen \
         127.0.0.1:0"
    ));
}

#[test]
fn a_directory_in_use_is_an_error_that_names_the_server_and_the_flag() {
    let served = Served::new();
    let before = served.kubeconfig();
    let said = served.muster(&["up", "--listen", "127.0.0.1:0"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    let id = format!("(process {})", served.server.id());
    for part in [&served.world.data().display().to_string(), "is in use by another server", &id, "--data"] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
    assert_eq!(served.kubeconfig(), before, "the server that runs keeps its kubeconfig");
    assert_eq!(served.muster(&["get", "tasks"]).code, 0);
}

#[test]
fn an_address_for_everybody_needs_tls() {
    let said = World::new().muster(&["up", "--listen", "0.0.0.0:0"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    for flag in ["--tls-generate", "--tls-cert", "--tls-key", "--insecure-http"] {
        assert!(said.err.contains(flag), "{flag}: {}", said.err);
    }
    let world = World::new();
    let server = world.up(&["--listen", "0.0.0.0:0", "--tls-generate"]);
    assert_eq!(world.muster(&["get", "tasks"]).code, 0);
    drop(server);
}

#[test]
fn what_is_on_the_disk_is_for_its_owner_alone() {
    let served = Served::new();
    let data = served.world.data();
    assert_eq!(mode(&data), 0o700);
    let files: Vec<_> = fs::read_dir(&data)
        .expect("the directory can be read")
        .map(|entry| entry.expect("its entries can be read").path())
        .collect();
    assert!(files.len() >= 5, "{files:?}");
    for file in files {
        let expected = if file.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode(&file), expected, "{}", file.display());
    }
}

#[test]
fn the_token_stays_the_same_from_one_start_to_the_next() {
    let mut served = Served::new();
    let before = served.admin_token();
    served.restart("127.0.0.1:0");
    assert_eq!(served.admin_token(), before);
    assert_eq!(served.muster(&["get", "tasks"]).code, 0);
}

#[test]
fn the_hint_names_the_directory_if_it_is_not_the_usual_one() {
    let world = World::new();
    let server =
        crate::world::Running::start(&mut world.command(&["up", "--listen", "127.0.0.1:0", "--data", "d"]));
    let data = world.home.path().join("d");
    server.wait_for(&format!("  muster --data {} get tasks", data.display()));
    let data = data.display().to_string();
    assert_eq!(world.muster(&["--data", &data, "get", "tasks"]).code, 0);
}

#[test]
fn a_usual_port_of_robots_that_is_taken_keeps_nobody_from_starting() {
    // Whoever has it has it: the port is taken either way.
    let _taken = TcpListener::bind("127.0.0.1:1883");
    let world = World::new();
    let mut command = world.command(&["up", "--listen", "127.0.0.1:0", "--roles", "api,engine,bridge"]);
    let server = crate::world::Running::start(command.env_remove("MUSTER_MQTT_LISTEN"));
    server.wait_for("Stop with Ctrl-C.");
    let said = |part: &str| while !server.note().contains(part) {};
    said("choose an address with --mqtt-listen HOST:PORT");
    assert_eq!(world.muster(&["get", "tasks"]).code, 0);
}

#[test]
fn a_port_of_robots_that_was_asked_for_and_is_taken_is_an_error() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("there are free ports");
    let address = taken.local_addr().expect("a listener has an address").to_string();
    let flags = ["up", "--listen", "127.0.0.1:0", "--roles", "api,engine,bridge", "--mqtt-listen", &address];
    let said = World::new().muster(&flags);
    assert_eq!((said.code, said.out.as_str()), (1, ""), "{}", said.err);
    assert!(said.err.contains(&format!("cannot listen for robots on {address}")), "{}", said.err);
}

#[test]
fn a_bridge_alone_needs_a_broker_that_others_reach_too() {
    let said = World::new().muster(&["up", "--listen", "127.0.0.1:0", "--roles", "api,bridge"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""), "{}", said.err);
    assert!(said.err.contains("give --mqtt-url URL"), "{}", said.err);
}

#[test]
fn an_address_for_robots_without_the_role_that_listens_there_is_refused() {
    let flags = ["up", "--listen", "127.0.0.1:0", "--roles", "api,engine", "--mqtt-listen", "127.0.0.1:0"];
    let said = World::new().muster(&flags);
    assert_eq!((said.code, said.out.as_str()), (1, ""), "{}", said.err);
    assert!(said.err.contains("add bridge to --roles"), "{}", said.err);
}

#[test]
fn a_server_whose_log_nobody_reads_can_still_be_stopped() {
    let world = World::new();
    let mut server =
        crate::world::Running::start_unread(&mut world.command(&["up", "--listen", "127.0.0.1:0"]));
    server.wait_for("Stop with Ctrl-C.");
    server.signal("TERM");
    assert_eq!(server.code(), 0);
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    let world = World::new();
    world.muster(&["up", "--tls-cert", "a"]).is_misuse("--tls-key <FILE>");
    world.muster(&["up", "--history-age", "long"]).is_misuse("not a duration");
    let said = world.muster(&["up", "--log", "=["]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("is not a log filter; try --log debug"), "{}", said.err);
    let said = world.muster(&["up", "--listen", "here"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("--listen HOST:PORT"), "{}", said.err);
    let file = world.file("file", "");
    let said = world.muster(&["up", "--data", file, "--listen", "127.0.0.1:0"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("choose another one with --data DIR"), "{}", said.err);
}
