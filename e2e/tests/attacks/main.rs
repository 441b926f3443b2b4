//! Attacks on the real server, one file per subject: no user harms another one or the server.

#[cfg(test)]
mod console_tokens;
#[cfg(test)]
mod memory_limits;
#[cfg(test)]
mod sink_files;
