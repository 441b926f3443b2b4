//! Attacks on the real server, one file per subject: what one user does reaches nobody else.

#[cfg(test)]
mod sink_files;
