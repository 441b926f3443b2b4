//! Files in an S3-compatible service. Modules are named so that every test has `object_storage` in its path.

mod object_storage_conformance;
mod object_storage_files;
mod object_storage_server;
