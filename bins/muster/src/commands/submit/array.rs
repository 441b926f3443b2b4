//! An array of tasks: one text, encoded once, into which the number, the line and the name of each are put.

use std::borrow::Cow;

use muster_types::container::EnvVar;
use serde_json::json;

use crate::commands::new_task::NewTask;
use crate::commands::task_names::fresh_id;

/// The label that the tasks of an array share.
pub const ARRAY: &str = "muster.dev/array";
/// The label with the number of a task in its array.
pub const INDEX: &str = "muster.dev/index";
/// The variable with the line of a task.
pub const LINE: &str = "MUSTER_LINE";

/// One task of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its number.
    pub index: u64,
    /// Its line, if it was made from one.
    pub line: Option<Cow<'a, str>>,
}

/// What is put into the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hole {
    Index,
    Line,
}

/// The text of every task of an array.
#[derive(Debug)]
pub struct Template {
    id: String,
    stem: String,
    /// Text, and what comes behind it.
    parts: Vec<(Vec<u8>, Hole)>,
    rest: Vec<u8>,
}

impl Template {
    /// Encodes the tasks of a new array. `lines` says that each has a line.
    pub fn new(mut task: NewTask, lines: bool) -> anyhow::Result<Self> {
        let id = fresh_id()?;
        let stem = format!("{}-{id}", task.stem());
        let (index, line) = (format!("\u{1}index {id}\u{1}"), format!("\u{1}line {id}\u{1}"));
        task.labels.insert(ARRAY.to_owned(), id.clone());
        task.labels.insert(INDEX.to_owned(), index.clone());
        if lines && let Some(container) = &mut task.spec.container {
            container.env.retain(|variable| variable.name != LINE);
            container.env.push(EnvVar { name: LINE.to_owned(), value: line.clone() });
        }
        let metadata = json!({"name": format!("{stem}-{index}"), "labels": task.labels});
        let text = task.object_with(&metadata).to_string();
        let (index, line) = (inside(&index)?, inside(&line)?);
        let mut parts = Vec::new();
        let mut rest = text.as_str();
        loop {
            let holes = [(rest.find(&index), &index, Hole::Index), (rest.find(&line), &line, Hole::Line)];
            let next = holes.into_iter().filter_map(|(at, mark, hole)| Some((at?, mark, hole)));
            let Some((at, mark, hole)) = next.min_by_key(|(at, ..)| *at) else { break };
            parts.push((rest.as_bytes()[..at].to_vec(), hole));
            rest = &rest[at + mark.len()..];
        }
        Ok(Self { id, stem, parts, rest: rest.as_bytes().to_vec() })
    }

    /// What the tasks have in common.
    pub fn selector(&self) -> String {
        format!("{ARRAY}={}", self.id)
    }

    /// The name of a task.
    pub fn name(&self, index: u64) -> String {
        format!("{}-{index}", self.stem)
    }

    /// About how long the text of a task is.
    pub fn size(&self, member: &Member<'_>) -> usize {
        let fixed: usize = self.parts.iter().map(|(text, _)| text.len()).sum();
        fixed + self.rest.len() + member.line.as_deref().unwrap_or_default().len()
    }

    /// The text of several tasks, as one list.
    pub fn encode_list(&self, members: &[Member<'_>]) -> anyhow::Result<Vec<u8>> {
        let mut text = Vec::new();
        text.extend_from_slice(br#"{"apiVersion":"muster.dev/v1alpha1","kind":"TaskList","items":["#);
        for (at, member) in members.iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            self.encode(member, &mut text)?;
        }
        text.extend_from_slice(b"]}");
        Ok(text)
    }

    /// Adds the text of a task.
    fn encode(&self, member: &Member<'_>, text: &mut Vec<u8>) -> anyhow::Result<()> {
        let index = member.index.to_string();
        let line = inside(member.line.as_deref().unwrap_or_default())?;
        for (before, hole) in &self.parts {
            text.extend_from_slice(before);
            text.extend_from_slice(match hole {
                Hole::Index => index.as_bytes(),
                Hole::Line => line.as_bytes(),
            });
        }
        text.extend_from_slice(&self.rest);
        Ok(())
    }
}

/// A text as it stands inside of a JSON string.
fn inside(text: &str) -> anyhow::Result<String> {
    let quoted = serde_json::to_string(text)?;
    Ok(quoted[1..quoted.len() - 1].to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::cli::TaskArgs;

    fn template(lines: bool) -> Template {
        let command = ["sh".to_owned(), "-c".to_owned(), "echo \"é\"".to_owned()];
        Template::new(NewTask::of(&TaskArgs::default(), &command).unwrap(), lines).unwrap()
    }

    #[test]
    fn each_task_has_its_own_name_and_number_and_the_rest_is_shared() {
        let template = template(false);
        let object = |index| -> Value {
            let mut text = Vec::new();
            template.encode(&Member { index, line: None }, &mut text).unwrap();
            serde_json::from_slice(&text).unwrap()
        };
        let (one, two) = (object(1), object(2_000));
        assert_eq!(one["metadata"]["labels"][INDEX], "1");
        assert_eq!(two["metadata"]["labels"][INDEX], "2000");
        assert_eq!(two["metadata"]["name"], template.name(2_000));
        assert_eq!(one["spec"], two["spec"]);
        assert_eq!(one["spec"]["container"]["command"][2], "echo \"é\"");
        assert_eq!(
            template.selector(),
            format!("{ARRAY}={}", one["metadata"]["labels"][ARRAY].as_str().unwrap())
        );
    }

    #[test]
    fn a_line_arrives_as_it_was_written() {
        let template = template(true);
        for line in ["plain", "\"quotes\" \\ and\ttabs", "\u{1}index\u{1}", ""] {
            let member = Member { index: 7, line: Some(line.into()) };
            let list: Value =
                serde_json::from_slice(&template.encode_list(&[member.clone(), member]).unwrap()).unwrap();
            let [object, again] = list["items"].as_array().unwrap().as_slice() else { panic!("two tasks") };
            assert_eq!((object, &list["kind"]), (again, &json!("TaskList")));
            let variable = &object["spec"]["container"]["env"][0];
            assert_eq!((variable["name"].as_str(), variable["value"].as_str()), (Some(LINE), Some(line)));
        }
    }

    #[test]
    fn two_arrays_have_nothing_in_common() {
        assert_ne!(template(false).selector(), template(false).selector());
    }
}
