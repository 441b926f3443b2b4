//! The window of messages that are not confirmed: whatever happens outside, nothing is lost and order holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use muster_relay::window::{Ticket, Window};
use muster_types::Message;
use proptest::prelude::*;

fn message(key: &str, number: u64) -> Message {
    Message {
        id: format!("{key}/{number}"),
        key: key.into(),
        topic: "t".into(),
        content_type: "",
        attributes: vec![],
        body: vec![],
    }
}

fn ids(sent: &[(Ticket, Arc<Message>)]) -> Vec<&str> {
    sent.iter().map(|(_, message)| message.id.as_str()).collect()
}

#[test]
fn of_one_object_one_message_is_under_way() {
    let mut window = Window::new(10, 0);
    window.take_in(1, [message("a", 1), message("a", 2)]);
    window.take_in(2, [message("b", 1)]);
    let sent = window.send();
    assert_eq!(ids(&sent), ["a/1", "b/1"]);
    assert!(window.send().is_empty());
    assert!(window.confirm(sent[0].0));
    assert_eq!(ids(&window.send()), ["a/2"]);
}

#[test]
fn the_cursor_waits_for_the_first_that_is_not_confirmed() {
    let mut window = Window::new(10, 4);
    window.take_in(5, [message("a", 1)]);
    window.take_in(6, [message("b", 1)]);
    window.pass(9);
    let sent = window.send();
    assert_eq!(window.cursor(), 4);
    window.confirm(sent[1].0);
    assert_eq!(window.cursor(), 4);
    window.confirm(sent[0].0);
    assert_eq!(window.cursor(), 9);
}

#[test]
fn a_change_is_told_when_all_its_messages_are() {
    let mut window = Window::new(10, 4);
    window.take_in(5, [message("a", 1), message("a", 2)]);
    let first = window.send()[0].0;
    window.confirm(first);
    assert_eq!(window.cursor(), 4);
    let second = window.send()[0].0;
    window.confirm(second);
    assert_eq!(window.cursor(), 5);
}

#[test]
fn what_was_refused_or_lost_is_sent_again_before_what_follows() {
    let mut window = Window::new(2, 0);
    window.take_in(1, [message("a", 1), message("a", 2)]);
    window.take_in(2, [message("b", 1)]);
    let sent = window.send();
    assert_eq!(window.refuse(sent[0].0), 1);
    assert!(window.send().is_empty() && window.is_resting(), "it rests, and what follows it waits");
    assert!(window.wake() && !window.wake());
    assert_eq!(ids(&window.send()), ["a/1"]);
    assert!(!window.confirm(77), "nobody knows it");
    window.lose();
    assert!(!window.confirm(sent[1].0), "it is no longer under way");
    assert_eq!(ids(&window.send()), ["a/1", "b/1"]);
}

#[test]
fn a_message_that_is_given_up_lets_the_next_go() {
    let mut window = Window::new(2, 0);
    window.take_in(1, [message("a", 1)]);
    window.take_in(2, [message("a", 2)]);
    let first = window.send()[0].0;
    assert_eq!(window.drop_one(first).unwrap().id, "a/1");
    assert_eq!(window.cursor(), 1);
    assert_eq!(ids(&window.send()), ["a/2"]);
}

proptest! {
    /// A broker that confirms, refuses and loses at random, and a relay that dies at random and starts again from the cursor:
    /// each object's messages arrive in order, none is missing, and none that was not made arrives.
    #[test]
    fn whatever_happens_everything_arrives_in_order(
        keys in prop::collection::vec(0_u8..5, 1..60),
        happenings in prop::collection::vec(0_u8..12, 0..200),
        size in 1_usize..6,
    ) {
        // The change at revision n + 1 is of object keys[n]; its number among them is its place.
        let mut numbers: BTreeMap<u8, u64> = BTreeMap::new();
        let log: Vec<Message> = keys.iter().map(|key| {
            let number = numbers.entry(*key).or_default();
            *number += 1;
            message(&key.to_string(), *number)
        }).collect();
        let mut arrived: Vec<String> = Vec::new();
        let mut journal = 0_u64;
        let mut window = Window::new(size, journal);
        let mut read = 0_usize;
        let mut under_way: Vec<(Ticket, Arc<Message>)> = Vec::new();
        let ends = std::iter::repeat_n(0, 10_000);
        for happening in happenings.into_iter().chain(ends) {
            if read < log.len() && !window.is_full() {
                window.take_in(read as u64 + 1, [log[read].clone()]);
                read += 1;
            }
            under_way.extend(window.send());
            prop_assert!(under_way.len() <= size);
            if happening % 2 == 0 {
                window.wake();
            }
            match happening {
                // The broker takes the oldest or the newest.
                0..=5 => if !under_way.is_empty() {
                    let place = if happening == 0 { 0 } else { under_way.len() - 1 };
                    let (ticket, message) = under_way.remove(place);
                    arrived.push(message.id.clone());
                    prop_assert!(window.confirm(ticket));
                },
                // It takes one, and nobody hears of it.
                6 => {
                    arrived.extend(under_way.first().map(|(_, message)| message.id.clone()));
                    window.lose();
                    under_way.clear();
                }
                7 => { window.lose(); under_way.clear(); }
                8 | 9 => if let Some((ticket, _)) = under_way.pop() { window.refuse(ticket); },
                10 => journal = window.cursor(),
                // The relay dies and starts again from what was written down.
                _ => {
                    under_way.clear();
                    window = Window::new(size, journal);
                    read = usize::try_from(journal).unwrap();
                }
            }
            prop_assert!(journal <= window.cursor());
            if read == log.len() && window.backlog() == 0 {
                break;
            }
        }
        prop_assert_eq!(window.cursor(), log.len() as u64);
        let mut first: Vec<&String> = Vec::new();
        for id in &arrived {
            if !first.contains(&id) {
                first.push(id);
            }
        }
        for key in 0..5_u8 {
            let prefix = format!("{key}/");
            let of_key: Vec<_> = first.iter().filter(|id| id.starts_with(&prefix)).map(|id| id.as_str()).collect();
            let made: Vec<_> = log.iter().filter(|it| it.id.starts_with(&prefix)).map(|it| it.id.as_str()).collect();
            prop_assert_eq!(of_key, made);
        }
    }
}
