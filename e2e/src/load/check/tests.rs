//! The checker finds every sort of violation in a history that was doctored, and none in one that was not.

use serde_json::json;

use super::*;
use crate::load::version::content;

/// A version as a server would show it.
fn version(key: &str, revision: u64, uid: &str, token: &str, team: &str) -> Version {
    let (namespace, name) = key.split_once('/').unwrap();
    let mut object = content(token, team, 3);
    object["metadata"]["name"] = json!(name);
    object["metadata"]["namespace"] = json!(namespace);
    object["metadata"]["uid"] = json!(uid);
    object["metadata"]["resourceVersion"] = json!(revision.to_string());
    object["metadata"]["creationTimestamp"] = json!("2026-11-15T14:00:00Z");
    Version::parse(&object.to_string()).unwrap()
}

fn write(key: &str, effect: Effect, outcome: Outcome, begun: u64) -> Write {
    Write { key: key.to_owned(), effect, outcome, begun, ended: begun + 1 }
}

fn put(token: &str) -> Effect {
    Effect::Put(token.to_owned())
}

/// Two objects, five revisions; one write without an answer that happened, one that did not, one refused.
fn sound() -> History {
    let created = version("a/x", 2, "u1", "t1", "red");
    let changed = version("a/x", 3, "u1", "t2", "green");
    let silent = version("b/y", 4, "u2", "t3", "red");
    let gone = version("a/x", 5, "u1", "t2", "green");
    let last = version("b/z", 6, "u3", "t6", "red");
    let acknowledged = |version: &Version| Outcome::Acknowledged(Some(version.clone()));
    let writes = vec![
        write("a/x", put("t1"), acknowledged(&created), 10),
        write("a/x", put("t2"), acknowledged(&changed), 20),
        write("b/y", put("t3"), Outcome::Unknown, 25),
        write("a/x", Effect::Delete("u1".to_owned()), Outcome::Acknowledged(None), 30),
        write("b/y", put("t4"), Outcome::Unknown, 40),
        write("b/y", put("t5"), Outcome::Refused(409), 50),
        write("b/z", put("t6"), acknowledged(&last), 60),
    ];
    let change = |word: Word, version: &Version| Event::Change(word, version.clone());
    let everything = Watched {
        name: "everything".to_owned(),
        from: 1,
        events: vec![
            change(Word::Added, &created),
            change(Word::Modified, &changed),
            Event::Bookmark(3),
            change(Word::Added, &silent),
            change(Word::Deleted, &gone),
            change(Word::Added, &last),
        ],
        ..Watched::default()
    };
    let left = version("a/x", 3, "u1", "t1", "red");
    let red = Watched {
        name: "red".to_owned(),
        from: 1,
        filter: Filter { namespace: None, team: Some(("red".to_owned(), true)) },
        events: vec![
            change(Word::Added, &created),
            change(Word::Deleted, &left),
            change(Word::Added, &silent),
            change(Word::Added, &last),
        ],
        ..Watched::default()
    };
    let again = Watched {
        name: "a list".to_owned(),
        lists: vec![Listed { begun: 0, revision: 3, versions: vec![changed] }],
        ..Watched::default()
    };
    let lists = vec![
        Listed { begun: 1, revision: 1, versions: Vec::new() },
        Listed { begun: 70, revision: 6, versions: vec![silent.clone(), last] },
    ];
    History {
        writes,
        reads: vec![silent],
        lists,
        watches: vec![everything, red, again],
        troubles: Vec::new(),
    }
}

