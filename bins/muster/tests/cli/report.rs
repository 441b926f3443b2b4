//! `muster report`, as a script uses it that is an addon: one request each time, nothing else.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::fake_server::FakeServer;
use crate::world::{Said, Served, World};

const BASE: &str = "/apis/muster.dev/v1alpha1/namespaces/shop/tasks/scan-1";

fn report(world: &World, url: &str, arguments: &[&str]) -> Said {
    let mut command = world.command(&["report"]);
    command.args(arguments).stdin(Stdio::null());
    command.env("MUSTER_URL", url).env("MUSTER_TOKEN", "muster_a_secret");
    command.env("MUSTER_TASK", "scan-1").env("MUSTER_NAMESPACE", "shop");
    let output = command.output().expect("muster starts");
    Said {
        code: output.status.code().expect("muster ends by itself"),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn everything_that_is_reported_goes_in_one_request() {
    let server = FakeServer::with(&[("200 OK", "{}")]);
    let mut flags =
        vec!["--activity", "reading", "a.java", "--total", "40", "--increment", "--error", "no b.java"];
    flags.extend(["--severity", "Warning", "--result", "{\"findings\": 7}"]);
    report(&World::new(), &server.url(), &flags).is("");
    let asked = server.asked();
    assert_eq!((asked.what, asked.token.as_str()), (format!("POST {BASE}/report"), "Bearer muster_a_secret"));
    let body: Value = serde_json::from_slice(&asked.body).expect("a report is JSON");
    let expected = json!({
        "activity": ["reading", "a.java"], "total": 40, "increment": 1,
        "errors": [{"severity": "Warning", "description": "no b.java"}], "result": {"findings": 7},
    });
    assert_eq!(body, expected);
}

#[test]
fn a_report_can_be_replaced_shown_and_cleared() {
    let server = FakeServer::with(&[("200 OK", "{}"), ("200 OK", "{\"total\":3}"), ("200 OK", "{}")]);
    let world = World::new();
    report(&world, &server.url(), &["--replace", "--total", "3"]).is("");
    report(&world, &server.url(), &["show"]).is("{\n    \"total\": 3\n}\n");
    report(&world, &server.url(), &["clear"]).is("");
    let asked = [server.asked().what, server.asked().what, server.asked().what];
    assert_eq!(asked, ["PUT", "GET", "DELETE"].map(|method| format!("{method} {BASE}/report")));
}

#[test]
fn a_file_is_attached_by_its_name_or_another() {
    let server = FakeServer::with(&[("201 Created", "{}"), ("201 Created", "{}")]);
    let world = World::new();
    let file = world.file("out/findings.csv", "a,b\n");
    report(&world, &server.url(), &["attach", file]).is("");
    report(&world, &server.url(), &["attach", file, "--name", "all of it.csv", "--activity", "2"]).is("");
    let first = server.asked();
    assert_eq!((first.what, first.body), (format!("PUT {BASE}/attachments/findings.csv"), b"a,b\n".to_vec()));
    assert_eq!(server.asked().what, format!("PUT {BASE}/attachments/all%20of%20it.csv?activity=2"));
    let said = report(&world, &server.url(), &["attach", "gone"]);
    assert_eq!(said.code, 1);
    assert!(said.err.starts_with("error: cannot read gone"), "{}", said.err);
}

#[test]
fn the_bucket_is_written_read_and_emptied() {
    let server = FakeServer::with(&[
        ("201 Created", "{}"),
        ("200 OK", "rules"),
        ("200 OK", "rules"),
        ("200 OK", "{}"),
    ]);
    let world = World::new();
    let file = world.file("a.yaml", "rules");
    report(&world, &server.url(), &["bucket", "put", "sub dir/a.yaml", file]).is("");
    report(&world, &server.url(), &["bucket", "get", "sub dir/a.yaml"]).is("rules");
    report(&world, &server.url(), &["bucket", "get", "a", "-o", "copy"]).is("");
    report(&world, &server.url(), &["bucket", "delete", "a"]).is("");
    assert_eq!(std::fs::read_to_string(world.home.path().join("copy")).expect("it was written"), "rules");
    let put = server.asked();
    assert_eq!((put.what, put.body), (format!("PUT {BASE}/bucket/sub%20dir/a.yaml"), b"rules".to_vec()));
    assert_eq!(server.asked().what, format!("GET {BASE}/bucket/sub%20dir/a.yaml"));
    assert_eq!(server.asked().what, format!("GET {BASE}/bucket/a"));
    assert_eq!(server.asked().what, format!("DELETE {BASE}/bucket/a"));
}

#[test]
fn a_report_that_changed_nothing_says_why() {
    let server = FakeServer::with(&[("200 OK", "{\"ignored\":\"attempt 2 runs now\"}")]);
    let said = report(&World::new(), &server.url(), &["--increment"]);
    assert_eq!((said.code, said.err.as_str()), (0, "the report changed nothing: attempt 2 runs now\n"));
}

#[test]
fn what_the_server_refuses_is_repeated_without_the_token() {
    let status = r#"{"kind":"Status","reason":"Conflict","message":"the task has ended"}"#;
    let server = FakeServer::with(&[("409 Conflict", status)]);
    report(&World::new(), &server.url(), &["--increment"]).fails("the task has ended");
    let said = report(&World::new(), "http://127.0.0.1:1", &["--increment"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("no server answers at http://127.0.0.1:1"), "{}", said.err);
    assert!(!said.err.contains("secret"), "{}", said.err);
}

#[test]
fn outside_of_an_attempt_it_says_what_is_missing() {
    let said = World::new().muster(&["report", "--increment"]);
    assert_eq!(said.code, 1);
    assert!(said.err.starts_with("error: MUSTER_URL is not set"), "{}", said.err);
    assert_eq!(World::new().muster(&["report"]).code, 2);
}

/// Runs a script as the only attempt of a task.
fn attempt(served: &Served, script: &str) -> Value {
    let said = served.muster(&["submit", "--wait", "--", "sh", "-euc", script]);
    let name = said.out.trim_end();
    assert_eq!(said.code, 0, "{}\n{}", said.err, served.muster(&["logs", name]).out);
    served.muster(&["get", "task", name, "-o", "json"]).json()
}

#[test]
fn a_script_reports_to_a_real_server() {
    let served = Served::running("1");
    let task = attempt(
        &served,
        "muster report --activity begun --total 3
         muster report --increment; muster report --increment 2
         muster report --error 'one is odd' --severity Warning --result '[1, 2]'
         echo data > file.txt
         muster report attach file.txt --activity 1
         muster report bucket put dir/file.txt file.txt
         test \"$(muster report bucket get dir/file.txt)\" = data
         muster report bucket delete dir/file.txt
         muster report show | grep -q '\"completed\": 3'",
    );
    let status = &task["status"];
    assert_eq!(
        (&status["activity"], &status["total"], &status["completed"]),
        (&json!(["begun"]), &json!(3), &json!(3))
    );
    assert_eq!(status["errors"][0], json!({"severity": "Warning", "description": "(addon) one is odd"}));
    assert_eq!(status["result"], json!([1, 2]));
    let names: Vec<_> =
        status["attached"].as_array().into_iter().flatten().map(|file| &file["name"]).collect();
    assert!(names.contains(&&json!("file.txt")) && names.contains(&&json!("addon.log")), "{status}");
}

#[test]
fn a_script_reports_to_a_server_that_speaks_tls_alone() {
    let world = World::new();
    let flags = ["--listen", "0.0.0.0:0", "--tls-generate", "--roles", "api,engine"];
    let up = world.up(&flags);
    let served = Served { world, server: up };
    let task = attempt(&served, "case $MUSTER_URL in https:*) muster report --activity safe;; esac");
    assert_eq!(task["status"]["activity"], json!(["safe"]));
}

#[test]
fn a_token_is_worth_nothing_after_the_end_of_its_attempt() {
    let served = Served::running("1");
    attempt(&served, "env | grep ^MUSTER_ | sed 's/^/export /' > ~/kept; echo \"PATH=$PATH\" >> ~/kept");
    let script = ". ~/kept; muster report --activity late";
    let output = std::process::Command::new("sh")
        .args(["-c", script])
        .env_clear()
        .env("HOME", served.world.home.path())
        .output()
        .expect("sh runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("does not accept the token in MUSTER_TOKEN"), "{said}");
}

#[test]
fn a_program_finds_the_data_of_its_task_over_that_of_its_kind() {
    let served = Served::running("1");
    served.apply(
        "---
apiVersion: muster.dev/v1alpha1
kind: TaskKind
metadata: {name: scan}
spec: {data: {rules: [a, b], mode: {fast: true, depth: 1}}}
---
apiVersion: muster.dev/v1alpha1
kind: Task
metadata: {name: scan-1}
spec:
  kind: scan
  data: {mode: {depth: 9}}
  container: {command: [sh, -euc, 'cd /; cat $MUSTER_TASK_DATA_FILE; echo; echo $MUSTER_TASK_DATA']}
",
    );
    assert_eq!(served.muster(&["wait", "scan-1"]).code, 0);
    let log = served.muster(&["logs", "scan-1"]).out;
    let merged = json!({"rules": ["a", "b"], "mode": {"fast": true, "depth": 9}});
    let read: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
    assert_eq!(read, [merged.clone(), merged]);
}

/// Gets its own task and its subject, and is refused everything else.
const LOOK_AROUND: &str = "muster get task $MUSTER_TASK -o json | grep -q own-document
     muster get task $MUSTER_TASK | grep -Eq 'Pending|Running'
     muster get application inventory -o name
     if muster get tasks 2> refused; then exit 1; fi
     cat refused >&2";

fn look_around(served: &Served) -> String {
    served
        .apply("apiVersion: muster.dev/v1alpha1\nkind: Application\nmetadata: {name: inventory}\nspec: {}\n");
    let mut arguments = vec!["submit", "--wait", "--subject", "Application/inventory"];
    arguments.extend(["--input", "{\"own-document\": 1}", "--", "sh", "-euc", LOOK_AROUND]);
    let said = served.muster(&arguments);
    let log = served.muster(&["logs", said.out.trim_end()]).out;
    assert_eq!(said.code, 0, "{}\n{log}", said.err);
    log
}

#[test]
fn a_script_gets_its_own_task_with_its_own_token() {
    // The admin's kubeconfig lies in the same home directory.
    let log = look_around(&Served::running("1"));
    assert!(log.starts_with("application.muster.dev/inventory\n"), "{log}");
    assert!(log.contains("with role addon cannot list resource \"tasks\""), "{log}");
}

#[test]
fn a_script_gets_its_own_task_from_a_server_that_speaks_tls_alone() {
    let world = World::new();
    let server = world.up(&["--listen", "0.0.0.0:0", "--tls-generate", "--roles", "api,engine"]);
    look_around(&Served { world, server });
}

#[test]
fn a_script_sets_the_tags_of_its_subject_if_its_addon_was_granted_that() {
    let served = Served::running("1");
    let addon = |name: &str, grants: &str| {
        format!(
            "---
apiVersion: muster.dev/v1alpha1
kind: Addon
metadata: {{name: {name}}}
spec:
  {grants}
  container:
    command:
    - sh
    - -euc
    - |
      cat > tags.yaml <<END
      apiVersion: muster.dev/v1alpha1
      kind: Application
      metadata: {{name: inventory}}
      spec: {{tags: [{{category: Language, tag: {name}}}]}}
      END
      muster apply -f tags.yaml
"
        )
    };
    served.apply(&format!(
        "apiVersion: muster.dev/v1alpha1\nkind: Application\nmetadata: {{name: inventory}}\nspec: {{}}\n{}{}",
        addon("may", "grants: [subjectTags]"),
        addon("may-not", "grants: []")
    ));
    let tags =
        || served.muster(&["get", "application", "inventory", "-o", "json"]).json()["spec"]["tags"].clone();
    for (name, code) in [("may", 0), ("may-not", 1)] {
        let said =
            served.muster(&["submit", "--wait", "--addon", name, "--subject", "Application/inventory"]);
        let log = served.muster(&["logs", said.out.trim_end()]).out;
        assert_eq!(said.code, code, "{name}: {}\n{log}", said.err);
        assert_eq!(tags(), json!([{"category": "Language", "tag": "may"}]), "{name}: {log}");
    }
}
