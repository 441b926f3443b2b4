//! One turn at a sink: with its lease, from its cursor, over one session, until something ends it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use muster_ports::clock::Millis;
use muster_ports::publisher::{Journal, PublishError, Publisher, Session, Verdict};
use muster_ports::store::{Change, Key, Lease, Revision, Stored, Watch, WatchError, WatchScope};
use muster_ports::telemetry::catalog::{
    RELAY_BACKLOG, RELAY_CONFIRMED, RELAY_LAG, RELAY_REFUSED, RELAY_RESYNCS,
};
use muster_relay::classify::{Observed, classify};
use muster_relay::wants::Wants;
use muster_relay::window::{Ticket, Window};
use muster_types::event_sink_status::SinkRequest;

use super::cursor::Cursor;
use super::job_place::{JOB_PLACES, JobPlace};
use super::requests::{replay_from, replay_request, test, test_request};
use super::resync::Resync;
use super::standing::Standing;
use super::worker::{Ending, Worker, is_changed};
use super::{SINKS, Seen, hold_name};

/// Changes taken in at once.
const PAGE: usize = 1024;
/// Least time between two notes of how far messages were confirmed, in milliseconds.
const JOURNAL_PAUSE: i64 = 200;
/// The same if nothing was sent and the log went on.
const IDLE_JOURNAL_PAUSE: i64 = 2000;
/// Pause before a message that was refused is sent again; it doubles each time.
const FIRST_REST: i64 = 500;
/// Longest such pause.
const LONGEST_REST: i64 = 30_000;

/// A turn.
pub struct Telling<'a> {
    worker: &'a mut Worker,
    standing: &'a mut Standing,
    seen: Arc<Seen>,
    wants: Wants,
    window: Window,
    cursor: Cursor,
    /// What was last written down.
    journaled: u64,
    /// Changes up to here were of interest to somebody: not notes of our own.
    of_interest: u64,
    last_journal: Millis,
    /// When changes were committed whose messages are not confirmed.
    times: VecDeque<(u64, Millis)>,
    /// Up to here it was told how long confirmations took.
    timed: u64,
    /// Where it is kept up to where jobs of a cluster were seen.
    place_key: Key,
    /// Up to where jobs of a cluster were seen, by the change that says so.
    versions: VecDeque<(u64, u64)>,
    resync: Option<Resync>,
    /// Nothing is written down before this was told.
    resync_upto: u64,
    rest_until: Option<Millis>,
}

/// What a turn talks to.
struct Ways {
    lease: Lease,
    renew_at: Millis,
    journal: Option<Arc<dyn Journal>>,
    publisher: Arc<dyn Publisher>,
}

impl<'a> Telling<'a> {
    /// A turn at a sink as it is.
    pub fn new(worker: &'a mut Worker, standing: &'a mut Standing, seen: Arc<Seen>) -> Self {
        let wants = Wants::of(&seen.sink);
        let window = Window::new(seen.sink.spec.window(), 0);
        let place_key = JobPlace::key(&worker.uid);
        Self {
            worker,
            standing,
            seen,
            place_key,
            wants,
            window,
            cursor: Cursor::default(),
            journaled: 0,
            of_interest: 0,
            last_journal: Millis(0),
            times: VecDeque::new(),
            timed: 0,
            versions: VecDeque::new(),
            resync: None,
            resync_upto: 0,
            rest_until: None,
        }
    }

    fn now(&self) -> Millis {
        self.worker.outside.clock.now()
    }

    /// The whole turn.
    pub async fn run(mut self) -> Ending {
        match self.tell().await {
            Ok(ending) | Err(ending) => ending,
        }
    }

    async fn tell(&mut self) -> Result<Ending, Ending> {
        let mut ways = self.take_over().await?;
        self.answer_requests(&ways).await?;
        let mut watch = self.begin()?;
        let mut session = ways.publisher.open().await?;
        let now = self.now();
        self.standing.observed(self.seen.sink.metadata.generation);
        self.standing.connected(now);
        self.standing.delivering(None, now);
        let ending = self.go_on(&mut ways, &mut watch, &mut *session).await;
        // What was confirmed is written down, whatever ended the turn.
        self.journal(&ways).await?;
        ending
    }

