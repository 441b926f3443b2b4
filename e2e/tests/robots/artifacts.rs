//! Files that a task needs, fetched by the robot that runs it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::world::{Kind, World};

const TOOL: &str = "#!/bin/sh\necho the tool says $1\n";
/// Of the tool.
const SHA256: &str = "sha256:a536fb3379a6729100ce539035922ee94e78a6b7df52d206f053394a510eee63";

/// Serves the tool under its name, something that never ends, and nothing else. Answers with where it is.
fn web() -> String {
    web_of(Path::new("/no/such/directory"))
}

/// The same, and the files of a directory.
fn web_of(dir: &Path) -> String {
    let dir = dir.to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let dir = dir.clone();
            std::thread::spawn(move || answer(stream, &dir));
        }
    });
    format!("http://{address}")
}

fn answer(mut stream: TcpStream, dir: &Path) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let path = lines.next()?.ok()?.split(' ').nth(1)?.to_owned();
    let head = |status: &str, length: usize| {
        format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n")
    };
    let (head, body) = match (path.as_str(), std::fs::read(dir.join(path.trim_start_matches('/')))) {
        ("/tool.sh", _) => (head("200 OK", TOOL.len()), TOOL.as_bytes().to_vec()),
        ("/endless", _) => (head("200 OK", 1 << 30), b"x".to_vec()),
        (_, Ok(file)) => (head("200 OK", file.len()), file),
        (_, Err(_)) => (head("404 Not Found", 0), Vec::new()),
    };
    stream.write_all(&[head.into_bytes(), body].concat()).ok()?;
    if path == "/endless" {
        // Until the other side has enough.
        lines.find(Result::is_err);
    }
    Some(())
}

fn message(task: &Value) -> String {
    let attempt = &task["status"]["attempts"][0];
    format!("{} {}", attempt["reason"].as_str().unwrap_or_default(), task["status"]["errors"])
}

#[test]
fn a_task_finds_its_files_in_its_work_directory() {
    let world = World::new(Kind::Embedded, &[]);
    let _robot = world.robot("r1", &[]);
    let (web, local) = (web(), world.dir.path().join("local.txt"));
    std::fs::write(&local, "a file of the robot\n").unwrap();
    let artifacts = json!([
        {"source": format!("{web}/tool.sh"), "destination": "bin/tool", "checksum": SHA256},
        {"source": local.display().to_string()},
    ]);
    world.task("fetches", "sh bin/tool hello; cat local.txt", &json!({"artifacts": artifacts}));
    world.wait_for_state("fetches", "Succeeded");
    assert_eq!(world.log("fetches"), "the tool says hello\na file of the robot\n");
}

/// What the guide shows, but for where the files are.
#[test]
fn the_example_of_the_guide_runs() {
    let guide = muster_e2e::guide::repository().join("docs/guides/robots.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let example = guide.split("```yaml\n").find(|block| block.contains("artifacts:")).expect("it is there");
    let example = example.split("```").next().unwrap_or_default();
    let world = World::new(Kind::Embedded, &[]);
    let _robot = world.robot("r1", &[]);
    let (place, web) = (world.dir.path().display(), web_of(world.dir.path()));
    let script = "mkdir tool; printf '#!/bin/sh\\ncat config/calibration.json\\n' > tool/run; chmod +x tool/run; \
                  tar -czf tool.tar.gz tool; echo calibrated > calibration.json; sha256sum tool.tar.gz";
    let made = Command::new("sh").args(["-c", script]).current_dir(world.dir.path()).output().unwrap();
    let sum = String::from_utf8(made.stdout).unwrap().split(' ').next().unwrap_or_default().to_owned();
    let stated =
        example.split("sha256:").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("a checksum");
    let example = example
        .replace("https://example.com", &web)
        .replace(stated, &sum)
        .replace("/etc/calibration.json", &format!("{place}/calibration.json"));
    let example: Value = serde_saphyr::from_str(&example).unwrap();
    world.create("tasks", "Task", "example", &example["spec"]);
    world.wait_for_state("example", "Succeeded");
    assert_eq!(world.log("example"), "calibrated\n");
}

#[test]
fn a_task_whose_files_cannot_be_had_fails_and_says_why() {
    let world = World::new(Kind::Embedded, &[]);
    let _robot = world.robot("r1", &[]);
    let (web, zeros) = (web(), "0".repeat(64));
    let cases = [
        ("not-there", json!({"source": format!("{web}/missing")}), "ArtifactNotFound", "404"),
        (
            "changed",
            json!({"source": format!("{web}/tool.sh"), "checksum": format!("sha256:{zeros}")}),
            "ChecksumMismatch",
            &zeros,
        ),
        (
            "outside",
            json!({"source": format!("{web}/tool.sh"), "destination": "../x"}),
            "BadArtifact",
            "../x",
        ),
    ];
    for (name, artifact, reason, word) in &cases {
        world.waiting_task(name, &json!({"artifacts": [artifact]}));
        let failed = world.wait_for_state(name, "Failed");
        let said = message(&failed);
        assert!(said.starts_with(reason) && said.contains(word), "{name}: {said}");
        assert_eq!(world.times(name, "begun"), 0, "{name} did not start");
    }
    world.task("next", "true", &json!({}));
    world.wait_for_state("next", "Succeeded");
}

#[test]
fn a_task_can_be_canceled_while_its_files_are_fetched() {
    let world = World::new(Kind::Embedded, &[]);
    let _robot = world.robot("r1", &[]);
    let endless = json!({"artifacts": [{"source": format!("{}/endless", web())}]});
    world.waiting_task("endless", &endless);
    muster_e2e::wait::wait_for("it is fetched", crate::world::SOON, || {
        world.get("tasks/endless")["status"]["waitingFor"]["reason"] == "Downloading"
    });
    world.told(&["cancel", "endless"]);
    world.wait_for_state("endless", "Canceled");
    assert_eq!(world.times("endless", "begun"), 0);
    world.task("next", "true", &json!({}));
    world.wait_for_state("next", "Succeeded");
}
