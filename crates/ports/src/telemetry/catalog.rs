//! Every number the server tells, in the order of their names within a part.

use super::{Metric, Sort};

const fn metric(
    name: &'static str,
    sort: Sort,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric { name, help, sort, labels }
}

/// Requests that were answered.
pub const REQUESTS: Metric =
    metric("apiserver_request", Sort::Counter, &["verb", "resource", "code"], "Requests that were answered");
/// Time to answer.
pub const REQUEST_SECONDS: Metric = metric(
    "apiserver_request_duration_seconds",
    Sort::Quick,
    &["verb"],
    "Time to answer a request, watches excepted",
);
/// Requests turned away.
pub const REQUESTS_REFUSED: Metric = metric(
    "muster_requests_refused",
    Sort::Counter,
    &["reason"],
    "Requests that were turned away at the door",
);
/// Reports that came too late.
pub const REPORTS_IGNORED: Metric = metric(
    "muster_reports_ignored",
    Sort::Counter,
    &["why"],
    "Reports that came too late, by an older attempt or after a later report",
);
/// Open watches.
pub const WATCHES: Metric = metric("muster_watches", Sort::Gauge, &[], "Open watches");
/// How late changes reach watches.
pub const WATCH_LAG: Metric = metric(
    "muster_watch_lag_seconds",
    Sort::Quick,
    &[],
    "Time from the commit of a change until it is handed to the connection of a watch",
);

/// Commits.
pub const COMMIT_SECONDS: Metric =
    metric("muster_store_commit_seconds", Sort::Quick, &[], "Time to make a group of changes durable");
/// Changes per commit.
pub const COMMIT_CHANGES: Metric =
    metric("muster_store_commit_changes", Sort::Size, &[], "Changes that were made durable together");
/// Newest revision.
pub const REVISION: Metric = metric("muster_store_revision", Sort::Gauge, &[], "The newest revision");
/// Oldest revision.
pub const COMPACTED: Metric = metric(
    "muster_store_compacted_revision",
    Sort::Gauge,
    &[],
    "The oldest revision from which everything can be watched",
);
/// Stored objects.
pub const OBJECTS: Metric =
    metric("muster_store_objects", Sort::Gauge, &["resource"], "Objects that are stored");

/// Cycles.
pub const PASS_SECONDS: Metric = metric(
    "muster_engine_pass_seconds",
    Sort::Quick,
    &[],
    "Time of one cycle of the engine, with its commit",
);
/// Conflicts.
pub const CONFLICTS: Metric =
    metric("muster_engine_conflicts", Sort::Counter, &[], "Decisions that came too late to be committed");
/// Queue depth.
pub const QUEUE: Metric = metric(
    "muster_queue_tasks",
    Sort::Gauge,
    &["state", "kind"],
    "Tasks that wait or run; kinds beyond the first hundred are together `(other)`",
);
/// Starts.
pub const STARTS: Metric = metric("muster_task_starts", Sort::Counter, &[], "Attempts that were admitted");
/// Holds.
pub const TASK_HOLDS: Metric = metric(
    "muster_task_holds",
    Sort::Counter,
    &["reason"],
    "How often a task was noted as held back, by the rule that holds it",
);
/// Preemptions.
pub const PREEMPTIONS: Metric =
    metric("muster_task_preemptions", Sort::Counter, &[], "Attempts that had to make room");
/// Retries.
pub const RETRIES: Metric =
    metric("muster_task_retries", Sort::Counter, &["kind"], "Attempts after the first");
/// Ends.
pub const ENDS: Metric = metric("muster_task_ends", Sort::Counter, &["state", "kind"], "Tasks that ended");
/// Wait time.
pub const WAIT: Metric = metric(
    "muster_task_wait_seconds",
    Sort::Slow,
    &["kind"],
    "Time from being submitted, or from the end of the attempt before, until an attempt is admitted",
);
/// Run time.
pub const RUN: Metric =
    metric("muster_task_run_seconds", Sort::Slow, &["kind"], "Time from the start of an attempt to its end");
/// Log bytes.
pub const LOG_BYTES: Metric =
    metric("muster_log_bytes", Sort::Counter, &[], "Bytes of logs of attempts that ended");
/// News.
pub const FACTS: Metric = metric("muster_runtime_facts", Sort::Counter, &[], "News from runtimes");
/// Ignored news.
pub const FACTS_IGNORED: Metric = metric(
    "muster_runtime_facts_ignored",
    Sort::Counter,
    &[],
    "News of older attempts or of tasks that have ended",
);

/// Confirmed messages.
pub const RELAY_CONFIRMED: Metric =
    metric("muster_relay_confirmed", Sort::Counter, &["sink"], "Messages that a sink confirmed");
/// Refused messages.
pub const RELAY_REFUSED: Metric =
    metric("muster_relay_refused", Sort::Counter, &["sink"], "Messages that a sink did not take");
/// Resyncs.
pub const RELAY_RESYNCS: Metric = metric(
    "muster_relay_resyncs",
    Sort::Counter,
    &["sink"],
    "How often changes were forgotten before they were told",
);
/// Backlog.
pub const RELAY_BACKLOG: Metric =
    metric("muster_relay_backlog", Sort::Gauge, &["sink"], "Messages that are not confirmed yet");
/// Lag.
pub const RELAY_LAG: Metric = metric(
    "muster_relay_lag_seconds",
    Sort::Quick,
    &["sink"],
    "Time from the commit of a change until the sink confirmed its message",
);
/// Robots.
pub const ROBOTS: Metric = metric("muster_robots", Sort::Gauge, &["phase"], "Robots that are known");
/// What robots say of themselves.
pub const ROBOT_MESSAGES: Metric = metric(
    "muster_robot_messages",
    Sort::Counter,
    &["sort"],
    "Wishes to join, signs of life and news of connections that this server heard",
);
/// Spans.
pub const SPANS: Metric = metric(
    "muster_spans",
    Sort::Counter,
    &["outcome"],
    "Spans of traces that were sent, lost because the collector did not take them, or dropped for want of room",
);

/// All of them.
pub const ALL: &[Metric] = &[
    REQUESTS,
    REQUEST_SECONDS,
    REQUESTS_REFUSED,
    REPORTS_IGNORED,
    WATCHES,
    WATCH_LAG,
    COMMIT_SECONDS,
    COMMIT_CHANGES,
    REVISION,
    COMPACTED,
    OBJECTS,
    PASS_SECONDS,
    CONFLICTS,
    QUEUE,
    STARTS,
    TASK_HOLDS,
    PREEMPTIONS,
    RETRIES,
    ENDS,
    WAIT,
    RUN,
    LOG_BYTES,
    FACTS,
    FACTS_IGNORED,
    RELAY_CONFIRMED,
    RELAY_REFUSED,
    RELAY_RESYNCS,
    RELAY_BACKLOG,
    RELAY_LAG,
    ROBOTS,
    ROBOT_MESSAGES,
    SPANS,
];
