//! A current `kubectl` against two servers of one database, behind a door that leads to one and the other in turns: the same
//! tests as for one server.

#[path = "../kubectl/kubectl_apply.rs"]
mod kubectl_apply_postgres;
#[path = "../kubectl/kubectl_auth.rs"]
mod kubectl_auth_postgres;
#[path = "../kubectl/kubectl_cascade.rs"]
mod kubectl_cascade_postgres;
#[path = "../kubectl/kubectl_create.rs"]
mod kubectl_create_postgres;
#[path = "../kubectl/kubectl_delete.rs"]
mod kubectl_delete_postgres;
#[path = "../kubectl/kubectl_discovery.rs"]
mod kubectl_discovery_postgres;
#[path = "../kubectl/kubectl_edit.rs"]
mod kubectl_edit_postgres;
#[path = "../kubectl/kubectl_events.rs"]
mod kubectl_events_postgres;
#[path = "../kubectl/kubectl_get.rs"]
mod kubectl_get_postgres;
#[path = "../kubectl/kubectl_label.rs"]
mod kubectl_label_postgres;
#[path = "../kubectl/kubectl_namespaces.rs"]
mod kubectl_namespaces_postgres;
#[path = "../kubectl/kubectl_patch.rs"]
mod kubectl_patch_postgres;
#[path = "../kubectl/kubectl_raw.rs"]
mod kubectl_raw_postgres;
#[path = "../kubectl/kubectl_replace.rs"]
mod kubectl_replace_postgres;
#[path = "../kubectl/kubectl_select.rs"]
mod kubectl_select_postgres;
#[path = "../kubectl/kubectl_server_side_apply.rs"]
mod kubectl_server_side_apply_postgres;
#[path = "../kubectl/kubectl_status.rs"]
mod kubectl_status_postgres;
#[path = "../kubectl/kubectl_validate.rs"]
mod kubectl_validate_postgres;
#[path = "../kubectl/kubectl_wait.rs"]
mod kubectl_wait_postgres;
#[path = "../kubectl/kubectl_watch.rs"]
mod kubectl_watch_postgres;
