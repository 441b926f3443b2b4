//! What others see of a server: a real Prometheus reads its numbers, loads the alert rules and answers every question of the
//! dashboard; a collector gets the trace of a task, and the task's program knows its place in it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use muster_e2e::brokers::{OwnProcess, free_port, program};
use muster_e2e::guide::repository;
use muster_e2e::http::Http;
use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use muster_ports::telemetry::Sort;
use muster_ports::telemetry::catalog;
use serde_json::{Value, json};
use tempfile::TempDir;

const API: &str = "/apis/muster.dev/v1alpha1/namespaces/default";
const SOON: Duration = Duration::from_mins(1);
const DASHBOARD: &str = "deploy/observe/grafana-dashboard.json";
const ALERTS: &str = "deploy/observe/alerts.yaml";

fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).expect("the file is there")
}

/// Every question of the dashboard.
fn questions() -> Vec<String> {
    let board: Value = serde_json::from_str(&read(DASHBOARD)).expect("the dashboard is JSON");
    let panels = board["panels"].as_array().expect("panels").clone();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets").clone());
    targets.map(|target| target["expr"].as_str().expect("a question").to_owned()).collect()
}

/// Every name in a text that looks like one of a number.
fn names(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("muster_") || word.starts_with("apiserver_")).collect()
}

fn exists(name: &str) -> bool {
    catalog::ALL.iter().any(|metric| match metric.sort {
        Sort::Counter => name.strip_suffix("_total") == Some(metric.name),
        Sort::Gauge => name == metric.name,
        Sort::Quick | Sort::Slow | Sort::Size => {
            ["_bucket", "_sum", "_count"].iter().any(|end| name.strip_suffix(end) == Some(metric.name))
        }
    })
}

#[test]
fn the_dashboard_and_the_alerts_name_only_numbers_that_exist() {
    for (file, text) in [(DASHBOARD, questions().join("\n")), (ALERTS, read(ALERTS))] {
        let names = names(&text);
        assert!(names.len() > 5, "{file} names no numbers");
        for name in names {
            assert!(exists(name), "{file} names {name}, which is not in the catalog");
        }
    }
    assert!(!exists("muster_nothing_total"));
}

#[test]
fn every_number_is_on_the_dashboard_or_said_not_to_be() {
    // Of use when something is looked into, not to look at every day.
    let aside = [
        "muster_engine_conflicts",
        "muster_relay_resyncs",
        "muster_reports_ignored",
        "muster_runtime_facts",
        "muster_runtime_facts_ignored",
        "muster_store_compacted_revision",
        "muster_store_revision",
    ];
    let asked = questions().join("\n");
    for metric in catalog::ALL {
        let is_shown = names(&asked).iter().any(|name| name.starts_with(metric.name));
        assert!(is_shown || aside.contains(&metric.name), "{} is on no panel", metric.name);
    }
}

/// A Prometheus that reads one server.
struct Prometheus {
    _process: OwnProcess,
    http: Http,
    _dir: TempDir,
}

impl Prometheus {
    fn start(server: &Server) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let (port, path) = (free_port(), dir.path());
        fs::write(path.join("token"), server.admin_token()).expect("a file can be written");
        fs::copy(repository().join(ALERTS), path.join("alerts.yaml")).expect("a file can be copied");
        let config = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\nrule_files: [alerts.yaml]\n\
             scrape_configs:\n- job_name: muster\n  authorization: {{credentials_file: token}}\n  \
             static_configs: [{{targets: [\"{}\"]}}]\n",
            server.address()
        );
        fs::write(path.join("prometheus.yml"), config).expect("a file can be written");
        let mut command = Command::new(program("MUSTER_PROMETHEUS"));
        command
            .arg(format!("--config.file={}", path.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", path.join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"));
        let process = OwnProcess::start(command, path, "prometheus");
        let http = Http::new(&format!("127.0.0.1:{port}"), None);
        wait_for("Prometheus listens", SOON, || muster_e2e::brokers::takes_connections(port));
        Self { _process: process, http, _dir: dir }
    }

    fn ask(&self, question: &str) -> Value {
        let mut encoded = String::new();
        for byte in question.bytes() {
            encoded += &format!("%{byte:02X}");
        }
        self.http.get(&format!("/api/v1/query?query={encoded}")).json()
    }

    /// The value of the first answer.
    fn value(&self, question: &str) -> Option<f64> {
        self.ask(question)["data"]["result"][0]["value"][1].as_str()?.parse().ok()
    }
}

fn run_task(http: &Http, name: &str, script: &str, traceparent: Option<&str>) -> Value {
    let task = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": name},
        "spec": {"container": {"command": ["sh", "-c", script]}},
    });
    let mut request = http.request("POST", &format!("{API}/tasks")).json(&task.to_string());
    if let Some(context) = traceparent {
        request = request.header("traceparent", context);
    }
    let answer = request.send();
    assert_eq!(answer.code, 201, "{}", answer.text());
    let stored = || http.get(&format!("{API}/tasks/{name}")).json();
    let has_ended = |task: &Value| ["Succeeded", "Failed"].iter().any(|end| task["status"]["state"] == *end);
    wait_for(&format!("{name} ends"), SOON, || has_ended(&stored()));
    stored()
}

