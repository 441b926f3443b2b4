//! The rules of the queue as stories: a board in a small language, and what a pass decides.
//!
//! Lines: `now N`, `room slots=N [memory=N] [cpu=N]`, `kind NAME [priority=N] [needs=A,B] [strict]`,
//! `prefetch N`, `quota NAMESPACE N|none`, `pods-in NAMESPACE`, `stuck NAME [slots] [memory]`, `placed NAME`, `no-node NAME`, `on-node NAME`,
//! `refused NAME`, `task NAME [kind=] [subject=] [prio=] [memory=] [isolated] [preempt] [exempt] [robot] [rest=] [pod] [selector=] [in=]`,
//! `state NAME STATE [rest=]`, `unplan NAME`,
//! `returned NAME`, `deleted NAME`, `gone NAME`, `plan`, `why NAME`, `explain NAME`. Lines that start with `>` are what the board is expected to answer.

use std::collections::{BTreeMap, BTreeSet};

use muster_tasks::board::Board;
use muster_tasks::capacity::{Capacity, Lack};
use muster_tasks::kinds::KindGraph;
use muster_tasks::plan::{Decision, Plan};
use muster_tasks::settings::Settings;
use muster_tasks::view::{Need, TaskView};
use muster_types::State;

struct Story {
    board: Board,
    capacity: Capacity,
    now: i64,
    kinds: BTreeMap<String, Vec<String>>,
    priorities: BTreeMap<String, i32>,
    strict: BTreeSet<String>,
    tasks: BTreeMap<String, TaskView>,
}

fn new_board(capacity: Capacity) -> Board {
    Board::new(Settings::default(), |_| capacity)
}

/// Plays a story and checks every answer in it.
fn play(story: &str) {
    let capacity = Capacity { slots: 2, cpu_millis: None, memory: None };
    let mut teller = Story {
        board: new_board(capacity),
        capacity,
        now: 0,
        kinds: BTreeMap::new(),
        priorities: BTreeMap::new(),
        strict: BTreeSet::new(),
        tasks: BTreeMap::new(),
    };
    let mut played = String::new();
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('>')) {
        played += &format!("{line}\n");
        for answer in teller.tell(line) {
            played += &format!("> {answer}\n");
        }
        assert_eq!(teller.board.violations(), Vec::<String>::new(), "after {line}");
    }
    let mut expected = String::new();
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        expected += &format!("{line}\n");
    }
    assert_eq!(played, expected);
}

impl Story {
    fn tell(&mut self, line: &str) -> Vec<String> {
        let mut words = line.split_whitespace();
        let verb = words.next().expect("a verb");
        let rest: Vec<&str> = words.collect();
        let option = |name: &str| {
            let start = format!("{name}=");
            rest.iter().find_map(|word| word.strip_prefix(start.as_str())).map(str::to_owned)
        };
        let number = |name: &str| option(name).map(|text| text.parse::<i64>().expect("a number"));
        match verb {
            "now" => self.now = rest[0].parse().expect("a time"),
            "room" => {
                let size = |name: &str| number(name).map(|size| u64::try_from(size).expect("a size"));
                self.capacity = Capacity {
                    slots: u32::try_from(number("slots").unwrap_or(2)).expect("slots"),
                    cpu_millis: size("cpu"),
                    memory: size("memory"),
                };
                self.board.set_capacity(muster_types::task::Runtime::Process, self.capacity);
                self.board.set_capacity(muster_types::task::Runtime::Pod, self.capacity);
                if let Some(robots) = number("robots") {
                    let slots = u32::try_from(robots).expect("robots");
                    let room = Capacity { slots, cpu_millis: None, memory: None };
                    self.board.set_capacity(muster_types::task::Runtime::Robot, room);
                }
            }
            "kind" => {
                let needs = option("needs").unwrap_or_default();
                let needs = needs
                    .split(',')
                    .filter(|need| !need.is_empty())
                    .map(|need| format!("d/{need}"))
                    .collect();
                self.kinds.insert(format!("d/{}", rest[0]), needs);
                if let Some(priority) = number("priority") {
                    self.priorities
                        .insert(format!("d/{}", rest[0]), i32::try_from(priority).expect("a priority"));
                }
                let graph = KindGraph::new(self.kinds.iter().map(|(kind, needs)| {
                    (kind.as_str(), needs.iter().map(String::as_str).collect::<Vec<_>>())
                }));
                if rest.contains(&"strict") {
                    self.strict.insert(format!("d/{}", rest[0]));
                }
                self.board.set_kinds(graph, self.priorities.clone(), self.strict.clone());
            }
            "task" => {
                let flag = |name: &str| rest.contains(&name);
                let task = TaskView {
                    uid: self.tasks.len() as u128 + 1,
                    path: format!("{}/{}", option("in").unwrap_or("d".into()), rest[0]).into(),
                    state: State::Ready,
                    since: self.now,
                    priority: number("prio").map(|priority| i32::try_from(priority).expect("a priority")),
                    kind: option("kind").unwrap_or_default(),
                    addon: option("addon").unwrap_or_default(),
                    subject: option("subject").unwrap_or_default(),
                    runtime: flag("robot")
                        .then_some(muster_types::task::Runtime::Robot)
                        .or(flag("pod").then_some(muster_types::task::Runtime::Pod)),
                    need: Need {
                        cpu_millis: 0,
                        memory: u64::try_from(number("memory").unwrap_or(0)).expect("a size"),
                    },
                    isolated: flag("isolated"),
                    preempt_enabled: flag("preempt"),
                    preempt_exempt: flag("exempt"),
                    stopping: false,
                    deleted: false,
                    prefetched: false,
                    is_first: true,
                    rest_until: number("rest").unwrap_or(0),
                    demand: None,
                    placement: option("selector").unwrap_or_default(),
                    robot: None,
                    awaited: None,
                };
                self.board.observe(&task);
                self.tasks.insert(rest[0].to_owned(), task);
            }
            "state" => {
                let task = self.tasks.get_mut(rest[0]).expect("a task");
                task.state = rest[1].parse().expect("a state");
                task.since = self.now;
                task.rest_until = number("rest").unwrap_or(0);
                (task.prefetched, task.is_first) = (false, false);
                self.board.observe(task);
            }
            "deleted" => {
                let task = self.tasks.get_mut(rest[0]).expect("a task");
                (task.stopping, task.deleted) = (true, true);
                self.board.observe(task);
            }
            "returned" => {
                let task = self.tasks.get_mut(rest[0]).expect("a task");
                task.prefetched = false;
                self.board.observe(task);
            }
            "prefetch" => {
                let prefetch = rest[0].parse().expect("a number");
                self.board.set_prefetch(muster_types::task::Runtime::Process, prefetch);
            }
            "pods-in" => self.board = new_board(self.capacity).with_pod_namespace(Some(rest[0])),
            "quota" => {
                let most = (rest[1] != "none").then(|| rest[1].parse().expect("a limit"));
                self.board.set_pod_limit(rest[0], most);
            }
            "stuck" => {
                let lack = Lack {
                    slots: rest.contains(&"slots"),
                    memory: rest.contains(&"memory"),
                    ..Lack::default()
                };
                self.board.observe_stuck(self.tasks[rest[0]].uid, lack, self.now);
            }
            "unplan" => self.board.unplan(self.tasks[rest[0]].uid),
            "refused" => self.board.observe_refusal(self.tasks[rest[0]].uid),
            "no-node" => self.board.observe_unschedulable(self.tasks[rest[0]].uid, self.now),
            "on-node" => self.board.observe_on_node(self.tasks[rest[0]].uid),
            "placed" => self.board.observe_placed(self.tasks[rest[0]].uid),
            "gone" => self.board.forget(self.tasks[rest[0]].uid),
            "plan" => {
                let plan = self.board.plan(self.now);
                let priority = |uid| {
                    let explanation = self.board.explain(uid, self.now).expect("a task");
                    explanation.effective_priority.expect("a priority")
                };
                assert_eq!(Board::plan_violations(&plan, priority), Vec::<String>::new());
                self.remember(&plan);
                return describe(&plan);
            }
            "why" => {
                let hold = self.board.why(self.tasks[rest[0]].uid, self.now);
                return vec![
                    hold.map_or("nothing".to_owned(), |hold| {
                        format!("{}: {}", hold.reason(), hold.message())
                    }),
                ];
            }
            "explain" => {
                let why = self.board.explain(self.tasks[rest[0]].uid, self.now).expect("it is on the board");
                let preemption = Some(why.preemption).filter(|text| !text.is_empty());
                return [format!("{}: {}", why.state, why.message)].into_iter().chain(preemption).collect();
            }
            other => assert_eq!(other, "a verb", "there is no such verb"),
        }
        Vec::new()
    }

