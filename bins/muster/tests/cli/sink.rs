//! `muster sink`, and what the documents say about messages.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;

use crate::world::{Served, World, eventually};

fn told() -> Served {
    let world = World::new();
    let roles = ["--listen", "127.0.0.1:0", "--roles", "api,engine,relay", "--slots", "2"];
    let server = world.up(&roles);
    Served { world, server }
}

fn sink(name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: muster.dev/v1alpha1\nkind: EventSink\nmetadata: {{name: {name}}}\nspec: {spec}\n"
    )
}

fn lines(served: &Served, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(served.world.data().join("sinks").join(file)).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn topics(served: &Served, file: &str) -> Vec<String> {
    lines(served, file).iter().map(|line| line["topic"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Makes a sink that cannot be written: where its directory should be there is a file.
fn make_blocked_sink(served: &Served) {
    let sinks = served.world.data().join("sinks");
    fs::create_dir_all(&sinks).expect("a directory can be made");
    fs::write(sinks.join("taken"), "").expect("a file can be written");
    served.apply(&sink("nowhere", "{file: {path: taken/f}}"));
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the program lies in it")
}

#[test]
fn a_sink_is_listed_tested_paused_resumed_and_replayed() {
    let served = told();
    served.apply(&sink("f", "{file: {path: f.jsonl}, profile: cds}"));
    let said = served.muster(&["sink", "test", "f"]);
    assert_eq!((said.code, said.out.as_str()), (0, "f: a test message was confirmed\n"));
    served.muster(&["sink", "pause", "f"]).is("f paused\n");
    served.muster(&["sink", "test", "f"]).fails("f is paused; resume it first with `muster sink resume f`");
    served.muster(&["submit", "--wait", "--", "true"]);
    served.muster(&["sink", "resume", "f"]).is("f resumed\n");
    let all = ["cds.job.test", "cds.job.starting", "cds.job.running", "cds.job.success"];
    eventually("the life of the task", || topics(&served, "f.jsonl") == all);
    let said = served.muster(&["sink", "replay", "f", "--from", "0"]);
    assert!(said.out.starts_with("f: telling again from behind revision 0"), "{}", said.out);
    eventually("the same again", || topics(&served, "f.jsonl").len() == 7);
    let ids: Vec<Value> = lines(&served, "f.jsonl").iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids[1..4], ids[4..7]);
    eventually("it is counted", || {
        let said = served.muster(&["sink", "list"]);
        let rows = said.rows();
        rows.get(1).is_some_and(|row| row[..6] == ["f", "file", "cds", "True", "6", "0"])
    });
    let said = served.muster(&["sink", "describe", "f"]);
    assert!(
        said.out.contains("Confirmed Revision") || said.out.contains("confirmedRevision"),
        "{}",
        said.out
    );
}

#[test]
fn what_cannot_be_done_is_said() {
    let served = told();
    make_blocked_sink(&served);
    let said = served.muster(&["sink", "test", "nowhere"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("sinks/taken/f cannot be written: Not a directory"), "{}", said.err);
    let said = served.muster(&["sink", "replay", "nowhere", "--from", "yesterday"]);
    said.fails("--from yesterday is neither a revision nor a time such as 2026-11-15T12:00:00Z");
    let said = served.muster(&["sink", "pause", "gone"]);
    assert!(said.err.contains("\"gone\" not found"), "{}", said.err);
}

#[test]
fn a_task_is_kept_until_its_end_was_confirmed() {
    let served = told();
    make_blocked_sink(&served);
    eventually("the sink is in trouble", || served.muster(&["sink", "list"]).out.contains("False"));
    let task = "apiVersion: muster.dev/v1alpha1\nkind: Task\nmetadata: {name: short}\n\
                spec: {container: {command: ['true']}, ttl: {succeeded: 1s}}\n";
    served.apply(task);
    served.muster(&["wait", "short"]);
    // Tasks that nobody waits for would be gone by then.
    let later = "apiVersion: muster.dev/v1alpha1\nkind: Task\nmetadata: {name: later}\n\
                 spec: {container: {command: [sleep, '4']}}\n";
    served.apply(later);
    served.muster(&["wait", "later"]);
    assert_eq!(served.muster(&["get", "task", "short", "-o", "name"]).code, 0);
    served.muster(&["delete", "eventsink", "nowhere"]);
    eventually("it is let go", || served.muster(&["get", "task", "short"]).code != 0);
}

/// The commands of a guide that are said to be tested.
fn tested(text: &str) -> String {
    let blocks = text.split("```sh tested\n").skip(1);
    blocks.filter_map(|block| block.split("```").next()).collect()
}

#[test]
fn the_guide_for_consumers_works_as_written() {
    let served = told();
    let guide = fs::read_to_string(repository().join("docs/guides/consumer.md")).expect("there is a guide");
    let home = served.world.home.path();
    symlink(env!("CARGO_BIN_EXE_muster"), home.join("muster")).expect("links can be made");
    let mut bash = std::process::Command::new("bash");
    bash.args(["-euxo", "pipefail", "-c", &tested(&guide)]).current_dir(repository()).env_clear();
    let path = format!("{}:/usr/bin:/bin", home.display());
    let output = bash.env("HOME", home).env("PATH", path).env("MUSTER_DATA", served.world.data()).output();
    let output = output.expect("bash runs");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    assert!(out.contains("jobs: a test message was confirmed") && out.contains("audit"), "{out}");
}

/// The examples of the reference, by what they are of.
fn documented(text: &str) -> Vec<(String, Value)> {
    let blocks = text.split("```json ").skip(1).filter_map(|block| block.split("```").next());
    blocks
        .filter_map(|block| {
            let (name, json) = block.split_once('\n')?;
            Some((name.to_owned(), serde_json::from_str(json).expect("an example is JSON")))
        })
        .collect()
}

/// What differs from run to run, as the reference writes it.
fn generalized(value: &Value, uid: &str) -> Value {
    let mut text = value.to_string().replace(uid, "UID");
    for (field, word) in [("\"time\":\"", "TIME"), ("\"revision\":\"", "REVISION")] {
        if let Some((before, rest)) = text.split_once(field)
            && let Some((_, after)) = rest.split_once('"')
        {
            text = format!("{before}{field}{word}\"{after}");
        }
    }
    serde_json::from_str(&text).expect("it was JSON")
}

#[test]
fn every_message_of_the_reference_is_what_is_sent() {
    let served = told();
    served.apply(&sink("c", "{file: {path: c.jsonl}, profile: cds}"));
    served.apply(&sink("e", "{file: {path: e.jsonl}}"));
    eventually("both are connected", || served.muster(&["sink", "list"]).out.matches("True").count() == 2);
    let marks = served.world.home.path().display().to_string();
    for (name, end) in [("hello", "exit 0"), ("bad", "exit 7")] {
        // The first attempt is killed, which is tried again.
        let script = format!("mkdir {marks}/{name} 2>/dev/null && kill -9 $$; {end}");
        served.apply(&format!(
            "apiVersion: muster.dev/v1alpha1\nkind: Task\nmetadata: {{name: {name}}}\n\
             spec: {{container: {{command: [sh, -c, '{script}']}}}}\n"
        ));
    }
    eventually("both tasks have ended", || {
        let ends = |topic: &str| topics(&served, "c.jsonl").iter().any(|it| it == topic);
        ends("cds.job.success") && ends("cds.job.failed") && !lines(&served, "e.jsonl").is_empty()
    });
    let uid = |name: &str| {
        let task = served.muster(&["get", "task", name, "-o", "json"]).json();
        task["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
    };
    let (good, bad) = (uid("hello"), uid("bad"));
    let reference = fs::read_to_string(repository().join("docs/reference/messages.md")).expect("a reference");
    // The others are checked beside what makes them, in crates/core/relay/tests/reference.rs.
    let is_of_task =
        |topic: &str| !topic.contains(' ') && (topic.starts_with("cds.") || topic.contains(".task."));
    let examples: Vec<_> =
        documented(&reference).into_iter().filter(|(topic, _)| is_of_task(topic)).collect();
    assert_eq!(examples.len(), 6);
    for (topic, expected) in examples {
        let is_cds = topic.starts_with("cds.");
        let of = if topic == "cds.job.failed" { &bad } else { &good };
        let find = || {
            let all = lines(&served, if is_cds { "c.jsonl" } else { "e.jsonl" });
            all.into_iter().find(|line| {
                let named = if is_cds { &line["topic"] } else { &line["type"] };
                *named == topic.as_str() && line["id"].as_str().is_some_and(|id| id.starts_with(of))
            })
        };
        eventually(&topic, || find().is_some());
        let found = find().expect("it is there");
        let document = if is_cds { found["data"].clone() } else { found };
        let mut sent = generalized(&document, of);
        if topic == "cds.job.failed" {
            sent["job-name"] = "hello".into();
        }
        assert_eq!(sent, expected, "{topic}");
    }
}
