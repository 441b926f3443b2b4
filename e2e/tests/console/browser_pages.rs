//! Each page: what it shows, that it changes by itself, and what its buttons do.

use muster_e2e::agent::Agent;
use muster_e2e::brokers::free_port;
use muster_e2e::wait::{SOON, wait_for};
use serde_json::json;

use crate::world::{API, World};

#[test]
fn the_overview_changes_by_itself_and_draws_the_queue() {
    let world = World::new();
    world.browser.sees("#live", "No task was made yet");
    world.task("good", "true");
    world.task("bad", "exit 3");
    world.browser.sees(".numbers li:nth-child(7)", "1");
    world.browser.sees(".numbers li:nth-child(8)", "1");
    world.browser.sees("#live", "bad");
    world.task("long", "sleep 600");
    wait_for("the queue is drawn", SOON, || world.browser.count("polygon.Running") == 1);
    let drawn = world.browser.run("return document.querySelector('polygon.Running').getBBox().height > 0");
    assert_eq!(drawn, true);
    let loaded = world.browser.run("return performance.getEntriesByType('navigation').length");
    assert_eq!(loaded, 1, "nothing was loaded again");
}

#[test]
fn tasks_are_filtered_sorted_and_ended_many_at_a_time() {
    let world = World::new();
    for (name, kind, priority) in [("one", "build", 1), ("two", "build", 5), ("three", "test", 3)] {
        let spec = json!({
            "kind": kind, "priority": priority, "suspend": true, "container": {"command": ["true"]},
            "subject": {"kind": "Application", "name": name},
        });
        world.make("tasks", "Task", name, &spec);
    }
    let names = || {
        let script = "return [...document.querySelectorAll('table.tasks tbody tr td:nth-child(2)')].map(e => e.textContent)";
        world.browser.run(script)
    };
    world.go("tasks?sort=priority");
    wait_for("by priority", SOON, || names() == json!(["two", "three", "one"]));
    world.go("tasks?sort=name&kind=build");
    wait_for("of a kind", SOON, || names() == json!(["one", "two"]));
    for (query, found) in [
        ("subject=three", json!(["three"])),
        ("text=TWO", json!(["two"])),
        ("priority=4", json!(["two"])),
        ("state=Running", json!([])),
        ("state=Created&text=three", json!(["three"])),
        ("namespace=other", json!([])),
        ("labels=a%3Db", json!([])),
    ] {
        world.go(&format!("tasks?{query}"));
        assert_eq!(names(), found, "{query}");
    }
    world.go("tasks?labels=%3D%3D");
    world.browser.sees(".problem", "cannot be selected by");
    world.go("tasks?sort=name");
    world.browser.click("input[value='default/one']");
    world.browser.click("input[value='default/three']");
    world.browser.type_into("input[name=priority][size]", "42");
    world.browser.send("button[value=prioritise]");
    world.browser.sees(".said", "2 done");
    assert_eq!(world.stored("tasks/three")["spec"]["priority"], 42);
    world.browser.click("input[data-all]");
    world.browser.send("button[value=cancel]");
    world.browser.sees(".said", "3 done");
    for name in ["one", "two", "three"] {
        world.wait_for_state(&format!("tasks/{name}"), "Canceled");
    }
    wait_for("it is seen", SOON, || world.browser.count("table.tasks .state.Canceled") == 3);
}

#[test]
fn a_task_shows_why_it_waits_then_its_log_then_how_it_ended() {
    let world = World::new();
    world.task("first", "echo begins; read line < $PWD/never || sleep 600");
    world.task("second", "sleep 600");
    world.task("third", "true");
    world.wait_for_state("tasks/first", "Running");
    world.go("tasks/default/third");
    world.browser.sees(".why", "Why");
    world.go("tasks/default/first");
    world.browser.sees("#log", "begins");
    world.browser.type_into("#log-find", "BEG");
    world.browser.sees("#log mark", "beg");
    world.browser.send("button[value=cancel]");
    world.browser.sees(".standing", "Canceled");
    world.browser.send("button[value=retry]");
    world.browser.sees(".said", "1 done");
    let again = || {
        let all = world.stored("tasks");
        all["items"].as_array().is_some_and(|all| {
            all.iter().any(|task| task["metadata"]["annotations"]["muster.dev/retry-of"] == "first")
        })
    };
    wait_for("it is made again", SOON, again);
}

