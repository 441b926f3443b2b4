//! What every log must make of a store: one suite for the fake and for each database.
//!
//! A guarantee is a function; [`store_conformance!`](crate::store_conformance) makes a test of each.
//!
//! ```text
//! // In an integration test of a crate with `proptest` among its dev-dependencies:
//! muster_ports::store_conformance!(subject());
//!
//! fn subject() -> impl muster_ports::store::conformance::Subject {
//!     let directory = tempfile::tempdir().unwrap();
//!     move || DatabaseLog::open(directory.path())
//! }
//! ```

#![allow(clippy::unwrap_used, reason = "a suite of tests, which fails by panicking")]

mod batches;
mod compaction;
mod durability;
mod leases;
mod model;
mod watches;
mod world;

pub use batches::*;
pub use compaction::*;
pub use durability::*;
pub use leases::*;
pub use model::agrees_with_a_plain_map;
pub use watches::*;

use super::log::{Log, LogError};

/// A log under test: empty at first, and the same data each time it is opened.
pub trait Subject {
    /// The kind of log.
    type Log: Log;

    /// Opens the log. It was closed before.
    fn open(&self) -> Result<Self::Log, LogError>;
}

impl<L: Log, F: Fn() -> Result<L, LogError>> Subject for F {
    type Log = L;

    fn open(&self) -> Result<L, LogError> {
        self()
    }
}

/// Makes a test of each guarantee. The argument is an expression that makes a new
/// [`Subject`](crate::store::conformance::Subject); it is evaluated for each test. A second one says how many random
/// runs there are.
#[macro_export]
macro_rules! store_conformance {
    ($subject:expr) => {
        $crate::store_conformance!($subject, 32);
    };
    ($subject:expr, $runs:expr) => {
        $crate::store_conformance! { $subject =>
            revisions_grow_by_one_per_change
            revisions_never_repeat_across_a_restart
            revisions_never_repeat_after_the_newest_rows_were_forgotten
            each_precondition_holds_or_is_refused_with_what_was_found
            a_refused_batch_changes_nothing
            an_object_is_written_once_in_a_batch
            a_batch_of_checks_takes_no_revision
            a_batch_can_need_a_kind_to_have_no_objects
            a_deletion_shows_the_last_version_at_its_own_revision
            a_restart_gives_the_same_objects_byte_for_byte
            all_acknowledged_commits_of_many_callers_are_there
            batches_of_many_callers_do_not_mix
            a_snapshot_is_unaffected_by_later_writes
            a_range_is_of_one_namespace_and_behind_a_path
            closing_ends_commits_and_watches_but_not_reads
            the_log_is_closed_when_the_last_store_is_gone
            a_watch_from_each_revision_sees_exactly_the_later_changes
            a_watch_sees_the_same_after_a_restart
            a_waiting_watch_sees_changes_as_they_come
            a_watch_behind_compaction_is_gone
            a_watch_that_falls_behind_compaction_is_gone
            a_watch_from_the_future_is_refused
            a_watch_of_a_quiet_kind_outlives_the_compaction_of_others
            compaction_by_count_keeps_the_newest_changes
            compaction_by_age_keeps_the_youngest_changes
            compaction_by_size_keeps_the_newest_changes
            the_past_takes_no_more_than_a_quarter_of_the_present
            compaction_removes_superseded_rows_and_deletions_only
            a_restart_in_the_middle_of_compaction_changes_nothing
            what_is_held_is_not_forgotten
            a_hold_has_limits
            a_store_can_be_opened_with_everything_held
            a_lease_has_one_holder
            an_expired_lease_is_taken_over_with_a_larger_fence
            a_batch_of_a_former_holder_is_refused
            a_lease_survives_a_restart
        }
        ::proptest::proptest! {
            #![proptest_config(::proptest::test_runner::Config::with_cases($runs))]
            #[test]
            fn random_operations_agree_with_a_plain_map(
                words in ::proptest::collection::vec(::proptest::num::u32::ANY, 0..150)
            ) {
                $crate::store::conformance::agrees_with_a_plain_map(&$subject, &words);
            }
        }
    };
    ($subject:expr => $($guarantee:ident)*) => {
        $(
            #[test]
            fn $guarantee() {
                $crate::store::conformance::$guarantee(&$subject);
            }
        )*
    };
}
