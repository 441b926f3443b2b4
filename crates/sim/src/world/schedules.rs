//! Schedules of a seed: some follow the clock, one follows the ends of other work; users suspend them and ask for backfills.

use muster_ports::clock::{Clock as _, Millis};
use muster_types::Schedule;
use serde_json::{Value, json};

use super::World;

/// Schedules that follow the clock.
const TIMED: u64 = 3;
/// Backfills of one seed.
const BACKFILLS: u64 = 3;
const MINUTE: i64 = 60_000;

/// How much was asked for.
#[derive(Debug, Default)]
pub struct Planned {
    schedules: u64,
    backfills: u64,
}

impl Planned {
    /// Somebody asked for a schedule.
    pub fn has_any(&self) -> bool {
        self.schedules > 0
    }
}

impl World {
    /// Users make schedules, suspend them, and ask for runs of the past.
    pub(super) async fn ask_schedules(&mut self) -> Result<(), String> {
        if self.planned.schedules <= TIMED && self.dice.once_in(10) {
            self.planned.schedules += 1;
            let number = self.planned.schedules;
            let spec = if number > TIMED { self.triggered_spec() } else { self.timed_spec() };
            let schedule = self.object("Schedule", &format!("p{number}"), 0x4000 + number, &spec);
            self.create::<Schedule>("schedules", schedule).await?;
        }
        if self.dice.once_in(50) {
            let names = self.names("schedules");
            let Some(name) = self.dice.pick(&names).cloned() else { return Ok(()) };
            let toggle = |it: &mut Value| it["spec"]["suspend"] = json!(it["spec"]["suspend"] != true);
            self.patch::<Schedule>("schedules", &name, toggle).await?;
        }
        if self.planned.backfills < BACKFILLS && self.dice.once_in(20) {
            self.ask_backfill().await?;
        }
        Ok(())
    }

    fn timed_spec(&mut self) -> Value {
        let specs = ["R/PT1M", "R6/PT1M", "*/3 * * * *", "R/2027-01-15T08:00:00Z/PT5M", "* * * * *"];
        let spec = self.dice.pick(&specs).copied().unwrap_or("R/PT1M");
        let mut policy = match self.dice.below(7) {
            0 | 1 => json!({"allowConcurrent": true, "skipOutdated": false}),
            2 => json!({"concurrency": "Queue"}),
            3 => json!({"concurrency": "Replace"}),
            4 => json!({"allowConcurrent": true, "jitter": "30s"}),
            5 => json!({"allowConcurrent": true}),
            _ => json!({}),
        };
        policy["timeSpec"] = json!(spec);
        let mut spec = json!({"schedulePolicy": policy, "template": self.run_template()});
        if self.dice.once_in(3) {
            spec["successfulHistoryLimit"] = json!(2);
        }
        spec
    }

    fn triggered_spec(&mut self) -> Value {
        let policy = if self.dice.once_in(2) { json!({"allowConcurrent": true}) } else { json!({}) };
        let mut template = self.run_template();
        template["metadata"] = json!({});
        json!({
            "schedulePolicy": policy, "template": template,
            "triggers": [{"on": {"kind": "Task", "selector": {"base": "yes"}, "outcome": "Completed"}}],
        })
    }

    fn run_template(&mut self) -> Value {
        let labels = if self.dice.once_in(2) { json!({"base": "yes"}) } else { json!({}) };
        json!({
            "metadata": {"labels": labels},
            "spec": {"container": {"command": ["true"]}, "priority": self.dice.below(4)},
        })
    }

    /// Some minutes of the past are asked for, and sometimes of the future.
    async fn ask_backfill(&mut self) -> Result<(), String> {
        let names = self.names("schedules");
        let Some(name) = self.dice.pick(&names).cloned() else { return Ok(()) };
        self.planned.backfills += 1;
        let mut minutes = |most: u64| i64::try_from(self.dice.below(most)).unwrap_or(0) * MINUTE;
        let from = self.clock.wall().0 - minutes(10);
        let to = from + MINUTE + minutes(12);
        let (from, to) = (Millis(from).to_timestamp(), Millis(to).to_timestamp());
        let number = self.planned.backfills;
        let most = 1 + self.dice.below(3);
        let ask = |it: &mut Value| {
            let policy = &it["spec"]["schedulePolicy"];
            if policy["timeSpec"].is_null() {
                return;
            }
            let mut backfill = json!({"name": format!("b{number}"), "from": from, "to": to});
            // More than one at once is refused where runs may not overlap.
            if policy["allowConcurrent"] == true {
                backfill["maxActive"] = json!(most);
            }
            let mut all = it["spec"]["backfills"].as_array().cloned().unwrap_or_default();
            all.push(backfill);
            it["spec"]["backfills"] = json!(all);
        };
        self.patch::<Schedule>("schedules", &name, ask).await
    }

    /// In a quiet world schedules make nothing more.
    pub(super) async fn calm_schedules(&mut self) -> Result<(), String> {
        for schedule in self.all("schedules").iter().filter(|it| it["spec"]["suspend"] != true) {
            let name = schedule["metadata"]["name"].as_str().unwrap_or_default();
            self.patch::<Schedule>("schedules", name, |it| it["spec"]["suspend"] = json!(true)).await?;
        }
        Ok(())
    }
}
