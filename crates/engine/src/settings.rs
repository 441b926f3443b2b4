//! What the engine needs to know besides what is stored.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use muster_tasks::capacity::Capacity;
use muster_tasks::reap::ReapSettings;
use muster_tasks::render::Token;
use muster_tasks::settings::Settings as QueueSettings;
use muster_types::addon::Grant;
use muster_types::{Millis, Task};

/// Settings of the engine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How the queue behaves.
    pub queue: QueueSettings,
    /// When tasks and what they left are let go.
    pub reap: ReapSettings,
    /// Room for local processes.
    pub processes: Capacity,
    /// Pods, if there is a cluster to run them.
    pub pods: Option<Pods>,
    /// Robots, if there is a fleet.
    pub robots: Option<Robots>,
    /// How many attempts wait at the runtime for a slot.
    pub prefetch: Prefetch,
    /// Tasks made before this time are not started; `None` starts all. A uid begins with the time it was made.
    pub only_since: Option<Millis>,
    /// Where tasks reach the server.
    pub url: String,
    /// Directory of attempts.
    pub work_root: String,
    /// Environment of every attempt, unless it says otherwise.
    pub base_env: Vec<(String, String)>,
    /// Time between asking an attempt to end and ending it.
    pub kill_timeout: Duration,
    /// Makes the token of an attempt.
    pub mint: Mint,
}

/// How pods are run.
#[derive(Debug, Clone)]
pub struct Pods {
    /// Room for them.
    pub capacity: Capacity,
    /// Where they reach the server.
    pub url: String,
    /// Where all of them are; the namespace of their task if nothing is said.
    pub namespace: Option<String>,
    /// Environment of all of them.
    pub base_env: Vec<(String, String)>,
}

/// How robots are given attempts.
#[derive(Debug, Clone, Default)]
pub struct Robots {
    /// Where programs on robots reach the server; empty if they do not.
    pub url: String,
}

/// How many attempts wait at the runtime for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefetch {
    /// As many as end while a commit is under way.
    Measured,
    /// Always this many.
    Fixed(u32),
}

/// Makes tokens for attempts: from the task, the number of the attempt, and what its addon was granted.
#[derive(Clone)]
pub struct Mint(Arc<MintFn>);

type MintFn = dyn Fn(&Task, u32, &[Grant]) -> Token + Send + Sync;

impl Mint {
    /// A mint.
    pub fn new(mint: impl Fn(&Task, u32, &[Grant]) -> Token + Send + Sync + 'static) -> Self {
        Self(Arc::new(mint))
    }

    /// A mint whose tokens open nothing.
    pub fn worthless() -> Self {
        Self::new(|_, _, _| Token::new(""))
    }

    /// The token of an attempt.
    pub fn token(&self, task: &Task, attempt: u32, grants: &[Grant]) -> Token {
        (self.0)(task, attempt, grants)
    }
}

impl fmt::Debug for Mint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mint")
    }
}
