//! What is deleted while it runs is there until its programs have ended: whatever waits for it waits for those.

use std::fs;
use std::time::Duration;

use muster_e2e::http::Http;
use muster_e2e::server::Server;
use muster_e2e::wait::wait_for;
use serde_json::{Value, json};

const API: &str = "/apis/muster.dev/v1alpha1/namespaces/default";
const SOON: Duration = Duration::from_mins(1);

struct World {
    server: Server,
    http: Http,
}

impl World {
    fn new() -> Self {
        let server = Server::start(&["--roles", "api,engine", "--slots", "8"]);
        let http = Http::new(server.address(), Some(&server.admin_token()));
        Self { server, http }
    }

    fn create(&self, kind: &str, name: &str, spec: &Value) {
        let plural = format!("{}s", kind.to_lowercase());
        let object = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": kind, "metadata": { "name": name }, "spec": spec,
        });
        let answer = self.http.post(&format!("{API}/{plural}"), &object.to_string());
        assert_eq!(answer.code, 201, "{}", answer.text());
    }

    fn get(&self, path: &str) -> Value {
        self.http.get(&format!("{API}/{path}")).json()
    }

    /// Deletes in the background, as kubectl does.
    fn delete(&self, path: &str) {
        let answer = self
            .http
            .request("DELETE", &format!("{API}/{path}"))
            .json(r#"{"propagationPolicy": "Background"}"#)
            .send();
        assert_eq!(answer.code, 200, "{}", answer.text());
    }

    fn wait_until_gone(&self, path: &str) {
        wait_for(&format!("{path} is gone"), SOON, || self.http.get(&format!("{API}/{path}")).code == 404);
    }

    /// A program that writes down when it begins, and ends only when it is let go, some time after it was told to.
    fn stubborn(&self, what: &str) -> Value {
        let place = self.server.data().display().to_string();
        let script = format!(
            "trap '' TERM; echo begins {what} $MUSTER_TASK >> {place}/diary; \
             while [ ! -e {place}/let-go ]; do sleep 0.05; done; echo ends {what} >> {place}/diary"
        );
        json!({"killTimeout": "10m", "container": {"command": ["sh", "-c", script]}})
    }

    fn quick(&self, what: &str) -> Value {
        let place = self.server.data().display().to_string();
        json!({"container": {"command": ["sh", "-c", format!("echo begins {what} >> {place}/diary")]}})
    }

    fn diary(&self) -> String {
        fs::read_to_string(self.server.data().join("diary")).unwrap_or_default()
    }

    fn wait_for_diary(&self, text: &str, count: usize) {
        wait_for(&format!("{count} times {text}"), SOON, || self.diary().matches(text).count() >= count);
    }

    fn let_go(&self) {
        fs::write(self.server.data().join("let-go"), "").expect("a file can be written");
    }

    /// Everything that began with the second word began after everything with the first word had ended.
    #[track_caller]
    fn assert_one_after_the_other(&self, first: &str, then: &str) {
        let diary = self.diary();
        let last_end = diary.rfind(&format!("ends {first}")).expect("it has ended");
        let first_begin = diary.find(&format!("begins {then}")).expect("it has begun");
        assert!(last_end < first_begin, "{diary}");
    }
}

fn two_groups(first: &Value, then: &Value) -> Value {
    json!({"taskGroups": [
        {"name": "one", "count": 2, "tasks": [{"name": "x", "spec": first}]},
        {"name": "then", "dependsOn": ["one"], "when": "completed", "tasks": [{"name": "z", "spec": then}]},
    ]})
}

#[test]
fn a_task_that_is_deleted_while_it_runs_is_there_until_its_program_has_ended_also_if_the_server_is_killed() {
    let mut world = World::new();
    for name in ["t", "u"] {
        world.create("Task", name, &world.stubborn(name));
        world.wait_for_diary(&format!("begins {name}"), 1);
        world.delete(&format!("tasks/{name}"));
        let task = world.get(&format!("tasks/{name}"));
        assert!(task["metadata"]["deletionTimestamp"].is_string(), "{task}");
        assert_eq!(world.http.post(&format!("{API}/tasks"), &json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": "Task", "metadata": {"name": name}, "spec": world.quick(name),
        }).to_string()).code, 409, "its name is in use");
        if name == "t" {
            // Its program is killed with the server.
            world.server.kill();
            world.server.restart();
            world.http = Http::new(world.server.address(), Some(&world.server.admin_token()));
        } else {
            world.let_go();
        }
        world.wait_until_gone(&format!("tasks/{name}"));
    }
    assert_eq!(world.diary().matches("begins").count(), 2, "each ran once: {}", world.diary());
}

