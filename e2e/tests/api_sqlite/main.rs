//! The API server over SQLite: the tests that drive it over a store in memory, with the place of objects changed.
//! Those that try hostile documents by the thousand stay in memory: a database sees nothing of them.

#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/access.rs"]
mod access;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/attachments.rs"]
mod attachments;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/attempt_tokens.rs"]
mod attempt_tokens;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/bad_input.rs"]
mod bad_input;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/buckets.rs"]
mod buckets;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/cascade.rs"]
mod cascade;
#[path = "../../../crates/adapters/apiserver/tests/api/cluster_users.rs"]
mod cluster_users;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/declaring.rs"]
mod declaring;
#[cfg(test)]
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/events.rs"]
mod events;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/explaining.rs"]
mod explaining;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/fakes.rs"]
mod fakes;
#[path = "../../../crates/adapters/apiserver/tests/api/fallible_log.rs"]
mod fallible_log;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/families.rs"]
mod families;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/field_owners.rs"]
mod field_owners;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/job_logs.rs"]
mod job_logs;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/listing.rs"]
mod listing;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/logs.rs"]
mod logs;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/managed.rs"]
mod managed;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/nesting.rs"]
mod nesting;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/open_watch.rs"]
mod open_watch;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/parts.rs"]
mod parts;
mod place;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/replay.rs"]
mod replay;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/reports.rs"]
mod reports;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/robots.rs"]
mod robots;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/rules.rs"]
mod rules;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/server.rs"]
mod server;
#[path = "../../../crates/adapters/apiserver/tests/api/sinks.rs"]
mod sinks;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/statuses.rs"]
mod statuses;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/watching.rs"]
mod watching;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/workflows.rs"]
mod workflows;
#[cfg(test)]
#[path = "../../../crates/adapters/apiserver/tests/api/writing.rs"]
mod writing;
