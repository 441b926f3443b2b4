//! Load for a server that is killed in the middle of it, and a record of everything it said.
//!
//! Is: [`writer`]s and [`watcher`]s on real sockets, the [`history`] of what they asked for and saw, and the
//! [`check`] that finds what cannot be. Is not: anything that starts or kills a server; that is the test's.
//!
//! A write whose answer never came may have happened or not, but wholly, once, and never later than the next start.
//! A watch that breaks is resumed from the last revision it saw.
//!
//! Start here: [`Load::start`], then [`Load::server_is_back`] after every restart, then [`Load::finish`].

pub mod check;
pub mod connection;
pub mod gate;
pub mod history;
pub mod random;
pub mod version;
pub mod watcher;
pub mod writer;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::load::connection::Connection;
use crate::load::gate::Gate;
use crate::load::history::{Filter, History, Listed, Watched, Written};
use crate::load::random::Random;
use crate::load::version::Version;
use crate::load::watcher::Watcher;
use crate::load::writer::Writer;
use crate::wait::wait_for;

/// Every object of the load, in all namespaces.
const COLLECTION: &str = "/apis/muster.dev/v1alpha1/applications";
/// Namespaces that the load uses.
const NAMESPACES: [&str; 2] = ["load-a", "load-b"];
/// Writers with objects of their own, and writers that share theirs.
const WRITERS: usize = 7;
/// How long the last events may take to reach every watcher.
const LAST_EVENTS: Duration = Duration::from_secs(30);

/// What all threads of a load share.
pub struct Shared {
    address: String,
    token: String,
    gate: Gate,
    /// Counts requests begun and ended, so that it is known which ended before which began.
    clock: AtomicU64,
    acknowledged: AtomicU64,
    /// The last writes, once they are written. A watcher that saw those it can see has seen everything.
    last_words: OnceLock<Vec<Version>>,
}

impl Shared {
    fn connect(&self) -> std::io::Result<Connection> {
        Connection::open(&self.address, &self.token)
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// All objects there are.
    fn list(&self) -> std::io::Result<Listed> {
        let begun = self.tick();
        let answer = self.connect()?.get(COLLECTION)?;
        Listed::parse(begun, &answer.text())
    }
}

/// Writers and watchers at work.
pub struct Load {
    shared: Arc<Shared>,
    writers: Vec<JoinHandle<Written>>,
    watchers: Vec<JoinHandle<Watched>>,
    lists: Vec<Listed>,
}

impl Load {
    /// Starts writers and watchers on a server that holds nothing yet.
    pub fn start(address: &str, token: &str, seed: u64) -> Self {
        let shared = Arc::new(Shared {
            address: address.to_owned(),
            token: token.to_owned(),
            gate: Gate::default(),
            clock: AtomicU64::new(1),
            acknowledged: AtomicU64::new(0),
            last_words: OnceLock::new(),
        });
        let first = shared.list().expect("an empty server answers a list");
        assert!(first.versions.is_empty(), "the load needs a server of its own");
        let watchers = watchers(first.revision)
            .into_iter()
            .map(|watcher| spawn(&shared, move |shared| watcher.run(shared)))
            .collect();
        let writers = (0..WRITERS)
            .map(|number| {
                let random = Random::new(seed ^ (number as u64 + 1));
                spawn(&shared, move |shared| Writer::new(number, random).run(shared))
            })
            .collect();
        shared.gate.open();
        Self { shared, writers, watchers, lists: vec![first] }
    }

    /// How many writes were acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        self.shared.acknowledged.load(Ordering::SeqCst)
    }

    /// Records what the server holds now that it was started again, and lets everybody go on.
    pub fn server_is_back(&mut self) {
        self.lists.push(self.shared.list().expect("a server that is ready answers a list"));
        self.shared.gate.open();
    }

    /// Stops the writers, waits until the watchers have seen everything, and gives the whole record.
    pub fn finish(mut self) -> History {
        self.shared.gate.close();
        let written: Vec<Written> = self.writers.drain(..).map(join).collect();
        let mut history = History::default();
        for of_one in written {
            history.writes.extend(of_one.writes);
            history.reads.extend(of_one.reads);
            history.troubles.extend(of_one.troubles);
        }
        let mut last = Writer::new(WRITERS, Random::new(0));
        let mut connection = self.shared.connect().expect("the server takes connections");
        let said = last.say_last_words(&self.shared, &mut connection).expect("the server takes last writes");
        history.writes.extend(last.into_written().writes);
        self.lists.push(self.shared.list().expect("the server answers a last list"));
        self.shared.last_words.set(said).expect("the last words are said once");
        let done = || self.watchers.iter().all(JoinHandle::is_finished);
        wait_for("every watcher to see the last write", LAST_EVENTS, done);
        history.watches = self.watchers.into_iter().map(join).collect();
        history.lists = self.lists;
        history
    }
}

/// One watcher for each way of watching.
fn watchers(from: u64) -> Vec<Watcher> {
    let everything = Filter::default();
    let namespace = |name: &str| Some(name.to_owned());
    let red = Filter { team: Some(("red".to_owned(), true)), ..Filter::default() };
    let not_red = Filter { namespace: namespace(NAMESPACES[1]), team: Some(("red".to_owned(), false)) };
    vec![
        Watcher::new("everything", everything.clone(), false, from),
        Watcher::new("everything with bookmarks", everything, true, from),
        Watcher::new(
            "one namespace",
            Filter { namespace: namespace(NAMESPACES[0]), team: None },
            false,
            from,
        ),
        Watcher::new("one team with bookmarks", red, true, from),
        Watcher::new("one namespace without one team", not_red, true, from),
        Watcher::new("a list and what follows", Filter::default(), true, from).listing_again(),
    ]
}

fn spawn<T: Send + 'static>(
    shared: &Arc<Shared>,
    work: impl FnOnce(&Shared) -> T + Send + 'static,
) -> JoinHandle<T> {
    let shared = shared.clone();
    thread::spawn(move || work(&shared))
}

fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
