//! The fleet: who is there, what they do, when they were last heard of.

use maud::{Markup, html};
use muster_ports::store::ResourceName;
use muster_types::Timestamp;
use serde_json::Value;

use crate::html::frame::Page;
use crate::html::parts::{act, nothing, state, time};
use crate::site::Visit;

/// Robots on the page.
const MOST: usize = 500;

/// The page.
pub fn page(visit: &Visit) -> Page {
    let snapshot = visit.site.store.snapshot(&ResourceName::new("robots.muster.dev"));
    let robots: Vec<Value> = snapshot
        .range(None, None)
        .filter_map(|stored| serde_json::from_slice(stored.json()).ok())
        .take(MOST)
        .collect();
    let live = html! {
        @if robots.is_empty() {
            (nothing("No robot has joined.", "A robot joins over MQTT with a token that was made for it."))
        } @else {
            div.grid { @for robot in &robots { (card(robot, visit.may_write())) } }
            @if snapshot.len() > robots.len() { p.none { "The first " (robots.len()) " of " (snapshot.len()) "." } }
        }
    };
    Page { title: "Robots".to_owned(), fixed: html! {}, live, below: html! {} }
}

fn text<'a>(robot: &'a Value, pointer: &str) -> &'a str {
    robot.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn card(robot: &Value, may_write: bool) -> Markup {
    let name = text(robot, "/metadata/name");
    let path = format!("{}/{name}", text(robot, "/metadata/namespace"));
    let path = path.trim_start_matches('/').to_owned();
    let heard: Option<Timestamp> = text(robot, "/status/lastHeartbeat").parse().ok();
    let running = robot.pointer("/status/runningTasks").and_then(Value::as_u64);
    let drained = robot.pointer("/spec/unschedulable").and_then(Value::as_bool).unwrap_or(false);
    let labels = robot.pointer("/metadata/labels").and_then(Value::as_object);
    html! {
        article.robot {
            h2 { (name) " " (state(text(robot, "/status/phase"))) }
            p { "heard of " (time(heard)) @if let Some(running) = running { " · " (running) " running" } @if drained { " · drained" } }
            p.labels { @for (key, value) in labels.into_iter().flatten() { code { (key) "=" (value.as_str().unwrap_or_default()) } " " } }
            @if may_write {
                @if drained { (act("undrain", "Take back", "robots", &path, "/ui/robots")) }
                @else { (act("drain", "Drain", "robots", &path, "/ui/robots")) }
            }
        }
    }
}
