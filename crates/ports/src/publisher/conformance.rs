//! What every place that messages go to must do: one suite for the fake and for each adapter.
//!
//! A guarantee is a function; an adapter calls [`all`] with a publisher and a way to see what arrived.

#![allow(clippy::unwrap_used, reason = "a suite of tests, which fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use muster_types::Message;

use super::{Publisher, Session, Verdict};

/// A suite that takes longer hangs.
const DEADLINE: Duration = Duration::from_mins(1);

/// A place under test.
pub trait Subject {
    /// The way there.
    fn publisher(&self) -> Arc<dyn Publisher>;

    /// Ids of what arrived so far, in order; waits until there are so many.
    fn arrived(&self, least: usize) -> impl Future<Output = Vec<String>>;
}

/// Every guarantee, one after the other, on the same place.
pub async fn all(subject: &impl Subject) {
    tokio::time::timeout(DEADLINE, async {
        what_is_confirmed_has_arrived(subject, "1").await;
        what_is_sent_after_a_confirmation_arrives_after_it(subject, "2").await;
        many_may_be_under_way_and_each_gets_its_verdict(subject, "3").await;
        a_second_session_goes_on(subject, "4").await;
        waiting_can_be_given_up_without_loss(subject, "5").await;
    })
    .await
    .expect("the suite hangs");
}

/// A message for tests.
pub fn message(id: &str, key: &str) -> Arc<Message> {
    Arc::new(Message {
        id: id.to_owned(),
        key: key.into(),
        topic: "cds.job.success".to_owned(),
        content_type: "application/json",
        attributes: vec![("id", id.to_owned())],
        body: format!("{{\"job-id\":\"{id}\"}}").into_bytes(),
    })
}

async fn confirmed(session: &mut Box<dyn Session>, count: usize) -> Vec<u64> {
    let mut numbers = Vec::new();
    while numbers.len() < count {
        for (number, verdict) in session.verdicts().await.unwrap() {
            assert_eq!(verdict, Verdict::Confirmed);
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    numbers
}

async fn what_is_confirmed_has_arrived(subject: &impl Subject, name: &str) {
    let mut session = subject.publisher().open().await.unwrap();
    session.send(&[(7, message(name, "a"))]).await.unwrap();
    assert_eq!(confirmed(&mut session, 1).await, [7]);
    assert!(subject.arrived(1).await.contains(&name.to_owned()));
}

async fn what_is_sent_after_a_confirmation_arrives_after_it(subject: &impl Subject, name: &str) {
    let before = subject.arrived(0).await.len();
    let mut session = subject.publisher().open().await.unwrap();
    let ids: Vec<String> = (0..5).map(|number| format!("{name}-{number}")).collect();
    for (number, id) in (0..).zip(&ids) {
        session.send(&[(number, message(id, "a"))]).await.unwrap();
        assert_eq!(confirmed(&mut session, 1).await, [number]);
    }
    assert_eq!(subject.arrived(before + 5).await[before..], ids);
}

async fn many_may_be_under_way_and_each_gets_its_verdict(subject: &impl Subject, name: &str) {
    let before = subject.arrived(0).await.len();
    let mut session = subject.publisher().open().await.unwrap();
    let many: Vec<_> =
        (0..200).map(|number| (number, message(&format!("{name}-{number}"), &number.to_string()))).collect();
    session.send(&many[..100]).await.unwrap();
    session.send(&many[100..]).await.unwrap();
    assert_eq!(confirmed(&mut session, 200).await, (0..200).collect::<Vec<_>>());
    assert_eq!(subject.arrived(before + 200).await.len(), before + 200);
}

async fn a_second_session_goes_on(subject: &impl Subject, name: &str) {
    for part in ["a", "b"] {
        let mut session = subject.publisher().open().await.unwrap();
        session.send(&[(1, message(&format!("{name}-{part}"), "a"))]).await.unwrap();
        confirmed(&mut session, 1).await;
    }
    let arrived = subject.arrived(0).await;
    assert!(arrived.ends_with(&[format!("{name}-a"), format!("{name}-b")]), "{arrived:?}");
}

async fn waiting_can_be_given_up_without_loss(subject: &impl Subject, name: &str) {
    let mut session = subject.publisher().open().await.unwrap();
    let many: Vec<_> =
        (0..50).map(|number| (number, message(&format!("{name}-{number}"), &number.to_string()))).collect();
    session.send(&many).await.unwrap();
    let mut heard = 0;
    while heard < 50 {
        // Given up again and again, at any point.
        if let Ok(verdicts) = tokio::time::timeout(Duration::from_micros(200), session.verdicts()).await {
            heard += verdicts.unwrap().len();
        }
    }
    assert_eq!(heard, 50);
}
