//! Runs a target as an ordinary test: all of its corpus, then inputs made out of it, for a while.
//!
//! An input is a finding if the target panics, on whatever thread; if it takes more processor time or memory than any input may; or if
//! it ends the process, which leaves it in a file that the next run begins with.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};
use std::{env, process, thread};

use crate::Target;
use crate::corpus::{self, Input};
use crate::meter::Meter;
use crate::mutator::Mutator;

/// What one input may cost, and how long a target is tried.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long inputs are made.
    pub time: Duration,
    /// Processor time of one input.
    pub input_time: Duration,
    /// Memory of one input.
    pub input_memory: usize,
    /// What the random inputs are made from.
    pub seed: u64,
}

impl Default for Limits {
    /// `MUSTER_FUZZ_SECONDS` and `MUSTER_FUZZ_SEED` change how long and from what seed inputs are made.
    fn default() -> Self {
        let number = |name: &str| env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
        Self {
            time: Duration::from_secs(number("MUSTER_FUZZ_SECONDS").unwrap_or(5)),
            input_time: Duration::from_secs(2),
            input_memory: 256 << 20,
            seed: number("MUSTER_FUZZ_SEED").unwrap_or(1),
        }
    }
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tried {
    /// Inputs of the corpus.
    pub corpus: usize,
    /// Inputs that were made.
    pub made: u64,
}

/// An input that a target fails with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What happened.
    pub why: String,
    /// The input.
    pub input: Vec<u8>,
    /// Where it came from.
    pub origin: String,
}

/// Once an input takes this many times what it may, the process is ended: the target may never return.
const HANGS_AFTER: u32 = 15;
/// As the threads of the product have.
const STACK: usize = 2 << 20;

/// Tries a target on its corpus and on inputs made out of it.
///
/// # Errors
///
/// With the first finding.
pub fn run(target: &Target, limits: &Limits) -> Result<Tried, Finding> {
    run_on(target, limits, corpus::load(target.name))
}

/// The same with other inputs than the corpus.
///
/// # Errors
///
/// With the first finding.
pub fn run_on(target: &Target, limits: &Limits, inputs: Vec<Input>) -> Result<Tried, Finding> {
    note_panics();
    let (target, limits) = (*target, limits.clone());
    // A name of its own, by which panics of the threads that a target starts are told from those of other targets.
    let thread = thread::Builder::new().name(thread_name(target.name)).stack_size(STACK);
    let tried = thread.spawn(move || try_all(&target, &limits, &inputs)).unwrap().join();
    tried.unwrap_or_else(|panic| panic::resume_unwind(panic))
}

fn try_all(target: &Target, limits: &Limits, inputs: &[Input]) -> Result<Tried, Finding> {
    let mut one = One::new(target, limits);
    if let Some(bytes) = one.current.left_behind() {
        one.run(&bytes, "the run before ended with it")?;
    }
    for input in inputs {
        one.run(&input.bytes, &input.name)?;
    }
    let mut mutator = Mutator::new(limits.seed, inputs.iter().map(|input| input.bytes.as_slice()));
    let (begin, mut made) = (Instant::now(), 0);
    while begin.elapsed() < limits.time {
        let (input, other) = (mutator.below(inputs.len()), mutator.below(inputs.len()));
        let bytes = mutator.mutate(&inputs[input].bytes, &inputs[other].bytes);
        made += 1;
        one.run(&bytes, &format!("number {made} of seed {}, made of {}", limits.seed, inputs[input].name))?;
    }
    Ok(Tried { corpus: inputs.len(), made })
}

/// Runs inputs one by one.
struct One<'a> {
    target: &'a Target,
    limits: &'a Limits,
    current: Current,
    watch: Watch,
}

impl<'a> One<'a> {
    fn new(target: &'a Target, limits: &'a Limits) -> Self {
        let current = Current::of(target.name);
        let watch = Watch::start(target.name, &current.path, limits.input_time * HANGS_AFTER);
        Self { target, limits, current, watch }
    }

