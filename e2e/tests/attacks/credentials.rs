//! Secrets where other users look for them: in the list of processes, in messages about files that cannot be fetched, and in files of the
//! agent.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use muster_e2e::agent::Agent;
use muster_e2e::brokers::free_port;
use muster_e2e::databases::Postgres;
use muster_e2e::http::Http;
use muster_e2e::server::Server;
use muster_e2e::wait::{SOON, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const API: &str = "/apis/muster.dev/v1alpha1/namespaces/default";
/// What no other user may read.
const SECRET: &str = "hunter2";

/// A process and all below it.
fn family(id: u32) -> Vec<u32> {
    let parent_of = |child: u32| {
        let stat = fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
        stat.rsplit(") ").next()?.split(' ').nth(1)?.parse::<u32>().ok()
    };
    let all = fs::read_dir("/proc").expect("/proc can be read").flatten();
    let all = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = all.filter_map(|child| Some((child, parent_of(child)?))).collect();
    let mut found = vec![id];
    let mut at = 0;
    while at < found.len() {
        let above = found[at];
        found.extend(parents.iter().filter(|(_, parent)| *parent == above).map(|(child, _)| *child));
        at += 1;
    }
    found
}

/// A file of `/proc` of each of them.
fn proc_files(ids: &[u32], name: &str) -> String {
    let text = |id: &u32| fs::read(format!("/proc/{id}/{name}")).unwrap_or_default();
    let texts: Vec<String> =
        ids.iter().map(|id| String::from_utf8_lossy(&text(id)).replace('\0', " ")).collect();
    texts.join("\n")
}

/// Fails if a process or one below it shows the secret to somebody.
#[track_caller]
fn assert_hides(id: u32, at_least: usize, secret: &str) {
    wait_for("all processes to be there", SOON, || family(id).len() >= at_least);
    let family = family(id);
    let shown = proc_files(&family, "cmdline");
    assert!(shown.contains("(hidden)") && !shown.contains(secret), "{shown}");
    let inherited = proc_files(&family, "environ");
    assert!(!inherited.is_empty() && !inherited.contains(secret), "it is in an environment");
}

/// Ends with the test.
struct Running(Child);

impl Running {
    fn start(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().expect("it can be started"))
    }

    /// Asks it to end, and waits until it and what it runs has.
    fn end(&mut self) {
        let id = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).expect("a child has an id");
        if matches!(self.0.try_wait(), Ok(None)) {
            kill_process(id, Signal::TERM).expect("a child can be asked to end");
        }
        self.0.wait().expect("a child can be waited for");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

fn muster() -> PathBuf {
    std::env::var_os("MUSTER_BIN").expect("MUSTER_BIN names the program").into()
}

/// A server with a broker for robots, and where that is.
fn server_of_robots() -> (Server, String) {
    let address = format!("127.0.0.1:{}", free_port());
    let server = Server::start(&["--roles", "api,engine,bridge", "--mqtt-listen", &address]);
    (server, format!("mqtt://{address}"))
}

fn wait_until_online(http: &Http) {
    let phase = || http.get(&format!("{API}/robots/r1")).json()["status"]["phase"].clone();
    wait_for("the robot to be Online", SOON, || phase() == "Online");
}

fn make_task(http: &Http, name: &str, mut spec: Value) {
    spec["runtime"] = "robot".into();
    let task = json!({"apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": name}, "spec": spec});
    let answer = http.post(&format!("{API}/tasks"), &task.to_string());
    assert_eq!(answer.code, 201, "{}", answer.text());
}

fn wait_for_state(http: &Http, name: &str, state: &str) {
    let now = || http.get(&format!("{API}/tasks/{name}")).json()["status"]["state"].clone();
    wait_for(&format!("{name} to be {state}"), SOON, || now() == state);
}

#[test]
fn the_process_list_shows_no_secret_of_a_server_with_postgres() {
    let postgres = Postgres::start();
    let store = postgres.url().replace("muster@", &format!("muster:{SECRET}@"));
    assert!(store.contains(SECRET), "{store}");
    let broker = format!("mqtt://me:{SECRET}@127.0.0.1:{}", free_port());
    let headers = format!("--otlp-headers=authorization=Bearer {SECRET}");
    let flags = ["--roles", "api,engine", "--slots", "1", "--store", &store, "--mqtt-url", &broker, &headers];
    let server = Server::start(&flags);
    // The server, the warden and the shepherd.
    assert_hides(server.id(), 3, SECRET);
    let shown = proc_files(&[server.id()], "cmdline");
    assert!(shown.contains("--listen 127.0.0.1:0") && shown.contains("--store (hidden)"), "{shown}");
    let name = fs::read_to_string(format!("/proc/{}/comm", server.id())).unwrap_or_default();
    assert_eq!(name.trim(), "muster", "it keeps its name");
    let rows = postgres.sql("SELECT count(*) > 0 FROM pg_tables WHERE schemaname NOT LIKE 'pg_%'");
    assert_eq!(rows, "t", "the store is the one that was named");
    let log = fs::read_to_string(server.log()).unwrap_or_default();
    assert!(!log.contains(SECRET), "{log}");
}

