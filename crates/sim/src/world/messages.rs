//! Sinks of a seed: one is there from the beginning, another comes later; users suspend that one for a while.

use muster_types::EventSink;
use serde_json::{Value, json};

use super::World;

/// How the sink that comes later is called.
const LATER: &str = "events";

impl World {
    pub(super) async fn declare_sinks(&mut self) -> Result<(), String> {
        let sink = self.object("EventSink", "cds", 0x5000, &json!({"amqp": {"url": "amqp://broker"}}));
        self.create::<EventSink>("eventsinks", sink).await
    }

    /// A second sink comes, is suspended and goes on.
    pub(super) async fn ask_sinks(&mut self) -> Result<(), String> {
        if !self.dice.once_in(60) {
            return Ok(());
        }
        if self.all("eventsinks").len() > 1 {
            let toggle = |it: &mut Value| it["spec"]["suspend"] = json!(it["spec"]["suspend"] != true);
            return self.patch::<EventSink>("eventsinks", LATER, toggle).await;
        }
        let spec = json!({"file": {"path": "events"}, "window": 1 + self.dice.below(8)});
        let sink = self.object("EventSink", LATER, 0x5001, &spec);
        self.create::<EventSink>("eventsinks", sink).await
    }

    /// The broker works, and nobody keeps a sink from it.
    pub(super) async fn calm_sinks(&mut self) -> Result<(), String> {
        self.sinks.calm_down();
        self.patch::<EventSink>("eventsinks", LATER, |it| it["spec"]["suspend"] = json!(false)).await
    }
}