    /// What was decided is what the tasks say from then on.
    fn remember(&mut self, plan: &Plan) {
        for decision in &plan.decisions {
            if let Decision::Start { task, prefetch: true, .. } = decision {
                let known = self.tasks.values_mut().find(|known| known.uid == task.uid).expect("a task");
                known.prefetched = true;
                continue;
            }
            let (task, state) = match decision {
                Decision::Start { task, .. } => (task, State::Pending),
                Decision::Hold { task, hold } => (task, hold.state()),
                Decision::Preempt { .. } | Decision::Recall { .. } | Decision::TakeBack { .. } => continue,
            };
            let task = self.tasks.values_mut().find(|known| known.uid == task.uid).expect("a task");
            task.state = state;
        }
    }
}

fn describe(plan: &Plan) -> Vec<String> {
    let name = |path: &str| path.trim_start_matches("d/").to_owned();
    let mut lines: Vec<String> = plan
        .decisions
        .iter()
        .map(|decision| match decision {
            Decision::Start { task, prefetch: true, .. } => format!("prefetch {}", name(&task.path)),
            Decision::Recall { task } => format!("recall {}", name(&task.path)),
            Decision::Start { task, lent: None, .. } => format!("start {}", name(&task.path)),
            Decision::Start { task, lent: Some(lent), .. } => {
                format!("start {} raised to {} by {}", name(&task.path), lent.priority, name(&lent.by.path))
            }
            Decision::Hold { task, hold } => format!("hold {} {}", name(&task.path), hold.reason()),
            Decision::TakeBack { task } => format!("take back {}", name(&task.path)),
            Decision::Preempt { task, by } => format!("preempt {} for {}", name(&task.path), name(&by.path)),
        })
        .collect();
    lines.extend(plan.wake_at.map(|at| format!("wake {at}")));
    lines
}

#[test]
fn the_highest_priority_starts_first_and_then_the_oldest() {
    play(
        "room slots=3
         task low prio=1
         task high prio=9
         task older prio=5
         task newer prio=5
         plan
         > start high
         > start older
         > start newer
         > hold low Capacity",
    );
}

#[test]
fn the_kind_gives_the_priority_that_a_task_does_not_ask_for() {
    play(
        "room slots=1
         kind urgent priority=50
         task plain prio=10
         task asked kind=urgent prio=5
         task default kind=urgent
         plan
         > start default
         > hold plain Capacity",
    );
}

#[test]
fn of_one_subject_and_kind_only_one_runs_however_many_wait() {
    play(
        "room slots=9
         kind analyze
         task one kind=analyze subject=app/x
         task two kind=analyze subject=app/x
         task three kind=analyze subject=app/x
         task elsewhere kind=analyze subject=app/y
         plan
         > start one
         > start elsewhere
         > hold two Unique
         > hold three Unique
         state one Running
         plan
         why two
         > Unique: task d/one of the same subject and kind must end first
         gone one
         plan
         > start two",
    );
}

#[test]
fn kindless_tasks_of_one_subject_exclude_each_other_by_addon() {
    play(
        "room slots=9
         task one addon=a subject=app/x
         task two addon=a subject=app/x
         task other addon=b subject=app/x
         task kind kind=analyze subject=app/x
         plan
         > start one
         > start other
         > start kind
         > hold two Unique",
    );
}

#[test]
fn tasks_without_a_subject_exclude_nobody() {
    play(
        "room slots=9
         kind analyze
         task one kind=analyze
         task two kind=analyze
         plan
         > start one
         > start two",
    );
}

#[test]
fn a_task_waits_for_the_kinds_it_depends_on_on_the_same_subject() {
    play(
        "room slots=9
         kind language
         kind analyze needs=language
         task analysis kind=analyze subject=app/x
         task discovery kind=language subject=app/x
         task other kind=analyze subject=app/y
         plan
         > start discovery
         > start other
         > hold analysis Dependency
         why analysis
         > Dependency: task d/discovery (d/language) must complete first
         gone discovery
         plan
         > start analysis",
    );
}