#[test]
fn the_next_group_of_a_job_waits_for_the_programs_of_a_group_that_was_deleted() {
    let world = World::new();
    world.create("Job", "j", &two_groups(&world.stubborn("one"), &world.quick("then")));
    world.wait_for_diary("begins one", 2);
    world.delete("taskgroups/j-one");
    wait_for("both are told to end", SOON, || {
        (0..2).all(|index| world.get(&format!("tasks/j-one-x-{index}"))["status"]["stopping"] == "Deleted")
    });
    assert_eq!(world.get("jobs/j")["status"]["groups"][0]["state"], "Running");
    world.let_go();
    wait_for("the job ends", SOON, || world.get("jobs/j")["status"]["terminated"].is_string());
    world.assert_one_after_the_other("one", "then");
    let status = world.get("jobs/j")["status"].clone();
    assert_eq!(status["groups"][0]["counts"], json!({"canceled": 2}), "{status}");
    assert_eq!(status["counts"], json!({"succeeded": 1, "canceled": 2}), "{status}");
}

#[test]
fn the_next_group_of_a_job_waits_for_the_program_of_a_member_that_was_deleted() {
    let world = World::new();
    world.create("Job", "j", &two_groups(&world.stubborn("one"), &world.quick("then")));
    world.wait_for_diary("begins one", 2);
    for index in 0..2 {
        world.delete(&format!("tasks/j-one-x-{index}"));
    }
    wait_for("both are told to end", SOON, || {
        (0..2).all(|index| world.get(&format!("tasks/j-one-x-{index}"))["status"]["stopping"] == "Deleted")
    });
    world.let_go();
    wait_for("the job ends", SOON, || world.get("jobs/j")["status"]["terminated"].is_string());
    world.assert_one_after_the_other("one", "then");
    let counts = world.get("jobs/j")["status"]["counts"].clone();
    assert_eq!(counts, json!({"succeeded": 1, "canceled": 2}));
}

#[test]
fn the_next_member_of_a_group_waits_for_the_program_of_one_that_was_deleted() {
    let world = World::new();
    let members =
        [json!({"name": "a", "spec": world.stubborn("a")}), json!({"name": "b", "spec": world.quick("b")})];
    world.create("TaskGroup", "g", &json!({"mode": "batch", "parallelism": 1, "tasks": members}));
    world.wait_for_diary("begins a", 1);
    world.delete("tasks/g-a");
    wait_for("it is told to end", SOON, || world.get("tasks/g-a")["status"]["stopping"] == "Deleted");
    world.let_go();
    world.wait_for_diary("begins b", 1);
    world.assert_one_after_the_other("a", "b");
}

#[test]
fn the_next_run_of_a_schedule_waits_for_the_programs_of_a_run_that_was_deleted() {
    for is_job in [false, true] {
        let world = World::new();
        let run = world.stubborn("run");
        let mut spec = json!({"schedulePolicy": {"timeSpec": "R2/PT2S", "concurrency": "Queue"}});
        if is_job {
            let groups = json!([{"name": "only", "tasks": [{"name": "x", "spec": run}]}]);
            spec["jobTemplate"] = json!({"spec": {"taskGroups": groups}});
        } else {
            spec["template"] = json!({"spec": run});
        }
        world.create("Schedule", "s", &spec);
        world.wait_for_diary("begins run", 1);
        let plural = if is_job { "jobs" } else { "tasks" };
        let first = world.get(plural)["items"][0]["metadata"]["name"].as_str().expect("a run").to_owned();
        world.delete(&format!("{plural}/{first}"));
        wait_for("its program is told to end", SOON, || {
            world.get("tasks")["items"]
                .as_array()
                .is_some_and(|tasks| tasks.iter().any(|it| it["status"]["stopping"] == "Deleted"))
        });
        // The second time has come when that of a schedule that was made later has.
        let ticks =
            json!({"template": {"spec": world.quick("tick")}, "schedulePolicy": {"timeSpec": "R2/PT2S"}});
        world.create("Schedule", "clock", &ticks);
        world.wait_for_diary("begins tick", 2);
        assert_eq!(world.diary().matches("begins run").count(), 1, "{}", world.diary());
        assert_eq!(world.get("schedules/s")["status"]["active"][0]["name"], first.as_str());
        world.let_go();
        world.wait_for_diary("begins run", 2);
        let diary = world.diary();
        let second = diary.rfind("begins run").expect("it began twice");
        assert!(diary.find("ends run").is_some_and(|end| end < second), "{diary}");
    }
}
