//! What the server asked of its shepherd: the attempts it waits to hear of, and the orders on their way.
//!
//! Every attempt that is accepted is answered for exactly once by `StartFailed`, `Ended` or `Lost`, whatever happens to the
//! shepherd. Orders are written at once, by whoever gives them; what the socket does not take, and what is ordered while
//! there is no shepherd, waits here. The same holds for attempts of an earlier life that were asked about.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use muster_exec::{Command, encode};
use muster_ports::clock::{Clock, SystemClock};
use muster_ports::runtime::{EXECUTOR_LOST, Fact, Handle, Launch, Observation, SERVER_STOPPED};
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

/// Shared by the runtime, which gives orders, and the supervisor, which hears of them.
pub(crate) struct Link {
    state: Mutex<State>,
    /// Something could not be written at once.
    pub(crate) blocked: Notify,
    /// Nothing is waited for any more.
    idle: Notify,
}

struct State {
    /// Until there is nothing more to say.
    facts: Option<UnboundedSender<Fact>>,
    /// Accepted, and not answered for.
    open: HashSet<Handle>,
    /// Asked for in an earlier life; no shepherd has said yet what became of them.
    former: HashSet<Handle>,
    /// Whether somebody hears of attempts, if that was said.
    hears: Option<bool>,
    /// Up to which moment of the machine attempts may run, if that was said.
    run_until: Option<Duration>,
    /// As `open`, but their shepherd is gone and what it ran may still be dying.
    lost: HashSet<Handle>,
    orders: Orders,
    /// No more attempts are accepted.
    closing: bool,
    /// The reason of attempts that are lost.
    lost_reason: &'static str,
    notices: Vec<String>,
    shepherd: Option<u32>,
}

enum Orders {
    /// There is no shepherd; they wait.
    Waiting(Vec<u8>),
    /// What the socket has not taken yet.
    Sent { socket: Arc<UnixStream>, out: Vec<u8> },
}

impl Link {
    pub(crate) fn new(facts: UnboundedSender<Fact>) -> Self {
        let state = State {
            facts: Some(facts),
            open: HashSet::new(),
            former: HashSet::new(),
            hears: None,
            run_until: None,
            lost: HashSet::new(),
            orders: Orders::Waiting(Vec::new()),
            closing: false,
            lost_reason: EXECUTOR_LOST,
            notices: Vec::new(),
            shepherd: None,
        };
        Self { state: Mutex::new(state), blocked: Notify::new(), idle: Notify::new() }
    }

    /// Accepts attempts. One that is waited for already is not asked for twice.
    pub(crate) fn start(&self, launches: impl IntoIterator<Item = Launch>) {
        let mut state = self.lock();
        for launch in launches {
            let handle = launch.handle.clone();
            if state.closing {
                state.report(handle, start_failure("Closing", "the server is ending".into(), true));
            } else if !state.lost.contains(&handle)
                && !state.former.contains(&handle)
                && state.open.insert(handle.clone())
                && let Err(message) = state.orders.add(&Command::Start(launch))
            {
                state.open.remove(&handle);
                state.report(handle, start_failure("TooLarge", message, false));
            }
        }
        self.write(&mut state);
    }

    /// Asks what became of attempts of an earlier life. Whatever shepherd comes is asked until one has answered.
    pub(crate) fn take_up(&self, handles: impl IntoIterator<Item = Handle>) {
        let mut state = self.lock();
        for handle in handles {
            let is_known = state.open.contains(&handle) || state.lost.contains(&handle);
            if !is_known && state.former.insert(handle.clone()) {
                state.orders.tell(&Command::TakeUp(handle));
            }
        }
        self.write(&mut state);
    }

    /// Somebody hears of attempts, or nobody does. Whatever shepherd comes is told.
    pub(crate) fn observe_hearing(&self, hears: bool) {
        let mut state = self.lock();
        state.hears = Some(hears);
        state.orders.tell(&Command::Hears(hears));
        self.write(&mut state);
    }

    /// Attempts may run up to a moment of the machine. Whatever shepherd comes is told, before anything else.
    pub(crate) fn run_until(&self, moment: Duration) {
        let mut state = self.lock();
        state.run_until = Some(moment);
        state.orders.tell(&Command::RunUntil(moment));
        self.write(&mut state);
    }

    /// Asks for an attempt back, if it is waited for.
    pub(crate) fn recall(&self, handle: &Handle) {
        let mut state = self.lock();
        if state.open.contains(handle) {
            state.orders.add(&Command::Recall(handle.clone())).ok();
            self.write(&mut state);
        }
    }

    /// Asks for the end of an attempt, if it is waited for.
    pub(crate) fn stop(&self, handle: &Handle, grace: Duration) {
        let mut state = self.lock();
        if state.open.contains(handle) || state.former.contains(handle) {
            state.orders.add(&Command::Stop { handle: handle.clone(), grace }).ok();
            self.write(&mut state);
        }
    }

    /// Asks for the end of everything and accepts nothing more.
    pub(crate) fn close(&self, grace: Duration) {
        self.close_with(&Command::StopAll { grace }, EXECUTOR_LOST);
    }

    /// The same because the server is stopped: each attempt has its own grace, up to `at_most`.
    pub(crate) fn stop_with_server(&self, at_most: Duration) {
        self.close_with(&Command::StopWithServer { at_most }, SERVER_STOPPED);
    }

    fn close_with(&self, command: &Command, lost_reason: &'static str) {
        let mut state = self.lock();
        state.closing = true;
        state.lost_reason = lost_reason;
        if !state.open.is_empty() || !state.former.is_empty() {
            state.orders.add(command).ok();
        }
        self.write(&mut state);
    }