#[test]
fn dependencies_are_transitive_even_over_a_kind_that_has_no_task() {
    play(
        "room slots=9
         kind a
         kind b needs=a
         kind c needs=b
         task last kind=c subject=s
         task first kind=a subject=s
         plan
         > start first
         > hold last Dependency",
    );
}

#[test]
fn what_depends_on_a_task_raises_it_above_tasks_that_ask_for_more() {
    play(
        "room slots=1
         kind language
         kind analyze needs=language
         task discovery kind=language subject=app/x prio=0
         task middle prio=5
         task analysis kind=analyze subject=app/x prio=10
         plan
         > start discovery raised to 10 by analysis
         > hold middle Capacity
         > hold analysis Dependency",
    );
}

#[test]
fn a_task_that_comes_after_what_depends_on_it_is_raised_too() {
    play(
        "room slots=1
         kind language
         kind analyze needs=language
         task analysis kind=analyze subject=app/x prio=10
         task middle prio=5
         task discovery kind=language subject=app/x prio=0
         plan
         > start discovery raised to 10 by analysis
         > hold middle Capacity
         > hold analysis Dependency",
    );
}

#[test]
fn raising_ends_when_what_depended_is_gone() {
    play(
        "room slots=1
         kind language
         kind analyze needs=language
         task discovery kind=language subject=app/x prio=0
         task middle prio=5
         task analysis kind=analyze subject=app/x prio=10
         gone analysis
         plan
         > start middle
         > hold discovery Capacity",
    );
}

#[test]
fn an_isolated_task_waits_for_those_that_run_and_nothing_passes_it() {
    play(
        "room slots=9
         task runs prio=9
         plan
         > start runs
         task alone isolated prio=5
         task later prio=1
         plan
         > hold alone Isolated
         > hold later Isolation
         state runs Running
         gone runs
         plan
         > start alone
         task eager prio=99
         plan
         > hold eager Isolation
         gone alone
         plan
         > start eager
         > start later",
    );
}

#[test]
fn a_task_that_waits_for_room_is_postponed_when_a_dependency_comes_and_waits_for_room_again_when_that_is_gone()
 {
    play(
        "room slots=1
         kind language
         kind analyze needs=language
         task runs prio=9
         plan
         > start runs
         task analysis kind=analyze subject=app/x prio=5
         plan
         > hold analysis Capacity
         task discovery kind=language subject=app/x
         plan
         > hold discovery Capacity
         > hold analysis Dependency
         gone discovery
         plan
         > hold analysis Capacity",
    );
}

#[test]
fn what_waited_for_an_isolated_task_waits_for_room_once_that_is_gone() {
    play(
        "room slots=1
         task alone isolated prio=9
         plan
         > start alone
         task first
         task second
         task third
         plan
         > hold first Isolation
         > hold second Isolation
         > hold third Isolation
         gone alone
         plan
         > start first
         > hold second Capacity
         > hold third Capacity",
    );
}

#[test]
fn what_waited_for_an_isolated_task_in_the_queue_waits_for_room_once_that_is_gone() {
    play(
        "room slots=2
         task runs prio=9
         plan
         > start runs
         task alone isolated prio=5
         task later prio=1
         task last
         plan
         > hold alone Isolated
         > hold later Isolation
         > hold last Isolation
         room slots=1
         gone alone
         plan
         > hold later Capacity
         > hold last Capacity",
    );
}

#[test]
fn two_isolated_tasks_take_turns() {
    play(
        "room slots=9
         task one isolated
         task two isolated
         plan
         > start one
         > hold two Isolation
         gone one
         plan
         > start two",
    );
}

#[test]
fn tasks_before_an_isolated_one_still_start() {
    play(
        "room slots=9
         task first prio=9
         task alone isolated prio=5
         task behind prio=1
         plan
         > start first
         > hold alone Isolated
         > hold behind Isolation",
    );
}

#[test]
fn what_is_refused_to_one_is_refused_to_all_behind_it_that_need_it() {
    play(
        "room slots=9 memory=10
         task big prio=9 memory=8
         plan
         > start big
         task bigger prio=8 memory=5
         task small prio=7 memory=1
         task none prio=6
         plan
         > hold bigger Capacity
         > start none
         why small
         > Capacity: waiting for 1 memory (8 of 10 in use)",
    );
}

#[test]
fn a_task_that_can_never_fit_does_not_hold_up_the_others() {
    play(
        "room slots=2 memory=10
         task giant prio=9 memory=11
         task small prio=1 memory=10
         plan
         > hold giant NeverFits
         > start small
         why giant
         > NeverFits: it asks for 11 memory of 10; give the runtime more, or submit the task again with less in spec.resources.memory",
    );
}

#[test]
fn a_blocked_task_that_may_preempts_the_newest_of_the_lowest_after_a_minute() {
    play(
        "room slots=3
         task old prio=1
         task new prio=1
         task middle prio=5
         plan
         > start middle
         > start old
         > start new
         state old Running
         now 10
         state new Running
         state middle Running
         task urgent prio=9 preempt
         plan
         > hold urgent Capacity
         > wake 71
         state urgent QuotaBlocked
         now 70
         plan
         > wake 71
         now 71
         plan
         > preempt new for urgent
         plan
         gone new
         plan
         > start urgent",
    );
}

#[test]
fn an_attempt_that_finds_no_place_makes_the_newest_of_the_lowest_leave_after_a_minute_until_they_cover_what_it_asks_for()
 {
    play(
        "room slots=9
         task older prio=1 memory=1
         task old prio=1 memory=2
         task new prio=1 memory=1
         task light prio=0
         task equal prio=9 memory=1
         task urgent prio=9 memory=3 preempt
         plan
         > start equal
         > start urgent
         > start older
         > start old
         > start new
         > start light
         state older Running
         state light Running
         state equal Running
         now 5
         state old Running
         now 10
         state new Running
         state urgent Pending
         stuck urgent memory
         plan
         > wake 71
         now 71
         plan
         > preempt new for urgent
         > wake 132
         plan
         > wake 132
         gone new
         now 132
         plan
         > preempt old for urgent
         > wake 193
         gone old
         now 193
         plan
         now 9999
         plan
         placed urgent
         stuck urgent memory
         plan
         > wake 10060",
    );
}

