//! The API server without its sockets: every test drives `Api::handle` over a store in memory.

#[cfg(test)]
mod access;
#[cfg(test)]
mod attachments;
#[cfg(test)]
mod attempt_tokens;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod bench;
#[cfg(test)]
mod buckets;
#[cfg(test)]
mod cascade;
mod cluster_users;
#[cfg(test)]
mod declaring;
#[cfg(test)]
mod decoders;
#[cfg(test)]
mod events;
#[cfg(test)]
mod explaining;
#[cfg(test)]
mod fakes;
mod fallible_log;
#[cfg(test)]
mod families;
#[cfg(test)]
mod field_owners;
#[cfg(test)]
mod good_documents;
#[cfg(test)]
mod job_logs;
#[cfg(test)]
mod listing;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod managed;
#[cfg(test)]
mod mutation;
#[cfg(test)]
mod nesting;
#[cfg(test)]
mod one_state;
#[cfg(test)]
mod open_watch;
#[cfg(test)]
mod parts;
mod place;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod robots;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod server;
mod sinks;
#[cfg(test)]
mod status_writes;
#[cfg(test)]
mod statuses;
#[cfg(test)]
mod watching;
#[cfg(test)]
mod workflows;
#[cfg(test)]
mod writing;
