//! A real browser: headless Chromium, told what to do in the words of WebDriver.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::brokers::{OwnProcess, free_port, program, takes_connections};
use crate::http::Http;
use crate::wait::{SOON, holds_within, wait_for};

/// A browser on a busy machine.
const SLOW: Duration = Duration::from_mins(1);
/// The name of the reference to an element, by the standard.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// One window of a browser of one's own.
pub struct Browser {
    http: Http,
    session: String,
    // Before the directory it works in.
    _driver: OwnProcess,
    _dir: TempDir,
}

impl Browser {
    /// Opens one.
    pub fn open() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory can be made");
        let port = free_port();
        let mut command = Command::new(program("MUSTER_CHROMEDRIVER"));
        command.arg(format!("--port={port}")).env("HOME", dir.path());
        let driver = OwnProcess::start(command, dir.path(), "chromedriver");
        wait_for("the driver of the browser", SLOW, || takes_connections(port));
        let http = Http::new(&format!("127.0.0.1:{port}"), None);
        let profile = format!("--user-data-dir={}", dir.path().join("profile").display());
        let arguments = [
            "--headless=new",
            // Tests run as root, which Chromium otherwise refuses.
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--window-size=1280,900",
            &profile,
        ];
        let options = json!({ "args": arguments });
        let wanted = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}});
        let answer = http.post("/session", &wanted.to_string());
        assert_eq!(answer.code, 200, "{}", answer.text());
        let session = answer.json()["value"]["sessionId"].as_str().unwrap_or_default().to_owned();
        Self { http, session, _driver: driver, _dir: dir }
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let path = format!("/session/{}{path}", self.session);
        let request = self.http.request(method, &path);
        let request = if method == "POST" { request.json(&body.to_string()) } else { request };
        let answer = request.send();
        let said = answer.json()["value"].clone();
        if answer.code == 200 {
            Ok(said)
        } else {
            Err(said["message"].as_str().unwrap_or_default().to_owned())
        }
    }

    /// Goes to an address, and waits until it is there.
    #[track_caller]
    pub fn go(&self, url: &str) {
        self.call("POST", "/url", &json!({ "url": url })).expect("a page can be opened");
    }

    /// Runs a script in the page; what it returns.
    #[track_caller]
    pub fn run(&self, script: &str) -> Value {
        self.call("POST", "/execute/sync", &json!({"script": script, "args": []})).expect("a script runs")
    }

    /// The text that is seen of the first element that a selector finds; `None` if there is none.
    pub fn text(&self, selector: &str) -> Option<String> {
        let element = self.find(selector)?;
        self.call("GET", &format!("/element/{element}/text"), &Value::Null).ok()?.as_str().map(str::to_owned)
    }

    /// How many elements a selector finds.
    pub fn count(&self, selector: &str) -> usize {
        let found = self.run(&format!("return document.querySelectorAll({}).length", json!(selector)));
        usize::try_from(found.as_u64().unwrap_or_default()).unwrap_or_default()
    }

    fn find(&self, selector: &str) -> Option<String> {
        let wanted = json!({"using": "css selector", "value": selector});
        self.call("POST", "/element", &wanted).ok()?[ELEMENT].as_str().map(str::to_owned)
    }

    /// Waits until the page shows a text, somewhere in what a selector finds first.
    #[track_caller]
    pub fn sees(&self, selector: &str, text: &str) {
        let seen = || self.text(selector).is_some_and(|shown| shown.contains(text));
        assert!(
            holds_within(SOON, seen),
            "{selector} does not show {text:?}; the page is\n{}",
            self.text("body").unwrap_or_default()
        );
    }

    /// Clicks on what a selector finds, once it is there.
    #[track_caller]
    pub fn click(&self, selector: &str) {
        let click = || {
            let Some(element) = self.find(selector) else { return false };
            self.call("POST", &format!("/element/{element}/click"), &json!({})).is_ok()
        };
        assert!(holds_within(SOON, click), "{selector} cannot be clicked");
    }

    /// Clicks on what sends a form, and waits for the page that answers: what is read next is never of the page before.
    #[track_caller]
    pub fn send(&self, selector: &str) {
        self.run("document.isBefore = true");
        self.click(selector);
        // Between two pages there is none, and a script does not run.
        let script = json!({"script": "return document.isBefore !== true && document.readyState === 'complete'", "args": []});
        let answered = || self.call("POST", "/execute/sync", &script).is_ok_and(|it| it == true);
        assert!(holds_within(SOON, answered), "nothing answered after a click on {selector}");
    }

    /// Types into what a selector finds, once it is there; what was in it goes.
    #[track_caller]
    pub fn type_into(&self, selector: &str, text: &str) {
        wait_for(selector, SOON, || self.find(selector).is_some());
        let element = self.find(selector).unwrap_or_default();
        self.call("POST", &format!("/element/{element}/clear"), &json!({})).expect("a field can be emptied");
        self.call("POST", &format!("/element/{element}/value"), &json!({ "text": text }))
            .expect("one can type");
    }

    /// The address of the page.
    pub fn address(&self) -> String {
        let address = self.call("GET", "/url", &Value::Null).unwrap_or_default();
        address.as_str().unwrap_or_default().to_owned()
    }

    /// Another size of the window.
    pub fn resize(&self, width: u32, height: u32) {
        self.call("POST", "/window/rect", &json!({"width": width, "height": height}))
            .expect("a window has a size");
    }

    /// From now on somebody who prefers dark pages looks.
    pub fn prefer_dark(&self) {
        let dark = json!({"features": [{"name": "prefers-color-scheme", "value": "dark"}]});
        let command = json!({"cmd": "Emulation.setEmulatedMedia", "params": dark});
        self.call("POST", "/goog/cdp/execute", &command).expect("a preference can be set");
    }

    /// Writes a picture of the page.
    pub fn picture(&self, path: &Path) {
        let picture = self.call("GET", "/screenshot", &Value::Null).unwrap_or_default();
        let bytes = base64::Engine::decode(
            &base64::engine::general_purpose::STANDARD,
            picture.as_str().unwrap_or_default(),
        );
        std::fs::write(path, bytes.expect("a picture in base64")).expect("a picture can be written");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The driver ends its browser; if it cannot, it ends with the test.
        drop(self.call("DELETE", "", &Value::Null));
    }
}
