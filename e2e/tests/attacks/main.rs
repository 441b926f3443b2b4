//! Attacks on the real server, one file per subject: no user harms another one or the server.

#[cfg(test)]
mod bucket_owners;
#[cfg(test)]
mod certificates;
#[cfg(test)]
mod console_tokens;
#[cfg(test)]
mod credentials;
#[cfg(test)]
mod egress;
#[cfg(test)]
mod expression_bombs;
#[cfg(test)]
mod join_tokens;
#[cfg(test)]
mod many_watches;
#[cfg(test)]
mod memory_limits;
#[cfg(test)]
mod revoked_tokens;
#[cfg(test)]
mod robot_sessions;
#[cfg(test)]
mod sink_files;
#[cfg(test)]
mod slow_uploads;