    fn run(&mut self, input: &[u8], origin: &str) -> Result<(), Finding> {
        self.current.begin(input);
        self.watch.begin();
        let meter = Meter::start();
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| (self.target.run)(input)));
        let (time, memory) = (meter.time(), meter.memory());
        self.watch.end();
        self.current.end();
        let panics = take_panics(self.target.name);
        let why = if outcome.is_err() || !panics.is_empty() {
            format!("it panicked: {}", panics.join("; then: "))
        } else if time > self.limits.input_time {
            format!("it took {time:?} of processor time; an input may take {:?}", self.limits.input_time)
        } else if memory > self.limits.input_memory {
            format!("it took {memory} bytes of memory; an input may take {}", self.limits.input_memory)
        } else {
            return Ok(());
        };
        Err(Finding { why, input: input.to_vec(), origin: origin.to_owned() })
    }
}

/// The input that is tried now, in a file that outlives the process.
struct Current {
    file: File,
    path: PathBuf,
}

impl Current {
    fn of(target: &str) -> Self {
        let directory = env::temp_dir().join(format!("muster-fuzz-{}", rustix::process::getuid().as_raw()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join(target);
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&path).unwrap();
        Self { file, path }
    }

    /// What a process that ended in the middle of it tried last.
    fn left_behind(&self) -> Option<Vec<u8>> {
        let bytes = fs::read(&self.path).ok()?;
        let (length, rest) = bytes.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        // One more than the length, so that nothing is not an empty input.
        rest.get(..length.checked_sub(1)?).map(<[u8]>::to_vec)
    }

    fn begin(&self, input: &[u8]) {
        let mut bytes = (input.len() as u64 + 1).to_le_bytes().to_vec();
        bytes.extend_from_slice(input);
        self.file.write_all_at(&bytes, 0).unwrap();
    }

    fn end(&self) {
        self.file.write_all_at(&[0; 8], 0).unwrap();
    }
}

/// Ends the process if an input never ends. Processor time counts, so that a busy machine is no hang.
struct Watch {
    /// Number of the input that is tried, from 1; 0 between two.
    current: Arc<AtomicU64>,
    last: u64,
}

impl Watch {
    fn start(target: &'static str, path: &Path, most: Duration) -> Self {
        let current = Arc::new(AtomicU64::new(0));
        let (watched, path) = (Arc::downgrade(&current), path.to_owned());
        let status = format!("/proc/self/task/{}/schedstat", rustix::thread::gettid().as_raw_nonzero());
        thread::spawn(move || {
            let (mut seen, mut since) = (0, Duration::ZERO);
            while let Some(current) = watched.upgrade().map(|current| current.load(Ordering::Relaxed)) {
                let spent = processor_time(&status);
                if current != seen {
                    (seen, since) = (current, spent);
                } else if current != 0 && spent.saturating_sub(since) > most {
                    let kept = path.display();
                    say(&format!(
                        "{target}: an input takes more than {most:?} of processor time; it is kept in {kept}"
                    ));
                    process::abort();
                }
                thread::park_timeout(Duration::from_millis(500));
            }
        });
        Self { current, last: 0 }
    }

    fn begin(&mut self) {
        self.last += 1;
        self.current.store(self.last, Ordering::Relaxed);
    }

    fn end(&self) {
        self.current.store(0, Ordering::Relaxed);
    }
}

#[allow(clippy::print_stderr, reason = "the process ends then, and nobody else can say why")]
fn say(words: &str) {
    eprintln!("{words}");
}

/// What a thread has spent so far.
fn processor_time(status: &str) -> Duration {
    let text = fs::read_to_string(status).unwrap_or_default();
    let nanos = text.split_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// What the names of threads of targets begin with.
const THREADS: &str = "target ";

fn thread_name(target: &str) -> String {
    format!("{THREADS}{target}")
}

/// Panics by the names of their threads. A runtime swallows those of its tasks.
static PANICS: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// Keeps what threads of targets panic with instead of printing it.
fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let thread = thread::current();
            let name = thread.name().unwrap_or_default();
            if name.starts_with(THREADS) {
                let mut panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
                panics.push((name.to_owned(), info.to_string()));
            } else {
                usual(info);
            }
        }));
    });
}

fn take_panics(target: &str) -> Vec<String> {
    let thread = thread_name(target);
    let mut panics = PANICS.lock().unwrap_or_else(PoisonError::into_inner);
    panics.extract_if(.., |(name, _)| *name == thread).map(|(_, message)| message).collect()
}
