//! How fast short programs run through the whole runtime, against the bare limit of this machine.
//!
//! `cargo run --release -p muster-runtime-process --example spawn_rate [COUNT [ROUNDS]]`

#![allow(clippy::print_stdout, reason = "a measurement shows its figures")]

use std::collections::VecDeque;
use std::error::Error;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use muster_ports::runtime::{Handle, Launch, LaunchContainer, Limits, Observation, Runtime};
use muster_runtime_process::{ProcessRuntime, SHEPHERD_VARIABLE, Settings, shepherd_main};

const PROGRAM: &str = "/bin/true";
/// Attempts that run at a time.
const RUNNING: usize = 2;
/// Attempts asked for at a time: those that run, and those that wait for them.
const WINDOW: usize = 32;
/// Attempts whose files stay.
const KEPT: usize = 500;
/// Loops of the bare limit side by side.
const WIDTH: usize = 2;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if std::env::var_os(SHEPHERD_VARIABLE).is_some() {
        return Ok(shepherd_main());
    }
    let mut numbers = std::env::args().skip(1).map(|argument| argument.parse::<usize>());
    let count = numbers.next().transpose()?.unwrap_or(10_000);
    let rounds = numbers.next().transpose()?.unwrap_or(3);
    let tokio = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let temp = tempfile::tempdir()?;
    for round in 0..rounds {
        // In turns, so that what else the machine does hits both alike.
        let slice = count / rounds.max(1);
        let (bare, bare_cpu) = with_cpu(slice, || bare_rate(slice))?;
        let (ours, our_cpu) = with_cpu(slice, || tokio.block_on(runtime_rate(temp.path(), slice, round)))?;
        println!(
            "{slice} x {PROGRAM}: bare {bare:.0}/s, runtime {ours:.0}/s, ratio {:.2}; cpu each {bare_cpu:.0} and \
             {our_cpu:.0} us, ratio {:.2}",
            ours / bare,
            bare_cpu / our_cpu
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// A measurement, and the microseconds of processor time it took for each of `count`, in this process and all that it
/// waited for. Less noisy than the rate on a machine that does other things too.
fn with_cpu(
    count: usize,
    measure: impl FnOnce() -> Result<f64, Box<dyn Error>>,
) -> Result<(f64, f64), Box<dyn Error>> {
    let before = cpu_micros()?;
    let measured = measure()?;
    Ok((measured, (cpu_micros()? - before) / count.to_string().parse::<f64>()?))
}

fn cpu_micros() -> Result<f64, Box<dyn Error>> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("no name in stat")?;
    let ticks = fields.split_whitespace().skip(11).take(4).map(str::parse::<f64>);
    Ok(ticks.sum::<Result<f64, _>>()? * 10_000.0)
}

/// posix_spawn and wait in a loop, some side by side.
fn bare_rate(count: usize) -> Result<f64, Box<dyn Error>> {
    let begun = Instant::now();
    let run = || (0..count / WIDTH).try_for_each(|_| Command::new(PROGRAM).status().map(|_| ()));
    std::thread::scope(|scope| {
        let loops: Vec<_> = (0..WIDTH).map(|_| scope.spawn(run)).collect();
        loops.into_iter().try_for_each(|each| each.join().unwrap_or(Ok(())))
    })?;
    Ok(rate(count, begun))
}

/// The same number of attempts through the runtime, their output kept until they are removed some time later.
async fn runtime_rate(root: &Path, count: usize, round: usize) -> Result<f64, Box<dyn Error>> {
    let mut settings = Settings::this_program(root, &[]);
    settings.executor.max_running = Some(RUNNING);
    let (runtime, mut facts) = ProcessRuntime::new(settings)?;
    let mut kept = VecDeque::new();
    // The first one waits for the shepherd to start.
    let begun = Instant::now();
    runtime.start(launch(round, count));
    while !matches!(facts.recv().await.map(|fact| fact.what), Some(Observation::Ended(_)) | None) {}
    if round == 0 {
        println!("from nothing to the end of the first program: {:.1?}", begun.elapsed());
    }
    let begun = Instant::now();
    let mut started = WINDOW.min(count);
    runtime.start_all((0..started).map(|index| launch(round, index)));
    let mut ended = 0;
    while ended < count {
        let fact = facts.recv().await.ok_or("the runtime ended")?;
        match fact.what {
            Observation::Started => {}
            Observation::Ended(ending) if ending.containers[0].exit_code == 0 => {
                ended += 1;
                kept.push_back(fact.handle);
                if started < count {
                    runtime.start(launch(round, started));
                    started += 1;
                }
                if kept.len() > KEPT
                    && let Some(handle) = kept.pop_front()
                {
                    runtime.remove(&handle)?;
                }
            }
            other => return Err(format!("unexpected: {other:?}").into()),
        }
    }
    let rate = rate(count, begun);
    runtime.shutdown(Duration::ZERO).await;
    Ok(rate)
}

fn launch(round: usize, index: usize) -> Launch {
    Launch {
        handle: Handle { task: format!("round{round}-task{index:08}"), attempt: 1 },
        containers: vec![LaunchContainer {
            name: "main".into(),
            command: vec![PROGRAM.into()],
            env: vec![("PATH".into(), "/usr/bin:/bin".into()), ("MUSTER_TASK".into(), index.to_string())],
        }],
        timeout: Some(Duration::from_hours(1)),
        kill_timeout: Duration::from_secs(10),
        priority: 0,
        prefetch: 0,
        limits: Limits::default(),
        pod: None,
        robot: None,
        image: None,
        data: None,
    }
}

#[allow(clippy::cast_precision_loss, reason = "counts are small")]
fn rate(count: usize, begun: Instant) -> f64 {
    count as f64 / begun.elapsed().as_secs_f64()
}
