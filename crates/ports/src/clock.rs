//! Time as an input, so that tests and simulation own it.
//!
//! There are two clocks. *Steady* time goes on at the pace of real time whatever becomes of the wall clock: ages, leases,
//! heartbeats, time-outs and deadlines are measured on it, and everything that is compared with them is written on it. *Wall*
//! time is what the clock of the machine shows: schedules follow it. Both agree when a process begins; a step of the wall
//! clock, or the sleep of the machine, puts them apart until the next start.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use muster_types::Millis;
use parking_lot::Mutex;

/// A pause, which can be dropped without loss.
pub type Pause = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Clocks that differ by less agree: they are not read in the same instant.
const AGREE: i64 = 1000;

/// Where the current time comes from.
pub trait Clock: Send + Sync + 'static {
    /// Steady time: the wall-clock time at which the process began, and the time that passed since. It never goes back.
    fn now(&self) -> Millis;

    /// The time that the wall clock shows. It may jump either way.
    fn wall(&self) -> Millis;

    /// How far the wall clock is ahead of steady time; 0 until one of them jumped.
    fn wall_lead(&self) -> i64 {
        let lead = self.wall().0.saturating_sub(self.now().0);
        if lead.abs() < AGREE { 0 } else { lead }
    }

    /// The steady time of a moment that the wall clock showed as `wall`, if neither clock jumped since.
    fn steady(&self, wall: Millis) -> Millis {
        Millis(wall.0.saturating_sub(self.wall_lead()))
    }

    /// Waits until so much steady time has passed.
    fn pause(&self, time: Duration) -> Pause {
        Box::pin(tokio::time::sleep(time))
    }
}

/// The machine's clocks. Steady time is the same in the whole process; it stands while the machine sleeps.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// When the process first asked for the time, on both clocks.
static BEGAN: OnceLock<(Instant, Millis)> = OnceLock::new();

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let (began, wall) = BEGAN.get_or_init(|| (Instant::now(), self.wall()));
        Millis(wall.0.saturating_add(i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX)))
    }

    fn wall(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that moves only when told to. Clones show the same time.
#[derive(Debug, Clone, Default)]
pub struct ManualClock {
    time: Arc<ManualTime>,
    /// What steady time was when nothing had passed.
    began: i64,
}

#[derive(Debug, Default)]
struct ManualTime {
    passed: AtomicI64,
    wall_lead: AtomicI64,
    pauses: Mutex<Pauses>,
}

/// Pauses that are not over, by the time that must have passed and their number.
#[derive(Debug, Default)]
struct Pauses {
    waiting: BTreeMap<(i64, u64), Waker>,
    begun: u64,
}

impl ManualClock {
    /// Time passes, on both clocks.
    pub fn advance(&self, millis: i64) {
        let passed = self.time.passed.fetch_add(millis, Ordering::SeqCst) + millis;
        let over = {
            let mut pauses = self.time.pauses.lock();
            let left = pauses.waiting.split_off(&(passed.saturating_add(1), 0));
            std::mem::replace(&mut pauses.waiting, left)
        };
        over.into_values().for_each(Waker::wake);
    }

    /// The wall clock is set, by so many milliseconds either way; no time passes.
    pub fn jump_wall(&self, millis: i64) {
        self.time.wall_lead.fetch_add(millis, Ordering::SeqCst);
    }

    /// The clock of a process that begins now: its steady time begins at what the wall clock shows. Time passes and jumps for
    /// both alike.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self { time: self.time.clone(), began: self.time.wall_lead.load(Ordering::SeqCst) }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        Millis(self.began + self.time.passed.load(Ordering::SeqCst))
    }

    fn wall(&self) -> Millis {
        Millis(self.time.wall_lead.load(Ordering::SeqCst) + self.time.passed.load(Ordering::SeqCst))
    }

    fn pause(&self, time: Duration) -> Pause {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let due = self.time.passed.load(Ordering::SeqCst).saturating_add(millis);
        let number = {
            let mut pauses = self.time.pauses.lock();
            pauses.begun += 1;
            pauses.begun
        };
        Box::pin(ManualPause { time: self.time.clone(), place: (due, number) })
    }
}

/// A pause on a clock that moves only when told to.
struct ManualPause {
    time: Arc<ManualTime>,
    place: (i64, u64),
}

impl Future for ManualPause {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut pauses = self.time.pauses.lock();
        if self.time.passed.load(Ordering::SeqCst) >= self.place.0 {
            return Poll::Ready(());
        }
        pauses.waiting.insert(self.place, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for ManualPause {
    fn drop(&mut self) {
        self.time.pauses.lock().waiting.remove(&self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    #[test]
    fn a_jump_of_the_wall_clock_leaves_steady_time_alone() {
        let clock = ManualClock::default();
        clock.advance(10 * HOUR);
        for jump in [2 * HOUR, -4 * HOUR] {
            let (now, wall) = (clock.now(), clock.wall());
            clock.jump_wall(jump);
            assert_eq!((clock.now(), clock.wall()), (now, Millis(wall.0 + jump)));
        }
        clock.advance(5);
        assert_eq!((clock.now(), clock.wall()), (Millis(10 * HOUR + 5), Millis(8 * HOUR + 5)));
        assert_eq!(clock.steady(clock.wall()), clock.now());
    }

    #[test]
    fn a_process_that_begins_takes_over_what_the_wall_clock_shows() {
        let clock = ManualClock::default();
        clock.advance(HOUR);
        clock.jump_wall(2 * HOUR);
        let later = clock.restarted();
        assert_eq!((later.now(), later.wall_lead()), (Millis(3 * HOUR), 0));
        assert_eq!((clock.now(), clock.wall_lead()), (Millis(HOUR), 2 * HOUR));
        clock.advance(1);
        assert_eq!(later.now(), Millis(3 * HOUR + 1));
    }

    #[tokio::test]
    async fn a_pause_is_over_when_its_time_has_passed_whatever_the_wall_clock_shows() {
        let clock = ManualClock::default();
        let mut pause = clock.pause(Duration::from_millis(10));
        let mut is_over = async || {
            std::future::poll_fn(|context| Poll::Ready(pause.as_mut().poll(context).is_ready())).await
        };
        clock.jump_wall(HOUR);
        assert!(!is_over().await);
        clock.advance(9);
        assert!(!is_over().await);
        clock.advance(1);
        assert!(is_over().await);
    }

    #[tokio::test]
    async fn whoever_pauses_is_woken_when_time_passes() {
        let clock = ManualClock::default();
        let pausing = tokio::spawn(clock.pause(Duration::from_secs(1)));
        tokio::task::yield_now().await;
        clock.advance(1_000);
        pausing.await.expect("the pause ends");
    }

    #[test]
    fn both_clocks_of_the_machine_agree_when_a_process_begins() {
        assert_eq!(SystemClock.wall_lead(), 0);
        let first = SystemClock.now();
        assert!(SystemClock.now() >= first);
    }
}
