//! Writes of every sort, one after the other, each recorded with what became of it.
//!
//! Most writers have objects of their own and know what to expect of them; the last two share theirs and expect
//! conflicts. After a write without an answer the writer reads the object before it goes on.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::load::connection::{Answer, Connection};
use crate::load::history::{Effect, Outcome, Write, Written};
use crate::load::random::Random;
use crate::load::version::{Version, content};
use crate::load::{NAMESPACES, Shared, WRITERS};

/// Objects of one writer.
const OBJECTS: u64 = 12;
const TEAMS: [&str; 3] = ["red", "green", "blue"];
const HOLD: &str = "example.com/hold";

/// What a writer believes of an object.
#[derive(Debug, Clone)]
enum Belief {
    Absent,
    Present(Version),
    /// A write had no answer, or somebody else was faster.
    Unsure,
}

/// A writer.
pub struct Writer {
    number: usize,
    random: Random,
    writes_begun: u64,
    beliefs: BTreeMap<String, Belief>,
    written: Written,
}

impl Writer {
    /// The writer of this number.
    pub fn new(number: usize, random: Random) -> Self {
        Self { number, random, writes_begun: 0, beliefs: BTreeMap::new(), written: Written::default() }
    }

    /// Its record.
    pub fn into_written(self) -> Written {
        self.written
    }

    /// Writes until the gate is closed.
    pub fn run(mut self, shared: &Shared) -> Written {
        let mut start = 0;
        while let Some(next) = shared.gate.wait_beyond(start) {
            start = next;
            // Whatever breaks, it goes on with the next start of the server.
            let broke = shared.connect().and_then(|mut connection| self.write_on(shared, &mut connection));
            if broke.is_ok() {
                break;
            }
        }
        if !shared.gate.is_closed() {
            self.written.troubles.push(format!("writer {} waited in vain for the server", self.number));
        }
        self.written
    }

    fn write_on(&mut self, shared: &Shared, connection: &mut Connection) -> io::Result<()> {
        while !shared.gate.is_closed() {
            let name = self.choose_name();
            let belief = self.beliefs.get(&name).cloned().unwrap_or(self.first_belief());
            match belief {
                Belief::Absent => self.create(shared, connection, &name)?,
                Belief::Unsure => self.read(connection, &name)?,
                Belief::Present(version) if version.deleting => {
                    self.let_go(shared, connection, &name, &version)?;
                }
                Belief::Present(version) => self.change(shared, connection, &name, &version)?,
            }
        }
        Ok(())
    }

    /// True if others write to its objects too.
    fn shares(&self) -> bool {
        self.number + 2 == WRITERS || self.number + 1 == WRITERS
    }

    fn first_belief(&self) -> Belief {
        if self.shares() { Belief::Unsure } else { Belief::Absent }
    }

    fn choose_name(&mut self) -> String {
        if self.shares() {
            return format!("shared-{}", self.random.below(3));
        }
        format!("w{}-{}", self.number, self.random.below(OBJECTS))
    }

