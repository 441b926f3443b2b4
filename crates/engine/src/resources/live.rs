//! The loop of managed resources, which sleeps until there is a reason to look.

use muster_ports::outbound::OutboundAnswer;
use muster_ports::publisher::Boxed;
use muster_ports::store::WatchError;
use tokio::sync::mpsc;

use super::Resources;
use crate::wake::Wake;

/// Cycles whenever something changed, was answered or is due, until the store closes.
pub fn run(
    resources: Result<Resources, WatchError>,
    answers: mpsc::UnboundedReceiver<OutboundAnswer>,
) -> Boxed<'static, ()> {
    Box::pin(cycle(resources, answers))
}

async fn cycle(
    resources: Result<Resources, WatchError>,
    mut answers: mpsc::UnboundedReceiver<OutboundAnswer>,
) {
    let started = resources.and_then(|resources| {
        let wake = Wake::new(resources.store.clone(), resources.clock.clone())?;
        Ok((resources, wake))
    });
    let (mut resources, mut wake) = match started {
        Ok(started) => started,
        Err(error) => return tracing::error!(%error, "managed resources cannot watch the store"),
    };
    loop {
        let stepped = match resources.step().await {
            Ok(due) => tokio::select! {
                woken = wake.wait(due) => woken,
                Some(answer) = answers.recv() => {
                    resources.answer(answer);
                    while let Ok(answer) = answers.try_recv() {
                        resources.answer(answer);
                    }
                    Ok(())
                }
            },
            Err(error) => Err(error),
        };
        match stepped {
            Ok(()) => {}
            Err(WatchError::Closed) => return,
            Err(error) => return tracing::error!(%error, "managed resources cannot follow the store"),
        }
    }
}
