//! What users of a soak ask for: tasks of every sort, groups, jobs and schedules, as those of the simulation do, with programs that
//! really run.

use std::path::PathBuf;

use muster_sim::dice::Dice;
use serde_json::{Value, json};

use crate::program::Life;

/// Applications that tasks are about.
pub const SUBJECTS: u64 = 5;
/// Kinds, and which of them must be done first.
pub const KINDS: [(&str, &[&str]); 3] =
    [("discover", &[]), ("analyze", &["discover"]), ("report", &["analyze"])];
/// Memory that is given out on the machine of a server, in MiB; more than programs use.
pub const MEMORY: u64 = 2048;

/// Makes what users ask for.
pub struct Specs {
    pub dice: Dice,
    /// This program, and where it tells that it runs.
    pub program: PathBuf,
    pub socket: PathBuf,
}

impl Specs {
    /// How a program lives: most are short, some take longer, some fail, and some do not end when they are asked to.
    fn life(&mut self) -> Life {
        let dice = &mut self.dice;
        let millis = match dice.below(12) {
            0..=4 => dice.below(60),
            5..=8 => dice.below(700),
            9 | 10 => dice.below(2_500),
            _ => dice.below(9_000),
        };
        let code = if dice.once_in(8) { *dice.pick(&[1, 3, 137]).unwrap_or(&1) } else { 0 };
        Life { millis, code, is_stubborn: dice.once_in(12) }
    }

    /// A task.
    pub fn task(&mut self) -> Value {
        let container = self.life().container(&self.program, &self.socket);
        let dice = &mut self.dice;
        let kind = KINDS[usize::try_from(dice.below(3)).unwrap_or(0)].0;
        let mut spec = json!({
            "kind": kind,
            "container": container,
            "priority": dice.below(5),
            "killTimeout": format!("{}s", 1 + dice.below(3)),
            "retry": {"limit": dice.below(3), "lostLimit": 50},
        });
        if !dice.once_in(3) {
            spec["subject"] = json!({"kind": "Application", "name": format!("a{}", dice.below(SUBJECTS))});
        }
        if dice.once_in(90) {
            spec["policy"]["isolated"] = json!(true);
        }
        if dice.once_in(4) {
            spec["policy"]["preemptEnabled"] = json!(true);
        }
        if dice.once_in(6) {
            spec["policy"]["preemptExempt"] = json!(true);
        }
        if dice.once_in(15) {
            spec["suspend"] = json!(true);
        }
        for state in ["pending", "running", "succeeded", "failed"] {
            if dice.once_in(12) {
                spec["ttl"][state] = json!(format!("{}s", 2 + dice.below(40)));
            }
        }
        if dice.once_in(8) {
            spec["restart"] = json!({"attempts": dice.below(3)});
            spec["reschedule"] = json!({"attempts": dice.below(3), "delay": "1s", "maxDelay": "2s"});
        }
        if dice.once_in(5) {
            self.make_robotic(&mut spec);
        } else if dice.once_in(4) {
            spec["resources"]["memory"] = json!(format!("{}Mi", 64 * (1 + dice.below(MEMORY / 64))));
        }
        spec
    }

    fn make_robotic(&mut self, spec: &mut Value) {
        let dice = &mut self.dice;
        spec["runtime"] = json!("robot");
        if dice.once_in(2) {
            let zone = if dice.once_in(2) { "even" } else { "odd" };
            spec["robotSelector"] = json!({"zone": zone});
        }
        if dice.once_in(2) {
            let reconcile = if dice.once_in(2) { "keepOriginal" } else { "keepReplacement" };
            spec["disconnect"] = json!({"reconcile": reconcile});
            if dice.once_in(2) {
                spec["disconnect"]["lostAfter"] = json!("8s");
            }
        }
    }

    /// A member waits for nobody for ever: it is no other's dependency that a user suspends.
    fn member(&mut self) -> Value {
        let mut spec = self.task();
        if let Some(spec) = spec.as_object_mut() {
            spec.remove("suspend");
        }
        spec
    }

    /// A group.
    pub fn group(&mut self) -> Value {
        let count = 2 + self.dice.below(3);
        let tasks: Vec<Value> = (0..count).map(|_| json!({"spec": self.member()})).collect();
        match self.dice.below(3) {
            0 => json!({"mode": "pipeline", "tasks": tasks}),
            1 => json!({"mode": "batch", "tasks": tasks}),
            _ => {
                let count = 1 + self.dice.below(6);
                json!({"count": count, "parallelism": 2, "tasks": [{"spec": self.member()}]})
            }
        }
    }

    /// A job.
    pub fn job(&mut self) -> Value {
        let mut groups = Vec::new();
        for place in 0..2 + self.dice.below(3) {
            let mut group = self.group();
            group["name"] = json!(format!("g{place}"));
            let needs: Vec<String> =
                (0..place).filter(|_| self.dice.once_in(2)).map(|earlier| format!("g{earlier}")).collect();
            if !needs.is_empty() {
                group["dependsOn"] = json!(needs);
                let whens = ["succeeded", "succeeded", "failed", "completed"];
                group["when"] = json!(self.dice.pick(&whens));
            }
            groups.push(group);
        }
        let mut spec = json!({"taskGroups": groups});
        if self.dice.once_in(3) {
            spec["failurePolicy"] = json!("stop");
        }
        spec
    }

    /// A schedule.
    pub fn schedule(&mut self) -> Value {
        let times =
            ["R/PT1M", "R12/PT1M", "R40/PT1M", "*/3 * * * *", "R/2026-01-15T08:00:00Z/PT5M", "* * * * *"];
        let mut policy = match self.dice.below(6) {
            0 => json!({"allowConcurrent": true, "skipOutdated": false}),
            1 | 2 => json!({"allowConcurrent": true}),
            3 => json!({"concurrency": "Queue"}),
            4 => json!({"concurrency": "Replace"}),
            _ => json!({}),
        };
        policy["timeSpec"] = json!(self.dice.pick(&times));
        let life = Life { millis: self.dice.below(500), code: 0, is_stubborn: false };
        let container = life.container(&self.program, &self.socket);
        json!({
            "schedulePolicy": policy,
            "template": {"spec": {"container": container, "priority": self.dice.below(4)}},
        })
    }
}
