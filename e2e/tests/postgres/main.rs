//! The store and the server on a real PostgreSQL. Modules are named so that every test has `postgres` in its path.

mod postgres_conformance;
mod postgres_faults;
mod postgres_guide;
mod postgres_refusals;
mod postgres_roles;
mod postgres_sharing;
