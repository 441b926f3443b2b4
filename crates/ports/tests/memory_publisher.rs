//! The broker in memory does what every place for messages must do, and misbehaves when told to.

use std::sync::Arc;

use muster_ports::publisher::conformance::{Subject, all, message};
use muster_ports::publisher::{MemoryPublisher, Publisher, Verdict};

struct Memory(MemoryPublisher);

impl Subject for Memory {
    fn publisher(&self) -> Arc<dyn Publisher> {
        Arc::new(self.0.clone())
    }

    async fn arrived(&self, _least: usize) -> Vec<String> {
        self.0.kept().iter().map(|message| message.id.clone()).collect()
    }
}

#[tokio::test]
async fn it_does_what_every_publisher_must() {
    all(&Memory(MemoryPublisher::default())).await;
}

#[tokio::test]
async fn it_refuses_cuts_and_closes_when_told_to() {
    let broker = MemoryPublisher::default();
    let mut session = broker.open().await.unwrap();
    broker.refuse_topic(Some(("cds.job.success", Some(3))));
    session.send(&[(1, message("a", "a"))]).await.unwrap();
    let verdicts = session.verdicts().await.unwrap();
    assert!(matches!(&verdicts[..], [(1, Verdict::Refused { tries: Some(3), .. })]), "{verdicts:?}");
    assert!(broker.kept().is_empty());
    broker.set_down(true);
    assert_eq!(session.verdicts().await.unwrap_err().reason, "Disconnected");
    assert!(broker.open().await.is_err());
    broker.set_down(false);
    assert!(broker.open().await.is_ok());
}
