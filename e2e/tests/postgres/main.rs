//! The store on a real PostgreSQL: the suite that every log passes, and what only a shared one can do.

mod conformance;
mod sharing;
