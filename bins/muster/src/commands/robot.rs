//! `muster robot`: the machines of the fleet.

use std::process::ExitCode;

use muster_client::Resource;
use muster_client::client::Form;
use muster_client::tokens::NewToken;
use muster_types::robot::RobotSpec;
use muster_types::{Duration, JsonText as _, Robot, Timestamp};
use serde_json::{Value, json};

use super::listing::{each_page, scope, selectors};
use super::session::Session;
use super::{describe, get};
use crate::cli::{DescribeArgs, GetArgs, Globals, Output, RobotCommand, RobotTokenCommand, SelectArgs};
use crate::output::table::{align, plain};
use crate::output::{age, streams};
use crate::usage::UsageError;

/// Carries out a verb.
pub async fn run(globals: &Globals, command: RobotCommand) -> anyhow::Result<ExitCode> {
    match command {
        RobotCommand::List { all_namespaces, label, output: Output::Table } => {
            list(globals, all_namespaces, label.as_deref()).await
        }
        RobotCommand::List { all_namespaces, label: None, output } => {
            let args = GetArgs {
                what: vec!["robots".to_owned()],
                select: select(all_namespaces),
                output,
                watch: false,
                limit: None,
                ignore_not_found: false,
                no_headers: false,
                show_managed_fields: false,
            };
            get::run(globals, &args).await
        }
        RobotCommand::List { label: Some(_), .. } => {
            Err(UsageError::new("robot", "--label goes with the table alone").into())
        }
        RobotCommand::Describe(robot) => {
            let what = vec![format!("robot/{}", robot.name)];
            describe::run(globals, &DescribeArgs { what, select: select(false) }).await
        }
        RobotCommand::Approve(robots) => {
            change(globals, &robots.names, &json!({"spec": {"approved": true}}), "approved").await
        }
        RobotCommand::Drain { robots, undo } => {
            let said = if undo { "takes tasks again" } else { "drained" };
            change(globals, &robots.names, &json!({"spec": {"unschedulable": !undo}}), said).await
        }
        RobotCommand::Token(RobotTokenCommand::Create { name, ttl, uses }) => {
            create_token(globals, &name, ttl, uses).await
        }
    }
}

fn select(all_namespaces: bool) -> SelectArgs {
    SelectArgs { all_namespaces, selector: None, field_selector: None }
}

async fn list(globals: &Globals, all_namespaces: bool, label: Option<&str>) -> anyhow::Result<ExitCode> {
    let session = Session::open(globals).await?;
    let args = select(all_namespaces);
    let (scope, selectors) = (scope(&args, session.namespace()), selectors(&args));
    let resource = Resource::known::<RobotSpec>();
    let mut robots: Vec<Robot> = Vec::new();
    each_page(&session.client, &resource, scope, &selectors, Form::Objects, None, |page| {
        let items = page.document["items"].as_array().into_iter().flatten();
        robots.extend(items.filter_map(|item| Robot::from_document(item).ok()));
        Ok(())
    })
    .await?;
    let wanted: Vec<(&str, &str)> =
        label.into_iter().flat_map(|label| label.split(',')).filter_map(|one| one.split_once('=')).collect();
    let fits = |robot: &&Robot| {
        wanted.iter().all(|(name, value)| robot.spec.labels.get(*name).is_some_and(|found| found == value))
    };
    let chosen: Vec<&Robot> = robots.iter().filter(fits).collect();
    if chosen.is_empty() {
        streams::note("no robots; connect one with `muster robot token create` and muster-agent".to_owned());
        return Ok(ExitCode::SUCCESS);
    }
    streams::print(&table(&chosen, age::now()))?;
    Ok(ExitCode::SUCCESS)
}

fn table(robots: &[&Robot], now: Timestamp) -> String {
    let header = ["NAME", "PHASE", "HEARTBEAT", "RUNNING", "TAKES", "LABELS"].map(str::to_owned).to_vec();
    let rows = robots.iter().map(|robot| {
        let heard = robot.status.last_heartbeat_time;
        let labels = robot.spec.labels.iter().map(|(name, value)| format!("{name}={value}"));
        vec![
            plain(&robot.metadata.name),
            robot.status.phase().to_string(),
            heard.map_or_else(|| "never".to_owned(), |heard| format!("{} ago", age::between(heard, now))),
            format!("{}/{}", robot.status.running, robot.spec.max_tasks()),
            if robot.spec.unschedulable { "no" } else { "yes" }.to_owned(),
            plain(&labels.collect::<Vec<_>>().join(",")),
        ]
    });
    align(&std::iter::once(header).chain(rows).collect::<Vec<_>>())
}

async fn change(globals: &Globals, names: &[String], change: &Value, said: &str) -> anyhow::Result<ExitCode> {
    let session = Session::open(globals).await?;
    let resource = Resource::known::<RobotSpec>();
    let mut code = ExitCode::SUCCESS;
    for name in names {
        match session.client.patch(&resource, session.namespace(), name, change).await {
            Ok(_) => streams::report(format!("robot/{name} {said}"))?,
            Err(error) => {
                streams::note(format!("error: {error}"));
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

async fn create_token(
    globals: &Globals,
    name: &str,
    ttl: Option<Duration>,
    uses: u32,
) -> anyhow::Result<ExitCode> {
    if ttl.is_some_and(|ttl| ttl.as_secs() == 0) {
        return Err(UsageError::new("robot", "--ttl must be at least one second").into());
    }
    let session = Session::open(globals).await?;
    let lifetime_seconds = ttl.map(Duration::as_secs);
    let wanted = NewToken { name, role: "robot", adapter: None, lifetime_seconds, uses: Some(uses) };
    let secret = session.client.create_token(&wanted).await?;
    streams::print(&format!("{}\n", secret.reveal()))?;
    let robots = if uses == 1 { "1 robot".to_owned() } else { format!("{uses} robots") };
    let lasts = ttl.map_or_else(|| "24h".to_owned(), |ttl| ttl.to_string());
    streams::note(format!(
        "join token \"{name}\" for {robots}, valid for {lasts}, not shown again; on the robot: muster-agent --token-file FILE \
         --robot-id NAME"
    ));
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_how_robots_stand() {
        let mut robot = Robot::new("default", "r1", RobotSpec::default());
        robot.spec.max_tasks = Some(4);
        robot.spec.labels.insert("zone".to_owned(), "a".to_owned());
        robot.status.running = 2;
        robot.status.last_heartbeat_time = Some(Timestamp::from_second(280));
        assert_eq!(
            table(&[&robot], Timestamp::from_second(300)),
            "NAME   PHASE     HEARTBEAT   RUNNING   TAKES   LABELS\n\
             r1     Pending   20s ago     2/4       yes     zone=a\n"
        );
    }
}