#[test]
fn a_real_prometheus_reads_the_numbers_the_rules_and_the_questions_of_the_dashboard() {
    let server = Server::start(&["--roles", "api,engine", "--slots", "2"]);
    let prometheus = Prometheus::start(&server);
    run_task(&server.http(), "well", "echo hello", None);
    run_task(&server.http(), "ill", "exit 3", None);
    wait_for("the server is read", SOON, || prometheus.value("up{job=\"muster\"}") == Some(1.0));
    let ends = |state: &str| prometheus.value(&format!("sum(muster_task_ends_total{{state=\"{state}\"}})"));
    wait_for("both ends are counted", SOON, || ends("Succeeded") == Some(1.0) && ends("Failed") == Some(1.0));
    assert_eq!(prometheus.value("sum(muster_log_bytes_total)"), Some(6.0));
    assert_eq!(prometheus.value("sum(muster_task_wait_seconds_count)"), Some(2.0));
    assert_eq!(prometheus.value("sum(muster_task_run_seconds_count)"), Some(2.0));
    assert!(prometheus.value("sum(muster_store_commit_changes_sum)") > Some(3.0));
    for question in questions() {
        let answer = prometheus.ask(&question.replace("$__rate_interval", "1m"));
        assert_eq!(answer["status"], "success", "{question}: {answer}");
    }
    let rules = prometheus.http.get("/api/v1/rules").json();
    let rules = rules["data"]["groups"][0]["rules"].as_array().expect("rules").clone();
    let written = read(ALERTS).matches("- alert:").count();
    assert_eq!(rules.len(), written, "{rules:?}");
    wait_for("every rule was tried and none is ill", SOON, || {
        let rules = prometheus.http.get("/api/v1/rules").json();
        let rules = rules["data"]["groups"][0]["rules"].as_array().expect("rules").clone();
        rules.iter().all(|rule| rule["health"] == "ok")
    });
}

#[test]
fn logs_are_lines_of_json_if_that_is_asked_for() {
    let mut server = Server::start(&["--log", "info", "--log-format", "json"]);
    server.stop();
    let log = fs::read_to_string(server.log()).expect("a log");
    let objects: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let stopped = objects.iter().find(|line| line["message"] == "stopped").expect("the last line");
    assert_eq!(stopped["level"], "INFO");
    assert!(stopped["timestamp"].is_string());
}

/// A collector that keeps what it is sent.
struct Collector {
    address: String,
    bodies: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port can be bound");
        let address = listener.local_addr().expect("it has an address").to_string();
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let kept = bodies.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = kept.clone();
                thread::spawn(move || drop(answer_all(stream, &kept)));
            }
        });
        Self { address, bodies }
    }

    fn spans(&self) -> Vec<Value> {
        let bodies = self.bodies.lock().expect("nobody panicked");
        let spans = bodies.iter().map(|(_, body)| &body["resourceSpans"][0]["scopeSpans"][0]["spans"]);
        spans.flat_map(|spans| spans.as_array().cloned().unwrap_or_default()).collect()
    }

    fn span(&self, name: &str) -> Value {
        self.spans().into_iter().find(|span| span["name"] == name).expect("the span is there")
    }
}

/// Answers requests of a connection, each with nothing.
fn answer_all(stream: TcpStream, kept: &Mutex<Vec<(String, Value)>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    loop {
        let (mut head, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let lower = line.to_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            head += &line;
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        kept.lock().expect("nobody panicked").push((head, body));
        writer
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")?;
    }
}

#[test]
fn a_task_is_one_trace_from_its_submission_to_its_end() {
    let collector = Collector::start();
    let endpoint = format!("http://{}", collector.address);
    let env = [("OTEL_EXPORTER_OTLP_HEADERS", "x-key=only-for-the-collector".to_owned())];
    let flags = ["--roles", "api,engine", "--slots", "2", "--otlp-endpoint", &endpoint];
    let server = Server::start_with(&flags, &env);
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let given = format!("00-{trace}-{parent}-01");
    let http = server.http();
    let task = run_task(&http, "traced", "echo $TRACEPARENT; exit 4", Some(&given));
    assert_eq!(task["metadata"]["annotations"]["muster.dev/traceparent"], given.as_str());
    wait_for("three spans arrive", SOON, || collector.spans().len() == 3);
    let (whole, wait, attempt) =
        (collector.span("task traced"), collector.span("wait"), collector.span("attempt"));
    for span in [&whole, &wait, &attempt] {
        assert_eq!(span["traceId"], trace, "{span}");
        let time = |name: &str| span[name].as_str().expect("a time").parse::<u64>().expect("a number");
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
    }
    assert_eq!(whole["parentSpanId"], parent);
    assert_eq!(wait["parentSpanId"], whole["spanId"]);
    assert_eq!(attempt["parentSpanId"], whole["spanId"]);
    assert_eq!(attempt["status"]["code"], 2);
    let log = http.get(&format!("{API}/tasks/traced/log")).text();
    let seen = format!("00-{trace}-{}-01", attempt["spanId"].as_str().expect("a span"));
    assert_eq!(log.trim(), seen);
    let heads = collector.bodies.lock().expect("nobody panicked");
    assert!(heads.iter().all(|(head, _)| head.starts_with("POST /v1/traces ")), "{heads:?}");
    assert!(heads.iter().all(|(head, _)| head.contains("x-key: only-for-the-collector")), "{heads:?}");
}

#[test]
fn a_collector_that_is_away_holds_nothing_up() {
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let server = Server::start(&["--roles", "api,engine", "--slots", "2", "--otlp-endpoint", &nobody]);
    let task = run_task(&server.http(), "alone", "true", None);
    assert_eq!(task["status"]["state"], "Succeeded");
    let metrics = || server.http().get("/metrics").text();
    wait_for("lost spans are counted", SOON, || metrics().contains("muster_spans_total{outcome=\"lost\"} "));
}
