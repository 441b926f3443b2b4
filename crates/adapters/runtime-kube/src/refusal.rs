//! What an answer of the API server means. Pure.

use kube::Error;
use kube::core::Status;
use muster_ports::runtime::{IMAGE_ERROR, NOT_PERMITTED};

/// Why a pod was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A pod of that name is there.
    Exists,
    /// It is not there.
    NotFound,
    /// A quota is used up.
    Quota(String),
    /// Trying again cannot help.
    Permanent { reason: &'static str, message: String },
    /// Trying again may help; at the earliest after so many seconds, if the server says so.
    Transient { message: String, after: Option<u32> },
}

/// Reads an error.
pub(crate) fn read_refusal(error: &Error) -> Refusal {
    match error {
        Error::Api(status) => read_status(status),
        other => Refusal::Transient { message: other.to_string(), after: None },
    }
}

fn read_status(status: &Status) -> Refusal {
    let message = status.message.clone();
    let permanent = |reason| Refusal::Permanent { reason, message: message.clone() };
    match status.code {
        409 => Refusal::Exists,
        404 if message.starts_with("namespaces ") => Refusal::Permanent {
            reason: "NamespaceNotFound",
            message: format!("{message}; create the namespace in the cluster, or say --pod-namespace"),
        },
        404 => Refusal::NotFound,
        403 if message.contains("exceeded quota") => Refusal::Quota(message),
        // The quota exists and nobody has counted yet.
        403 if message.contains("status unknown for quota") => Refusal::Transient { message, after: None },
        403 if is_unauthorized(&message) => {
            Refusal::Permanent { reason: NOT_PERMITTED, message: format!("{message}; {}", advise(&message)) }
        }
        401 => Refusal::Permanent {
            reason: NOT_PERMITTED,
            message: format!("the cluster does not know who asks: {message}; look at --cluster-kubeconfig"),
        },
        422 if message.contains("].image: ") => permanent(IMAGE_ERROR),
        400 | 403 | 405 | 406 | 413 | 415 | 422 => permanent("PodRefused"),
        429 | 500..=599 => Refusal::Transient { after: retry_after(status), message },
        _ => Refusal::Transient { message, after: None },
    }
}

/// Refused by the roles of the cluster, not by what is asked for.
fn is_unauthorized(message: &str) -> bool {
    message.contains(" cannot ") && message.contains("API group")
}

/// The Role that would grant what was refused.
fn advise(message: &str) -> String {
    let between = |before: &str, after: char| {
        let (_, rest) = message.split_once(before)?;
        rest.split(after).next().filter(|word| !word.is_empty())
    };
    let all = "deploy/server/cluster-roles.yaml has all that a server needs";
    let (Some(verb), Some(resource)) = (between(" cannot ", ' '), between("resource \"", '"')) else {
        return all.to_owned();
    };
    let kind = between("in the namespace \"", '"').map_or_else(
        || "clusterrole muster".to_owned(),
        |namespace| format!("role muster --namespace={namespace}"),
    );
    format!("`kubectl create {kind} --verb={verb} --resource={resource}` makes a role that grants it; {all}")
}

fn retry_after(status: &Status) -> Option<u32> {
    status.details.as_ref().map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: u16, message: &str) -> Refusal {
        let mut status = Status::failure(message, "Reason");
        status.code = code;
        read_status(&status)
    }

    fn reason(code: u16, message: &str) -> &'static str {
        match read(code, message) {
            Refusal::Permanent { reason, .. } => reason,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_quota_that_is_used_up_is_no_failure() {
        let said =
            "pods \"p\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2";
        assert_eq!(read(403, said), Refusal::Quota(said.into()));
        assert!(matches!(read(403, "status unknown for quota: q"), Refusal::Transient { .. }));
    }

    #[test]
    fn what_lacks_a_role_says_which() {
        let said = "pods is forbidden: User \"u\" cannot create resource \"pods\" in API group \"\" in the namespace \"n\"";
        assert_eq!(reason(403, said), "NotPermitted");
        let advice = "kubectl create role muster --namespace=n --verb=create --resource=pods`";
        assert!(matches!(read(403, said), Refusal::Permanent { message, .. } if message.contains(advice)));
        let said = "pods is forbidden: User \"u\" cannot list resource \"pods\" in API group \"\" at the cluster scope";
        let advice = "kubectl create clusterrole muster --verb=list --resource=pods`";
        assert!(matches!(read(403, said), Refusal::Permanent { message, .. } if message.contains(advice)));
    }

    #[test]
    fn what_is_wrong_with_the_pod_is_permanent() {
        assert_eq!(reason(422, "Pod is invalid: spec.nodeName"), "PodRefused");
        let said = "Pod \"p\" is invalid: spec.containers[0].image: Invalid value: \" a\": must not have leading or trailing whitespace";
        assert_eq!(reason(422, said), "ImageError");
        assert_eq!(reason(403, "admission webhook \"w\" denied the request: no"), "PodRefused");
        assert_eq!(reason(404, "namespaces \"n\" not found"), "NamespaceNotFound");
        assert_eq!(read(404, "pods \"p\" not found"), Refusal::NotFound);
        assert_eq!(read(409, "pods \"p\" already exists"), Refusal::Exists);
    }

    #[test]
    fn a_server_in_trouble_is_asked_again() {
        for code in [429, 500, 503, 504] {
            assert!(matches!(read(code, "busy"), Refusal::Transient { .. }), "{code}");
        }
    }
}
