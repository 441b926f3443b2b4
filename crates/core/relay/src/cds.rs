//! The profile `cds`: the messages of seed 004, with what they mean and not what the original did.

use muster_types::Message;
use serde::Serialize;

use crate::step::{Cds, Subject, id};

/// The document of a message, in the words of the seed.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Document<'a> {
    job_id: &'a str,
    job_name: &'a str,
    job_namespace: &'a str,
    retry_count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_reason: Option<&'a str>,
}

/// The message about one transition.
pub fn render(subject: &Subject, cds: &Cds, revision: u64) -> Option<Message> {
    let document = Document {
        job_id: &subject.uid,
        job_name: &subject.name,
        job_namespace: &subject.namespace,
        retry_count: cds.retry_count,
        failure_reason: cds.failure_reason.as_deref(),
    };
    Some(Message {
        id: id(&subject.uid, cds.word, &cds.unique, revision),
        key: subject.uid.clone(),
        topic: format!("cds.job.{}", cds.word),
        content_type: "application/json",
        attributes: Vec::new(),
        body: serde_json::to_vec(&document).ok()?,
    })
}