#[test]
fn an_attempt_that_finds_no_place_makes_nobody_leave_if_all_of_them_together_have_less_than_it_asks_for() {
    play(
        "room slots=9
         task old prio=1 memory=1
         task new prio=1 memory=1
         task urgent prio=9 memory=5 preempt
         plan
         > start urgent
         > start old
         > start new
         state old Running
         state new Running
         state urgent Pending
         stuck urgent memory
         now 71
         plan
         task third prio=1 memory=3
         plan
         > start third
         state third Running
         plan
         > preempt third for urgent
         > wake 132",
    );
}

#[test]
fn an_attempt_of_which_nobody_knows_what_it_asks_for_makes_each_of_the_lower_leave_once() {
    play(
        "room slots=9
         task old prio=1 memory=1
         task new prio=1 memory=1
         task urgent prio=9 preempt
         plan
         > start urgent
         > start old
         > start new
         state old Running
         state urgent Pending
         stuck urgent memory
         now 10
         state new Running
         now 71
         plan
         > preempt new for urgent
         > wake 132
         state new Ready
         plan
         > start new
         > wake 132
         state new Running
         now 132
         plan
         > preempt old for urgent
         > wake 193
         state old Ready
         plan
         > start old
         > wake 193
         state old Running
         now 193
         plan
         now 9999
         plan",
    );
}

#[test]
fn a_task_that_was_not_told_to_leave_after_all_is_asked_again() {
    play(
        "room slots=9
         task low prio=1 memory=5
         task urgent prio=9 memory=5 preempt
         plan
         > start urgent
         > start low
         state low Running
         state urgent Pending
         stuck urgent memory
         now 71
         plan
         > preempt low for urgent
         > wake 132
         state low Running
         now 132
         plan
         > preempt low for urgent
         > wake 193",
    );
}

#[test]
fn an_attempt_for_which_no_place_is_short_of_anything_any_more_makes_nobody_leave() {
    play(
        "room slots=9
         task low prio=1 memory=5
         task urgent prio=9 memory=5 preempt
         plan
         > start urgent
         > start low
         state low Running
         state urgent Pending
         stuck urgent memory
         stuck urgent
         now 71
         plan",
    );
}

#[test]
fn an_attempt_that_finds_no_place_makes_nobody_leave_who_has_none_of_what_it_lacks() {
    play(
        "room slots=9
         task light prio=0
         task calm prio=9 memory=5
         task urgent prio=9 memory=5 preempt
         plan
         > start calm
         > start urgent
         > start light
         state light Running
         state urgent Pending
         state calm Pending
         stuck urgent memory
         stuck calm slots
         now 100
         plan
         stuck urgent slots
         plan
         > preempt light for urgent
         > wake 161",
    );
}

#[test]
fn equal_priority_and_exempt_tasks_are_never_preempted() {
    play(
        "room slots=2
         task equal prio=9
         task exempt prio=1 exempt
         plan
         > start equal
         > start exempt
         state equal Running
         state exempt Running
         task urgent prio=9 preempt
         plan
         > hold urgent Capacity
         > wake 61
         state urgent QuotaBlocked
         now 100
         plan",
    );
}

#[test]
fn preemption_that_would_not_make_enough_room_does_not_happen() {
    play(
        "room slots=9 memory=10
         task small prio=1 memory=2
         task large prio=9 memory=8 exempt
         plan
         > start large
         > start small
         state small Running
         state large Running
         task urgent prio=8 memory=5 preempt
         plan
         > hold urgent Capacity
         > wake 61
         state urgent QuotaBlocked
         now 100
         plan",
    );
}

#[test]
fn a_task_that_rests_starts_when_its_time_has_come() {
    play(
        "task tired rest=60 prio=9
         task fresh prio=1
         plan
         > start fresh
         > wake 60
         why tired
         > Resting: it starts again at 1970-01-01T00:01:00Z at the earliest
         now 60
         plan
         > start tired",
    );
}

#[test]
fn a_resting_task_still_holds_back_what_depends_on_it() {
    play(
        "kind language
         kind analyze needs=language
         task discovery kind=language subject=x rest=60
         task analysis kind=analyze subject=x
         plan
         > hold analysis Dependency
         > wake 60",
    );
}

#[test]
fn a_dependency_that_failed_holds_back_only_a_kind_that_needs_it_to_succeed() {
    play(
        "kind discover
         kind analyze needs=discover strict
         kind report needs=discover
         task d1 kind=discover subject=app
         task a1 kind=analyze subject=app
         task r1 kind=report subject=app
         plan
         > start d1
         > hold a1 Dependency
         > hold r1 Dependency
         state d1 Failed
         plan
         > start r1
         why a1
         > DependencyFailed: task d/d1 (d/discover) failed and must succeed first; try it again or delete it
         task d2 kind=discover subject=app
         why a1
         > Dependency: task d/d2 (d/discover) must complete first
         plan
         > start d2
         state d2 Succeeded
         plan
         > start a1",
    );
}

#[test]
fn a_dependency_that_failed_and_was_deleted_holds_back_nobody() {
    play(
        "kind discover
         kind analyze needs=discover strict
         task d1 kind=discover subject=app
         task a1 kind=analyze subject=app
         state d1 Failed
         plan
         > hold a1 DependencyFailed
         gone d1
         plan
         > start a1",
    );
}

#[test]
fn attempts_wait_at_the_runtime_only_if_nothing_but_order_and_slots_holds_them_back() {
    play(
        "room slots=1 memory=10
         prefetch 9
         task a
         task b
         task c subject=app
         task d
         plan
         > start a
         > prefetch b
         > hold c Capacity",
    );
    play(
        "room slots=1 memory=10
         prefetch 9
         task a
         task b memory=4
         task c
         plan
         > start a
         > hold b Capacity",
    );
}

#[test]
fn a_slot_that_is_surely_free_is_no_prefetch() {
    play(
        "room slots=2
         prefetch 1
         task a
         plan
         > start a
         task b
         task c
         task d
         plan
         > start b
         > prefetch c
         > hold d Capacity
         state a Succeeded
         plan
         state c Running
         plan
         > prefetch d",
    );
}

