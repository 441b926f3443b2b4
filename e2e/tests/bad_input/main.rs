//! Input that is wrong, over plain HTTP: each gets the right code, a `Status` that names field and reason, and
//! nothing changes.

mod access;
mod bodies;
mod limits;
mod metadata;
mod patches;
mod paths;
mod place;
mod queries;
mod resources;
mod subresources;
mod watches;
mod writes;
