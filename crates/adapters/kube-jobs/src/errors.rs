//! What an answer of the API server means. Pure.

use kube::Error;
use kube::core::Status;
use muster_ports::kube_jobs::KubeError;

/// Reads an error.
pub fn read_error(error: &Error) -> KubeError {
    match error {
        Error::Api(status) => read_status(status),
        other => KubeError::Unreachable(other.to_string()),
    }
}

/// Reads what the server says.
pub fn read_status(status: &Status) -> KubeError {
    let message = status.message.clone();
    match status.code {
        410 => KubeError::Expired(message),
        // A version that is not there yet is waited for, in vain.
        504 if message.contains("Too large resource version") => KubeError::Future(message),
        401 | 403 => KubeError::Forbidden(format!(
            "the cluster refuses: {message}; the relay needs get, list and watch on jobs and pods, the responder also delete \
             on jobs and get on pods/log"
        )),
        _ => KubeError::Unreachable(message),
    }
}

/// True if what was asked for is not there.
pub fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 404)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(code: u16, message: &str) -> KubeError {
        let status =
            serde_json::json!({"status": "Failure", "message": message, "reason": "x", "code": code});
        read_status(&serde_json::from_value(status).unwrap())
    }

    #[test]
    fn what_is_too_old_and_what_is_not_there_yet_are_told_apart() {
        assert_eq!(
            status(410, "too old resource version"),
            KubeError::Expired("too old resource version".into())
        );
        let future = "Too large resource version: 9, current: 5";
        assert_eq!(status(504, future), KubeError::Future(future.into()));
        assert_eq!(status(504, "slow"), KubeError::Unreachable("slow".into()));
        assert!(matches!(status(403, "no"), KubeError::Forbidden(_)));
        assert_eq!(status(500, "etcd"), KubeError::Unreachable("etcd".into()));
    }
}
