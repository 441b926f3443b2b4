//! Everything that needs a node to run the server.

mod access;
mod away;
mod requests;
mod space;
