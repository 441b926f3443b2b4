//! Pipelines among the tasks of a seed: the loop of groups runs beside the engine, both submit members, and groups are
//! suspended and go on as the dice say.

use std::borrow::Cow;
use std::collections::BTreeMap;

use muster_ports::clock::Clock as _;
use muster_ports::runtime::Handle;
use muster_ports::store::{Key, Precondition, ResourceName};
use muster_tasks::view::state_of;
use muster_types::task_group::{GroupMode, GroupTask, TaskGroupSpec};
use muster_types::{Object, State, Task, TaskGroup};
use muster_workflows::group_render::{GROUP, PLACE, member_name};

use super::{TASKS, World};

/// Members of one pipeline.
const MEMBERS: u32 = 4;

/// The tasks before a cycle, with the members that it submitted: they take part in its choice.
pub(super) fn with_submitted<'a>(
    before: &'a BTreeMap<String, Task>,
    after: &BTreeMap<String, Task>,
) -> Cow<'a, BTreeMap<String, Task>> {
    let mut offered = Cow::Borrowed(before);
    for (uid, task) in before.iter().filter(|(_, task)| state_of(task) == State::Created) {
        if after.get(uid).is_some_and(|now| state_of(now) != State::Created) {
            let mut task = task.clone();
            task.spec.suspend = false;
            task.status.state = Some(State::Ready);
            offered.to_mut().insert(uid.clone(), task);
        }
    }
    offered
}

/// Members that were submitted in a cycle of the engine.
pub(super) fn handed_on(before: &BTreeMap<String, Task>, after: &BTreeMap<String, Task>) -> u32 {
    let was_created = |uid: &String| before.get(uid).is_some_and(|task| state_of(task) == State::Created);
    let goes_on = |task: &Task| state_of(task) != State::Created && !state_of(task).is_terminal();
    let count = after.iter().filter(|(uid, task)| goes_on(task) && was_created(uid)).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl World {
    /// Users ask for a pipeline, suspend one or let it go on.
    pub(super) async fn ask_pipelines(&mut self) -> Result<(), String> {
        if self.played.tasks + MEMBERS <= TASKS && self.dice.once_in(8) {
            let tasks = (0..MEMBERS).map(|_| {
                self.played.tasks += 1;
                let spec = self.new_task().spec;
                GroupTask { spec, ..GroupTask::default() }
            });
            let spec = TaskGroupSpec {
                mode: Some(GroupMode::Pipeline),
                tasks: tasks.collect(),
                ..TaskGroupSpec::default()
            };
            let number = self.groups.len();
            let mut group = Object::new("d", &format!("g{number:03}"), spec);
            group.metadata.uid = format!("00000000-0000-7000-9000-{number:012x}");
            group.metadata.generation = 1;
            group.metadata.creation_timestamp = Some(self.clock.now().to_timestamp());
            self.groups.push(group.metadata.name.clone());
            self.put(group, Precondition::Absent).await?;
        }
        if self.dice.once_in(6)
            && let Some(name) = self.dice.pick(&self.groups).cloned()
            && let Some((mut group, expect)) = self.group(&name)?
        {
            // In the end all go on.
            let is_late = self.played.tasks >= TASKS;
            let wanted = !group.spec.suspend && !is_late && self.dice.once_in(2);
            if wanted != group.spec.suspend {
                group.spec.suspend = wanted;
                self.played.faults += 1;
                self.put(group, expect).await?;
            }
        }
        Ok(())
    }

    fn group(&self, name: &str) -> Result<Option<(TaskGroup, Precondition)>, String> {
        let key = Key::new(&ResourceName::new("taskgroups.muster.dev"), "d", name);
        let Some(stored) = self.store.get(&key) else { return Ok(None) };
        let group = serde_json::from_slice(stored.json()).map_err(|error| error.to_string())?;
        Ok(Some((group, Precondition::At(stored.revision))))
    }

    /// The loop of groups has its turn, or is late.
    pub(super) async fn step_groups(&mut self) -> Result<(), String> {
        if !self.dice.once_in(3) {
            self.workflows.step().await.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// A member starts only after the one before it has succeeded, and none is submitted while its group is suspended.
    pub(super) fn check_pipelines(
        &self,
        before: &BTreeMap<String, Task>,
        after: &BTreeMap<String, Task>,
        started: &[Handle],
    ) -> Result<Vec<String>, String> {
        let mut wrong = Vec::new();
        for handle in started {
            let Some(task) = after.get(&handle.task).or_else(|| before.get(&handle.task)) else { continue };
            let Some(former) = self.former(task)? else { continue };
            let stood = self.names.get(&former).and_then(|uid| self.ended.get(uid));
            if stood != Some(&State::Succeeded) {
                let name = &task.metadata.name;
                wrong.push(format!("{name} was started, and {former} before it is {stood:?}"));
            }
        }
        for (uid, task) in after {
            let was_created = before.get(uid).is_some_and(|task| state_of(task) == State::Created);
            let is_submitted = was_created && state_of(task) != State::Created;
            let Some(name) = task.metadata.labels.get(GROUP).filter(|_| is_submitted) else { continue };
            if self.group(name)?.is_some_and(|(group, _)| group.spec.suspend) {
                wrong.push(format!("{} was submitted while its group is suspended", task.metadata.name));
            }
        }
        Ok(wrong)
    }

    /// The name of the member before this one.
    fn former(&self, task: &Task) -> Result<Option<String>, String> {
        let Some(name) = task.metadata.labels.get(GROUP) else { return Ok(None) };
        let place = task.metadata.annotations.get(PLACE).and_then(|place| place.parse::<u32>().ok());
        let Some(place) = place.and_then(|place| place.checked_sub(1)) else { return Ok(None) };
        let Some((group, _)) = self.group(name)? else { return Ok(None) };
        Ok(Some(member_name(name, &group.spec, place)))
    }
}
