//! Three servers of one database while everything fails that can: what was promised is kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use muster_e2e::databases::Postgres;
use muster_e2e::http::Http;
use muster_e2e::outage::Wire;
use muster_e2e::server::Server;
use muster_e2e::wait::{holds_within, wait_for};
use rustix::process::Signal;
use serde_json::{Value, json};

const API: &str = "/apis/muster.dev/v1alpha1/namespaces/default";
/// How often something fails.
const FAULTS: usize = 100;
/// Everything has ended by then.
const LONG: Duration = Duration::from_mins(4);
/// A fault lasts until so many tasks more were acknowledged,
const MORE: usize = 6;
/// or a multiple of this, up to twelve: longer than the lease, now and then.
const SHORTEST: Duration = Duration::from_millis(300);

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("it is small") % limit
    }
}

/// What clients share.
struct World {
    /// By replica; each token is good for all of them.
    https: Vec<Http>,
    acknowledged: Mutex<BTreeSet<String>>,
    count: AtomicUsize,
    over: AtomicBool,
}

impl World {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn acknowledge(&self, name: &str) {
        self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        self.count.fetch_add(1, Ordering::SeqCst);
    }
}

/// A task that leaves a mark for each attempt, and says so if there was one.
fn task(name: &str, marks: &Path) -> String {
    let marks = marks.display();
    let script = format!(
        "me=$(basename $(dirname $PWD)); mkdir {marks}/$me 2> /dev/null || touch {marks}/double-$me; sleep 0.05"
    );
    let retry = json!({ "lostLimit": 1000 });
    let spec = json!({ "container": { "command": ["sh", "-c", script] }, "retry": retry });
    let metadata = json!({ "name": name, "labels": { "of": "test" } });
    json!({ "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": metadata, "spec": spec })
        .to_string()
}

/// Makes tasks, on one server after the other, each until it is known to be there.
fn make_tasks(world: &World, writer: usize, marks: &Path) {
    for number in 0.. {
        let name = format!("task-{writer}-{number}");
        for turn in writer.. {
            if world.is_over() {
                return;
            }
            let http = &world.https[turn % world.https.len()];
            let body = task(&name, marks);
            let answer = http.request("POST", &format!("{API}/tasks")).json(&body).try_send();
            // 409 says that an earlier try, of which nobody knew how it ended, did it.
            if answer.is_ok_and(|answer| matches!(answer.code, 201 | 409)) {
                world.acknowledge(&name);
                break;
            }
        }
    }
}

/// Watches tasks, on one server after the other, always from where it was cut. Returns each change: revision, name, sort.
fn watch_tasks(world: &World, watcher: usize) -> Vec<(u64, String, String)> {
    let mut seen = Vec::new();
    let mut from = 0;
    let mut turn = watcher;
    let mut quiet = 0;
    // Afterwards until nothing comes from any of them.
    while quiet < 2 * world.https.len() {
        turn += 1;
        let http = &world.https[turn % world.https.len()];
        let path = format!("{API}/tasks?watch=true&resourceVersion={from}&labelSelector=of%3Dtest");
        let Ok((head, mut lines)) = http.request("GET", &path).try_stream() else { continue };
        assert!(head.code == 200 || head.code >= 500, "{head:?}");
        let before = seen.len();
        while let Some(line) = lines.next_within(Duration::from_secs(1)) {
            let Ok(change) = serde_json::from_str::<Value>(&line) else { break };
            let metadata = &change["object"]["metadata"];
            let Some(revision) = metadata["resourceVersion"].as_str().and_then(|text| text.parse().ok())
            else {
                // It ends here, and says why.
                assert_ne!(change["object"]["code"], 410, "{line}");
                break;
            };
            assert!(revision > from, "{revision} after {from}");
            from = revision;
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            seen.push((revision, text(&metadata["name"]), text(&change["type"])));
        }
        quiet = if world.is_over() && seen.len() == before { quiet + 1 } else { 0 };
    }
    seen
}

/// Takes messages, and remembers which task was told of as what.
fn take_messages(listener: &TcpListener, told: &Mutex<HashMap<String, BTreeSet<String>>>) {
    for stream in listener.incoming().map_while(Result::ok) {
        // Whoever sends badly sends again.
        drop(take_stream(stream, told));
    }
}