    /// Takes the lease and finds the cursor.
    async fn take_over(&mut self) -> Result<Ways, Ending> {
        let (store, settings) = (&self.worker.outside.store, &self.worker.settings);
        let name = format!("relay/{}", self.worker.uid);
        let now = self.worker.outside.clock.now();
        let lease = Lease::acquire(store, &name, &settings.holder, settings.lease, now).await?;
        let kept = Cursor::read(store, &self.worker.uid);
        // A new sink begins with what comes after it, which is written down before anything else of it.
        self.cursor = kept.unwrap_or_else(|| Cursor::first(&self.seen.sink, self.seen.revision));
        if kept.is_none() {
            self.cursor.write(store, &self.worker.uid, lease.guard()).await?;
        }
        let sinks = &self.worker.outside.sinks;
        let (journal, publisher) = (sinks.journal(&self.seen.sink)?, sinks.publisher(&self.seen.sink)?);
        // What was seen of a cluster has its place in the store; a journal outside holds versions of the cluster then.
        if let Some(journal) = journal.as_ref().filter(|_| !self.is_of_cluster()) {
            self.cursor.upto = self.read_journal(&**journal, self.cursor.upto).await?;
        }
        self.journaled = self.cursor.upto;
        let renew_at = Millis(now.0 + i64::try_from(settings.lease.as_millis() / 3).unwrap_or(i64::MAX));
        Ok(Ways { lease, renew_at, journal, publisher })
    }

    /// True if the sink hears of jobs of a cluster.
    fn is_of_cluster(&self) -> bool {
        self.seen.sink.spec.sources.kube_jobs.is_some()
    }

    /// A journal outside counts, unless what it says cannot be.
    async fn read_journal(&self, journal: &dyn Journal, kept: u64) -> Result<u64, Ending> {
        let said = journal.read().await.map_err(|error| PublishError::new("JournalFailed", error))?;
        let sink = &*self.worker.path;
        let newest = self.worker.outside.store.revision().0;
        match said.as_deref().map(|said| (said, said.parse::<u64>())) {
            None => Ok(kept),
            Some((_, Ok(upto))) if upto <= newest => Ok(upto),
            Some((said, Ok(_))) => {
                tracing::warn!(
                    sink,
                    said,
                    newest,
                    "the journal is ahead of the store; the store's own note is used"
                );
                Ok(kept)
            }
            Some((said, Err(_))) => {
                tracing::warn!(sink, said, "the journal holds no revision; the store's own note is used");
                Ok(kept)
            }
        }
    }

    async fn answer_requests(&mut self, ways: &Ways) -> Result<(), Ending> {
        let seen = self.seen.clone();
        let now = self.now();
        let (tested, replayed) = self.standing.requests();
        let (to_test, to_replay) = (test_request(&seen.sink, tested), replay_request(&seen.sink, replayed));
        if let Some(request) = to_test {
            let outcome = test(&*ways.publisher, &seen.sink, request, &*self.worker.outside.clock).await;
            self.standing.tested(outcome);
        }
        if let Some(request) = to_replay {
            let from = replay_from(&self.worker.outside.store, request);
            let (done, message) = match &from {
                Ok(from) => (true, format!("telling again from behind revision {from}")),
                Err(why) => (false, why.clone()),
            };
            if let Ok(from) = from {
                self.cursor.upto = from;
                self.write_cursor(ways).await?;
            }
            let at = Some(now.to_timestamp());
            self.standing.replayed(SinkRequest { request: request.to_owned(), at, done, message });
        }
        self.standing.write(&self.worker.outside.store, now).await;
        Ok(())
    }

    /// Follows the log from the cursor; from now, if that is no longer possible, with everything that is there to be told first.
    fn begin(&mut self) -> Result<Watch, Ending> {
        let store = &self.worker.outside.store;
        let now = self.worker.outside.clock.now();
        let upto = self.cursor.upto;
        let (watch, since) = match store.watch(WatchScope::All, Revision(upto)) {
            Ok(watch) => (watch, None),
            Err(WatchError::Closed) => return Err(Ending::Closed),
            Err(WatchError::Gone { .. }) => (store.watch(WatchScope::All, store.revision())?, Some(upto)),
            // It is of another store: nothing it says counts.
            Err(WatchError::Future { .. }) => (store.watch(WatchScope::All, store.revision())?, Some(0)),
        };
        if let Some(since) = since {
            let resync = Resync::new(store, since);
            self.cursor.resyncs += 1;
            self.resync_upto = watch.position().0;
            let message = format!(
                "changes behind revision {upto} were forgotten before they were told; what is there is told instead"
            );
            tracing::warn!(sink = &*self.worker.path, "{message}");
            self.worker.outside.telemetry.count(RELAY_RESYNCS, &[&self.worker.path], 1);
            self.standing.lagging(Some(&message), now);
            self.resync = Some(resync);
        }
        let from = watch.position();
        self.window = Window::new(self.seen.sink.spec.window(), from.0);
        self.hold(from);
        Ok(watch)
    }

    fn hold(&self, after: Revision) {
        let hold = self.worker.settings.hold(after);
        self.worker.outside.store.hold(&hold_name(&self.worker.uid), Some(hold));
    }

