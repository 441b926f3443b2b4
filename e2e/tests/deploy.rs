//! What is delivered for clusters says what it should, as far as that can be read.

use muster_e2e::guide::repository;

fn read(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).expect("the file is there")
}

fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|found| found.trim() == line)
}

#[test]
fn the_image_holds_one_static_program_and_runs_as_nobody() {
    let text = read("deploy/Containerfile");
    let (build, image) = text.split_once("\nFROM scratch\n").expect("the image begins with nothing");
    let version = read("Cargo.toml");
    let version = version.lines().find_map(|line| line.strip_prefix("rust-version = ")).expect("a version");
    let from = format!("FROM docker.io/library/rust:{}-alpine AS build", version.trim_matches('"'));
    assert!(has_line(build, &from), "{build}");
    assert!(build.contains("cargo build --release --locked -p muster"), "{build}");
    let steps: Vec<&str> = image.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(
        steps,
        ["COPY", "USER", "EXPOSE", "ENTRYPOINT"],
        "nothing is run in it, and nothing else is put into it"
    );
    assert!(has_line(image, "USER 65532:65532"), "{image}");
}

#[test]
fn the_server_is_deployed_as_nobody_with_a_root_that_cannot_be_written() {
    let text = read("deploy/server/deployment.yaml");
    for line in [
        "runAsNonRoot: true",
        "runAsUser: 65532",
        "readOnlyRootFilesystem: true",
        "allowPrivilegeEscalation: false",
        "capabilities: {drop: [ALL]}",
        "seccompProfile: {type: RuntimeDefault}",
        "strategy: {type: Recreate}",
        &format!("image: muster.dev/muster:{}", env!("CARGO_PKG_VERSION")),
    ] {
        assert!(has_line(&text, line) || has_line(&text, &format!("- {line}")), "{line}:\n{text}");
    }
}

#[test]
fn three_servers_are_made_of_the_manifests_of_one_kubectl() {
    let kubectl = std::env::var("MUSTER_KUBECTL").expect("run the tests with `cargo xtask test`");
    let made = std::process::Command::new(kubectl)
        .arg("kustomize")
        .arg(repository().join("deploy/replicas"))
        .output()
        .expect("kubectl can be started");
    let text = String::from_utf8_lossy(&made.stdout);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    for line in [
        "replicas: 3",
        "type: RollingUpdate",
        "kind: PodDisruptionBudget",
        "kind: NetworkPolicy",
        "- ReadWriteMany",
        "- --tls-cert=/tls/tls.crt",
        "name: MUSTER_STORE",
        "name: MUSTER_MQTT_URL",
        "path: /readyz",
        "cpu: 500m",
        "runAsNonRoot: true",
    ] {
        assert!(has_line(&text, line) || has_line(&text, &format!("- {line}")), "{line}:\n{text}");
    }
    for line in ["type: Recreate", "- --tls-generate", "- ReadWriteOnce"] {
        assert!(!has_line(&text, line), "{line}:\n{text}");
    }
}
