//! Events as Kubernetes has them, so that `kubectl describe` and `kubectl get events` show what happened to objects.
//!
//! Nothing of this is stored: every event is derived from a record, an error or a condition in the status of an object,
//! is as old as that, and goes with it. They can be read and watched, in the core group and in `events.k8s.io`.

mod derive;
mod event;
mod event_kind;
mod event_view;

use hyper::StatusCode;
use muster_ports::store::Key;

use crate::call::Call;
use crate::refusal::Refusal;
use crate::respond::Reply;
use crate::target::ResourcePath;
use crate::verbs;

pub use event::Dialect;
pub use event_kind::EventKind;

use event_view::EventView;

/// Verbs that there are.
pub const VERBS: [&str; 3] = ["get", "list", "watch"];

/// The group of the newer form.
pub const GROUP: &str = "events.k8s.io";

/// The form that a path means, if it is about events.
pub fn dialect_of(path: &ResourcePath) -> Option<Dialect> {
    let meant = path.version == "v1" && path.plural == "events" && path.subresource.is_none();
    match path.group.as_str() {
        "" if meant => Some(Dialect::Core),
        GROUP if meant => Some(Dialect::Group),
        _ => None,
    }
}

/// Answers a question about events. The kind of the call is an [`EventKind`].
pub fn answer(call: &Call, verb: &str, dialect: Dialect) -> Result<Reply, Refusal> {
    let view = || EventView::new(call, dialect).map(Box::new);
    match (verb, call.name.is_some()) {
        ("get", true) => get(call, dialect),
        ("list", false) => verbs::list::list_as(call, view()?),
        ("watch", false) => verbs::watch::watch_as(call, view()?),
        _ => Err(Refusal::method_not_allowed()),
    }
}

fn get(call: &Call, dialect: Dialect) -> Result<Reply, Refusal> {
    let name = call.name();
    let object = name.rsplit_once('.').map_or("", |(object, _)| object);
    let resources = event_view::resources(call, None);
    let keys = resources.iter().map(|resource| Key::new(resource, call.namespace(), object));
    let mut events = keys
        .filter_map(|key| call.api.store.get(&key))
        .flat_map(|stored| derive::events_of(&stored, call.api.clock.now()));
    let event = events.find(|event| event.name == name);
    let event = event.ok_or_else(|| {
        Refusal::no_such_thing(format!(
            "events \"{name}\" not found; what is older than an hour is not shown"
        ))
    })?;
    call.show_json(StatusCode::OK, event.document(dialect).to_string().as_bytes())
}
