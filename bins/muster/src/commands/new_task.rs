//! A task as flags describe it.

use anyhow::bail;
use muster_types::container::{Container, EnvVar, Resources};
use muster_types::metadata::StringMap;
use muster_types::task::{Policy, Retry, RetryOn};
use muster_types::{Resource as _, TaskSpec};
use serde_json::{Value, json};

use crate::cli::TaskArgs;

/// Longest beginning of a generated name.
const LONGEST: usize = 40;

/// What is made.
#[derive(Debug, Clone, Default)]
pub struct NewTask {
    /// What is asked for.
    pub spec: TaskSpec,
    /// Its labels.
    pub labels: StringMap,
}

impl NewTask {
    /// A task that runs a command, if there is one.
    pub fn of(args: &TaskArgs, command: &[String]) -> anyhow::Result<Self> {
        let env = variables(args)?;
        if command.is_empty() && !env.is_empty() {
            bail!("--env is for a command; an addon has its own environment, give it data with --input");
        }
        let container = (!command.is_empty()).then(|| Container {
            command: command.to_vec(),
            env,
            ..Container::default()
        });
        let retry = args.retries.map(|limit| Retry {
            limit: Some(limit),
            on: Some(vec![RetryOn::NonZeroExit, RetryOn::Killed, RetryOn::StartFailed]),
            ..Retry::default()
        });
        let spec = TaskSpec {
            container,
            name: args.name.clone().unwrap_or_default(),
            subject: args.subject.clone(),
            priority: args.priority,
            policy: Policy { isolated: args.isolated, ..Policy::default() },
            timeout: args.timeout,
            kill_timeout: args.kill_timeout,
            retry: retry.unwrap_or_default(),
            locator: args.locator.clone().unwrap_or_default(),
            runtime: args.runtime.and_then(|runtime| runtime.word().parse().ok()),
            resources: Resources { cpu: args.cpu.clone(), memory: args.memory.clone() },
            ..TaskSpec::default()
        };
        let mut labels = StringMap::new();
        for label in &args.label {
            let Some(value) = &label.value else {
                bail!("--label {} has no value; write --label {}=VALUE", label.name, label.name);
            };
            labels.insert(label.name.clone(), value.clone());
        }
        Ok(Self { spec, labels })
    }

    /// What its name begins with, so that people recognize it.
    pub fn stem(&self) -> String {
        let command = self.spec.container.as_ref().and_then(|container| container.command.first());
        let program = command.map(|path| path.rsplit('/').next().unwrap_or(path));
        let words = [&self.spec.name, &self.spec.addon, &self.spec.kind].map(String::as_str);
        let found = words.into_iter().chain(program).map(name_part).find(|part| !part.is_empty());
        found.unwrap_or_else(|| "task".to_owned())
    }

    /// The task, of which nothing is left when this process is gone: no other server tries it again.
    pub fn tried_once_here(&self) -> Self {
        let mut task = self.clone();
        task.spec.retry.lost_limit = Some(0);
        task
    }

    /// The object, named by the server.
    pub fn object(&self) -> Value {
        self.object_with(&json!({"generateName": format!("{}-", self.stem()), "labels": self.labels}))
    }

    /// The object with metadata of the caller's.
    pub fn object_with(&self, metadata: &Value) -> Value {
        json!({
            "apiVersion": TaskSpec::NAMES.api_version(),
            "kind": TaskSpec::NAMES.kind,
            "metadata": metadata,
            "spec": self.spec,
        })
    }
}

fn variables(args: &TaskArgs) -> anyhow::Result<Vec<EnvVar>> {
    let mut env: Vec<EnvVar> = Vec::new();
    for setting in &args.env {
        let value = match &setting.value {
            Some(value) => value.clone(),
            None => match std::env::var(&setting.name) {
                Ok(value) => value,
                Err(error) => bail!("--env {}: {error}; write --env NAME=VALUE", setting.name),
            },
        };
        env.retain(|variable| variable.name != setting.name);
        env.push(EnvVar { name: setting.name.clone(), value });
    }
    Ok(env)
}

/// The part of a text that can stand in a name.
fn name_part(text: &str) -> String {
    let mut part = String::new();
    for character in text.chars() {
        let character = character.to_ascii_lowercase();
        if character.is_ascii_alphanumeric() {
            part.push(character);
        } else if !part.is_empty() && !part.ends_with('-') {
            part.push('-');
        }
    }
    part.truncate(LONGEST);
    part.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_name_begins_with_the_title_or_the_program() {
        let named = |title: &str, command: &str| {
            let args = TaskArgs { name: Some(title.to_owned()), ..TaskArgs::default() };
            NewTask::of(&args, &words(command)).unwrap().stem()
        };
        assert_eq!(named("", "/usr/bin/python3.12 a.py"), "python3-12");
        assert_eq!(named("Nightly build (Ünïx)!", "make"), "nightly-build-n-x");
        assert_eq!(named("", "../.."), "task");
        assert_eq!(named(&"x".repeat(99), "make").len(), LONGEST);
    }

    #[test]
    fn only_what_was_asked_for_is_in_the_object() {
        let object = NewTask::of(&TaskArgs::default(), &words("echo hi")).unwrap().object();
        let expected = json!({
            "apiVersion": "muster.dev/v1alpha1", "kind": "Task",
            "metadata": {"generateName": "echo-", "labels": {}},
            "spec": {"container": {"command": ["echo", "hi"]}},
        });
        assert_eq!(object, expected);
    }

    #[test]
    fn retries_are_for_failures_too_not_only_for_kills() {
        let args = TaskArgs { retries: Some(2), ..TaskArgs::default() };
        let object = NewTask::of(&args, &words("a")).unwrap().object();
        assert_eq!(
            object["spec"]["retry"],
            json!({"limit": 2, "on": ["NonZeroExit", "Killed", "StartFailed"]})
        );
    }

    #[test]
    fn the_last_of_two_variables_wins_and_an_addon_takes_none() {
        let args = TaskArgs {
            env: ["A=1", "B=2", "A=3"].iter().map(|text| text.parse().unwrap()).collect(),
            ..TaskArgs::default()
        };
        let object = NewTask::of(&args, &words("a")).unwrap().object();
        let expected = json!([{"name": "B", "value": "2"}, {"name": "A", "value": "3"}]);
        assert_eq!(object["spec"]["container"]["env"], expected);
        assert!(NewTask::of(&args, &[]).unwrap_err().to_string().contains("--input"));
    }
}