    async fn go_on(
        &mut self,
        ways: &mut Ways,
        watch: &mut Watch,
        session: &mut dyn Session,
    ) -> Result<Ending, Ending> {
        loop {
            self.walk();
            if self.window.can_send() {
                session.send(&self.window.send()).await?;
            }
            self.keep_books(ways, watch).await?;
            let pause = self.pause(ways);
            let wants_more = self.resync.is_none() && !self.window.is_full();
            let over = self.worker.outside.clock.pause(pause);
            // What is seldom comes first, so that nothing keeps it from its turn.
            tokio::select! {
                biased;
                () = self.worker.changed() => {
                    let seen = self.worker.seen();
                    if seen.is_none_or(|now| is_changed(&self.seen.sink, &now.sink)) {
                        return Ok(Ending::Changed);
                    }
                }
                verdicts = session.verdicts() => {
                    for (ticket, verdict) in verdicts? {
                        self.judge(ticket, verdict).await?;
                    }
                }
                changes = watch.next(PAGE), if wants_more => self.take_in(&changes?, watch.position()),
                () = over => {}
            }
        }
    }

    /// What was forgotten is told as far as it is there.
    fn walk(&mut self) {
        let now = self.now();
        while let Some(resync) = self.resync.as_mut().filter(|_| !self.window.is_full()) {
            let upto = resync.upto;
            match resync.next(&self.wants, now) {
                Some(messages) => self.window.take_in(upto, messages),
                None => self.resync = None,
            }
        }
    }

    fn take_in(&mut self, changes: &[Arc<Change>], position: Revision) {
        for change in changes {
            let resource = change.resource.as_str();
            if resource == JOB_PLACES && *change.object.path == *self.place_key.path && !change.deleted {
                let version = JobPlace::parse(change.object.json()).map(|place| place.place.version());
                self.versions.extend(version.map(|version| (change.revision().0, version)));
                self.of_interest = change.revision().0;
            } else if !resource.ends_with(".internal") && resource != SINKS {
                self.of_interest = change.revision().0;
            }
            let observed = Observed {
                resource,
                namespace: change.object.namespace(),
                revision: change.revision().0,
                at: change.at,
                before: change.previous.as_ref().map(Stored::json),
                after: change.object.json(),
                deleted: change.deleted,
            };
            match classify(&self.wants, &observed) {
                Ok(messages) if messages.is_empty() => {}
                Ok(messages) => {
                    self.times.push_back((change.revision().0, change.at));
                    self.window.take_in(change.revision().0, messages);
                }
                Err(error) => tracing::error!(key = %change.key(), %error, "a change is not told"),
            }
        }
        self.window.pass(position.0);
    }

    async fn judge(&mut self, ticket: Ticket, verdict: Verdict) -> Result<(), Ending> {
        let now = self.now();
        let (error, tries) = match verdict {
            Verdict::Confirmed => {
                if self.window.confirm(ticket) {
                    self.cursor.confirmed += 1;
                    self.tell_lag(now);
                }
                return Ok(());
            }
            Verdict::Refused { error, tries } => (error, tries),
        };
        self.worker.outside.telemetry.count(RELAY_REFUSED, &[&self.worker.path], 1);
        let refused = self.window.refuse(ticket);
        self.standing.delivering(Some(&error), now);
        if tries.is_some_and(|tries| refused >= tries) {
            self.set_aside(ticket, &error).await?;
            return Ok(());
        }
        let rest = (FIRST_REST << refused.saturating_sub(1).min(10)).min(LONGEST_REST);
        let until = Millis(now.0 + rest);
        self.rest_until = Some(self.rest_until.map_or(until, |known| known.min(until)));
        Ok(())
    }

    /// How long it took until everything of a change was confirmed.
    fn tell_lag(&mut self, now: Millis) {
        let (told, upto) = (self.timed, self.window.cursor());
        let first = self.times.partition_point(|(revision, _)| *revision <= told);
        for (_, at) in self.times.range(first..).take_while(|(revision, _)| *revision <= upto) {
            let millis = u32::try_from((now.0 - at.0).max(0)).unwrap_or(u32::MAX);
            self.worker.outside.telemetry.observe(
                RELAY_LAG,
                &[&self.worker.path],
                f64::from(millis) / 1000.0,
            );
        }
        self.timed = self.timed.max(upto);
    }

    /// A message that is refused for good is kept elsewhere, so that those behind it can go.
    async fn set_aside(&mut self, ticket: Ticket, error: &PublishError) -> Result<(), Ending> {
        let Some(message) = self.window.drop_one(ticket) else { return Ok(()) };
        tracing::warn!(sink = &*self.worker.path, id = message.id, %error, "a message is set aside");
        let letters = self.worker.outside.sinks.dead_letters(&self.seen.sink)?;
        let mut session = letters.open().await?;
        session.send(&[(0, message)]).await?;
        session.verdicts().await?;
        self.cursor.dead += 1;
        Ok(())
    }

