//! The loop that knows all attempts: orders, changes of pods and ends of logs come in, facts go out.
//!
//! Nothing here waits for the cluster: whatever does is a worker that sends its answer back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use muster_ports::blobs::Blobs;
use muster_ports::clock::{Clock as _, SystemClock};
use muster_ports::runtime::{
    CLUSTER_UNAVAILABLE, Cause, Ending, Fact, Handle, Launch, NOT_PERMITTED, Observation,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use crate::attempt::{Attempt, Step};
use crate::cluster::{Cluster, Made};
use crate::creation_queue::{CreationQueue, Refused};
use crate::log_store::LogStore;
use crate::manifest::namespace_of;
use crate::pause::Pause;
use crate::pod_view::PodView;
use crate::refusal::Refusal;
use crate::snapshot;
use crate::tail::{Tail, Taken};

/// Between two looks at what takes too long.
const TICK: Duration = Duration::from_secs(1);
/// A pod that nobody knows this long after it was seen is an orphan.
const ORPHAN_AFTER: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What comes in.
pub(crate) enum Message {
    Start(Box<Launch>),
    Adopt(Box<Launch>, bool),
    Stop(Handle, Duration),
    /// What is left of an attempt may go.
    Remove(Handle),
    /// The cluster answered to a request for a pod.
    Answered(Box<Launch>, Result<Made, Refusal>),
    /// After a pause, pods are asked for again.
    Resume,
    /// Pods cannot be seen, and that will not change by itself.
    Unseen(String),
    /// All pods there are.
    Listed(Vec<PodView>),
    Seen(Box<PodView>),
    Gone(Box<PodView>),
    Taken(Handle, String, Taken),
}

/// The loop's state.
pub(crate) struct Desk {
    cluster: Cluster,
    store: LogStore,
    blobs: Arc<dyn Blobs>,
    facts: UnboundedSender<Fact>,
    own: UnboundedSender<Message>,
    attempts: BTreeMap<Handle, Attempt>,
    queue: CreationQueue,
    /// Attempts that were refused, to be told of, and whether they were known.
    refusals: UnboundedSender<(Refused, bool)>,
    /// Pods that are there, with when they were first seen.
    pods: BTreeMap<Handle, (PodView, Instant)>,
    /// Attempts whose pod goes as soon as it is seen.
    doomed: BTreeSet<Handle>,
    listed: bool,
    /// The cluster did not answer; nothing is asked for until the pause is over.
    paused: bool,
    pause: Pause,
}

impl Desk {
    pub(crate) fn new(
        cluster: Cluster,
        store: LogStore,
        blobs: Arc<dyn Blobs>,
        facts: UnboundedSender<Fact>,
        own: UnboundedSender<Message>,
    ) -> Self {
        let (refusals, to_tell) = unbounded_channel();
        tokio::spawn(tell_refusals(to_tell, store.clone(), facts.clone()));
        Self {
            cluster,
            store,
            blobs,
            facts,
            own,
            attempts: BTreeMap::new(),
            queue: CreationQueue::default(),
            refusals,
            pods: BTreeMap::new(),
            doomed: BTreeSet::new(),
            listed: false,
            paused: false,
            pause: Pause::new(FIRST_PAUSE, LONGEST_PAUSE),
        }
    }

    /// Runs until nobody sends any more.
    pub(crate) async fn run(mut self, mut messages: UnboundedReceiver<Message>) {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = messages.recv() => match message {
                    Some(message) => self.handle(message),
                    None => return,
                },
                _ = tick.tick() => self.look(),
            }
            self.create_next();
        }
    }

    fn handle(&mut self, message: Message) {
        match message {
            Message::Start(launch) => self.start(*launch),
            Message::Adopt(launch, ran) => self.adopt(*launch, ran),
            Message::Stop(handle, grace) => self.stop(&handle, grace),
            Message::Remove(handle) => self.remove(handle),
            Message::Answered(launch, answer) => self.observe_answer(*launch, answer),
            Message::Resume => self.paused = false,
            Message::Unseen(message) => self.observe_unseen(&message),
            Message::Listed(views) => self.observe_list(views),
            Message::Seen(view) => self.observe_pod(*view),
            Message::Gone(view) => self.observe_gone(*view),
            Message::Taken(handle, container, taken) => {
                let at = SystemClock.wall();
                self.act(&handle, |attempt| attempt.observe_taken(&container, taken, at));
            }
        }
    }

    fn start(&mut self, launch: Launch) {
        if let Some(attempt) = self.enter(&launch, false) {
            let namespace = attempt.namespace.clone();
            let refused = self.queue.push(namespace, launch);
            self.refuse(refused);
        }
    }

    /// Goes on with an attempt of a former server.
    fn adopt(&mut self, launch: Launch, ran: bool) {
        let handle = launch.handle.clone();
        if self.enter(&launch, ran).is_none() {
            return;
        }
        if !ran {
            // Whether it is there or not: asking for it once more makes it be there once, with its Secret.
            let namespace = self.attempts.get(&handle).map(|attempt| attempt.namespace.clone());
            self.queue.push_adopted(namespace.unwrap_or_default(), launch);
        }
        if let Some((view, _)) = self.pods.get(&handle).cloned() {
            self.observe_pod(view);
        } else if self.listed {
            self.miss(&handle);
        }
    }

    fn enter(&mut self, launch: &Launch, ran: bool) -> Option<&Attempt> {
        let handle = &launch.handle;
        let Some(pod) = &launch.pod else {
            let message = "the launch is not one of a pod".to_owned();
            self.say(handle, Observation::StartFailed { reason: "NoPod".into(), message, transient: false });
            return None;
        };
        if self.attempts.contains_key(handle) {
            return None;
        }
        let namespace = namespace_of(pod, &self.cluster.settings);
        self.doomed.remove(handle);
        self.attempts.insert(handle.clone(), Attempt::new(namespace, launch.kill_timeout, ran));
        self.attempts.get(handle)
    }

    /// An attempt that ran has no pod any more.
    fn miss(&mut self, handle: &Handle) {
        if self.attempts.get(handle).is_some_and(|attempt| attempt.must_exist && attempt.view.is_none()) {
            let (now, at) = (Instant::now(), SystemClock.wall());
            self.act(handle, |attempt| attempt.observe_gone(None, now, at));
        }
    }

    fn stop(&mut self, handle: &Handle, grace: Duration) {
        let (now, at) = (Instant::now(), SystemClock.wall());
        let stuck_after = self.cluster.settings.stuck_after;
        let never_asked = self.queue.remove(handle);
        self.act(handle, |attempt| {
            let mut steps: Vec<Step> = attempt.stop(grace, now, stuck_after).into_iter().collect();
            if never_asked {
                steps.extend(attempt.observe_gone(None, now, at));
            }
            steps
        });
    }

    fn remove(&mut self, handle: Handle) {
        if let Some((view, _)) = self.pods.get(&handle).cloned() {
            self.delete(&view, Duration::ZERO);
        }
        if self.pods.contains_key(&handle) || !self.listed {
            self.doomed.insert(handle);
        }
    }

    /// Attempts that a quota refuses never were: they leave nothing, and their names are used again.
    fn refuse(&mut self, refused: impl IntoIterator<Item = Refused>) {
        for refused in refused {
            // Each one is told, known or not: whoever chooses what is next counts them.
            let is_known = self.attempts.remove(&refused.handle).is_some();
            // That worker ends with this loop.
            drop(self.refusals.send((refused, is_known)));
        }
    }

    fn create_next(&mut self) {
        while !self.paused
            && let Some(launch) = self.queue.next()
        {
            let (cluster, own) = (self.cluster.clone(), self.own.clone());
            tokio::spawn(async move {
                let answer = cluster.create(&launch).await;
                drop(own.send(Message::Answered(Box::new(launch), answer)));
            });
        }
    }

    fn observe_answer(&mut self, launch: Launch, answer: Result<Made, Refusal>) {
        let handle = launch.handle.clone();
        match answer {
            Ok(_) | Err(Refusal::Exists) => {
                self.queue.observe_answer();
                self.pause.reset();
                match (self.attempts.get_mut(&handle), answer) {
                    (Some(attempt), _) => attempt.answered = Some(Instant::now()),
                    // Its attempt ended while it was asked for: nobody wants it any more.
                    (None, Ok(Made::New)) => self.remove(handle),
                    (None, _) => {}
                }
            }
            Err(Refusal::Quota(message)) => {
                let namespace = self.attempts.get(&handle).map(|it| it.namespace.clone()).unwrap_or_default();
                let refused = self.queue.observe_refusal(&namespace, &launch, &message);
                self.refuse(refused);
            }
            Err(Refusal::Permanent { reason, message }) => {
                self.queue.observe_answer();
                let reason = reason.to_owned();
                self.end(&handle, Observation::StartFailed { reason, message, transient: false });
            }
            Err(refusal @ (Refusal::Transient { .. } | Refusal::NotFound)) => self.put_off(launch, refusal),
        }
    }

    /// The cluster is not well: all wait, a little longer each time.
    fn put_off(&mut self, launch: Launch, refusal: Refusal) {
        self.queue.observe_silence();
        let (message, after) = match refusal {
            Refusal::Transient { message, after } => (message, after),
            _ => ("not found".to_owned(), None),
        };
        let Some(attempt) = self.attempts.get(&launch.handle) else { return };
        let namespace = attempt.namespace.clone();
        if attempt.is_stopped() {
            let (now, at) = (Instant::now(), SystemClock.wall());
            return self.act(&launch.handle.clone(), |attempt| attempt.observe_gone(None, now, at));
        }
        tracing::warn!(handle = %launch.handle, message, "a pod cannot be made now; trying again");
        let reason = CLUSTER_UNAVAILABLE.to_owned();
        let waiting = Observation::Waiting { reason, message: format!("no pod can be made: {message}") };
        self.say(&launch.handle, waiting);
        self.queue.put_back(namespace, launch);
        if std::mem::replace(&mut self.paused, true) {
            return;
        }
        let wait = self.pause.next().max(Duration::from_secs(after.unwrap_or(0).into()));
        let own = self.own.clone();
        tokio::spawn(async move {
            sleep(wait).await;
            drop(own.send(Message::Resume));
        });
    }

    fn observe_gone(&mut self, view: PodView) {
        let (now, at) = (Instant::now(), SystemClock.wall());
        let handle = view.handle.clone();
        self.pods.remove(&handle);
        self.doomed.remove(&handle);
        if self.attempts.contains_key(&handle) && !view.deleting {
            // Nobody asked for its deletion: somebody took its labels away, and it runs on where nobody sees it.
            self.delete(&view, Duration::ZERO);
        }
        self.act(&handle, |attempt| attempt.observe_gone(Some(view), now, at));
        self.say(&handle, Observation::Removed);
    }

    /// Whoever waits for a pod waits for somebody to let this server see it.
    fn observe_unseen(&mut self, message: &str) {
        self.listed = false;
        let waiting: Vec<Handle> = self.attempts.keys().cloned().collect();
        for handle in waiting {
            let message = format!("its pod cannot be seen: {message}");
            self.act(&handle, |attempt| attempt.observe_unseen(NOT_PERMITTED, message));
        }
    }

    fn observe_list(&mut self, views: Vec<PodView>) {
        self.listed = true;
        let now = Instant::now();
        let there: BTreeSet<Handle> = views.iter().map(|view| view.handle.clone()).collect();
        let gone: Vec<Handle> = self.pods.keys().filter(|handle| !there.contains(handle)).cloned().collect();
        for handle in gone {
            self.pods.remove(&handle);
            self.doomed.remove(&handle);
            let at = SystemClock.wall();
            self.act(&handle, |attempt| attempt.observe_gone(None, now, at));
            self.say(&handle, Observation::Removed);
        }
        for view in views {
            self.observe_pod(view);
        }
        let missing: Vec<Handle> = self.attempts.keys().cloned().collect();
        for handle in &missing {
            self.miss(handle);
        }
        self.doomed.retain(|handle| there.contains(handle));
    }

    fn observe_pod(&mut self, view: PodView) {
        let (now, at) = (Instant::now(), SystemClock.wall());
        let handle = view.handle.clone();
        let since = self.pods.get(&handle).map_or(now, |(_, since)| *since);
        self.pods.insert(handle.clone(), (view.clone(), since));
        if self.doomed.contains(&handle) && !view.deleting {
            self.delete(&view, Duration::ZERO);
        }
        self.act(&handle, |attempt| attempt.observe(view, now, at));
    }

    /// Looks at what takes too long, and for pods that belong to nobody.
    fn look(&mut self) {
        let (now, at) = (Instant::now(), SystemClock.wall());
        let zombie_after = self.cluster.settings.zombie_after;
        let handles: Vec<Handle> = self.attempts.keys().cloned().collect();
        for handle in handles {
            if self.listed && self.attempts.get(&handle).is_some_and(|attempt| attempt.came_and_went(now)) {
                self.act(&handle, |attempt| attempt.observe_gone(None, now, at));
            }
            self.act(&handle, |attempt| attempt.observe_time(now, at, zombie_after));
        }
        let lost = |(handle, (view, since)): (&Handle, &(PodView, Instant))| {
            let unknown = !self.attempts.contains_key(handle) && !view.deleting;
            (unknown && *since + ORPHAN_AFTER <= now).then(|| view.clone())
        };
        let unknown: Vec<PodView> = self.pods.iter().filter_map(lost).collect();
        for view in unknown {
            // Whatever is kept for a while is known on this machine.
            if !self.store.is_known(&view.handle) {
                tracing::warn!(
                    pod = view.name,
                    namespace = view.namespace,
                    "a pod belongs to no task; it goes"
                );
                self.delete(&view, Duration::ZERO);
            }
        }
    }

    /// Changes an attempt, and does what follows.
    fn act(&mut self, handle: &Handle, change: impl FnOnce(&mut Attempt) -> Vec<Step>) {
        let Some(attempt) = self.attempts.get_mut(handle) else { return };
        for step in change(attempt) {
            match step {
                Step::Say(what) => self.say(handle, what),
                Step::Tail(container) => self.tail(handle, &container),
                Step::Delete(grace) => {
                    let view = self.attempts.get(handle).and_then(|attempt| attempt.view.clone());
                    if let Some(view) = view {
                        self.delete(&view, grace);
                    }
                }
                Step::End(what) => self.end(handle, what),
            }
        }
    }

    fn tail(&mut self, handle: &Handle, container: &str) {
        let Some(attempt) = self.attempts.get_mut(handle) else { return };
        let Some(view) = attempt.view.clone() else { return };
        let tail = Tail {
            api: self.cluster.pods(&view.namespace),
            pod: view.name,
            handle: handle.clone(),
            container: container.to_owned(),
            store: self.store.clone(),
            ended: attempt.begin_tail(container),
        };
        let (own, handle, name) = (self.own.clone(), handle.clone(), container.to_owned());
        let task = tokio::spawn(async move {
            let taken = tail.run().await;
            drop(own.send(Message::Taken(handle, name, taken)));
        });
        attempt.set_tail(container, task.abort_handle());
    }

    fn delete(&self, view: &PodView, grace: Duration) {
        let cluster = self.cluster.clone();
        let (namespace, name, uid) = (view.namespace.clone(), view.name.clone(), view.uid.clone());
        tokio::spawn(async move { cluster.delete(namespace, name, uid, grace).await });
    }

    fn say(&self, handle: &Handle, what: Observation) {
        // Nobody listens after the engine has ended.
        drop(self.facts.send(Fact { handle: handle.clone(), at: SystemClock.wall(), what }));
    }

    /// Keeps how the pod was before it is said that its attempt ended.
    fn end_with_snapshot(&self, view: PodView, mut ending: Ending) {
        let (cluster, blobs, facts) = (self.cluster.clone(), self.blobs.clone(), self.facts.clone());
        tokio::spawn(async move {
            let failed =
                ending.cause != Cause::Itself || ending.containers.iter().any(|it| it.exit_code != 0);
            let size = snapshot::keep(&cluster, blobs, &view, failed).await;
            ending.files.extend(size.map(|size| (snapshot::NAME.to_owned(), size)));
            let (handle, at, what) = (view.handle, SystemClock.wall(), Observation::Ended(ending));
            drop(facts.send(Fact { handle, at, what }));
        });
    }

    /// The last that is said of an attempt.
    fn end(&mut self, handle: &Handle, what: Observation) {
        let Some(attempt) = self.attempts.remove(handle) else { return };
        if let (Observation::Ended(ending), Some(view)) = (&what, attempt.view.clone()) {
            return self.end_with_snapshot(view, ending.clone());
        }
        self.queue.remove(handle);
        self.say(handle, what);
    }
}

/// Tells of refusals, in order. What an attempt left is removed first: as soon as its refusal is known, another one may begin under
/// its name.
async fn tell_refusals(
    mut refusals: UnboundedReceiver<(Refused, bool)>,
    store: LogStore,
    facts: UnboundedSender<Fact>,
) {
    while let Some((Refused { handle, refusal, message }, is_known)) = refusals.recv().await {
        if is_known {
            let (store, left) = (store.clone(), handle.clone());
            let removed = tokio::task::spawn_blocking(move || store.remove(&left)).await;
            if let Ok(Err(error)) = removed {
                tracing::warn!(%handle, %error, "a directory is left behind");
            }
        }
        let what = Observation::Blocked { message, refusal };
        drop(facts.send(Fact { handle, at: SystemClock.now(), what }));
    }
}
