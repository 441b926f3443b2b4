//! The driver finds what it is there to find.

use std::thread;
use std::time::{Duration, Instant};

use muster_fuzz::Target;
use muster_fuzz::corpus::Input;
use muster_fuzz::driver::{Finding, Limits, run_on};

fn limits() -> Limits {
    Limits {
        time: Duration::from_mins(1),
        input_time: Duration::from_millis(200),
        input_memory: 16 << 20,
        seed: 1,
    }
}

fn seeds() -> Vec<Input> {
    vec![Input { name: "seed".to_owned(), bytes: b"{\"size\": 3, \"word\": \"fuzz\"}".to_vec() }]
}

fn find(name: &'static str, run: fn(&[u8])) -> Finding {
    let target = Target { name, property: "nothing is planted", run };
    run_on(&target, &limits(), seeds()).expect_err("what was planted is found")
}

#[test]
fn a_panic_is_found_with_its_input() {
    let finding = find("planted_panic", |input| {
        assert!(!input.windows(8).any(|word| word == b"fuzzfuzz"), "planted");
    });
    assert!(finding.why.contains("planted"), "{}", finding.why);
    assert!(finding.input.windows(8).any(|word| word == b"fuzzfuzz"));
}

#[test]
fn a_number_at_the_edge_is_found() {
    let finding = find("planted_number", |input| {
        let text = String::from_utf8_lossy(input);
        let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse::<u64>().ok());
        assert!(numbers.into_iter().all(|number| number != u64::MAX), "planted");
    });
    assert!(finding.why.contains("planted"), "{}", finding.why);
}

#[test]
fn a_panic_on_a_thread_of_the_target_is_found() {
    let finding = find("planted_thread", |_| {
        let name = thread::current().name().unwrap_or_default().to_owned();
        let work = thread::Builder::new()
            .name(name)
            .spawn(|| assert!(thread::current().name().is_none(), "planted"));
        drop(work.map(thread::JoinHandle::join));
    });
    assert!(finding.why.contains("planted"), "{}", finding.why);
}

#[test]
fn an_input_that_takes_too_long_is_found() {
    let finding = find("planted_time", |input| {
        let begin = Instant::now();
        // Longer than it may take, and shorter than what ends the process.
        let length = u64::from(input.is_empty());
        while begin.elapsed() < Duration::from_secs(length) {
            std::hint::spin_loop();
        }
    });
    assert!(finding.why.contains("processor time"), "{}", finding.why);
}

#[test]
fn an_input_that_takes_too_much_memory_is_found() {
    let finding = find("planted_memory", |input| {
        drop(std::hint::black_box(vec![1_u8; if input.len() > 60 { 20 << 20 } else { 10 }]));
    });
    assert!(finding.why.contains("of memory"), "{}", finding.why);
}

#[test]
fn what_a_target_leaves_allocated_counts_for_no_other_input() {
    thread_local! {
        static KEPT: std::cell::RefCell<Vec<Vec<u8>>> = const { std::cell::RefCell::new(Vec::new()) };
    }
    let target = Target {
        name: "planted_nothing",
        property: "nothing is planted",
        run: |_| KEPT.with_borrow_mut(|kept| kept.extend((kept.len() < 40).then(|| vec![1_u8; 1 << 20]))),
    };
    let limits = Limits { time: Duration::from_secs(3), input_memory: 3 << 20, ..limits() };
    let tried = run_on(&target, &limits, seeds()).expect("nothing is found");
    assert!(tried.made > 5, "{tried:?}");
}
