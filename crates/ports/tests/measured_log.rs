//! A log that is measured is the same log: every call comes through, with what it says and what it answers.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use muster_ports::clock::Millis;
use muster_ports::store::{Change, Forget, Header, Log, LogError, MeasuredLog, Revision, Row};
use muster_ports::telemetry::Telemetry;

/// Answers nothing like the defaults of the port, and writes down what it was asked.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<&'static str>>>);

impl Recorder {
    fn note(&self, call: &'static str) {
        self.0.lock().expect("no test panics while it holds this").push(call);
    }
}

const ROW: Row<'_> = Row {
    revision: Revision(8),
    at: Millis(1),
    resource: "tasks.example.dev",
    path: "a/b",
    splice: 0,
    json: None,
};

impl Log for Recorder {
    fn header(&mut self) -> Result<Header, LogError> {
        self.note("header");
        Ok(Header { revision: Revision(7), compacted: Revision(3) })
    }

    fn load(&mut self, sink: &mut dyn FnMut(Row<'_>)) -> Result<(), LogError> {
        self.note("load");
        sink(ROW);
        Ok(())
    }

    fn append(&mut self, _: &[Arc<Change>], forget: &Forget) -> Result<(), LogError> {
        self.note("append");
        if forget.compacted == Revision(5) { Err(LogError::Behind) } else { Ok(()) }
    }

    fn listen(&mut self, news: Box<dyn Fn() + Send + Sync>) -> bool {
        self.note("listen");
        news();
        true
    }

    fn follow(&mut self, sink: &mut dyn FnMut(Row<'_>)) -> Result<(), LogError> {
        self.note("follow");
        sink(ROW);
        Err(LogError::Forgotten)
    }

    fn is_waiting(&self) -> bool {
        self.note("is_waiting");
        true
    }
}

fn measured() -> (Recorder, Telemetry, MeasuredLog<Recorder>) {
    let (recorder, telemetry) = (Recorder::default(), Telemetry::default());
    (recorder.clone(), telemetry.clone(), MeasuredLog::new(recorder, telemetry))
}

#[test]
fn every_call_of_the_port_reaches_the_log_that_is_measured() {
    let (recorder, _, mut log) = measured();
    assert_eq!(log.header().unwrap(), Header { revision: Revision(7), compacted: Revision(3) });
    let mut rows = 0;
    log.load(&mut |row| rows += usize::from(row == ROW)).unwrap();
    log.append(&[], &Forget::default()).unwrap();
    let heard = Arc::new(Mutex::new(0));
    let ear = heard.clone();
    assert!(log.listen(Box::new(move || *ear.lock().unwrap() += 1)), "others can write to it");
    assert_eq!(*heard.lock().unwrap(), 1, "news reach whoever listens");
    assert!(matches!(log.follow(&mut |row| rows += usize::from(row == ROW)), Err(LogError::Forgotten)));
    assert_eq!(rows, 2, "rows come through, of a load and of others");
    assert!(log.is_waiting());

    let called: BTreeSet<&str> = recorder.0.lock().unwrap().iter().copied().collect();
    assert_eq!(called, calls_of_the_port(), "a call that is new in the port is also to be passed on");
}

#[test]
fn only_what_was_written_counts_as_a_commit() {
    let (_, telemetry, mut log) = measured();
    let change = Arc::new(Change::from(ROW));
    let count = || {
        let text = telemetry.render();
        let line = text.lines().find(|line| line.starts_with("muster_store_commit_changes_count"));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).unwrap_or_default()
    };
    let refused = Forget { compacted: Revision(5), ..Forget::default() };
    assert!(matches!(log.append(std::slice::from_ref(&change), &refused), Err(LogError::Behind)));
    log.append(&[], &Forget::default()).unwrap();
    assert!(count() < 0.5, "a refusal and an empty append are no commits");
    log.append(&[change], &Forget::default()).unwrap();
    assert!((count() - 1.0).abs() < 0.5, "{}", telemetry.render());
}

/// The names of the functions of the port, as its file has them.
fn calls_of_the_port() -> BTreeSet<&'static str> {
    let text = include_str!("../src/store/log.rs");
    let port = text.split_once("pub trait Log").expect("the port is in this file").1;
    port.lines().filter_map(|line| Some(line.strip_prefix("    fn ")?.split_once('(')?.0)).collect()
}