#[test]
fn what_waits_is_shown_in_the_state_that_the_api_says() {
    let world = World::new();
    world.make("applications", "Application", "app", &json!({}));
    let command = json!({"command": ["sleep", "600"]});
    let about = json!({"subject": {"kind": "Application", "name": "app"}, "container": command.clone()});
    world.make("tasks", "Task", "first", &about);
    world.wait_for_state("tasks/first", "Running");
    world.make("tasks", "Task", "second", &about);
    let huge = json!({"resources": {"memory": "1Ei"}, "container": command.clone()});
    world.make("tasks", "Task", "huge", &huge);
    world.make("tasks", "Task", "created", &json!({"suspend": true, "container": command}));
    world.go("tasks");
    for (name, state) in
        [("first", "Running"), ("second", "Postponed"), ("huge", "QuotaBlocked"), ("created", "Created")]
    {
        world.wait_for_state(&format!("tasks/{name}"), state);
        let script = format!(
            "return [...document.querySelectorAll('table.tasks tbody tr')].filter(e => \
             e.querySelector('td:nth-child(2)').textContent == '{name}').map(e => \
             e.querySelector('.state').textContent.trim())"
        );
        wait_for(&format!("{name} is shown as {state}"), SOON, || {
            world.browser.run(&script) == json!([state])
        });
    }
}

#[test]
fn a_task_that_waits_names_what_it_waits_for_and_what_that_waits_for() {
    let world = World::new();
    let steps = ["dig", "pour", "build"]
        .map(|name| json!({"name": name, "spec": {"container": {"command": ["sleep", "600"]}}}));
    world.make("taskgroups", "TaskGroup", "house", &json!({"mode": "pipeline", "tasks": steps}));
    wait_for("all are made", SOON, || world.http.get(&format!("{API}/tasks/house-build")).code == 200);
    world.wait_for_state("tasks/house-dig", "Running");
    world.go("tasks/default/house-build");
    world.browser.sees("ol.waits li:nth-child(1)", "waits for default/house-pour");
    world.browser.sees("ol.waits li:nth-child(2)", "which waits for default/house-dig");
    world.browser.sees("ol.waits li:nth-child(2)", "Running");
    world.browser.click("ol.waits li:nth-child(2) a");
    world.browser.sees("h1", "house-dig");
    world.make("applications", "Application", "car", &json!({}));
    for (kind, needs) in [("wash", json!([])), ("dry", json!(["wash"]))] {
        world.make("taskkinds", "TaskKind", kind, &json!({"dependencies": needs}));
        let spec = json!({
            "kind": kind, "subject": {"kind": "Application", "name": "car"}, "container": {"command": ["sleep", "600"]},
        });
        world.make("tasks", "Task", &format!("{kind}-it"), &spec);
    }
    world.go("tasks/default/dry-it");
    world.browser.sees("ol.waits li:nth-child(1)", "waits for default/wash-it");
}

#[test]
fn a_log_is_followed_line_by_line() {
    let world = World::new();
    world.task("counts", "n=0; while [ $n -lt 300 ]; do n=$((n+1)); echo line $n; sleep 0.1; done");
    world.wait_for_state("tasks/counts", "Running");
    world.go("tasks/default/counts");
    world.browser.sees("#log", "line 1");
    let lines = || {
        let shown =
            world.browser.run("return document.getElementById('log').textContent.split('\\n').length");
        shown.as_u64().unwrap_or(0)
    };
    let before = lines();
    wait_for("more lines", SOON, || lines() >= before + 3);
}

