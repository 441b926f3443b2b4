//! The judge: reads a history and says which promises were broken in it.
//!
//! It knows nothing of the engine: it reads JSON itself, and has its own and simpler idea of what must hold. Each promise is a
//! statement in a file of its own. A statement is strict where the promise is, and says nothing where a promise has no
//! bound, so that a finding is always one.

pub mod history;
mod present;
mod task;

mod adapter_reports;
mod attempts_have_pauses;
mod attempts_within_policy;
mod cancel_and_delete_win;
mod dependency_order;
mod failed_work_is_kept;
mod groups_count_truly;
mod isolation;
mod job_order;
mod kept_before_reaped;
mod made_once;
mod managed_ends;
mod managed_resources;
mod messages;
mod names_exist;
mod one_running_attempt_per_task;
mod parallelism;
mod pipeline_order;
mod preemption_helps;
mod preempts_when_it_may;
mod quiet_world_is_stable;
mod quota_order;
mod rank_order;
mod refused_attempts_cost_nothing;
mod refused_commits_are_tried_seldom;
mod rests_are_kept;
mod room;
mod schedule_backfills;
mod schedule_order;
mod schedule_runs;
mod schedule_times;
mod starts_when_there_is_room;
mod states_say_why;
mod terminal_is_final;
mod unique;
mod work_ends;

#[cfg(test)]
mod story;

use std::collections::BTreeMap;
use std::fmt;

use history::{Entry, What};
use present::Present;
use task::Task;

/// How long those who decide may take to see what was committed, in milliseconds.
const PATIENCE: i64 = 100;
/// Findings after which a history is read no further.
const ENOUGH: usize = 5;

/// One promise.
trait Statement {
    /// Looks at what happened.
    fn read(&mut self, moment: &Moment<'_>, broken: &mut Vec<String>);

    /// The history is over.
    fn close(&mut self, _present: &Present, _broken: &mut Vec<String>) {}
}

/// What happened, and everything that is known with it.
struct Moment<'a> {
    entry: &'a Entry,
    present: &'a Present,
    /// The task that was committed, as it was before.
    before: Option<&'a Task>,
    /// The task that was committed.
    task: Option<&'a Task>,
}

impl Moment<'_> {
    /// The program that was started, with its task.
    fn started(&self) -> Option<(&history::Program, &Task)> {
        let What::Started(program) = &self.entry.what else { return None };
        Some((program, self.present.tasks.get(&program.task)?))
    }
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The statement, by the name of its file.
    pub statement: &'static str,
    /// Place in the history.
    pub place: usize,
    /// What happened.
    pub words: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at entry {}: {}", self.statement, self.place, self.words)
    }
}

/// All statements.
fn statements() -> Vec<(&'static str, Box<dyn Statement>)> {
    vec![
        ("adapter_reports", Box::<adapter_reports::AdapterReports>::default()),
        ("attempts_have_pauses", Box::<attempts_have_pauses::AttemptsHavePauses>::default()),
        ("attempts_within_policy", Box::<attempts_within_policy::AttemptsWithinPolicy>::default()),
        ("cancel_and_delete_win", Box::<cancel_and_delete_win::CancelAndDeleteWin>::default()),
        ("dependency_order", Box::new(dependency_order::DependencyOrder)),
        ("failed_work_is_kept", Box::<failed_work_is_kept::FailedWorkIsKept>::default()),
        ("groups_count_truly", Box::<groups_count_truly::GroupsCountTruly>::default()),
        ("isolation", Box::new(isolation::Isolation)),
        ("job_order", Box::new(job_order::JobOrder)),
        ("kept_before_reaped", Box::<kept_before_reaped::KeptBeforeReaped>::default()),
        ("made_once", Box::<made_once::MadeOnce>::default()),
        ("managed_ends", Box::<managed_ends::ManagedEnds>::default()),
        ("managed_resources", Box::<managed_resources::ManagedResources>::default()),
        ("messages", Box::<messages::Messages>::default()),
        ("names_exist", Box::new(names_exist::NamesExist)),
        ("one_running_attempt_per_task", Box::<one_running_attempt_per_task::OneRunningAttempt>::default()),
        ("parallelism", Box::new(parallelism::Parallelism)),
        ("pipeline_order", Box::<pipeline_order::PipelineOrder>::default()),
        ("preemption_helps", Box::<preemption_helps::PreemptionHelps>::default()),
        ("preempts_when_it_may", Box::<preempts_when_it_may::PreemptsWhenItMay>::default()),
        ("quiet_world_is_stable", Box::<quiet_world_is_stable::QuietWorldIsStable>::default()),
        ("quota_order", Box::<quota_order::QuotaOrder>::default()),
        ("rank_order", Box::new(rank_order::RankOrder)),
        (
            "refused_attempts_cost_nothing",
            Box::<refused_attempts_cost_nothing::RefusedAttemptsCostNothing>::default(),
        ),
        (
            "refused_commits_are_tried_seldom",
            Box::<refused_commits_are_tried_seldom::RefusedCommitsAreTriedSeldom>::default(),
        ),
        ("rests_are_kept", Box::new(rests_are_kept::RestsAreKept)),
        ("room", Box::new(room::InRoom)),
        ("schedule_backfills", Box::<schedule_backfills::ScheduleBackfills>::default()),
        ("schedule_order", Box::<schedule_order::ScheduleOrder>::default()),
        ("schedule_runs", Box::<schedule_runs::ScheduleRuns>::default()),
        ("schedule_times", Box::<schedule_times::ScheduleTimes>::default()),
        ("starts_when_there_is_room", Box::<starts_when_there_is_room::StartsWhenThereIsRoom>::default()),
        ("states_say_why", Box::<states_say_why::StatesSayWhy>::default()),
        ("terminal_is_final", Box::<terminal_is_final::TerminalIsFinal>::default()),
        ("unique", Box::new(unique::Unique)),
        ("work_ends", Box::new(work_ends::WorkEnds)),
    ]
}

/// What the judge says of a history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Every promise that was broken, in order.
    pub findings: Vec<Finding>,
    /// How many facts each statement compared with its promise.
    pub facts: BTreeMap<&'static str, u64>,
}

/// Reads a history; every promise that was broken in it, in order.
pub fn judge(history: &[Entry]) -> Vec<Finding> {
    judge_and_count(history).findings
}

/// Reads a history, and counts what was compared with the promises.
pub fn judge_and_count(history: &[Entry]) -> Verdict {
    let mut statements = statements();
    let mut present = Present::default();
    let (mut findings, mut broken, mut counts) = (Vec::new(), Vec::new(), vec![0; statements.len()]);
    for (place, entry) in history.iter().enumerate() {
        let before = present.take_in(entry);
        let task = present.changed.as_ref().and_then(|uid| present.tasks.get(uid));
        let moment = Moment { entry, present: &present, before: before.as_ref(), task };
        for ((statement, it), count) in statements.iter_mut().zip(&mut counts) {
            it.read(&moment, &mut broken);
            *count += present.take_facts();
            findings.extend(broken.drain(..).map(|words| Finding { statement, place, words }));
        }
        if findings.len() >= ENOUGH {
            break;
        }
    }
    let is_over = findings.len() < ENOUGH;
    for ((statement, it), count) in statements.iter_mut().zip(&mut counts).filter(|_| is_over) {
        it.close(&present, &mut broken);
        *count += present.take_facts();
        let place = history.len();
        findings.extend(broken.drain(..).map(|words| Finding { statement, place, words }));
    }
    let facts = statements.iter().map(|(statement, _)| *statement).zip(counts).collect();
    Verdict { findings, facts }
}