fn take_stream(
    mut stream: TcpStream,
    told: &Mutex<HashMap<String, BTreeSet<String>>>,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    let (mut request, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        let whole = text.split_once("\r\n\r\n").and_then(|(head, body)| {
            let length = head.to_lowercase().lines().find_map(|line| {
                line.strip_prefix("content-length:").and_then(|length| length.trim().parse::<usize>().ok())
            })?;
            (body.len() >= length).then(|| body[..length].to_owned())
        });
        if let Some(body) = whole {
            let event: Value = serde_json::from_str(&body).unwrap_or_default();
            let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            told.entry(text("subject")).or_default().insert(text("type"));
            drop(told);
            stream.write_all(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
            return Ok(());
        }
        match stream.read(&mut chunk)? {
            0 => return Ok(()),
            count => request.extend_from_slice(&chunk[..count]),
        }
    }
}

/// Has one thing fail, and mends it.
fn fail(
    dice: &mut Dice,
    world: &World,
    replicas: &mut [Server],
    wires: &[Wire],
    postgres: &Postgres,
) -> &'static str {
    let which = dice.below(replicas.len());
    let before = world.count.load(Ordering::SeqCst);
    let lasting = SHORTEST * u32::try_from(1 + dice.below(12)).expect("it is small");
    let lasts = |more: usize| {
        holds_within(lasting, || world.count.load(Ordering::SeqCst) >= before + more);
    };
    match dice.below(10) {
        0..3 => {
            replicas[which].kill();
            replicas[which].restart();
            "a server killed"
        }
        3..6 => {
            replicas[which].signal(Signal::STOP);
            lasts(usize::MAX - before);
            replicas[which].signal(Signal::CONT);
            "a server paused"
        }
        6..9 => {
            wires[which].cut();
            lasts(10 * MORE);
            wires[which].mend();
            "a server cut off"
        }
        _ => {
            postgres.kill();
            postgres.restart();
            "the database killed"
        }
    }
}

fn must_create(http: &Http, plural: &str, object: &Value) {
    let answer = http.post(&format!("{API}/{plural}"), &object.to_string());
    assert_eq!(answer.code, 201, "{}", answer.text());
}