#[test]
fn a_higher_one_gets_the_place_of_the_lowest_that_waits_at_the_runtime() {
    play(
        "room slots=1
         prefetch 2
         task a
         task b prio=1
         task c
         plan
         > start b
         > prefetch a
         > prefetch c
         task high prio=9
         plan
         > recall c
         > prefetch high
         task higher prio=10
         plan
         > recall a
         > prefetch higher
         task last
         plan
         > hold last Capacity
         returned c
         returned a
         plan
         > hold a Capacity",
    );
}

#[test]
fn the_place_of_a_preempted_task_goes_to_who_preempted_it_although_others_wait_at_the_runtime() {
    play(
        "room slots=1
         prefetch 2
         task low
         plan
         > start low
         state low Running
         task a
         task b
         plan
         > prefetch a
         > prefetch b
         task urgent prio=9 preempt
         plan
         > recall b
         > prefetch urgent
         returned b
         state urgent Ready
         plan
         > recall a
         > hold urgent Capacity
         > wake 61
         state urgent QuotaBlocked
         returned a
         now 61
         plan
         > preempt low for urgent
         gone low
         plan
         > start urgent
         > prefetch a
         > prefetch b",
    );
}

#[test]
fn all_that_rank_lower_are_taken_back_for_one_that_must_have_the_slot_itself() {
    play(
        "room slots=1
         prefetch 4
         task a
         task b
         task c
         task above prio=50
         plan
         > start above
         > prefetch a
         > prefetch b
         > prefetch c
         task first subject=app prio=9
         plan
         > recall c
         > recall b
         > recall a
         > hold first Capacity
         returned a
         returned b
         returned c
         plan
         state above Succeeded
         plan
         > start first
         > prefetch a
         > prefetch b
         > prefetch c",
    );
}

#[test]
fn an_isolated_task_takes_back_what_waits_at_the_runtime_behind_it() {
    play(
        "room slots=1
         prefetch 4
         task a
         task b
         task top prio=5
         plan
         > start top
         > prefetch a
         > prefetch b
         task alone prio=2 isolated
         plan
         > recall b
         > recall a
         > hold alone Isolated
         returned a
         returned b
         state top Succeeded
         plan
         > start alone
         > hold a Isolation
         > hold b Isolation",
    );
}

#[test]
fn nothing_waits_at_the_runtime_twice_for_one_place() {
    play(
        "room slots=1
         prefetch 1
         task a
         task b
         plan
         > start a
         > prefetch b
         prefetch 0
         task high prio=9
         plan
         > recall b
         > hold high Capacity
         plan
         returned b
         plan
         state a Succeeded
         plan
         > start high
         > hold b Capacity",
    );
}

#[test]
fn a_quota_holds_back_all_that_come_after_who_was_refused() {
    play(
        "room slots=9
         quota d 2
         task a prio=1 pod
         task b prio=3 pod
         task c prio=2 pod
         plan
         > start b
         > start c
         > hold a Quota
         why a
         > Quota: a quota of namespace d refuses more pods
         state b Succeeded
         plan
         > start a
         quota d none
         task d pod
         plan
         > start d",
    );
}

#[test]
fn a_quota_of_one_namespace_holds_back_no_pod_of_another() {
    play(
        "room slots=9
         quota a 2
         task a1 in=a pod
         task a2 in=a pod
         plan
         > start a/a1
         > start a/a2
         task a3 in=a pod prio=9 memory=5
         task a4 in=a pod prio=8 subject=s/1
         task b1 in=b pod memory=5
         task b2 in=b pod subject=s/1
         task process in=a
         plan
         > hold a/a3 Quota
         > start b/b1
         > start b/b2
         > start a/process
         why a4
         > Quota: a quota of namespace a refuses more pods
         state a1 Succeeded
         plan
         > start a/a3
         > hold a/a4 Quota
         quota a 0
         quota b 0
         task b3 in=b pod prio=1
         task c1 in=c pod
         plan
         > hold b/b3 Quota
         > start c/c1",
    );
}

#[test]
fn one_more_pod_of_a_refused_namespace_is_the_first_in_order() {
    play(
        "room slots=9
         quota a 0
         task low in=a pod prio=1
         task high in=a pod prio=9 subject=s/1
         task other in=b pod prio=5
         plan
         > hold a/high Quota
         > start b/other
         quota a 1
         plan
         > start a/high
         > hold a/low Quota",
    );
}

#[test]
fn what_a_refused_pod_lacks_besides_its_quota_is_kept_from_no_other_namespace() {
    play(
        "room slots=9 memory=10
         quota a 0
         task running in=b pod memory=6
         plan
         > start b/running
         task refused in=a pod prio=9 memory=8
         task small in=b pod memory=2
         plan
         > hold a/refused Quota
         > start b/small
         task last in=b pod memory=3
         plan
         > hold b/last Capacity
         explain last
         > QuotaBlocked: waiting for 3 memory (8 of 10 in use, position 2)",
    );
}

#[test]
fn an_isolated_pod_that_its_quota_never_lets_in_keeps_no_other_namespace_waiting() {
    play(
        "room slots=9
         quota a 0
         task b1 in=b pod
         plan
         > start b/b1
         task alone in=a pod prio=9 isolated
         task b2 in=b pod
         plan
         > hold a/alone Quota
         > start b/b2",
    );
}

#[test]
fn where_all_pods_are_in_one_namespace_its_quota_holds_back_all_of_them() {
    play(
        "pods-in shared
         room slots=9
         quota shared 1
         quota b 0
         task a in=a pod prio=2
         task b in=b pod prio=1
         plan
         > start a/a
         > hold b/b Quota
         why b
         > Quota: a quota of namespace shared refuses more pods",
    );
}

#[test]
fn a_quota_of_nothing_is_no_reason_to_give_up() {
    play(
        "room slots=9
         quota d 0
         task a pod
         plan
         > hold a Quota
         quota d 1
         plan
         > start a",
    );
}