    /// Asks for the end of the shepherd, whatever still runs.
    pub(crate) fn end_shepherd(&self) {
        let mut state = self.lock();
        state.orders.tell(&Command::End);
        self.write(&mut state);
    }

    /// Returns when nothing is waited for.
    pub(crate) async fn until_idle(&self) {
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            idle.as_mut().enable();
            if self.lock().is_idle() {
                return;
            }
            idle.await;
        }
    }

    /// A shepherd is there and was told how to work: it is asked about what was before it, and told what waited for it.
    pub(crate) fn connect(&self, socket: Arc<UnixStream>, shepherd: u32) {
        let mut state = self.lock();
        state.shepherd = Some(shepherd);
        state.notices.clear();
        let State { orders, former, hears, run_until, .. } = &mut *state;
        let Orders::Waiting(waiting) = orders else { return };
        let waiting = std::mem::take(waiting);
        *orders = Orders::Sent { socket, out: Vec::new() };
        if let Some(moment) = *run_until {
            orders.tell(&Command::RunUntil(moment));
        }
        if let Some(hears) = *hears {
            orders.tell(&Command::Hears(hears));
        }
        for handle in former.iter() {
            orders.tell(&Command::TakeUp(handle.clone()));
        }
        orders.out().extend(waiting);
        self.write(&mut state);
    }

    /// The shepherd is gone, or is to go: lets go of its socket. What is ordered now is for the next one.
    pub(crate) fn release(&self) {
        let mut state = self.lock();
        state.shepherd = None;
        if let Orders::Sent { .. } = state.orders {
            state.orders = Orders::Waiting(Vec::new());
            let open = std::mem::take(&mut state.open);
            state.lost.extend(open);
        }
    }

    /// Everything the shepherd ran is gone.
    pub(crate) fn report_lost(&self, why: &str) {
        let mut state = self.lock();
        let reason = state.lost_reason;
        for handle in std::mem::take(&mut state.lost) {
            state.report(handle, Observation::Lost { reason: reason.into(), message: why.to_string() });
        }
        self.idle.notify_waiters();
    }

    /// There is no shepherd and none can be had: what waits for one is answered for.
    pub(crate) fn fail_waiting(&self, why: &str) {
        let mut state = self.lock();
        if let Orders::Waiting(waiting) = &mut state.orders {
            waiting.clear();
            for handle in std::mem::take(&mut state.open) {
                state.report(handle, start_failure("NoShepherd", why.to_string(), true));
            }
            self.idle.notify_waiters();
        }
    }

    /// There is nothing more to say.
    pub(crate) fn end(&self) {
        self.lock().facts = None;
    }

    /// The shepherd found something that the machine does not allow.
    pub(crate) fn observe_notice(&self, notice: String) {
        tracing::warn!("{notice}");
        self.lock().notices.push(notice);
    }

    /// The shepherd saw something.
    pub(crate) fn observe(&self, fact: Fact) {
        let mut state = self.lock();
        let was_former = state.former.remove(&fact.handle);
        match fact.what {
            Observation::Started if was_former => drop(state.open.insert(fact.handle.clone())),
            Observation::Started => {}
            Observation::Created
            | Observation::Waiting { .. }
            | Observation::Blocked { .. }
            | Observation::Returned { .. }
            | Observation::StartFailed { .. }
            | Observation::Ended(_)
            | Observation::Removed
            | Observation::Lost { .. } => drop(state.open.remove(&fact.handle)),
        }
        state.send(fact);
        if state.is_idle() {
            self.idle.notify_waiters();
        }
    }

    /// Writes what can be written now; answers whether that was all.
    pub(crate) fn flush(&self) -> bool {
        let mut state = self.lock();
        state.orders.write().unwrap_or(true)
    }

    pub(crate) fn is_open(&self, handle: &Handle) -> bool {
        let state = self.lock();
        [&state.open, &state.former, &state.lost].iter().any(|known| known.contains(handle))
    }

    pub(crate) fn open(&self) -> Vec<Handle> {
        let state = self.lock();
        [&state.open, &state.former, &state.lost].into_iter().flatten().cloned().collect()
    }

    pub(crate) fn notices(&self) -> Vec<String> {
        self.lock().notices.clone()
    }

    pub(crate) fn shepherd(&self) -> Option<u32> {
        self.lock().shepherd
    }

    fn write(&self, state: &mut State) {
        // A broken socket is noticed by whoever reads from it.
        if let Ok(false) = state.orders.write() {
            self.blocked.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn report(&self, handle: Handle, what: Observation) {
        self.send(Fact { handle, at: SystemClock.wall(), what });
    }

    fn send(&self, fact: Fact) {
        if let Some(facts) = &self.facts {
            // Nobody listens when the server is ending.
            facts.send(fact).ok();
        }
    }

    fn is_idle(&self) -> bool {
        self.open.is_empty() && self.former.is_empty() && self.lost.is_empty()
    }
}

impl Orders {
    fn add(&mut self, command: &Command) -> Result<(), String> {
        encode(command, self.out()).map_err(|error| error.to_string())
    }

    /// Something that whoever comes next is told anyway. Small, so it always fits.
    fn tell(&mut self, command: &Command) {
        if let Self::Sent { .. } = self {
            self.add(command).ok();
        }
    }

    fn out(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Waiting(out) | Self::Sent { out, .. } => out,
        }
    }

    fn write(&mut self) -> io::Result<bool> {
        let Self::Sent { socket, out } = self else { return Ok(true) };
        while !out.is_empty() {
            match socket.try_write(out) {
                Ok(written) => drop(out.drain(..written)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

fn start_failure(reason: &str, message: String, transient: bool) -> Observation {
    Observation::StartFailed { reason: reason.into(), message, transient }
}
