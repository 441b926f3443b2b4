//! What an input costs: the processor time of its thread, and the most memory that thread held at once.
//!
//! Memory is counted per thread, so that targets which run beside each other do not count for each other.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The allocator of the system, counting.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[allow(unsafe_code, reason = "an allocator cannot be written otherwise; it only counts and forwards")]
// SAFETY: every call is forwarded as it came to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: as the caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.cast_signed().wrapping_sub(layout.size().cast_signed()));
        // SAFETY: as the caller promised.
        unsafe { System.realloc(at, layout, size) }
    }
}

fn count(bytes: isize) {
    // A thread that ends may free what it held after its counters are gone.
    let counted = HELD.try_with(|held| {
        let now = held.get().wrapping_add(bytes);
        held.set(now);
        now
    });
    if let Ok(now) = counted {
        PEAK.try_with(|peak| peak.set(peak.get().max(now))).ok();
    }
}

/// What was spent since it was started.
#[derive(Debug, Clone, Copy)]
pub struct Meter {
    time: Duration,
    held: isize,
}

impl Meter {
    /// Starts to count on this thread.
    pub fn start() -> Self {
        let held = HELD.get();
        PEAK.set(held);
        Self { time: thread_time(), held }
    }

    /// The processor time of this thread.
    pub fn time(&self) -> Duration {
        thread_time().saturating_sub(self.time)
    }

    /// The most memory that this thread held at once, beyond what it held before.
    pub fn memory(&self) -> usize {
        usize::try_from(PEAK.get() - self.held).unwrap_or(0)
    }
}

fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}