#[test]
fn a_pod_that_finds_no_node_holds_back_only_tasks_with_the_same_placement_needs() {
    play(
        "room slots=9
         task nowhere pod selector=no-such-node prio=5
         plan
         > start nowhere
         state nowhere Pending
         no-node nowhere
         task alike pod selector=no-such-node
         task elsewhere pod
         task larger pod selector=no-such-node memory=8
         task subject pod selector=no-such-node subject=s
         task process
         plan
         > hold alike Unschedulable
         > start elsewhere
         > start larger
         > hold subject Unschedulable
         > start process
         > wake 300
         why alike
         > Unschedulable: the pod of task d/nowhere, with the same placement needs, finds no node; the next task like it is tried at 1970-01-01T00:05:00Z, or at once after: muster cancel nowhere --namespace d
         placed nowhere
         plan
         > start alike
         > start subject",
    );
}

#[test]
fn when_the_time_limit_is_over_one_task_is_tried_and_holds_back_the_others_if_it_is_stuck_too() {
    play(
        "room slots=9
         task nowhere pod
         plan
         > start nowhere
         state nowhere Pending
         no-node nowhere
         task a pod
         task b pod prio=0
         task c pod
         now 10
         plan
         > hold a Unschedulable
         > wake 300
         now 300
         plan
         > start a
         > hold b Unschedulable
         > wake 600
         state a Pending
         now 301
         no-node a
         plan
         > wake 601
         now 601
         plan
         > start b
         > hold c Unschedulable
         > wake 901
         state b Running
         on-node b
         plan
         > start c",
    );
}

#[test]
fn a_task_that_ranks_above_the_stuck_one_is_tried_at_once_and_no_more_than_one() {
    play(
        "room slots=9
         task nowhere pod prio=5
         plan
         > start nowhere
         state nowhere Pending
         no-node nowhere
         task urgent pod prio=9
         task second pod prio=8
         task equal pod prio=5
         plan
         > start urgent
         > hold second Unschedulable
         > wake 300
         state urgent Pending
         no-node urgent
         why second
         > Unschedulable: the pod of task d/urgent, with the same placement needs, finds no node; the next task like it is tried at 1970-01-01T00:05:00Z, or at once after: muster cancel urgent --namespace d
         placed urgent
         placed nowhere
         plan
         > start second
         > start equal",
    );
}

#[test]
fn when_the_task_that_tries_goes_back_to_the_queue_another_may_try() {
    for back in ["state a Ready", "unplan a", "state a Canceled", "gone a"] {
        let rest = match back {
            "state a Ready" | "unplan a" => "> start a\n> wake 610",
            _ => "> start b",
        };
        play(&format!(
            "room slots=9
             task nowhere pod
             plan
             > start nowhere
             state nowhere Pending
             no-node nowhere
             task a pod
             task b pod
             now 300
             plan
             > start a
             > hold b Unschedulable
             > wake 600
             now 310
             {back}
             plan
             {rest}"
        ));
    }
}

#[test]
fn when_a_task_that_ranks_above_the_stuck_one_goes_back_to_the_queue_the_next_of_them_tries() {
    play(
        "room slots=9
         task nowhere pod prio=5
         plan
         > start nowhere
         state nowhere Pending
         no-node nowhere
         task urgent pod prio=9
         task second pod prio=8
         plan
         > start urgent
         > hold second Unschedulable
         > wake 300
         state urgent Canceled
         now 1
         plan
         > start second",
    );
}

#[test]
fn a_task_that_tries_and_of_which_nothing_is_heard_holds_back_the_others_no_longer_than_the_time_limit() {
    play(
        "room slots=9
         task nowhere pod
         plan
         > start nowhere
         state nowhere Pending
         no-node nowhere
         task a pod
         task b pod
         task c pod
         now 300
         plan
         > start a
         > hold b Unschedulable
         > wake 600
         state a Pending
         now 599
         why b
         > Unschedulable: the pod of task d/nowhere, with the same placement needs, finds no node; the next task like it is tried at 1970-01-01T00:10:00Z, or at once after: muster cancel nowhere --namespace d
         plan
         > wake 600
         now 600
         plan
         > start b
         > hold c Unschedulable
         > wake 900
         on-node a
         plan
         > start c",
    );
}

#[test]
fn a_task_that_a_quota_refuses_preempts_none_of_another_namespace() {
    play(
        "room slots=9
         quota a 1
         task exempt in=a pod exempt
         task b1 in=b pod
         task b2 in=b pod
         task process in=a
         plan
         > start a/exempt
         > start b/b1
         > start b/b2
         > start a/process
         state exempt Running
         state b1 Running
         state b2 Running
         state process Running
         task high in=a pod prio=5 preempt
         plan
         > hold a/high Quota
         > wake 61
         now 61
         plan
         explain high
         > QuotaBlocked: a quota of namespace a refuses more pods (position 1)
         > it cannot preempt: the end of all tasks of a priority below 5 that may be preempted would not make enough room",
    );
}

#[test]
fn a_task_that_lacks_a_slot_and_its_quota_preempts_one_that_gives_back_both() {
    play(
        "room slots=2
         quota a 1
         task a1 in=a pod prio=2
         task b1 in=b pod prio=1
         plan
         > start a/a1
         > start b/b1
         state a1 Running
         state b1 Running
         task high in=a pod prio=5 preempt
         plan
         > hold a/high Quota
         > wake 61
         now 61
         plan
         > preempt a/a1 for a/high",
    );
}

#[test]
fn a_task_that_a_quota_refuses_may_preempt() {
    play(
        "room slots=9
         quota d 1
         task low pod
         plan
         > start low
         state low Running
         task high pod prio=5 preempt
         plan
         > hold high Quota
         > wake 61
         now 61
         plan
         > preempt low for high",
    );
}

#[test]
fn preemption_takes_only_tasks_that_give_back_what_is_lacking() {
    play(
        "room slots=9 memory=10
         task light prio=0
         task heavy prio=1 memory=8
         plan
         > start heavy
         > start light
         state light Running
         state heavy Running
         task urgent prio=9 memory=5 preempt
         plan
         > hold urgent Capacity
         > wake 61
         state urgent QuotaBlocked
         now 61
         plan
         > preempt heavy for urgent
         plan
         gone heavy
         plan
         > start urgent",
    );
}

#[test]
fn a_task_whose_leaving_another_makes_needless_is_not_preempted() {
    play(
        "room slots=2 memory=10
         task light prio=0
         task heavy prio=1 memory=8
         plan
         > start heavy
         > start light
         state light Running
         state heavy Running
         task urgent prio=9 memory=5 preempt
         plan
         > hold urgent Capacity
         > wake 61
         state urgent QuotaBlocked
         now 61
         plan
         > preempt heavy for urgent",
    );
}

