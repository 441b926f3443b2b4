//! What holds on every board, whatever happens to it in whatever order.

use std::collections::{BTreeMap, BTreeSet};

use muster_tasks::board::Board;
use muster_tasks::capacity::Capacity;
use muster_tasks::kinds::KindGraph;
use muster_tasks::plan::Decision;
use muster_tasks::settings::Settings;
use muster_tasks::view::{Need, TaskView};
use muster_types::State;
use muster_types::task::Runtime;
use proptest::prelude::*;

/// Something that happens.
#[derive(Debug, Clone)]
enum Step {
    Submit {
        kind: usize,
        subject: usize,
        priority: i32,
        memory: u64,
        isolated: bool,
        preempt: bool,
        /// Its namespace if it is a pod; 0 for a process.
        pods: usize,
    },
    /// The attempt of some task goes on: runs, ends, or comes back.
    Go {
        which: usize,
        to: usize,
    },
    Gone {
        which: usize,
    },
    Resize {
        slots: u32,
        memory: u64,
        ahead: u32,
    },
    Kinds {
        turned: bool,
    },
    Quota {
        pods: usize,
        most: u32,
    },
    Pass {
        later: i64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_usize..4, 0_usize..4, 0_i32..5, 0_u64..6, proptest::bool::weighted(0.1), any::<bool>(), 0_usize..5)
            .prop_map(|(kind, subject, priority, memory, isolated, preempt, pods)| Step::Submit {
                kind, subject, priority, memory, isolated, preempt, pods: pods.saturating_sub(2)
            }),
        1 => (1_usize..3, 0_u32..3).prop_map(|(pods, most)| Step::Quota { pods, most }),
        4 => (any::<usize>(), 0_usize..4).prop_map(|(which, to)| Step::Go { which, to }),
        1 => any::<usize>().prop_map(|which| Step::Gone { which }),
        1 => (0_u32..4, 1_u64..8, 0_u32..3).prop_map(|(slots, memory, ahead)| Step::Resize { slots, memory, ahead }),
        1 => any::<bool>().prop_map(|turned| Step::Kinds { turned }),
        4 => (0_i64..90).prop_map(|later| Step::Pass { later }),
    ]
}

struct World {
    board: Board,
    tasks: BTreeMap<u128, TaskView>,
    now: i64,
    next: u128,
    resized: bool,
    /// How many pods each namespace takes in.
    quotas: BTreeMap<&'static str, u32>,
}

/// Namespaces of pods, from 1; the first is that of processes.
const NAMESPACES: [&str; 3] = ["d", "d", "e"];

impl World {
    fn new() -> Self {
        let capacity = Capacity { slots: 3, cpu_millis: None, memory: Some(8) };
        let board = Board::new(Settings::default(), |_| capacity);
        let mut world =
            Self { board, tasks: BTreeMap::new(), now: 0, next: 1, resized: false, quotas: BTreeMap::new() };
        world.play(&Step::Kinds { turned: false });
        world
    }

    fn pick(&self, which: usize, states: &[State]) -> Option<u128> {
        let among: Vec<u128> =
            self.tasks.iter().filter(|(_, task)| states.contains(&task.state)).map(|(uid, _)| *uid).collect();
        (!among.is_empty()).then(|| among[which % among.len()])
    }

    fn play(&mut self, step: &Step) {
        match *step {
            Step::Submit { kind, subject, priority, memory, isolated, preempt, pods } => {
                let uid = self.next;
                self.next += 1;
                let task = TaskView {
                    uid,
                    path: format!("{}/t{uid}", NAMESPACES[pods]).into(),
                    state: State::Ready,
                    since: self.now,
                    priority: Some(priority),
                    kind: ["", "a", "b", "c"][kind].to_owned(),
                    addon: String::new(),
                    subject: ["", "s1", "s2", "s3"][subject].to_owned(),
                    runtime: (pods > 0).then_some(Runtime::Pod),
                    need: Need { cpu_millis: 0, memory },
                    isolated,
                    preempt_enabled: preempt,
                    preempt_exempt: false,
                    stopping: false,
                    deleted: false,
                    prefetched: false,
                    is_first: true,
                    rest_until: 0,
                    demand: None,
                    placement: String::new(),
                    robot: None,
                    awaited: None,
                };
                self.board.observe(&task);
                self.tasks.insert(uid, task);
            }
            Step::Go { which, to } => {
                let Some(uid) = self.pick(which, &[State::Pending, State::Running]) else { return };
                let now = self.now;
                let task = self.tasks.get_mut(&uid).expect("picked");
                task.state = [State::Running, State::Succeeded, State::Failed, State::Ready][to];
                task.since = now;
                task.rest_until = if to == 3 && task.stopping { now + 60 } else { 0 };
                task.stopping = task.stopping && to == 0;
                self.board.observe(task);
            }
            Step::Gone { which } => {
                let Some(uid) = self.pick(which, State::ALL) else { return };
                self.board.forget(uid);
                self.tasks.remove(&uid);
            }
            Step::Resize { slots, memory, ahead } => {
                let capacity = Capacity { slots, cpu_millis: None, memory: Some(memory) };
                self.board.set_capacity(Runtime::Process, capacity);
                self.board.set_prefetch(Runtime::Process, ahead);
                self.resized = true;
            }
            Step::Kinds { turned } => {
                let needs = if turned { [("d/a", vec!["d/b"])] } else { [("d/b", vec!["d/a"])] };
                self.board.set_kinds(
                    KindGraph::new(needs),
                    BTreeMap::new(),
                    BTreeSet::from(["d/b".to_owned()]),
                );
            }
            Step::Quota { pods, most } => {
                self.board.set_pod_limit(NAMESPACES[pods], Some(most));
                self.quotas.insert(NAMESPACES[pods], most);
            }
            Step::Pass { later } => {
                self.now += later;
                let plan = self.board.plan(self.now);
                for decision in &plan.decisions {
                    let Decision::Start { task, .. } = decision else { continue };
                    let Some(namespace) = self.board.pod_namespace(task.uid) else { continue };
                    let (pods, most) = (self.board.pods_in(&namespace), self.quotas.get(&*namespace));
                    assert!(
                        most.is_none_or(|most| pods <= *most),
                        "{} is started, {pods} are there",
                        task.path
                    );
                }
                let effective = |uid| self.board.explain(uid, self.now).and_then(|it| it.effective_priority);
                let priority = |uid| effective(uid).expect("it is on the board");
                assert_eq!(Board::plan_violations(&plan, priority), Vec::<String>::new());
                for decision in &plan.decisions {
                    self.carry_out(decision);
                }
            }
        }
    }

