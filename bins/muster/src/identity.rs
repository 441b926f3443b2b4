//! What the server proves itself with: a certificate that it generates and renews, or files of the user's that are read again
//! when they change. Connections that begin after that see the new certificate; the server is not restarted.

mod generated;
mod given;

use std::time::Duration;

use muster_apiserver::tls::Tls;
use muster_ports::clock::{Clock as _, SystemClock};
use rustls::sign::CertifiedKey;

pub use generated::Generated;
pub use given::Given;

/// How often it is asked whether a generated certificate is due.
const RENEWAL_INTERVAL: Duration = Duration::from_hours(1);
/// How often the files of the user are read.
const READ_INTERVAL: Duration = Duration::from_secs(5);

/// Where the identity of a server comes from.
pub enum Source {
    /// The data directory.
    Generated(Generated),
    /// Files of the user's.
    Given(Given),
}

/// An identity, and the certificates that clients have to trust for it.
pub struct Identity {
    /// Certificate and key.
    pub certified: CertifiedKey,
    /// PEM.
    pub trust: String,
}

impl Source {
    /// The identity to start with.
    pub fn open(&mut self) -> anyhow::Result<Identity> {
        match self {
            Self::Generated(generated) => {
                generated.renew(SystemClock.now())?;
                generated.load()
            }
            Self::Given(given) => given.open(),
        }
    }

    /// Serves what comes after that, for ever. Calls `trusted` when clients have to trust another certificate.
    pub async fn follow(mut self, tls: &Tls, mut trust: String, trusted: impl Fn(&str)) {
        loop {
            tokio::time::sleep(self.interval()).await;
            let Some(identity) = self.next() else { continue };
            tls.replace(identity.certified);
            if identity.trust != trust {
                trusted(&identity.trust);
                trust = identity.trust;
            }
        }
    }

    fn interval(&self) -> Duration {
        match self {
            Self::Generated(_) => RENEWAL_INTERVAL,
            Self::Given(_) => READ_INTERVAL,
        }
    }

    /// The next identity, if there is one.
    fn next(&mut self) -> Option<Identity> {
        match self {
            Self::Generated(generated) => {
                // Also what was not made now: whatever went wrong an hour ago, the files are served.
                let renewed = generated.renew(SystemClock.now()).and_then(|()| generated.load());
                let told = renewed.inspect_err(|error| {
                    tracing::warn!(
                        "cannot renew the certificate; the server tries again in an hour and serves the old one until \
                         then: {error:#}"
                    );
                });
                told.ok()
            }
            Self::Given(given) => given.changed(),
        }
    }
}
