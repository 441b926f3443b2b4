//! What a message of CDS asks of the responder: whose end it tells of, or why nobody can say.

use serde::Deserialize;

/// What is to be done about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Response {
    /// A job ended: it is to be kept and deleted.
    Keep(EndedJob),
    /// It tells of something else.
    Nothing,
    /// It cannot be understood, for this reason.
    Invalid(String),
}

/// A job that ended, as a message tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedJob {
    /// Its uid.
    pub uid: String,
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Last word of the routing key: success or failed.
    pub outcome: &'static str,
    /// Why it failed.
    pub failure_reason: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Document {
    job_id: String,
    job_name: String,
    job_namespace: String,
    #[serde(default)]
    failure_reason: String,
}

/// What a message asks for. A message is valid as a whole or not at all, whatever it tells of.
pub fn choose_response(topic: &str, body: &[u8]) -> Response {
    let document: Document = match serde_json::from_slice(body) {
        Ok(document) => document,
        Err(error) => return Response::Invalid(format!("it is not a message of CDS: {error}")),
    };
    let Document { job_id: uid, job_name: name, job_namespace: namespace, failure_reason } = document;
    if [&uid, &name, &namespace].into_iter().any(String::is_empty) {
        return Response::Invalid("job-id, job-name and job-namespace must not be empty".to_owned());
    }
    let outcome = match topic {
        "cds.job.success" => "success",
        "cds.job.failed" => "failed",
        _ => return Response::Nothing,
    };
    Response::Keep(EndedJob { uid, name, namespace, outcome, failure_reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"{"job-id":"u","job-name":"a","job-namespace":"n","retry-count":0}"#;

    #[test]
    fn only_ends_are_responded_to() {
        let Response::Keep(job) = choose_response("cds.job.success", WHOLE.as_bytes()) else {
            panic!("a success is kept")
        };
        assert_eq!((job.uid.as_str(), job.name.as_str(), job.namespace.as_str()), ("u", "a", "n"));
        assert_eq!(choose_response("cds.job.running", WHOLE.as_bytes()), Response::Nothing);
        assert_eq!(choose_response("cds.job.test", WHOLE.as_bytes()), Response::Nothing);
        let failed = WHOLE.replace("\"retry-count\":0", "\"failure-reason\":\"late\"");
        let Response::Keep(job) = choose_response("cds.job.failed", failed.as_bytes()) else {
            panic!("a failure is kept")
        };
        assert_eq!((job.outcome, job.failure_reason.as_str()), ("failed", "late"));
    }

    #[test]
    fn what_names_no_job_is_invalid() {
        for body in ["", "nonsense", "[]", "{}", r#"{"job-id":"u","job-name":"","job-namespace":"n"}"#] {
            let response = choose_response("cds.job.failed", body.as_bytes());
            assert!(matches!(response, Response::Invalid(_)), "{body}: {response:?}");
        }
    }
}
