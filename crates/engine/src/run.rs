//! The engine as a loop that sleeps until there is a reason to look.

use muster_ports::publisher::Boxed;
use muster_ports::runtime::Fact;
use muster_ports::store::WatchError;
use tokio::sync::{mpsc, oneshot};

use crate::engine::{Engine, Outside};
use crate::questions::Question;
use crate::wake::Wake;

/// Cycles whenever something changed, was reported, or is due, until the facts end or the store closes.
pub fn run(
    engine: Engine,
    outside: Outside,
    facts: mpsc::UnboundedReceiver<Fact>,
    questions: mpsc::Receiver<Question>,
) -> Boxed<'static, ()> {
    Box::pin(cycle(engine, outside, facts, questions))
}

async fn cycle(
    mut engine: Engine,
    outside: Outside,
    mut facts: mpsc::UnboundedReceiver<Fact>,
    mut questions: mpsc::Receiver<Question>,
) {
    let mut wake = match Wake::new(outside.store.clone(), outside.clock.clone()) {
        Ok(wake) => wake,
        Err(error) => return tracing::error!(%error, "the engine cannot watch the store"),
    };
    let mut leaving: Vec<(bool, oneshot::Sender<()>)> = Vec::new();
    loop {
        let due = match engine.step().await {
            Ok(due) => due,
            Err(WatchError::Closed) => return,
            Err(error) => return tracing::error!(%error, "the engine cannot follow the store"),
        };
        // The caller may have stopped waiting.
        for (_, reply) in leaving.extract_if(.., |(ended, _)| engine.has_left(*ended)) {
            reply.send(()).ok();
        }
        let rest = engine.rest();
        if !rest.is_zero() {
            tokio::time::sleep(rest).await;
        }
        tokio::select! {
            fact = facts.recv() => match fact {
                Some(fact) => {
                    engine.report(fact);
                    // The next look sees all that changed, its own last changes among it.
                    wake.clear();
                }
                None => return,
            },
            Some(question) = questions.recv() => match question {
                Question::Why { uid, reply } => drop(reply.send(engine.explain(&uid))),
                Question::Leave { ended, reply } => {
                    engine.leave();
                    leaving.push((ended, reply));
                }
            },
            () = outside.store.pins().asked() => {}
            woken = wake.wait(due) => match woken {
                Ok(()) => {}
                Err(WatchError::Closed) => return,
                Err(error) => return tracing::error!(%error, "the engine cannot follow the store"),
            },
        }
        while let Ok(fact) = facts.try_recv() {
            engine.report(fact);
        }
    }
}