#[test]
fn no_more_tasks_are_preempted_than_are_needed() {
    let names: Vec<String> = (1..=15).map(|number| format!("t{number:02}")).collect();
    let each = |line: &dyn Fn(&str) -> String| names.iter().map(|name| line(name)).collect::<String>();
    let story = String::from("room slots=15\n")
        + &each(&|name| format!("task {name} prio=1\n"))
        + "plan\n"
        + &each(&|name| format!("> start {name}\n"))
        + &each(&|name| format!("state {name} Running\n"))
        + "task urgent prio=9 preempt
           plan
           > hold urgent Capacity
           > wake 61
           state urgent QuotaBlocked
           now 61
           plan
           > preempt t15 for urgent";
    play(&story);
}

#[test]
fn a_running_task_that_a_higher_one_waits_for_is_not_preempted_before_others() {
    play(
        "room slots=2
         kind language
         kind analyze needs=language
         task discovery kind=language subject=x prio=0
         task other prio=2
         plan
         > start other
         > start discovery
         state other Running
         state discovery Running
         task analysis kind=analyze subject=x prio=8
         task urgent prio=5 preempt
         plan
         > hold urgent Capacity
         > hold analysis Dependency
         > wake 61
         state urgent QuotaBlocked
         now 61
         plan
         > preempt other for urgent",
    );
}

#[test]
fn a_running_task_gives_way_again_when_nobody_waits_for_it_any_more() {
    play(
        "room slots=1
         kind language
         kind analyze needs=language
         task discovery kind=language subject=x prio=0
         plan
         > start discovery
         state discovery Running
         task analysis kind=analyze subject=x prio=8
         task urgent prio=5 preempt
         plan
         > hold urgent Capacity
         > hold analysis Dependency
         > wake 61
         state urgent QuotaBlocked
         now 61
         plan
         gone analysis
         plan
         > preempt discovery for urgent",
    );
}

#[test]
fn a_task_that_may_preempt_lets_what_it_waits_for_preempt() {
    play(
        "room slots=1
         kind language
         kind analyze needs=language
         task busy prio=5
         plan
         > start busy
         state busy Running
         task discovery kind=language subject=x prio=0
         plan
         > hold discovery Capacity
         state discovery QuotaBlocked
         now 30
         plan
         task analysis kind=analyze subject=x prio=9 preempt
         plan
         > hold analysis Dependency
         > wake 91
         now 91
         plan
         > preempt busy for discovery
         gone busy
         plan
         > start discovery raised to 9 by analysis",
    );
}

#[test]
fn a_task_that_may_not_preempt_lends_no_such_right() {
    play(
        "room slots=1
         kind language
         kind analyze needs=language
         task busy prio=5
         plan
         > start busy
         state busy Running
         task discovery kind=language subject=x prio=0
         task analysis kind=analyze subject=x prio=9
         plan
         > hold discovery Capacity
         > hold analysis Dependency
         state discovery QuotaBlocked
         now 90
         plan",
    );
}

#[test]
fn an_isolated_task_that_no_robot_could_take_holds_back_nobody() {
    play(
        "room slots=9
         task runs prio=9
         plan
         > start runs
         task alone isolated prio=5 robot
         task later prio=1
         plan
         > hold alone NoFleet
         > start later
         why alone
         > NoFleet: this server has no fleet; start it with --mqtt-listen or --mqtt-url
         task last prio=0
         plan
         > start last",
    );
}

#[test]
fn an_isolated_pod_that_finds_no_node_is_taken_back_if_others_wait_and_holds_back_nobody_from_then_on() {
    play(
        "room slots=9
         task alone isolated pod prio=5
         plan
         > start alone
         state alone Pending
         no-node alone
         now 100
         plan
         task other
         task alike pod
         plan
         > take back alone
         > hold other Isolation
         > hold alike Isolation
         plan
         state alone Ready rest=400
         placed alone
         plan
         > start other
         > hold alike Unschedulable
         > wake 300
         now 300
         plan
         > start alike
         > wake 400
         state alike Running
         on-node alike
         now 400
         plan
         > hold alone Isolated
         task more prio=1
         plan
         > start more
         state more Succeeded
         state other Succeeded
         plan
         state alike Succeeded
         plan
         > start alone
         state alone Pending
         no-node alone
         task late
         plan
         > hold late Isolation
         > wake 461",
    );
}

#[test]
fn an_isolated_pod_that_finds_no_node_is_not_taken_back_at_once() {
    play(
        "room slots=9
         task alone isolated pod
         plan
         > start alone
         state alone Pending
         no-node alone
         task other
         now 60
         plan
         > hold other Isolation
         > wake 61
         on-node alone
         now 61
         plan",
    );
}

#[test]
fn an_isolated_task_that_a_quota_refused_holds_back_nobody_and_is_tried_when_nothing_else_is_active() {
    play(
        "room slots=9
         task alone isolated pod prio=5
         plan
         > start alone
         state alone Pending
         refused alone
         state alone QuotaBlocked
         task alike pod prio=9
         plan
         > start alike
         > hold alone Isolated
         task behind pod prio=1
         plan
         > start behind
         why alone
         > Isolated: it is isolated and 2 other tasks run; it starts when they ended
         state alike Succeeded
         task urgent isolated prio=8
         plan
         > hold urgent Isolated
         state behind Succeeded
         plan
         > start urgent
         state urgent Succeeded
         plan
         > start alone
         state alone Running
         state alone Ready
         task first prio=6
         plan
         > start first
         > hold alone Isolated
         task last pod
         plan
         > hold last Isolation",
    );
}

#[test]
fn an_isolated_task_that_can_never_fit_holds_back_nobody() {
    play(
        "room slots=9 memory=10
         task runs prio=9
         plan
         > start runs
         task alone isolated prio=5 memory=11
         task later prio=1
         plan
         > hold alone NeverFits
         > start later",
    );
}