    fn carry_out(&mut self, decision: &Decision) {
        let now = self.now;
        match decision {
            Decision::Start { task, prefetch: true, .. } => {
                let task = self.tasks.get_mut(&task.uid).expect("only known tasks are prefetched");
                assert!(task.is_first && !task.prefetched && task.rest_until <= now, "{}", task.path);
                task.prefetched = true;
                self.board.observe(task);
            }
            Decision::TakeBack { .. } => {}
            Decision::Recall { task } => {
                // Its executor gives it back, or had started it.
                let task = self.tasks.get_mut(&task.uid).expect("only known tasks are taken back");
                assert!(task.prefetched, "{} is taken back", task.path);
                task.prefetched = false;
                if task.uid.is_multiple_of(3) {
                    (task.state, task.since, task.is_first) = (State::Running, now, false);
                }
                self.board.observe(task);
            }
            Decision::Start { task, .. } => {
                let task = self.tasks.get_mut(&task.uid).expect("only known tasks start");
                assert!(
                    matches!(task.state, State::Ready | State::Postponed | State::QuotaBlocked),
                    "{} was {} and is started",
                    task.path,
                    task.state
                );
                assert!(task.rest_until <= now, "{} rests and is started", task.path);
                task.state = State::Pending;
                task.since = now;
                self.board.observe(task);
            }
            Decision::Hold { task, hold } => {
                let task = self.tasks.get_mut(&task.uid).expect("only known tasks are held");
                task.state = hold.state();
                self.board.observe(task);
            }
            Decision::Preempt { task, .. } => {
                let task = self.tasks.get_mut(&task.uid).expect("only known tasks are preempted");
                assert_eq!(task.state, State::Running, "{} is preempted", task.path);
                task.stopping = true;
                self.board.observe(task);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_board_is_sound_after_every_step(steps in proptest::collection::vec(step(), 1..80)) {
        let mut world = World::new();
        for step in &steps {
            world.play(step);
            let wrong: Vec<String> = world
                .board
                .violations()
                .into_iter()
                // A room that was made smaller holds too much until some have left.
                .filter(|wrong| !(world.resized && wrong.contains("more than it has room for")))
                .collect();
            prop_assert!(wrong.is_empty(), "after {:?}: {:?}", step, wrong);
        }
    }

    #[test]
    fn everything_that_waits_can_say_why(steps in proptest::collection::vec(step(), 1..60)) {
        let mut world = World::new();
        for step in &steps {
            world.play(step);
        }
        for (uid, task) in &world.tasks {
            let waits = matches!(task.state, State::Ready | State::Postponed | State::QuotaBlocked);
            let why = world.board.explain(*uid, world.now);
            prop_assert_eq!(waits, why.as_ref().is_some_and(|why| why.waiting_for.is_some()), "{:?}", task);
        }
    }

    #[test]
    fn a_board_with_room_runs_dry(steps in proptest::collection::vec(step(), 1..60)) {
        let mut world = World::new();
        for step in steps.iter().filter(|step| !matches!(step, Step::Resize { .. } | Step::Gone { .. } | Step::Quota { .. })) {
            world.play(step);
        }
        for _ in 0..400 {
            world.play(&Step::Pass { later: 61 });
            // What failed is tried again by somebody, or forgotten.
            while let Some(uid) = world.pick(0, &[State::Failed]) {
                world.board.forget(uid);
                world.tasks.remove(&uid);
            }
            while let Some(uid) = world.pick(0, &[State::Pending, State::Running]) {
                let task = world.tasks.get_mut(&uid).expect("picked");
                task.state = State::Succeeded;
                world.board.observe(task);
            }
        }
        let left: Vec<_> = world.tasks.values().filter(|task| !task.state.is_terminal()).collect();
        prop_assert!(left.is_empty(), "still waiting: {:?}", left);
    }
}