#[test]
fn a_job_is_drawn_with_its_states_and_its_times() {
    let world = World::new();
    let group = |name: &str, after: &[&str], when: &str, script: &str| {
        json!({
            "name": name, "dependsOn": after, "when": when,
            "tasks": [{"name": "t", "spec": {"container": {"command": ["sh", "-c", script]}}}],
        })
    };
    let groups = json!([
        group("build", &[], "succeeded", "true"),
        group("test", &["build"], "succeeded", "exit 1"),
        group("alarm", &["test"], "failed", "true"),
        group("ship", &["test"], "succeeded", "true"),
    ]);
    world.make("jobs", "Job", "release", &json!({"taskGroups": groups, "failurePolicy": "continue"}));
    world.go("jobs/default/release");
    wait_for("all groups are drawn", SOON, || world.browser.count("svg.dag g.group") == 4);
    assert_eq!(world.browser.count("svg.dag path.edge"), 3);
    wait_for("how it ended is drawn", SOON, || {
        ["Succeeded", "Failed", "Skipped"]
            .iter()
            .all(|state| world.browser.count(&format!("svg.dag g.{state}")) > 0)
    });
    wait_for("times are drawn", SOON, || world.browser.count("svg.gantt rect") == 3);
    world.go("jobs");
    world.browser.sees("table", "release");
}

#[test]
fn a_schedule_shows_its_times_and_runs_now() {
    let world = World::new();
    let spec = json!({
        "schedulePolicy": {"timeSpec": "0 3 * * *", "timeZone": "Europe/Berlin"},
        "template": {"spec": {"container": {"command": ["true"]}}},
    });
    world.make("schedules", "Schedule", "nightly", &spec);
    world.go("schedules/default/nightly");
    world.browser.sees(".facts", "0 3 * * *");
    assert!(world.browser.count("table.calendar td b") >= 20, "the days to come have runs");
    world.browser.send("button[value=run]");
    world.browser.sees(".said", "1 done");
    wait_for("a run was made", SOON, || {
        let all = world.stored("tasks");
        all["items"].as_array().is_some_and(|all| {
            all.iter()
                .any(|task| task["metadata"]["name"].as_str().unwrap_or_default().starts_with("nightly-now-"))
        })
    });
    world.browser.send("button[value=pause]");
    world.browser.sees(".said", "1 done");
    assert_eq!(world.stored("schedules/nightly")["spec"]["suspend"], true);
    world.browser.type_into("input[name=from]", "yesterday");
    world.browser.send("button[value=backfill]");
    world.browser.sees(".said", "from: ");
}

#[test]
fn resources_and_sinks_have_their_pages() {
    let world = World::new();
    let of_type = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "ResourceType", "metadata": {"name": "lamps"},
        "spec": {"names": {"kind": "Lamp", "plural": "lamps"}, "adapters": ["bulb"]},
    });
    let answer = world.http.post("/apis/muster.dev/v1alpha1/resourcetypes", &of_type.to_string());
    assert_eq!(answer.code, 201, "{}", answer.text());
    let lamp = json!({
        "apiVersion": "resources.muster.dev/v1alpha1", "kind": "Lamp", "metadata": {"name": "desk"}, "spec": {},
    });
    let answer =
        world.http.post("/apis/resources.muster.dev/v1alpha1/namespaces/default/lamps", &lamp.to_string());
    assert_eq!(answer.code, 201, "{}", answer.text());
    world.go("resources");
    world.browser.sees("table.matrix", "desk");
    world.browser.sees("table.matrix thead", "bulb");
    world.browser.click("table.matrix tbody a");
    world.browser.sees("h1", "desk");
    wait_for("both conditions are drawn over time", SOON, || {
        world.browser.count("svg.timeline rect.Failed") == 2
    });
    let report = json!({
        "adapter": "bulb", "observedGeneration": 1,
        "conditions": (["Available", "Applied", "Health"].map(|it| json!({"type": it, "status": "True"}))),
    });
    let place = "/apis/resources.muster.dev/v1alpha1/namespaces/default/lamps/desk/statuses";
    let answer = world.http.put(place, &report.to_string());
    assert!((200..300).contains(&answer.code), "{}", answer.text());
    wait_for("the turn is drawn", SOON, || world.browser.count("svg.timeline rect.Succeeded") == 2);
    world.go("sinks");
    world.browser.sees(".nothing", "Nobody is told");
    world.make("eventsinks", "EventSink", "book", &json!({"file": {"path": "book.jsonl"}}));
    world.browser.sees("table", "book");
    world.browser.send("button[value=pause]");
    world.browser.sees(".said", "1 done");
    world.browser.sees("table button", "Resume");
}