#[test]
fn a_task_without_room_says_what_is_in_use_its_position_and_whose_place_it_takes() {
    play(
        "room slots=2
         task low prio=1
         task kept prio=3 exempt
         plan
         > start kept
         > start low
         state low Running
         state kept Running
         task first prio=5 preempt
         task second prio=4
         task third prio=4
         plan
         > hold first Capacity
         > wake 61
         explain first
         > QuotaBlocked: waiting for a free slot (2 of 2 in use, position 1)
         > it preempts d/low at 1970-01-01T00:01:01Z if there is no room before
         explain third
         > Ready: waiting for a free slot (2 of 2 in use, position 3)
         > with spec.policy.preemptEnabled=true it could take the place of d/low (lower priority)",
    );
}

#[test]
fn a_task_that_may_preempt_and_cannot_says_why() {
    play(
        "room slots=1
         task kept prio=1 exempt
         plan
         > start kept
         state kept Running
         task first prio=5 preempt
         plan
         > hold first Capacity
         > wake 61
         explain first
         > QuotaBlocked: waiting for a free slot (1 of 1 in use, position 1)
         > it cannot preempt: the end of all tasks of a priority below 5 that may be preempted would not make enough room",
    );
}

#[test]
fn the_isolated_task_that_others_wait_for_is_named() {
    play(
        "room slots=3
         task alone isolated
         plan
         > start alone
         state alone Running
         task other
         plan
         > hold other Isolation
         explain other
         > Postponed: isolated task d/alone runs or is next; nothing else starts until it ended",
    );
}

#[test]
fn an_isolated_task_that_is_named_is_one_that_others_do_wait_for() {
    play(
        "room slots=3 memory=10
         task running
         plan
         > start running
         state running Running
         task huge isolated prio=9 memory=11
         task alone isolated prio=5
         task other
         plan
         > hold huge NeverFits
         > hold alone Isolated
         > hold other Isolation
         explain other
         > Postponed: isolated task d/alone runs or is next; nothing else starts until it ended",
    );
}

#[test]
fn an_isolated_task_names_those_it_waits_for() {
    play(
        "room slots=3
         task one
         task two
         plan
         > start one
         > start two
         state one Running
         state two Running
         task alone isolated prio=9
         plan
         > hold alone Isolated
         explain alone
         > Postponed: it is isolated and starts when d/one, d/two ended",
    );
}

#[test]
fn an_isolated_task_names_what_is_deleted_and_has_not_ended() {
    play(
        "room slots=9
         task one
         task two exempt
         task three
         task four
         plan
         > start one
         > start two
         > start three
         > start four
         state one Running
         state two Running
         task alone isolated prio=9
         plan
         > hold alone Isolated
         explain alone
         > Postponed: it is isolated and starts when d/one, d/two, d/three and 1 more ended
         gone four
         gone three
         gone two
         deleted one
         explain alone
         > Postponed: it is isolated and starts when d/one (it is being deleted) ended
         why alone
         > Isolated: it is isolated and 1 other task runs; it starts when that ended",
    );
}

#[test]
fn a_task_that_waits_for_one_that_is_deleted_says_so() {
    play(
        "kind analyze
         task one kind=analyze subject=app/x
         plan
         > start one
         state one Running
         task two kind=analyze subject=app/x
         plan
         > hold two Unique
         deleted one
         explain two
         > Postponed: task d/one of the same subject and kind must end first; it is being deleted, and has not ended yet",
    );
}

#[test]
fn a_task_that_preempts_names_all_that_it_takes_though_they_leave_one_after_the_other() {
    play(
        "room slots=9 memory=100
         task a prio=1 memory=30
         task b prio=1 memory=30
         plan
         > start a
         > start b
         state a Running
         state b Running
         task big prio=9 memory=90 preempt
         plan
         > hold big Capacity
         > wake 61
         explain big
         > QuotaBlocked: waiting for 90 memory (60 of 100 in use, position 1)
         > it preempts d/b, d/a at 1970-01-01T00:01:01Z if there is no room before
         now 61
         plan
         > preempt b for big
         explain big
         > QuotaBlocked: waiting for 90 memory (60 of 100 in use, position 1)
         > it preempts d/a next",
    );
}

#[test]
fn a_task_that_needs_more_than_three_others_to_leave_names_three_and_counts_the_rest() {
    play(
        "room slots=9 memory=100
         task a memory=20
         task b memory=20
         task c memory=20
         task d memory=20
         task e memory=20
         plan
         > start a
         > start b
         > start c
         > start d
         > start e
         state a Running
         state b Running
         state c Running
         state d Running
         state e Running
         task big prio=9 memory=90
         plan
         > hold big Capacity
         explain big
         > QuotaBlocked: waiting for 90 memory (100 of 100 in use, position 1)
         > with spec.policy.preemptEnabled=true it could take the place of d/e, d/d, d/c and 2 more (lower priority)",
    );
}

#[test]
fn a_runtime_that_is_not_configured_is_said_as_such() {
    play(
        "room slots=0 robots=0
         task a
         plan
         > hold a NoRuntime
         why a
         > NoRuntime: the server has no slots for processes; start it with --slots, or submit the task again with spec.runtime pod or robot
         explain a
         > QuotaBlocked: the server has no slots for processes; start it with --slots, or submit the task again with spec.runtime pod or robot
         task p pod
         plan
         > hold p NoRuntime
         why p
         > NoRuntime: no cluster for pods is configured; start the server with --cluster-kubeconfig, or submit the task again with spec.runtime process or robot
         task r robot
         plan
         > hold r NoRuntime
         why r
         > NoRuntime: no broker for robots is configured; start the server with --mqtt-listen or --mqtt-url, or submit the task again with spec.runtime process or pod",
    );
}

#[test]
fn a_task_that_fits_and_waits_behind_one_that_does_not_names_that_one() {
    play(
        "room slots=9 memory=100
         task big prio=5 memory=70
         plan
         > start big
         state big Running
         task first prio=9 memory=60
         task small prio=1 memory=20
         plan
         > hold first Capacity
         explain small
         > Ready: waiting behind task d/first, which is waiting for 60 memory (70 of 100 in use, position 2)",
    );
}

#[test]
fn a_task_that_lacks_a_slot_and_memory_says_both() {
    play(
        "room slots=1 memory=100
         task big prio=5 memory=70
         plan
         > start big
         state big Running
         task first prio=9 memory=60
         plan
         > hold first Capacity
         explain first
         > QuotaBlocked: waiting for a free slot (1 of 1 in use) and 60 memory (70 of 100 in use, position 1)
         > with spec.policy.preemptEnabled=true it could take the place of d/big (lower priority)",
    );
}
