//! Questions to the engine while it runs: why does this task wait? may the server stop?

use muster_ports::explain::{Answer, Explain};
use muster_types::explanation::Explanation;
use tokio::sync::{mpsc, oneshot};

/// Questions that may wait for the engine.
const MOST: usize = 64;

/// One question and where its answer goes.
#[derive(Debug)]
pub enum Question {
    /// Why a task is where it is.
    Why {
        /// Uid of the task.
        uid: String,
        /// Gets the answer.
        reply: oneshot::Sender<Option<Explanation>>,
    },
    /// Nothing is to be started any more.
    Leave {
        /// Whether the processes have ended, so that all of them will be heard of.
        ended: bool,
        /// Told when everything that can be known is committed.
        reply: oneshot::Sender<()>,
    },
}

/// Asks the engine.
#[derive(Debug, Clone)]
pub struct Explainer(mpsc::Sender<Question>);

impl Explainer {
    /// Somebody to ask, and where the questions arrive.
    pub fn new() -> (Self, mpsc::Receiver<Question>) {
        let (sender, receiver) = mpsc::channel(MOST);
        (Self(sender), receiver)
    }

    /// The server is about to stop: nothing is started any more, and what waits at the executor is taken back. Returns when that is
    /// committed, with all that was reported; if the processes have `ended`, with the end of each of them.
    pub async fn leave(&self, ended: bool) {
        let (reply, answer) = oneshot::channel();
        if self.0.send(Question::Leave { ended, reply }).await.is_ok() {
            // An engine that ended by itself has nothing to say.
            drop(answer.await);
        }
    }
}

impl Explain for Explainer {
    fn explain(&self, uid: &str) -> Answer<'_> {
        let uid = uid.to_owned();
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            self.0.send(Question::Why { uid, reply }).await.ok()?;
            answer.await.ok().flatten()
        })
    }
}
