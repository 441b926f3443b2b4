//! The fleet: who is there, what they do, when they were last heard of.

use maud::{Markup, html};
use muster_ports::store::ResourceName;
use muster_types::robot_status::Phase;
use muster_types::{JsonText, Robot};

use crate::html::frame::Page;
use crate::html::parts::{act, nothing, state, time};
use crate::site::Visit;

/// Robots on the page.
const MOST: usize = 500;

/// The page.
pub fn page(visit: &Visit) -> Page {
    let snapshot = visit.site.store.snapshot(&ResourceName::new("robots.muster.dev"));
    let robots: Vec<Robot> = snapshot
        .range(None, None)
        .filter_map(|stored| Robot::from_json(stored.json()).ok())
        .take(MOST)
        .collect();
    let live = html! {
        @if robots.is_empty() {
            (nothing("No robot has joined.", "A robot joins over MQTT with a token that was made for it."))
        } @else {
            div.grid { @for robot in &robots { (card(robot, visit.may_administer())) } }
            @if snapshot.len() > robots.len() { p.none { "The first " (robots.len()) " of " (snapshot.len()) "." } }
        }
    };
    Page { title: "Robots".to_owned(), fixed: html! {}, live, below: html! {} }
}

fn card(robot: &Robot, may_administer: bool) -> Markup {
    let (meta, spec, status) = (&robot.metadata, &robot.spec, &robot.status);
    let path = format!("{}/{}", meta.namespace, meta.name);
    html! {
        article.robot {
            h2 { (meta.name) " " (state(status.phase().as_str())) }
            p {
                "heard of " (time(status.last_heartbeat_time)) " · " (status.running) " of " (spec.max_tasks()) " running"
                @if spec.unschedulable { " · drained" }
            }
            @if !status.message.is_empty() { p.none { (status.message) } }
            p.labels { @for (key, value) in &spec.labels { code { (key) "=" (value) } " " } }
            @if may_administer {
                @if status.phase() == Phase::Pending { (act("approve", "Let in", "robots", &path, "/ui/robots")) }
                @if spec.unschedulable { (act("undrain", "Take back", "robots", &path, "/ui/robots")) }
                @else { (act("drain", "Drain", "robots", &path, "/ui/robots")) }
            }
        }
    }
}
