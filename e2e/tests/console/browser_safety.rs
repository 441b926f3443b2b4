//! Who may do what, and that nothing that users write runs.

use muster_e2e::wait::{SOON, wait_for};
use serde_json::json;

use crate::world::World;

#[test]
fn a_viewer_sees_no_buttons_and_is_refused() {
    let world = World::new();
    world.task("calm", "sleep 600");
    let viewer = world.server.new_token("guest", "viewer");
    world.browser.send("form.who button");
    world.browser.sees("h1", "Muster");
    world.sign_in(&viewer);
    world.browser.sees(".who", "guest");
    assert!(!world.browser.text("nav").unwrap_or_default().contains("Submit"));
    world.go("tasks/default/calm");
    world.browser.sees(".standing", "Running");
    assert_eq!(world.browser.count("button[name=verb]"), 0);
    let script = "const f = document.createElement('form'); f.method = 'post'; f.action = '/ui/act'; \
        for (const [n, v] of [['kind', 'tasks'], ['path', 'default/calm'], ['verb', 'cancel']]) { \
        const i = document.createElement('input'); i.name = n; i.value = v; f.append(i); } \
        document.body.append(f); f.submit();";
    world.browser.run(script);
    world.browser.sees(".problem", "may look, and change nothing");
    assert_eq!(world.stored("tasks/calm")["spec"]["cancel"], json!(null));
}

#[test]
fn a_wrong_token_is_refused_and_a_revoked_one_sees_nothing_more() {
    let world = World::new();
    world.browser.send("form.who button");
    world.browser.type_into("input[name=token]", "wrong");
    world.browser.send("form button");
    world.browser.sees(".problem", "unknown, expired or revoked");
    let token = world.server.new_token("short", "viewer");
    world.sign_in(&token);
    let revoked = world.http.request("DELETE", "/tokens/short").send();
    assert!(revoked.code < 300, "{}", revoked.text());
    world.browser.go(&world.place("tasks"));
    world.browser.sees(".problem", "revoked");
}

#[test]
fn a_script_in_a_log_or_in_a_field_does_not_run() {
    let world = World::new();
    let attack = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">";
    let spec = json!({
        "name": attack, "locator": attack,
        "container": {"command": ["sh", "-c", "printf '%s\\n' \"$0\"; echo seen", attack]},
    });
    world.make("tasks", "Task", "attack", &spec);
    world.wait_for_state("tasks/attack", "Succeeded");
    // A subject that cannot exist: its task is shown while it waits for it.
    let about = json!({
        "subject": {"kind": "Application", "name": attack}, "container": {"command": ["true"]},
    });
    world.make("tasks", "Task", "attack-about", &about);
    for page in [
        "tasks",
        "tasks/default/attack",
        "tasks/default/attack-about",
        "?said=%3Cscript%3Edocument.title%3D%27owned%27%3C/script%3E",
    ] {
        world.go(page);
        wait_for("it was made anew", SOON, || {
            world.browser.run("return document.documentElement.dataset.version") != json!(null)
        });
        let title = world.browser.run("return document.title");
        assert!(!title.as_str().unwrap_or_default().contains("owned"), "{page}: {title}");
    }
    world.go("tasks/default/attack");
    world.browser.sees("#log", "seen");
    assert_eq!(world.browser.count("#log script, #log img, main img"), 0);
    world.go("tasks/default/attack/log");
    world.browser.sees("body", "seen");
    assert_eq!(world.browser.count("img, body script"), 0);
}

#[test]
fn requests_of_other_sites_change_nothing() {
    let world = World::new();
    world.task("calm", "sleep 600");
    let cookie = format!("muster_token={}", world.server.admin_token());
    let send = |headers: &[(&str, &str)]| {
        let request = world.http.with_token(None).request("POST", "/ui/act").header("Cookie", &cookie);
        let request = request.header("Content-Type", "application/x-www-form-urlencoded");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        request.body("kind=tasks&path=default%2Fcalm&verb=cancel").send()
    };
    assert_eq!(send(&[("Origin", "https://example.com")]).code, 403);
    assert_eq!(send(&[]).code, 403);
    assert_eq!(send(&[("Sec-Fetch-Site", "cross-site")]).code, 403);
    assert_eq!(world.stored("tasks/calm")["spec"]["cancel"], json!(null));
    let origin = format!("http://{}", world.server.address());
    assert_eq!(send(&[("Origin", &origin)]).code, 303);
    assert_eq!(world.stored("tasks/calm")["spec"]["cancel"], true);
}

#[test]
fn answers_say_what_a_browser_may_do_with_them() {
    let world = World::new();
    let answer = world.http.with_token(None).get("/ui/");
    let policy = answer.header("content-security-policy").unwrap_or_default().to_owned();
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.header("x-frame-options"), Some("DENY"));
}