    fn namespace(&self) -> &'static str {
        if self.shares() { NAMESPACES[0] } else { NAMESPACES[self.number % NAMESPACES.len()] }
    }

    fn collection(&self) -> String {
        format!("/apis/muster.dev/v1alpha1/namespaces/{}/applications", self.namespace())
    }

    fn target(&self, name: &str) -> String {
        format!("{}/{name}", self.collection())
    }

    fn new_token(&mut self) -> String {
        self.writes_begun += 1;
        format!("w{}-{}", self.number, self.writes_begun)
    }

    fn new_content(&mut self, token: &str) -> Value {
        let team = *self.random.choose(&TEAMS);
        let filler = usize::try_from(self.random.below(600)).unwrap_or(0);
        content(token, team, filler)
    }

    fn create(&mut self, shared: &Shared, connection: &mut Connection, name: &str) -> io::Result<()> {
        let token = self.new_token();
        let mut object = self.new_content(&token);
        object["apiVersion"] = json!("muster.dev/v1alpha1");
        object["kind"] = json!("Application");
        object["metadata"]["name"] = json!(name);
        if self.random.below(4) == 0 {
            object["metadata"]["finalizers"] = json!([HOLD]);
        }
        let request = ("POST", self.collection(), "application/json", object.to_string());
        self.put(shared, connection, name, token, request)?;
        if self.random.below(8) == 0 {
            // One whose name the server chooses: nobody touches it again.
            let token = self.new_token();
            let mut object = self.new_content(&token);
            object["apiVersion"] = json!("muster.dev/v1alpha1");
            object["kind"] = json!("Application");
            object["metadata"]["generateName"] = json!(format!("w{}-made-", self.number));
            let request = ("POST", self.collection(), "application/json", object.to_string());
            self.put(shared, connection, "", token, request)?;
        }
        Ok(())
    }

    fn change(
        &mut self,
        shared: &Shared,
        connection: &mut Connection,
        name: &str,
        version: &Version,
    ) -> io::Result<()> {
        let way = self.random.below(if self.shares() { 8 } else { 10 });
        if way >= 8 {
            return self.delete(shared, connection, name, version);
        }
        let token = self.new_token();
        let mut change = self.new_content(&token);
        let target = self.target(name);
        let request = match way {
            0..3 => {
                let mut object = version.document();
                for part in ["/metadata/labels", "/metadata/annotations", "/spec"] {
                    if let (Some(old), Some(new)) = (object.pointer_mut(part), change.pointer_mut(part)) {
                        *old = new.take();
                    }
                }
                ("PUT", target, "application/json", object.to_string())
            }
            3..6 => {
                if self.shares() || way == 3 {
                    change["metadata"]["resourceVersion"] = json!(version.revision.to_string());
                }
                ("PATCH", target, "application/merge-patch+json", change.to_string())
            }
            _ => {
                let steps = json!([
                    { "op": "test", "path": "/metadata/uid", "value": version.uid },
                    { "op": "replace", "path": "/metadata/labels", "value": change["metadata"]["labels"] },
                    { "op": "replace", "path": "/metadata/annotations/token", "value": token },
                    { "op": "replace", "path": "/spec/properties", "value": change["spec"]["properties"] },
                ]);
                ("PATCH", target, "application/json-patch+json", steps.to_string())
            }
        };
        self.put(shared, connection, name, token, request)
    }

    /// Asks for the deletion; an object that is held stays until it is let go.
    fn delete(
        &mut self,
        shared: &Shared,
        connection: &mut Connection,
        name: &str,
        version: &Version,
    ) -> io::Result<()> {
        let held = version.text.contains(HOLD);
        let mut options = json!({ "kind": "DeleteOptions", "apiVersion": "v1" });
        if self.random.below(2) == 0 {
            let preconditions =
                json!({ "uid": version.uid, "resourceVersion": version.revision.to_string() });
            options["preconditions"] = preconditions;
        }
        let uid = version.uid.clone();
        let effect = if held { Effect::Mark(uid) } else { Effect::Delete(uid) };
        let request = ("DELETE", self.target(name), "application/json", options.to_string());
        let answer = self.carry_out(shared, connection, name, effect, request)?;
        self.believe(name, &answer, !held);
        Ok(())
    }

    fn let_go(
        &mut self,
        shared: &Shared,
        connection: &mut Connection,
        name: &str,
        version: &Version,
    ) -> io::Result<()> {
        let change = json!({ "metadata": { "finalizers": null } });
        let request = ("PATCH", self.target(name), "application/merge-patch+json", change.to_string());
        let effect = Effect::Delete(version.uid.clone());
        let answer = self.carry_out(shared, connection, name, effect, request)?;
        self.believe(name, &answer, true);
        Ok(())
    }

    fn put(
        &mut self,
        shared: &Shared,
        connection: &mut Connection,
        name: &str,
        token: String,
        request: Request,
    ) -> io::Result<()> {
        let answer = self.carry_out(shared, connection, name, Effect::Put(token), request)?;
        self.believe(name, &answer, false);
        Ok(())
    }

    fn believe(&mut self, name: &str, answer: &Answer, is_gone: bool) {
        let belief = match Version::parse(&answer.text()) {
            _ if !answer.is_good() => Belief::Unsure,
            _ if is_gone => Belief::Absent,
            Ok(version) => Belief::Present(version),
            Err(_) => Belief::Unsure,
        };
        self.set_belief(name, belief);
    }

    fn set_belief(&mut self, name: &str, belief: Belief) {
        // An object whose name the server chose is left alone.
        if !name.is_empty() {
            self.beliefs.insert(name.to_owned(), belief);
        }
    }

    /// Sends a write and records it with what became of it.
    fn carry_out(
        &mut self,
        shared: &Shared,
        connection: &mut Connection,
        name: &str,
        effect: Effect,
        (method, path, media, body): Request,
    ) -> io::Result<Answer> {
        // From here on it may have happened.
        self.set_belief(name, Belief::Unsure);
        let key = format!("{}/{name}", self.namespace());
        let begun = shared.tick();
        let answer = connection.ask(method, &path, media, &body);
        let ended = shared.tick();
        let outcome = match &answer {
            Ok(answer) if answer.is_good() => {
                shared.acknowledged.fetch_add(1, Ordering::SeqCst);
                self.acknowledged(&effect, answer)
            }
            // A server that is going away does not know either.
            Ok(answer) if answer.code < 500 => Outcome::Refused(answer.code),
            Ok(_) | Err(_) => Outcome::Unknown,
        };
        self.expect(name, &effect, &outcome);
        self.written.writes.push(Write { key, effect, outcome, begun, ended });
        answer
    }

    fn acknowledged(&mut self, effect: &Effect, answer: &Answer) -> Outcome {
        if matches!(effect, Effect::Delete(_)) {
            return Outcome::Acknowledged(None);
        }
        match Version::parse(&answer.text()) {
            Ok(version) => Outcome::Acknowledged(Some(version)),
            Err(why) => {
                self.written.troubles.push(format!("a good answer cannot be read: {why}"));
                Outcome::Unknown
            }
        }
    }

    /// On an object of its own that it was sure about, a writer is refused nothing.
    fn expect(&mut self, name: &str, effect: &Effect, outcome: &Outcome) {
        if let Outcome::Refused(code) = outcome
            && !self.shares()
        {
            self.written.troubles.push(format!("{effect:?} of {name} was refused with {code}"));
        }
    }

    fn read(&mut self, connection: &mut Connection, name: &str) -> io::Result<()> {
        let answer = connection.get(&self.target(name))?;
        let belief = match (answer.code, Version::parse(&answer.text())) {
            (404, _) => Belief::Absent,
            (200, Ok(version)) => {
                self.written.reads.push(version.clone());
                Belief::Present(version)
            }
            (code, parsed) => {
                self.written.troubles.push(format!("a read of {name} answered {code}: {parsed:?}"));
                Belief::Unsure
            }
        };
        self.set_belief(name, belief);
        Ok(())
    }

    /// One write in every namespace for every team: every watcher sees some of them.
    pub fn say_last_words(
        &mut self,
        shared: &Shared,
        connection: &mut Connection,
    ) -> io::Result<Vec<Version>> {
        let mut said = Vec::new();
        for namespace in NAMESPACES {
            for team in TEAMS {
                let token = format!("last-{namespace}-{team}");
                let mut object = content(&token, team, 0);
                object["apiVersion"] = json!("muster.dev/v1alpha1");
                object["kind"] = json!("Application");
                object["metadata"]["name"] = json!(token);
                let path = format!("/apis/muster.dev/v1alpha1/namespaces/{namespace}/applications");
                let begun = shared.tick();
                let answer = connection.ask("POST", &path, "application/json", &object.to_string())?;
                let version = Version::parse(&answer.text()).map_err(io::Error::other)?;
                said.push(version.clone());
                self.written.writes.push(Write {
                    key: version.key.clone(),
                    effect: Effect::Put(token),
                    outcome: Outcome::Acknowledged(Some(version)),
                    begun,
                    ended: shared.tick(),
                });
            }
        }
        Ok(said)
    }
}

/// Method, path, media type and body.
type Request = (&'static str, String, &'static str, String);