    /// The lease, the note of how far messages were confirmed, and the status: each when it is due.
    async fn keep_books(&mut self, ways: &mut Ways, watch: &Watch) -> Result<(), Ending> {
        let now = self.now();
        if now >= ways.renew_at {
            let (store, settings) = (&self.worker.outside.store, &self.worker.settings);
            ways.lease = ways.lease.renew(store, settings.lease, now).await?;
            let third = i64::try_from(settings.lease.as_millis() / 3).unwrap_or(i64::MAX);
            ways.renew_at = Millis(now.0 + third);
        }
        if self.rest_until.is_some_and(|until| until <= now) {
            self.rest_until = None;
            self.window.wake();
        }
        if self.journal_due().is_some_and(|due| due <= now) {
            self.journal(ways).await?;
        }
        if self.standing.due() <= now {
            self.tell_standing(watch, now).await;
        }
        Ok(())
    }

    async fn tell_standing(&mut self, watch: &Watch, now: Millis) {
        let upto = self.window.cursor();
        while self.times.front().is_some_and(|(revision, _)| *revision <= upto) {
            self.times.pop_front();
        }
        let store = &self.worker.outside.store;
        let behind = store.revision().0.saturating_sub(watch.position().0);
        let oldest = self.times.front().map(|(_, at)| *at);
        self.standing.backlog(self.window.backlog(), behind, oldest, now);
        self.standing.progress(&self.cursor, now);
        if let Some(jobs) = self.worker.jobs() {
            self.standing.watching(&jobs, now);
        }
        if !self.window.is_resting() {
            self.standing.delivering(None, now);
        }
        if self.resync.is_none() && upto >= self.resync_upto {
            self.standing.lagging(None, now);
        }
        self.worker.outside.telemetry.set(RELAY_BACKLOG, &[&self.worker.path], self.window.backlog() as u64);
        self.standing.write(store, now).await;
    }

    /// When how far messages were confirmed is to be written down.
    fn journal_due(&self) -> Option<Millis> {
        let upto = self.window.cursor();
        if upto <= self.journaled || upto < self.resync_upto || self.resync.is_some() {
            return None;
        }
        let told = self.times.front().is_some_and(|(revision, _)| *revision <= upto);
        if told || self.resync_upto > self.journaled {
            Some(Millis(self.last_journal.0 + JOURNAL_PAUSE))
        } else if self.of_interest > self.journaled {
            Some(Millis(self.last_journal.0 + IDLE_JOURNAL_PAUSE))
        } else {
            None
        }
    }

    async fn journal(&mut self, ways: &Ways) -> Result<(), Ending> {
        if self.journal_due().is_none() {
            return Ok(());
        }
        self.cursor.upto = self.window.cursor();
        self.write_cursor(ways).await?;
        self.hold(Revision(self.cursor.upto));
        while self.times.front().is_some_and(|(revision, _)| *revision <= self.cursor.upto) {
            self.times.pop_front();
        }
        Ok(())
    }

    /// Outside first: the store's own note is the one that is used when the other is lost.
    async fn write_cursor(&mut self, ways: &Ways) -> Result<(), Ending> {
        let upto = self.cursor.upto;
        let value = if self.is_of_cluster() { self.confirmed_version(upto) } else { Some(upto) };
        if let (Some(journal), Some(value)) = (&ways.journal, value) {
            let written = journal.write(&value.to_string()).await;
            written.map_err(|error| PublishError::new("JournalFailed", error))?;
        }
        let store = &self.worker.outside.store;
        let before = Cursor::read(store, &self.worker.uid).unwrap_or_default().confirmed;
        self.cursor.write(store, &self.worker.uid, ways.lease.guard()).await?;
        let more = self.cursor.confirmed.saturating_sub(before);
        self.worker.outside.telemetry.count(RELAY_CONFIRMED, &[&self.worker.path], more);
        self.journaled = upto;
        self.last_journal = self.now();
        Ok(())
    }

    /// The version of the cluster up to which everything that was seen was confirmed, if it is a new one.
    fn confirmed_version(&mut self, upto: u64) -> Option<u64> {
        let passed = self.versions.iter().take_while(|(revision, _)| *revision <= upto).count();
        self.versions.drain(..passed).next_back().map(|(_, version)| version)
    }

    /// How long there is nothing to do by itself.
    fn pause(&self, ways: &Ways) -> Duration {
        let now = self.now();
        let mut due = ways.renew_at;
        let backlog = self.window.backlog();
        let outdated = self.standing.is_outdated(backlog, self.cursor.confirmed);
        let news = backlog > 0 || outdated || self.standing.is_news();
        let others = [self.journal_due(), self.rest_until, news.then(|| self.standing.due())];
        for other in others.into_iter().flatten() {
            due = due.min(other);
        }
        Duration::from_millis(u64::try_from(due.0 - now.0).unwrap_or(0).max(1))
    }
}
