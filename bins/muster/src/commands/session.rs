//! A server and the namespace that a verb is about.

use muster_client::{Access, Client, Sources};

use super::attempt_env::AttemptEnv;
use crate::cli::Globals;
use crate::data_dir::DataDir;

/// What the verbs that talk to a server have in common.
pub struct Session {
    /// The server.
    pub client: Client,
    /// How it is reached.
    pub access: Access,
    namespace: String,
    namespace_is_named: bool,
}

impl Session {
    /// Chooses the server. Nothing is sent yet.
    ///
    /// A program that runs as an attempt speaks with the attempt's own token, unless it is told otherwise: what it may do depends on
    /// its task and not on whose files it can read.
    pub async fn open(globals: &Globals) -> anyhow::Result<Self> {
        let is_told = globals.kubeconfig.is_some() || globals.data.is_some() || globals.server.is_some();
        if !is_told && let Ok(attempt) = AttemptEnv::read() {
            let authority = attempt.authority(globals)?;
            return Self::with(
                globals,
                Access::of_attempt(&attempt.url, attempt.token, authority.as_deref())?,
            );
        }
        let sources = Sources {
            named: globals.kubeconfig.clone(),
            data: DataDir::choose(globals.data.as_deref()).ok().map(|data| data.kubeconfig()),
            data_is_named: globals.data.is_some(),
            server: globals.server.clone(),
        };
        Self::with(globals, Access::load(&sources).await?)
    }

    /// The server of a data directory, whatever other kubeconfigs there are.
    pub async fn of_data(globals: &Globals, data: &DataDir) -> anyhow::Result<Self> {
        let sources = Sources { named: Some(data.kubeconfig()), ..Sources::default() };
        Self::with(globals, Access::load(&sources).await?)
    }

    /// A server that is known.
    pub fn with(globals: &Globals, access: Access) -> anyhow::Result<Self> {
        let client = Client::new(&access)?;
        let named = globals.namespace.clone().filter(|namespace| !namespace.is_empty());
        let namespace_is_named = named.is_some();
        let namespace = named.unwrap_or_else(|| access.namespace().to_owned());
        Ok(Self { client, access, namespace, namespace_is_named })
    }

    /// The namespace of objects that name none.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The namespace of an object in a file, which must not be another than the one that was asked for.
    pub fn namespace_of<'a>(&'a self, found: &'a str) -> anyhow::Result<&'a str> {
        if found.is_empty() {
            return Ok(&self.namespace);
        }
        if self.namespace_is_named && found != self.namespace {
            anyhow::bail!(
                "it is in namespace \"{found}\", not in \"{}\"; leave --namespace out or change the file",
                self.namespace
            );
        }
        Ok(found)
    }
}
