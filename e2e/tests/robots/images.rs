//! Tasks that run in containers of images, on robots that have podman. A script stands in for it: what is told to it is looked at, and
//! the command is run.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::world::{Kind, World};

const PODMAN: &str = r#"#!/bin/sh
echo "$*" >> "$(dirname "$0")/told"
[ "$1" = run ] || exit 0
shift
while :; do
  case $1 in
    --rm) shift ;;
    --workdir) cd "$2" || exit 125; shift 2 ;;
    --entrypoint) entrypoint=$2; shift 2 ;;
    --*) shift 2 ;;
    *) image=$1; shift; break ;;
  esac
done
[ "$image" = busybox:1 ] && exec "$entrypoint" "$@"
"#;

#[test]
fn a_robot_that_has_podman_runs_the_image_of_a_task() {
    let world = World::new(Kind::Embedded, &[]);
    let bin = world.dir.path().join("robot-r1/bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("podman"), PODMAN).unwrap();
    fs::set_permissions(bin.join("podman"), fs::Permissions::from_mode(0o755)).unwrap();
    let _robot = world.robot("r1", &[]);
    // What the guide shows.
    let guide = muster_e2e::guide::repository().join("docs/guides/robots.md");
    let guide = fs::read_to_string(guide).unwrap();
    let example = guide.split("```yaml\n").find(|block| block.contains("driver:")).expect("it is there");
    let example: Value = serde_saphyr::from_str(example.split("```").next().unwrap_or_default()).unwrap();
    world.create("tasks", "Task", "boxed", &example["spec"]);
    let ended = world.wait_for_state("boxed", "Succeeded");
    assert_eq!(world.log("boxed"), "boxed runs in a box\n");
    let told = fs::read_to_string(bin.join("told")).unwrap();
    let name = format!("muster-{}-1-addon", ended["metadata"]["uid"].as_str().unwrap_or_default());
    assert!(
        told.starts_with(&format!("run --rm --name {name} ")) && told.contains(" --memory 67108864 "),
        "{told}"
    );
    assert!(!told.contains("MUSTER_TOKEN="), "secrets are not on the command line: {told}");
    assert!(told.ends_with(&format!("rm --force --time 0 --volumes {name}\n")), "{told}");
}

#[test]
fn a_task_for_a_driver_needs_an_image() {
    let world = World::new(Kind::Embedded, &[]);
    let _robot = world.robot("r1", &[]);
    world.task("bare", "true", &json!({"driver": "podman"}));
    let failed = world.wait_for_state("bare", "Failed");
    assert!(failed["status"]["errors"].to_string().contains("has no image"), "{:#}", failed["status"]);
}
