//! What a task, a KubeJob and a managed resource have besides their object: one file each, and one line in the tables below.
//!
//! Paths, discovery, access checks and `kubectl auth can-i` all follow the tables.

pub(crate) mod archive;
mod attachments;
mod bucket;
mod containers;
mod explain;
mod files;
mod job_logs;
mod log;
mod log_follower;
mod log_place;
mod part_call;
mod report;
mod retry;
mod statuses;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::Method;
use muster_types::Resource as _;
use muster_types::kube_job::KubeJobSpec;
use muster_types::names::RESOURCES_GROUP;
use muster_types::task::TaskSpec;

pub use part_call::PartCall;

use crate::kind::KindInfo;
use crate::refusal::Refusal;
use crate::respond::Reply;
use crate::target::ResourcePath;

/// The body of a request, as it comes.
pub type RequestBody = UnsyncBoxBody<Bytes, std::io::Error>;

/// A part of an object with a path of its own.
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

/// Those of tasks.
static OF_TASKS: [Subresource; 6] = [
    attachments::SUBRESOURCE,
    bucket::SUBRESOURCE,
    explain::SUBRESOURCE,
    log::SUBRESOURCE,
    report::SUBRESOURCE,
    retry::SUBRESOURCE,
];

/// Those of what is kept of Kubernetes Jobs.
static OF_KUBE_JOBS: [Subresource; 1] = [job_logs::SUBRESOURCE];

/// Those of managed resources, of whatever kind.
static OF_MANAGED: [Subresource; 1] = [statuses::SUBRESOURCE];

/// Those of a kind.
pub fn of(info: &KindInfo) -> impl Iterator<Item = &'static Subresource> {
    table(&info.group, &info.version, &info.plural).iter()
}

fn table(group: &str, version: &str, plural: &str) -> &'static [Subresource] {
    let (tasks, kube_jobs) = (TaskSpec::NAMES, KubeJobSpec::NAMES);
    if version != tasks.version {
        &[]
    } else if group == tasks.group && plural == tasks.plural {
        &OF_TASKS
    } else if group == kube_jobs.group && plural == kube_jobs.plural {
        &OF_KUBE_JOBS
    } else if group == RESOURCES_GROUP {
        &OF_MANAGED
    } else {
        &[]
    }
}

/// The one that a path names.
pub fn find(path: &ResourcePath) -> Option<&'static Subresource> {
    let name = path.subresource.as_deref()?;
    let known = table(&path.group, &path.version, &path.plural).iter();
    known.into_iter().find(|known| known.name == name && (known.has_files || path.rest.is_empty()))
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

/// Answers a request on a part of an object.
pub async fn answer(
    subresource: &'static Subresource,
    call: PartCall,
    body: RequestBody,
) -> Result<Reply, Refusal> {
    match subresource.name {
        "attachments" => attachments::answer(&call, body).await,
        "bucket" => bucket::answer(&call, body).await,
        "explain" => explain::answer(&call).await,
        "logs" => job_logs::answer(&call, body).await,
        "log" => log::answer(&call).await,
        "report" => report::answer(&call, body).await,
        "retry" => retry::answer(call).await,
        "statuses" => statuses::answer(&call, body).await,
        _ => Err(Refusal::no_such_path()),
    }
}
