//! Attacks on the real server, one file per subject: no user harms another one or the server.

#[cfg(test)]
mod sink_files;