/// The sorts of violations in a sound history after something was done to it.
fn doctored(change: impl FnOnce(&mut History)) -> Vec<Kind> {
    let mut history = sound();
    change(&mut history);
    let mut kinds: Vec<_> = check(&history).into_iter().map(|violation| violation.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn forget(history: &mut History, lost: u64) {
    for watch in &mut history.watches {
        watch.events.retain(|event| !matches!(event, Event::Change(_, version) if version.revision == lost));
    }
}

#[test]
fn nothing_is_found_in_a_sound_history() {
    assert_eq!(check(&sound()), []);
}

#[test]
fn a_write_that_was_acknowledged_and_never_seen_again_is_lost() {
    let kinds = doctored(|history| {
        forget(history, 6);
        history.lists[1].versions.pop();
    });
    assert_eq!(kinds, [Kind::Lost]);
}

#[test]
fn a_deletion_that_was_acknowledged_and_did_not_happen_is_lost() {
    let kinds = doctored(|history| {
        forget(history, 5);
        history.lists[1].versions.push(version("a/x", 3, "u1", "t2", "green"));
    });
    assert_eq!(kinds, [Kind::Lost]);
}

#[test]
fn an_object_that_a_restart_lost_shows_in_the_list_behind_it() {
    assert_eq!(doctored(|history| drop(history.lists[1].versions.remove(0))), [Kind::ListDiffers]);
}

#[test]
fn a_list_that_shows_an_old_version_differs() {
    let kinds =
        doctored(|history| history.watches[2].lists[0].versions = vec![version("a/x", 2, "u1", "t1", "red")]);
    assert_eq!(kinds, [Kind::ListDiffers]);
}

#[test]
fn an_event_that_is_missing_is_a_gap() {
    assert_eq!(doctored(|history| drop(history.watches[1].events.remove(2))), [Kind::WatchGap]);
}

#[test]
fn an_event_that_is_missing_in_every_watch_is_found_by_the_write() {
    assert!(doctored(|history| forget(history, 3)).contains(&Kind::Lost));
}

#[test]
fn an_event_that_is_shown_twice_is_found() {
    for watch in 0..2 {
        let kinds = doctored(|history| {
            let again = history.watches[watch].events.last().unwrap().clone();
            history.watches[watch].events.push(again);
        });
        assert!(kinds.contains(&Kind::WatchOrder), "{kinds:?}");
    }
}

#[test]
fn events_out_of_order_are_found() {
    assert!(doctored(|history| history.watches[1].events.swap(2, 3)).contains(&Kind::WatchOrder));
}

#[test]
fn an_event_behind_its_bookmark_is_found() {
    assert_eq!(doctored(|history| history.watches[0].events[2] = Event::Bookmark(4)), [Kind::WatchOrder]);
}

#[test]
fn an_event_that_contradicts_the_one_before_is_found() {
    let kinds = doctored(|history| {
        let Event::Change(word, _) = &mut history.watches[1].events[2] else { unreachable!() };
        *word = Word::Modified;
    });
    assert_eq!(kinds, [Kind::WatchOrder]);
}

#[test]
fn a_revision_that_stands_for_two_things_is_reused() {
    let kinds = doctored(|history| {
        let other = version("b/w", 4, "u9", "t4", "red");
        history.writes[4].outcome = Outcome::Acknowledged(Some(other));
    });
    assert!(kinds.contains(&Kind::RevisionReused) && kinds.contains(&Kind::Lost), "{kinds:?}");
}

#[test]
fn an_answer_with_an_earlier_revision_than_one_before_it_went_back() {
    assert_eq!(
        doctored(|history| (history.writes[6].begun, history.writes[6].ended) = (2, 3)),
        [Kind::RevisionWentBack]
    );
}

#[test]
fn a_list_that_is_behind_an_answer_went_back() {
    let kinds = doctored(|history| {
        history.lists[1] =
            Listed { begun: 70, revision: 3, versions: vec![version("a/x", 3, "u1", "t2", "green")] };
    });
    assert_eq!(kinds, [Kind::RevisionWentBack]);
}

#[test]
fn a_write_that_was_refused_and_happened_is_a_phantom() {
    assert_eq!(doctored(|history| history.writes[2].outcome = Outcome::Refused(503)), [Kind::Phantom]);
}

#[test]
fn a_change_that_nobody_asked_for_is_a_phantom() {
    assert_eq!(doctored(|history| drop(history.writes.remove(2))), [Kind::Phantom]);
}

#[test]
fn a_read_of_what_never_was_is_a_phantom() {
    assert_eq!(doctored(|history| history.reads.push(version("b/y", 9, "u2", "t4", "red"))), [Kind::Phantom]);
}

#[test]
fn one_write_that_happened_twice_is_doubled() {
    let kinds = doctored(|history| {
        let again = version("b/y", 7, "u2", "t3", "red");
        for watch in &mut history.watches[..2] {
            watch.events.push(Event::Change(Word::Modified, again.clone()));
        }
    });
    assert_eq!(kinds, [Kind::Doubled]);
}

#[test]
fn an_object_with_another_uid_is_another_object() {
    let kinds = doctored(|history| {
        let other = version("a/x", 3, "u8", "t2", "green");
        history.writes[1].outcome = Outcome::Acknowledged(Some(other.clone()));
        history.watches[0].events[1] = Event::Change(Word::Modified, other.clone());
        history.watches[2].lists[0].versions = vec![other];
    });
    assert_eq!(kinds, [Kind::IdentityChanged]);
}

#[test]
fn a_uid_is_used_once() {
    let kinds = doctored(|history| {
        let again = version("b/z", 6, "u1", "t6", "red");
        history.writes[6].outcome = Outcome::Acknowledged(Some(again.clone()));
        for watch in &mut history.watches[..2] {
            *watch.events.last_mut().unwrap() = Event::Change(Word::Added, again.clone());
        }
        history.lists[1].versions[1] = again;
    });
    assert_eq!(kinds, [Kind::IdentityChanged]);
}

#[test]
fn half_of_a_write_is_no_version() {
    let whole = version("a/x", 2, "u1", "t1", "red").document();
    for part in ["/spec/properties/last", "/metadata/labels/token", "/metadata/annotations/token"] {
        let mut half = whole.clone();
        *half.pointer_mut(part).unwrap() = json!("t0");
        assert!(Version::parse(&half.to_string()).unwrap_err().contains("half of a write"), "{part}");
    }
}

#[test]
fn troubles_of_clients_are_reported() {
    assert_eq!(
        doctored(|history| history.watches[1].troubles.push("refused: 410".to_owned())),
        [Kind::Trouble]
    );
}