fn list(http: &Http, selector: &str) -> Vec<Value> {
    let list = http.get(&format!("{API}/tasks?labelSelector={selector}")).json();
    list["items"].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_hundred_faults_lose_nothing_and_double_nothing() {
    let postgres = Postgres::start();
    let dir = tempfile::tempdir().expect("a temporary directory can be made");
    let (marks, files) = (dir.path().join("marks"), dir.path().join("files"));
    fs::create_dir(&marks).expect("a directory can be made");
    fs::create_dir(&files).expect("a directory can be made");
    let wires: Vec<Wire> = (0..3).map(|_| Wire::to_port(postgres.port())).collect();
    let start = |wire: &Wire| {
        let (store, files) = (postgres.url_at(wire.port()), files.display().to_string());
        let roles = ["--roles", "api,engine,relay", "--slots", "8", "--lease", "2s"];
        Server::start(
            &[&roles[..], &["--store", &store, "--files", &files, "--egress-allow", "127.0.0.1"]].concat(),
        )
    };
    let mut replicas: Vec<Server> = wires.iter().map(start).collect();
    let token = replicas[0].admin_token();
    let https = replicas.iter().map(|replica| Http::new(replica.address(), Some(&token))).collect();
    let world = Arc::new(World {
        https,
        acknowledged: Mutex::default(),
        count: AtomicUsize::new(0),
        over: AtomicBool::new(false),
    });
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let hook = format!("http://{}/", listener.local_addr().expect("a listener has an address"));
    let told: Arc<Mutex<HashMap<String, BTreeSet<String>>>> = Arc::default();
    thread::spawn({
        let told = told.clone();
        move || take_messages(&listener, &told)
    });
    let object = |kind: &str, name: &str, spec: Value| json!({ "apiVersion": "muster.dev/v1alpha1", "kind": kind, "metadata": { "name": name }, "spec": spec });
    let sink = json!({ "webhook": { "url": hook }, "profile": "cloudevents" });
    must_create(&world.https[0], "eventsinks", &object("EventSink", "hook", sink));
    let policy = json!({
        "timeSpec": "R/PT1S", "allowConcurrent": true, "skipOutdated": false, "catchUpWindow": "1h",
    });
    let template =
        json!({ "spec": { "container": { "command": ["true"] }, "retry": { "lostLimit": 1000 } } });
    let schedule = json!({
        "schedulePolicy": policy, "template": template, "successfulHistoryLimit": 100_000, "failedHistoryLimit": 100_000,
    });
    must_create(&world.https[1], "schedules", &object("Schedule", "steady", schedule));

    let writers: Vec<_> = (0..3)
        .map(|writer| {
            let (world, marks) = (world.clone(), marks.clone());
            thread::spawn(move || make_tasks(&world, writer, &marks))
        })
        .collect();
    let watchers: Vec<_> = (0..2)
        .map(|watcher| {
            let world = world.clone();
            thread::spawn(move || watch_tasks(&world, watcher))
        })
        .collect();
    let mut dice = Dice(20_261_116);
    let mut faults: BTreeMap<&str, usize> = BTreeMap::new();
    for _ in 0..FAULTS {
        *faults.entry(fail(&mut dice, &world, &mut replicas, &wires, &postgres)).or_default() += 1;
        let before = world.count.load(Ordering::SeqCst);
        wait_for("servers to go on", LONG, || world.count.load(Ordering::SeqCst) >= before + MORE);
    }
    world.over.store(true, Ordering::SeqCst);
    for writer in writers {
        writer.join().expect("a writer ends well");
    }
    let http = &world.https[2];
    let pause = json!({ "spec": { "suspend": true } }).to_string();
    assert_eq!(http.patch(&format!("{API}/schedules/steady"), "merge-patch+json", &pause).code, 200);

    // No acknowledged write is lost, and everything that was asked for is done.
    let acknowledged = world.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let state = |task: &Value| task["status"]["state"].as_str().unwrap_or_default().to_owned();
    wait_for("all tasks to end", LONG, || {
        list(http, "of%3Dtest")
            .iter()
            .chain(&list(http, "muster.dev/schedule%3Dsteady"))
            .all(|task| state(task) == "Succeeded")
    });
    let tasks = list(http, "of%3Dtest");
    let there: BTreeSet<String> =
        tasks.iter().map(|task| task["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect();
    let lost: Vec<_> = acknowledged.difference(&there).collect();
    assert!(lost.is_empty(), "acknowledged and gone: {lost:?}");

    // No attempt was started twice.
    let doubles: Vec<_> = fs::read_dir(&marks)
        .expect("marks can be listed")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("double"))
        .collect();
    assert!(doubles.is_empty(), "started twice: {doubles:?}");

    // Each instant of the schedule has one run.
    let runs = list(http, "muster.dev/schedule%3Dsteady");
    let times: BTreeSet<i64> = runs
        .iter()
        .map(|run| {
            let at = run["metadata"]["annotations"]["muster.dev/scheduled-at"].as_str().unwrap_or_default();
            at.parse::<jiff::Timestamp>().expect("a run has its time").as_second()
        })
        .collect();
    assert_eq!(times.len(), runs.len(), "an instant has two runs");
    let span = times.last().expect("there are runs") - times.first().expect("there are runs");
    assert_eq!(i64::try_from(times.len()).expect("it is small"), span + 1, "an instant has no run");

    // Everybody who watched saw the same, from whichever server, however often it was cut.
    let seen: Vec<_> =
        watchers.into_iter().map(|watcher| watcher.join().expect("a watcher ends well")).collect();
    assert_eq!(seen[0].len(), seen[1].len());
    assert!(seen[0] == seen[1], "two watches differ");
    let added: BTreeSet<_> =
        seen[0].iter().filter(|(_, _, sort)| sort == "ADDED").map(|(_, name, _)| name.clone()).collect();
    assert_eq!(added, there);

    // The sink was told the end of each.
    wait_for("the sink to be told everything", LONG, || {
        let told = told.lock().unwrap_or_else(PoisonError::into_inner);
        acknowledged.iter().all(|name| {
            let types = told.get(&format!("default/{name}"));
            types.is_some_and(|types| {
                types.iter().any(|word| word.ends_with("succeeded") || word.ends_with("success"))
            })
        })
    });
    assert_eq!(faults.len(), 4, "not everything failed once: {faults:?}");
}
