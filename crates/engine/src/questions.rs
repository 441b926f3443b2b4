//! Questions to the engine while it runs: why does this task wait?

use muster_ports::explain::{Answer, Explain};
use muster_types::explanation::Explanation;
use tokio::sync::{mpsc, oneshot};

/// Questions that may wait for the engine.
const MOST: usize = 64;

/// One question and where its answer goes.
#[derive(Debug)]
pub struct Question {
    /// Uid of the task.
    pub uid: String,
    /// Gets the answer.
    pub reply: oneshot::Sender<Option<Explanation>>,
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
}

impl Explain for Explainer {
    fn explain(&self, uid: &str) -> Answer<'_> {
        let uid = uid.to_owned();
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            self.0.send(Question { uid, reply }).await.ok()?;
            answer.await.ok().flatten()
        })
    }
}
