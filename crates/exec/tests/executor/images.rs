//! Attempts that docker or podman runs. A script stands in for podman: it writes down what it is told, runs containers as processes that
//! outlive their client as real ones do, and ends them when they are removed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use muster_exec::Settings;
use muster_types::attempt::{Cause, Launch};
use muster_types::image_launch::{ImageContainer, ImageDriver, ImageLaunch};

use crate::yard::{LONG, Yard, codes, handle, launch, write_program};

const PODMAN: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$*" >> "$here/told"
case $1 in
run)
  shift
  while :; do
    case $1 in
      --rm) shift ;;
      --name) name=$2; shift 2 ;;
      --workdir) cd "$2" || exit 125; shift 2 ;;
      --entrypoint) entrypoint=$2; shift 2 ;;
      --*) shift 2 ;;
      *) image=$1; shift; break ;;
    esac
  done
  [ "$image" = missing ] && { echo "no such image" >&2; exit 125; }
  setsid "$entrypoint" "$@" &
  container=$!
  echo $container > "$here/$name"
  trap 'kill -TERM $container' TERM
  wait $container; code=$?
  # A signal ends the first wait, not the container.
  while kill -0 $container 2> /dev/null; do wait $container; code=$?; done
  rm -f "$here/$name"
  exit $code ;;
rm)
  for name; do
    [ -e "$here/$name" ] || continue
    container=$(cat "$here/$name")
    kill -9 "$container"
    # What is removed is gone; that it was killed is not enough.
    while grep -qv ') Z ' "/proc/$container/stat" 2> /dev/null; do :; done
    rm "$here/$name"
  done ;;
ps) cd "$here" && ls | grep muster- ;;
esac
"#;

/// An executor that finds the stand-in.
fn yard_with_podman() -> Yard {
    let mut yard = Yard::with(|settings: &mut Settings| {
        let place = settings.work_root.with_file_name("bin");
        install(&place);
        settings.driver_path = format!("{}:{}", place.display(), settings.default_path);
    });
    yard.step();
    yard
}

fn install(place: &Path) {
    fs::create_dir_all(place).expect("a test needs it");
    write_program(&place.join("podman"), PODMAN);
}

fn told(yard: &Yard) -> String {
    fs::read_to_string(yard.temp.path().join("bin/told")).unwrap_or_default()
}

/// Shell scripts, each in a container of an image.
fn in_images(task: &str, scripts: &[(&str, &str)]) -> Launch {
    let containers =
        scripts.iter().map(|_| ImageContainer { image: "busybox".into(), args: vec![] }).collect();
    let image = ImageLaunch { driver: ImageDriver::Podman, containers };
    Launch { image: Some(Box::new(image)), ..launch(task, scripts) }
}

#[test]
fn a_container_runs_in_the_work_directory_and_its_end_is_that_of_the_attempt() {
    let mut yard = yard_with_podman();
    yard.executor.start(in_images("t", &[("main", "echo said; echo made > file; exit 3")]));
    let ending = yard.ending("t");
    assert_eq!((codes(&ending), ending.cause), (vec![3], Cause::Itself));
    assert_eq!(yard.log("t"), "said\n");
    assert_eq!(fs::read_to_string(yard.work("t").join("file")).unwrap(), "made\n");
    let told = told(&yard);
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].starts_with("run --rm --name muster-t-1-main --label muster.dev/work-root="), "{told}");
    assert!(lines[0].contains(" --entrypoint /bin/sh busybox -c echo said;"), "{told}");
    assert_eq!(
        lines[1..],
        ["rm --force --time 0 --volumes muster-t-1-main"],
        "whatever happened, it is removed"
    );
}

#[test]
fn a_container_is_asked_to_end_and_has_its_grace() {
    let mut yard = yard_with_podman();
    let script = "trap 'echo asked; exit 5' TERM; echo up; while :; do sleep 0.02; done";
    yard.executor.start(in_images("t", &[("main", script)]));
    yard.line_of("t", "main", "up");
    yard.executor.stop(&handle("t"), LONG);
    let ending = yard.ending("t");
    assert_eq!((codes(&ending), ending.cause), (vec![5], Cause::Stopped));
    assert_eq!(yard.log("t"), "up\nasked\n");
}

#[test]
fn a_container_that_does_not_end_is_removed_before_its_end_is_told() {
    let mut yard = yard_with_podman();
    let script = "trap '' TERM; echo up; while :; do sleep 0.02; done";
    yard.executor.start(in_images("t", &[("main", script)]));
    yard.line_of("t", "main", "up");
    let place = yard.temp.path().join("bin/muster-t-1-main");
    let process: i32 = yard.until("the container", |_| fs::read_to_string(&place).ok()?.trim().parse().ok());
    // Its client is killed, which real containers do not even notice.
    yard.executor.stop(&handle("t"), Duration::ZERO);
    let ending = yard.ending("t");
    assert_eq!((codes(&ending), ending.cause), (vec![137], Cause::Stopped));
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "it runs on: {stat}");
}

#[test]
fn where_the_driver_is_not_installed_the_attempt_says_what_to_do() {
    let mut yard = Yard::with(|settings| settings.driver_path = "/no/such/place".into());
    yard.executor.start(in_images("t", &[("main", "true")]));
    let (reason, message, transient) = yard.start_failure("t");
    assert_eq!((&*reason, transient), ("NoDriver", false));
    assert!(message.contains("podman is not installed") && message.contains("/no/such/place"), "{message}");
    assert!(!yard.work("t").exists(), "nothing is left of it");
}

#[test]
fn an_image_that_cannot_be_had_fails_the_attempt_with_what_the_driver_says() {
    let mut yard = yard_with_podman();
    let mut launch = in_images("t", &[("main", "true")]);
    launch.image.as_mut().unwrap().containers[0].image = "missing".into();
    yard.executor.start(launch);
    let ending = yard.ending("t");
    assert_eq!(codes(&ending), [125]);
    assert_eq!(yard.log("t"), "no such image\n");
}

#[test]
fn a_sidecar_of_an_image_ends_with_its_leader() {
    let mut yard = yard_with_podman();
    yard.executor.start(in_images("t", &[("main", "sleep 0.2"), ("side", "echo up; exec sleep 3600")]));
    let ending = yard.ending("t");
    assert_eq!(codes(&ending), [0, 143]);
    assert!(
        told(&yard).contains("rm --force --time 0 --volumes muster-t-1-main muster-t-1-side"),
        "{}",
        told(&yard)
    );
}
