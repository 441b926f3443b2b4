//! Reads that are as new as everything that was acknowledged, whichever server of a store acknowledged it.
//!
//! A server answers from its memory. If others write to the same log, that may be a moment behind. Whoever does not say how old an
//! answer may be gets one that is at least as new as the request: the server asks the log first, once for all who wait. A
//! client that names a revision waits only if that is not here yet, and with `resourceVersion=0` it never does.

use muster_ports::store::Revision;

use crate::api::Api;
use crate::options::Options;
use crate::refusal::Refusal;

impl Api {
    /// Waits until the memory is new enough for a request.
    pub(crate) async fn freshen(&self, verb: &str, options: &Options) -> Result<(), Refusal> {
        if self.store.is_shared() && needs_news(verb, options.resource_version, self.store.revision()) {
            self.catch_up().await?;
        }
        Ok(())
    }

    /// Waits until the memory is as new as the log was when this was called.
    pub(crate) async fn catch_up(&self) -> Result<(), Refusal> {
        self.store.catch_up().await.map_err(|error| {
            Refusal::unavailable(format!(
                "this server cannot tell whether it knows everything: {error}; ask again, or with resourceVersion=0 for what it \
                 knows"
            ))
        })
    }
}

fn needs_news(verb: &str, asked: Option<Revision>, known: Revision) -> bool {
    match (verb, asked) {
        // The commit itself finds out what is there.
        ("create", _) => false,
        ("get" | "list" | "watch", Some(asked)) => asked > known,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_names_a_revision_that_is_here_does_not_wait() {
        let known = Revision(7);
        for verb in ["get", "list", "watch"] {
            assert!(needs_news(verb, None, known));
            assert!(!needs_news(verb, Some(Revision(0)), known));
            assert!(!needs_news(verb, Some(Revision(7)), known));
            assert!(needs_news(verb, Some(Revision(8)), known));
        }
        assert!(needs_news("update", Some(Revision(1)), known));
        assert!(needs_news("delete", None, known));
        assert!(!needs_news("create", None, known));
    }
}
