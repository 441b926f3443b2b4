//! The guide from a laptop to a cluster, typed as it is written.

use std::os::unix::fs::symlink;
use std::process::Command;

use muster_e2e::cluster::Cluster;
use muster_e2e::guide::{repository, script};
use muster_e2e::installation::Installation;

/// As it is written, but for the names of images, which a test cluster has its own of.
fn guide() -> String {
    let text =
        std::fs::read_to_string(repository().join("docs/guides/kubernetes.md")).expect("there is a guide");
    let image = Installation::image();
    let (name, tag) = image.rsplit_once(':').expect("the image has a tag");
    text.replace("docker.io/library/busybox:1.36", &Cluster::image())
        .replace("registry.example.com/muster, newTag: \"0.1.0\"", &format!("{name}, newTag: \"{tag}\""))
}

#[test]
fn the_guide_from_a_laptop_to_a_cluster_works_as_written_real_pods_server() {
    let installation = Installation::prepare();
    let home = installation.dir().join("home");
    let programs = home.join("bin");
    std::fs::create_dir(&programs).unwrap();
    for (name, variable) in [("muster", "MUSTER_BIN"), ("kubectl", "MUSTER_KUBECTL")] {
        let program = std::env::var(variable).expect("run the tests with `cargo xtask test`");
        symlink(program, programs.join(name)).unwrap();
    }
    std::fs::create_dir(installation.dir().join("muster")).unwrap();
    // Whatever the guide leaves in the background ends with it.
    let script = format!("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{}", script(&guide()));
    assert!(script.lines().count() > 40, "the guide is missing:\n{script}");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let output = Command::new("timeout")
        .args(["600", "bash", "-euo", "pipefail", "-c", &script])
        .current_dir(installation.dir())
        .env("PATH", path)
        .env("HOME", home)
        .env("CLUSTER", std::env::var("MUSTER_TEST_KUBECONFIG").unwrap())
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    let greetings = out.matches("hello from task-").count();
    assert_eq!(greetings, 2, "two of three greetings are from pods:\n{out}\n{err}");
    for part in [
        "deployment \"muster\" successfully rolled out",
        "task.muster.dev/greet created",
        "task.muster.dev/greet condition met",
        "priority <integer>",
        "namespace \"greetings\" deleted",
        "apiservice.apiregistration.k8s.io \"v1alpha1.muster.dev\" deleted",
    ] {
        assert!(out.contains(part), "{part}:\n{out}\n{err}");
    }
    assert!(out.contains("\nyes\nno\n"), "{out}");
}