#[test]
fn a_server_reads_the_url_of_its_postgres_from_a_file() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let postgres = Postgres::start();
    let file = dir.path().join("store");
    fs::write(&file, format!("{}\n", postgres.url())).expect("a file can be written");
    let server = Server::start(&["--store-file", &file.display().to_string()]);
    assert!(!server.data().join("muster.db").exists(), "it is not in a file");
    let shown = proc_files(&family(server.id()), "cmdline");
    assert!(shown.contains("--store-file") && !shown.contains("postgres://"), "{shown}");
}

#[test]
fn the_process_list_shows_no_secret_of_a_client() {
    let server = Server::start(&[]);
    let mut client = Command::new(muster());
    client.arg("--kubeconfig").arg(server.kubeconfig()).arg("watch");
    let client = Running::start(client.stderr(Stdio::null()));
    wait_for("the client to be there", SOON, || proc_files(&[client.0.id()], "cmdline").contains("watch"));
    let token = server.admin_token();
    let family = family(client.0.id());
    let shown = [proc_files(&family, "cmdline"), proc_files(&family, "environ")].join("\n");
    assert!(!token.is_empty() && !shown.contains(&token), "the token of the kubeconfig is shown");
}

#[test]
fn the_process_list_shows_no_secret_of_an_agent() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let (server, url) = server_of_robots();
    let (http, token) = (server.http(), server.new_token("join", "robot"));
    let agent = Agent::start("r1", &url, "unused", &dir.path().join("r1"), &["--token", &token]);
    wait_until_online(&http);
    make_task(&http, "t", json!({"container": {"command": ["sleep", "1000"]}}));
    wait_for_state(&http, "t", "Running");
    // The agent, the warden, the shepherd and the program.
    assert_hides(agent.id(), 4, &token);
    let broker = format!("mqtt://me:{SECRET}@127.0.0.1:{}", free_port());
    let away = Agent::start("r2", &broker, "unused", &dir.path().join("r2"), &[]);
    let shown = || proc_files(&[away.id()], "cmdline");
    wait_for("its broker to be hidden", SOON, || shown().contains("--broker (hidden)"));
    assert!(!shown().contains(SECRET), "{}", shown());
    let log = || fs::read_to_string(dir.path().join("r2/agent.log")).unwrap_or_default();
    wait_for("it to look for its broker", SOON, || log().contains("no connection to the broker"));
    assert!(!log().contains(SECRET), "{}", log());
}

/// Answers everybody that there is nothing. Returns where it is.
fn empty_web() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    let answer = |mut stream: TcpStream| -> Option<()> {
        let lines = BufReader::new(stream.try_clone().ok()?).lines();
        lines.map_while(Result::ok).find(String::is_empty)?;
        stream.write_all(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n").ok()
    };
    std::thread::spawn(move || {
        listener.incoming().map_while(Result::ok).for_each(|stream| {
            answer(stream);
        });
    });
    address.to_string()
}

