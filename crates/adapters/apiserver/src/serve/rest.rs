//! How long a connection has waited for a request.
//!
//! A request is open until all of its answer was handed over, so a watch on which nothing happens is no rest; and as long as an
//! answer is being written there is none either. The half of a head is, and one that comes byte by byte too. A connection that is
//! asked now and then whether it is alive, as those of HTTP/2 are, never rests.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::Response;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use crate::respond;

/// The requests of one connection.
pub(super) struct Requests {
    began: Instant,
    open: AtomicUsize,
    /// When the last one was answered or something was last written, in milliseconds from the beginning.
    active: AtomicU64,
}

impl Default for Requests {
    fn default() -> Self {
        Self { began: Instant::now(), open: AtomicUsize::new(0), active: AtomicU64::new(0) }
    }
}

impl Requests {
    /// One more.
    pub(super) fn open(self: &Arc<Self>) -> Open {
        self.open.fetch_add(1, Ordering::Relaxed);
        Open(self.clone())
    }

    /// Waits until there has been none for a time.
    pub(super) async fn rest(&self, most: Duration) {
        loop {
            let left = self.left(self.began.elapsed(), most);
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left).await;
        }
    }

    /// Whether there has been none for a time.
    pub(super) fn have_rested(&self, time: Duration) -> bool {
        self.left(self.began.elapsed(), time).is_zero()
    }

    /// Something was written.
    pub(super) fn wrote(&self) {
        self.be_active(self.began.elapsed());
    }

    /// How much longer it may be without one.
    fn left(&self, now: Duration, most: Duration) -> Duration {
        if self.open.load(Ordering::Acquire) > 0 {
            return most;
        }
        let active = Duration::from_millis(self.active.load(Ordering::Relaxed));
        (active + most).saturating_sub(now)
    }

    /// One was answered.
    fn close(&self, now: Duration) {
        self.be_active(now);
        self.open.fetch_sub(1, Ordering::Release);
    }

    fn be_active(&self, now: Duration) {
        self.active.store(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// A request that is not answered yet.
pub(super) struct Open(Arc<Requests>);

impl Open {
    /// Its answer, which ends it.
    pub(super) fn held_by(self, answer: respond::Reply) -> Response<Answer> {
        answer.map(|body| Answer { body, _open: self })
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.close(self.0.began.elapsed());
    }
}

/// The body of an answer, with the request that it answers.
pub(super) struct Answer {
    body: respond::Body,
    _open: Open,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use hyper::StatusCode;

    use super::*;

    const MOST: Duration = Duration::from_secs(10);

    fn second(second: u64) -> Duration {
        Duration::from_secs(second)
    }

    #[test]
    fn a_connection_without_requests_rests_from_its_beginning() {
        let requests = Requests::default();
        assert_eq!([0, 4, 10, 99].map(|now| requests.left(second(now), MOST)), [10, 6, 0, 0].map(second));
    }

    #[test]
    fn a_request_is_open_until_its_answer_is_gone() {
        let requests = Arc::new(Requests::default());
        let answer = requests.open().held_by(respond::text(StatusCode::OK, "yes"));
        let other = requests.open();
        drop(answer);
        assert_eq!(requests.left(second(99), MOST), MOST);
        drop(other);
        assert_eq!(requests.left(second(99), MOST), Duration::ZERO);
    }

    #[test]
    fn every_answer_begins_the_rest_anew() {
        let requests = Arc::new(Requests::default());
        std::mem::forget(requests.open());
        requests.close(second(64));
        assert_eq!([64, 70, 74].map(|now| requests.left(second(now), MOST)), [10, 4, 0].map(second));
        // What was handed over is not yet with the client.
        requests.be_active(second(80));
        assert_eq!(requests.left(second(85), MOST), second(5));
    }
}
