//! The sink of a seed: it is there from the beginning, or comes later and is then suspended for a while.
//!
//! There is one, because those who follow the same store are woken in no certain order.

use muster_types::EventSink;
use serde_json::{Value, json};

use super::World;

/// How the sink is called that is there from the beginning, and the one that comes later.
const FIRST: &str = "cds";
const LATER: &str = "events";

impl World {
    pub(super) async fn declare_sinks(&mut self) -> Result<(), String> {
        if self.dice.once_in(2) {
            return Ok(());
        }
        let spec = self.sink_spec();
        let sink = self.object("EventSink", FIRST, 0x5000, &spec);
        self.create::<EventSink>("eventsinks", sink).await
    }

    fn sink_spec(&mut self) -> Value {
        if self.dice.once_in(2) {
            return json!({"amqp": {"url": "amqp://broker"}});
        }
        json!({"file": {"path": "events"}, "window": 1 + self.dice.below(8)})
    }

    /// A sink comes, is suspended and goes on.
    pub(super) async fn ask_sinks(&mut self) -> Result<(), String> {
        if !self.dice.once_in(25) {
            return Ok(());
        }
        if !self.all("eventsinks").is_empty() {
            return self
                .patch::<EventSink>("eventsinks", LATER, |it| suspend(it, it["spec"]["suspend"] != true))
                .await;
        }
        let spec = self.sink_spec();
        let sink = self.object("EventSink", LATER, 0x5001, &spec);
        self.create::<EventSink>("eventsinks", sink).await
    }

    /// The broker works, and nobody keeps a sink from it.
    pub(super) async fn calm_sinks(&mut self) -> Result<(), String> {
        self.sinks.calm_down();
        self.patch::<EventSink>("eventsinks", LATER, |it| suspend(it, false)).await
    }
}

/// As the API does: a sink that was told nothing yet says where it begins when it is changed.
fn suspend(sink: &mut Value, on: bool) {
    let version = sink["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse::<u64>().ok());
    if sink["spec"]["suspend"] != true && sink["status"]["confirmedRevision"].is_null() {
        sink["status"]["confirmedRevision"] = json!(version);
    }
    sink["spec"]["suspend"] = json!(on);
}