#[test]
fn a_file_that_cannot_be_fetched_is_named_without_credentials() {
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let (server, url) = server_of_robots();
    let http = server.http();
    let agent = Agent::start("r1", &url, &server.new_token("join", "robot"), &dir.path().join("r1"), &[]);
    wait_until_online(&http);
    let (web, away) = (empty_web(), free_port());
    let sources = [
        ("missing", format!("http://me:{SECRET}@{web}/file?X-Amz-Signature={SECRET}")),
        ("unnamed", format!("http://{SECRET}@{web}/?sig={SECRET}")),
        ("unpacked", format!("http://me:{SECRET}@{web}/file.rar?sig={SECRET}")),
        ("odd", format!("http://me:{SECRET}/x@{web}/file")),
        ("foreign", format!("ftp://me:{SECRET}@{web}/file#{SECRET}")),
        ("away", format!("http://me:{SECRET}@127.0.0.1:{away}/file?sig={SECRET}")),
    ];
    for (name, source) in &sources {
        let artifact = json!({"source": source, "unpack": *name == "unpacked"});
        make_task(&http, name, json!({"container": {"command": ["true"]}, "artifacts": [artifact]}));
    }
    let task = |name: &str| http.get(&format!("{API}/tasks/{name}")).json();
    let reason =
        |name: &str| task(name)["status"]["attempts"][0]["reason"].as_str().unwrap_or_default().to_owned();
    for (name, expected) in [
        ("missing", "ArtifactNotFound"),
        ("unnamed", "BadArtifact"),
        ("unpacked", "BadArtifact"),
        ("odd", "BadArtifact"),
        ("foreign", "BadArtifact"),
        ("away", "ArtifactUnreachable"),
    ] {
        wait_for(&format!("{name} to say why it failed"), SOON, || reason(name) == expected);
        let status = task(name)["status"].to_string();
        assert!(!status.contains(SECRET), "{status}");
        let explained = http.get(&format!("{API}/tasks/{name}/explain")).text();
        assert!(!explained.contains(SECRET), "{explained}");
    }
    let missing = task("missing")["status"].to_string();
    assert!(missing.contains(&format!("http://{web}/file?…")), "it says which file: {missing}");
    let events = http.get("/api/v1/namespaces/default/events").text();
    assert!(events.contains("missing") && !events.contains(SECRET), "{events}");
    let said = fs::read_to_string(agent.work_dir.join("agent.log")).unwrap_or_default();
    assert!(said.contains("connected") && !said.contains(SECRET), "{said}");
}

/// What other users can read, list or change below a directory; `except` is not the agent's.
fn exposed(path: &Path, except: &[&str]) -> Vec<String> {
    let Ok(meta) = path.symlink_metadata() else { return Vec::new() };
    let mode = meta.permissions().mode();
    if meta.is_symlink() || path.file_name().is_some_and(|name| except.iter().any(|other| name == *other)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    if mode & 0o066 != 0 {
        found.push(format!("{} {:o}", path.display(), mode & 0o777));
    }
    // Nobody passes through a directory without this.
    if meta.is_dir() && mode & 0o011 != 0 {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            found.extend(exposed(&entry.path(), except));
        }
    }
    found
}

#[test]
fn files_of_an_agent_are_for_its_owner_alone() {
    let temp = tempfile::tempdir().expect("a temporary directory can be made");
    let dir = temp.path().join("r1");
    let (server, url) = server_of_robots();
    let (http, token) = (server.http(), server.new_token("join", "robot"));
    let open_to_all = |path: &Path, mode: u32| {
        fs::set_permissions(path, Permissions::from_mode(mode)).expect("the mode can be set");
    };
    let start = || {
        let log = fs::File::options().create(true).append(true).open(temp.path().join("agent.log"));
        let mut command = Command::new("sh");
        command.args(["-c", r#"umask 000; exec "$@""#, "sh"]).arg(muster().with_file_name("muster-agent"));
        command.args(["--broker", &url, "--robot-id", "r1", "--heartbeat", "1s", "--work-dir"]).arg(&dir);
        Running::start(command.env("MUSTER_JOIN_TOKEN", &token).stderr(log.expect("a log can be opened")))
    };
    // Made by a former agent, or by somebody who was quicker.
    for name in ["records", "sent", "attempts"] {
        fs::create_dir_all(dir.join(name)).expect("a directory can be made");
        open_to_all(&dir.join(name), 0o777);
    }
    fs::write(dir.join("records/old-1.gone"), "").expect("a file can be written");
    open_to_all(&dir.join("records/old-1.gone"), 0o666);
    open_to_all(&dir, 0o777);
    let mut agent = start();
    wait_until_online(&http);
    make_task(&http, "t", json!({"container": {"command": ["sleep", "1000"]}}));
    wait_for_state(&http, "t", "Running");
    let records = || fs::read_dir(dir.join("records")).expect("it is there").count();
    assert!(records() >= 2, "the attempt is written down");
    assert_eq!(exposed(&dir, &[]), Vec::<String>::new());
    agent.end();
    open_to_all(&dir.join("credential"), 0o644);
    open_to_all(&dir.join("records"), 0o755);
    assert_ne!(exposed(&dir, &[]), Vec::<String>::new(), "the test would see it");
    let before = http.get(&format!("{API}/robots/r1")).json()["status"]["phase"].clone();
    let _agent = start();
    let log = || fs::read_to_string(temp.path().join("agent.log")).unwrap_or_default();
    wait_for("the next agent to connect", SOON, || log().matches("connected").count() >= 2);
    assert_eq!(exposed(&dir, &[]), Vec::<String>::new(), "the robot was {before}");
}
