//! Reads many stored tasks, on all cores: a million of them must not take long to read after a start.

use std::num::NonZero;
use std::thread;

use muster_ports::store::Stored;
use muster_tasks::brief::Brief;

/// Tasks read before they are taken in: enough to keep all cores busy, few enough to need little memory.
const BATCH: usize = 16 * 1024;
/// Fewer are read at once by one.
const SHARE: usize = 512;

/// Reads tasks and hands them on in their order. What cannot be read is left out.
pub fn read_briefs<'a>(stored: impl Iterator<Item = &'a Stored>, mut take: impl FnMut(Brief)) {
    let mut stored = stored.peekable();
    while stored.peek().is_some() {
        let batch: Vec<&Stored> = stored.by_ref().take(BATCH).collect();
        read_batch(&batch).into_iter().flatten().for_each(&mut take);
    }
}

fn read_batch(batch: &[&Stored]) -> Vec<Vec<Brief>> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let share = batch.len().div_ceil(cores).max(SHARE);
    if batch.len() <= share {
        return vec![read_some(batch)];
    }
    thread::scope(|scope| {
        let readers: Vec<_> =
            batch.chunks(share).map(|some| (some, scope.spawn(move || read_some(some)))).collect();
        // A reader that failed is replaced by this thread, which then fails for all to see.
        readers.into_iter().map(|(some, reader)| reader.join().unwrap_or_else(|_| read_some(some))).collect()
    })
}

fn read_some(some: &[&Stored]) -> Vec<Brief> {
    let read = |stored: &&Stored| {
        let brief = Brief::read(stored.json(), stored.path.clone());
        if brief.is_none() {
            tracing::error!(path = &*stored.path, "a stored task cannot be read; it is left alone");
        }
        brief
    };
    some.iter().filter_map(read).collect()
}