#[test]
fn robots_are_shown_as_they_are_and_drained_by_a_button() {
    let port = free_port();
    let world = World::with(&["--mqtt-listen", &format!("127.0.0.1:{port}"), "--robot-approval", "manual"]);
    world.go("robots");
    world.browser.sees(".nothing", "No robot has joined");
    let (dir, token) = (tempfile::tempdir().unwrap(), world.server.new_join_token("join"));
    let flags = ["--label", "zone=north", "--max-tasks", "3"];
    let _robot = Agent::start("arm-1", &format!("mqtt://127.0.0.1:{port}"), &token, dir.path(), &flags);
    world.browser.sees("article.robot h2", "arm-1");
    world.browser.sees("article.robot .state", "Pending");
    world.browser.sees("article.robot", "0 of 3 running");
    world.browser.sees("article.robot .labels", "zone=north");
    world.browser.send("button[value=approve]");
    world.browser.sees("article.robot .state", "Online");
    assert_eq!(world.browser.count("article.robot time"), 1, "when it was heard of");
    let spec = json!({"runtime": "robot", "container": {"command": ["sleep", "600"]}});
    world.make("tasks", "Task", "moves", &spec);
    world.browser.sees("article.robot", "1 of 3 running");
    world.browser.send("button[value=drain]");
    world.browser.sees(".said", "1 done");
    world.browser.sees("article.robot", "drained");
    assert_eq!(world.stored("robots/arm-1")["spec"]["unschedulable"], true);
    world.browser.send("button[value=undrain]");
    wait_for("it is taken back", SOON, || world.stored("robots/arm-1")["spec"]["unschedulable"].is_null());
}

#[test]
fn what_is_submitted_is_checked_before_it_is_made() {
    let world = World::new();
    world.go("submit?kind=Job");
    world.browser.send("button[value=check]");
    world.browser.sees(".said", "The server would take this");
    assert_eq!(world.stored("jobs")["items"], json!([]));
    world.go("submit");
    let bad =
        "apiVersion: muster.dev/v1alpha1\nkind: Task\nmetadata:\n  name: typed\nspec:\n  prioritee: 3\n";
    world.browser.type_into("textarea[name=yaml]", bad);
    world.browser.send("button[value=create]");
    world.browser.sees(".problem", "prioritee");
    world.browser.type_into(
        "textarea[name=yaml]",
        &bad.replace("prioritee: 3", "priority: 3\n  suspend: true\n  container: {command: [echo]}"),
    );
    world.browser.send("button[value=create]");
    world.browser.sees("h1", "typed");
    assert_eq!(world.stored("tasks/typed")["spec"]["priority"], 3);
    world.go("submit/form");
    world.browser.type_into("input[name='metadata.name']", "formed");
    world.browser.type_into("textarea[name=command]", "echo\nfrom a form");
    world.browser.type_into("input[name='spec.priority']", "9");
    world.browser.send("button[value=fill]");
    world.browser.send("button[value=create]");
    world.browser.sees("h1", "formed");
    let made = world.stored("tasks/formed");
    assert_eq!(made["spec"]["container"]["command"], json!(["echo", "from a form"]));
    assert_eq!(made["spec"]["priority"], 9);
}

#[test]
fn pages_can_be_read_without_a_script() {
    let world = World::new();
    world.task("plain", "true");
    world.wait_for_state("tasks/plain", "Succeeded");
    let cookie = format!("muster_token={}", world.server.admin_token());
    let read = |path: &str| world.http.with_token(None).request("GET", path).header("Cookie", &cookie).send();
    let page = read("/ui/tasks").text();
    assert!(page.contains("plain") && page.contains("Succeeded"), "{page}");
    assert_eq!(read("/ui/tasks/default/nobody").code, 404);
}
