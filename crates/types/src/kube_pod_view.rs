//! A pod of a KubeJob as a cluster shows it: whether its containers ran, and how.

/// A pod at one moment. Times are seconds since 1970, as exact as a cluster tells them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KubePodView {
    /// Its uid.
    pub uid: String,
    /// The uid of its KubeJob.
    pub job: String,
    /// When a container of it last began to run; `None` if none ever did.
    pub started: Option<i64>,
    /// When it failed, or was deleted before it had ended; `None` if neither.
    pub failed: Option<i64>,
    /// It was deleted: whether that is a failure, only its job says.
    pub deleted: bool,
    /// How often its containers were started again after they failed.
    pub restarts: u32,
}
