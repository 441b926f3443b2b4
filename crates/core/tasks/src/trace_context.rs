//! How a task is told apart in traces, as <https://www.w3.org/TR/trace-context/> has it.
//!
//! Everything is derived: the trace from who submitted the task or from its uid, the spans from its uid and the number of the
//! attempt. So a program finds its parent in its environment, whoever started it and however often the server did.

use muster_types::Task;
use muster_types::metadata::TRACEPARENT;

use crate::view::parse_uid;

/// The place of a task in traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace: u128,
    /// The span of whoever submitted the task.
    pub parent: Option<u64>,
    /// The span of the task itself.
    pub span: u64,
    uid: u128,
}

impl TraceContext {
    /// `None` if the task has no uid.
    pub fn of(task: &Task) -> Option<Self> {
        let uid = parse_uid(&task.metadata.uid)?;
        let given = task.metadata.annotations.get(TRACEPARENT).and_then(|text| read(text));
        let (trace, parent) = given.map_or((uid, None), |(trace, parent)| (trace, Some(parent)));
        Some(Self { trace, parent, span: span(uid, 0), uid })
    }

    /// The span of an attempt, numbered from 1.
    pub fn attempt(&self, number: u32) -> u64 {
        span(self.uid, u64::from(number))
    }

    /// The span of the wait for an attempt.
    pub fn wait(&self, number: u32) -> u64 {
        span(self.uid, (1 << 32) + u64::from(number))
    }

    /// What an attempt finds in its environment.
    pub fn traceparent(&self, attempt: u32) -> String {
        format!("00-{:032x}-{:016x}-01", self.trace, self.attempt(attempt))
    }
}

/// True if a text is a context that can be carried on.
pub fn is_traceparent(text: &str) -> bool {
    read(text).is_some()
}

/// Trace and span of a context.
fn read(text: &str) -> Option<(u128, u64)> {
    let mut parts = text.split('-');
    let [version, trace, span, flags] = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
    let is_hex = |part: &str, length: usize| {
        part.len() == length
            && part.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    // Later versions may have more parts.
    let known = is_hex(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
    if !known || !is_hex(trace, 32) || !is_hex(span, 16) || !is_hex(flags, 2) {
        return None;
    }
    let (trace, span) = (u128::from_str_radix(trace, 16).ok()?, u64::from_str_radix(span, 16).ok()?);
    (trace != 0 && span != 0).then_some((trace, span))
}

/// A number for a span of a task, never zero; the mixing is that of splitmix64.
#[allow(clippy::cast_possible_truncation, reason = "both halves are used")]
fn span(uid: u128, which: u64) -> u64 {
    let folded = (uid as u64) ^ ((uid >> 64) as u64).rotate_left(32);
    let mut mixed = folded.wrapping_add((which + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)).max(1)
}

#[cfg(test)]
mod tests {
    use muster_types::TaskSpec;

    use super::*;

    const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn task(traceparent: Option<&str>) -> Task {
        let mut task = Task::new("n", "t", TaskSpec::default());
        task.metadata.uid = "0190b0a0-0000-7000-8000-000000000001".to_owned();
        if let Some(text) = traceparent {
            task.metadata.annotations.insert(TRACEPARENT.to_owned(), text.to_owned());
        }
        task
    }

    #[test]
    fn a_task_without_a_context_is_a_trace_of_its_own() {
        let context = TraceContext::of(&task(None)).unwrap();
        assert_eq!((context.trace, context.parent), (0x0190_b0a0_0000_7000_8000_0000_0000_0001, None));
        let spans = [context.span, context.attempt(1), context.attempt(2), context.wait(1), context.wait(2)];
        let distinct: std::collections::BTreeSet<_> = spans.into_iter().collect();
        assert_eq!(distinct.len(), spans.len());
        let given = format!("00-0190b0a0000070008000000000000001-{:016x}-01", context.attempt(2));
        assert_eq!(context.traceparent(2), given);
        assert!(is_traceparent(&given));
    }

    #[test]
    fn a_context_that_was_given_is_carried_on() {
        let context = TraceContext::of(&task(Some(GIVEN))).unwrap();
        assert_eq!(context.trace, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(context.parent, Some(0x00f0_67aa_0ba9_02b7));
        assert!(is_traceparent("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"));
    }

    #[test]
    fn what_is_no_context_is_passed_over() {
        for text in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
        ] {
            assert!(!is_traceparent(text), "{text}");
            assert_eq!(TraceContext::of(&task(Some(text))).unwrap().parent, None, "{text}");
        }
    }
}
