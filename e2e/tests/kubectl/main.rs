//! A current `kubectl` against a real server, verb by verb. Modules are named so that every test has `kubectl` in
//! its path.

mod kubectl_apply;
mod kubectl_auth;
mod kubectl_cascade;
mod kubectl_create;
mod kubectl_delete;
mod kubectl_discovery;
mod kubectl_edit;
mod kubectl_events;
mod kubectl_get;
mod kubectl_label;
mod kubectl_namespaces;
mod kubectl_patch;
mod kubectl_raw;
mod kubectl_replace;
mod kubectl_select;
mod kubectl_server_side_apply;
mod kubectl_status;
mod kubectl_validate;
mod kubectl_wait;
mod kubectl_watch;
