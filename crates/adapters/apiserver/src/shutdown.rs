//! Shutdown as a value: asked for once, seen by everyone.

use tokio::sync::watch;

/// Tells whether shutdown was asked for. Clones see the same request.
#[derive(Debug, Clone)]
pub struct Shutdown {
    sender: std::sync::Arc<watch::Sender<bool>>,
    receiver: watch::Receiver<bool>,
}

impl Default for Shutdown {
    fn default() -> Self {
        let (sender, receiver) = watch::channel(false);
        Self { sender: sender.into(), receiver }
    }
}

impl Shutdown {
    /// Asks for it.
    pub fn request(&self) {
        self.sender.send_replace(true);
    }

    /// True if it was asked for.
    pub fn is_requested(&self) -> bool {
        *self.receiver.borrow()
    }

    /// Waits until it is asked for.
    pub async fn requested(&self) {
        let mut receiver = self.receiver.clone();
        // The sender lives as long as this value, so waiting cannot fail.
        drop(receiver.wait_for(|requested| *requested).await);
    }
}
