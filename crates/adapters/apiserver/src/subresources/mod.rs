//! What a task has besides its object: one file each, and one line in the table below.
//!
//! Paths, discovery, access checks and `kubectl auth can-i` all follow the table.

mod archive;
mod attachments;
mod bucket;
mod containers;
mod explain;
mod files;
mod log;
mod log_follower;
mod log_place;
mod report;
mod retry;
mod task_call;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::Method;
use muster_types::Resource as _;
use muster_types::task::TaskSpec;

pub use task_call::TaskCall;

use crate::kind::KindInfo;
use crate::refusal::Refusal;
use crate::respond::Reply;
use crate::target::ResourcePath;

/// The body of a request, as it comes.
pub type RequestBody = UnsyncBoxBody<Bytes, std::io::Error>;

/// A part of a task with a path of its own.
#[derive(Debug)]
pub struct Subresource {
    /// Its name in paths.
    pub name: &'static str,
    /// The kind of its document, as discovery names it.
    pub kind: &'static str,
    /// What can be done with it.
    pub verbs: &'static [&'static str],
    /// A path may follow its name.
    pub has_files: bool,
}

/// All there are.
static ALL: [Subresource; 6] = [
    attachments::SUBRESOURCE,
    bucket::SUBRESOURCE,
    explain::SUBRESOURCE,
    log::SUBRESOURCE,
    report::SUBRESOURCE,
    retry::SUBRESOURCE,
];

/// Those of a kind.
pub fn of(info: &KindInfo) -> impl Iterator<Item = &'static Subresource> {
    let is_task = info.group == TaskSpec::NAMES.group && info.plural == TaskSpec::NAMES.plural;
    ALL.iter().filter(move |_| is_task)
}

/// The one that a path names.
pub fn find(path: &ResourcePath) -> Option<&'static Subresource> {
    let names = TaskSpec::NAMES;
    let is_task = path.group == names.group && path.version == names.version && path.plural == names.plural;
    let name = path.subresource.as_deref().filter(|_| is_task && path.namespace.is_some())?;
    ALL.iter().find(|known| known.name == name && (known.has_files || path.rest.is_empty()))
}

impl Subresource {
    /// The verb of a method.
    pub fn verb_of(&self, method: &Method) -> Result<&'static str, Refusal> {
        let verb = match method.as_str() {
            "GET" | "HEAD" => "get",
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" => "delete",
            _ => return Err(Refusal::method_not_allowed()),
        };
        if self.verbs.contains(&verb) { Ok(verb) } else { Err(Refusal::method_not_allowed()) }
    }
}

/// Answers a request on a part of a task.
pub async fn answer(
    subresource: &'static Subresource,
    call: TaskCall,
    body: RequestBody,
) -> Result<Reply, Refusal> {
    match subresource.name {
        "attachments" => attachments::answer(&call, body).await,
        "bucket" => bucket::answer(&call, body).await,
        "explain" => explain::answer(&call).await,
        "log" => log::answer(&call).await,
        "report" => report::answer(&call, body).await,
        "retry" => retry::answer(call).await,
        _ => Err(Refusal::no_such_path()),
    }
}
