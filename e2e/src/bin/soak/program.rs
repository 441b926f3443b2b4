//! What tasks of a soak run: this program itself, which tells the recorder that it runs, and is told when that is written down.
//!
//! It runs for the time and ends with the code that its arguments say. Its end is the end of its connection, however it ends.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};

/// The word by which this program is asked to be one of a task.
pub const WORD: &str = "program";
/// The clock of `/proc` has so many milliseconds.
const TICK: i64 = 10;

/// How a program lives.
#[derive(Debug, Clone, Copy)]
pub struct Life {
    /// How long it runs, in milliseconds.
    pub millis: u64,
    /// Its exit code.
    pub code: u8,
    /// It does not end when it is asked to, only when it is killed.
    pub is_stubborn: bool,
}

impl Life {
    /// The container of a task whose program lives so.
    pub fn container(self, program: &Path, socket: &Path) -> Value {
        let (program, socket) = (program.display().to_string(), socket.display().to_string());
        let mut command = vec![program, WORD.to_owned(), socket];
        command.extend([self.millis.to_string(), self.code.to_string()]);
        if self.is_stubborn {
            // A signal that is ignored stays so in what the shell becomes.
            let script = "trap '' TERM; exec \"$0\" \"$@\"";
            command.splice(0..0, ["sh".to_owned(), "-c".to_owned(), script.to_owned()]);
        }
        json!({ "command": command })
    }
}

/// Is the program of a task.
pub fn run(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let [socket, millis, code] = arguments else {
        anyhow::bail!("a program needs a socket, a time and a code")
    };
    let (millis, code): (u64, u8) = (millis.parse()?, code.parse()?);
    let mut stream = UnixStream::connect(socket).context("cannot reach the recorder")?;
    let here = std::env::current_dir().context("no directory to run in")?;
    writeln!(stream, "{} {}", age()?, here.display())?;
    let mut answer = String::new();
    BufReader::new(&stream).read_line(&mut answer).context("the recorder is gone")?;
    std::thread::sleep(Duration::from_millis(millis));
    writeln!(stream, "{code}")?;
    Ok(ExitCode::from(code))
}

/// For how long this process exists, in milliseconds, at most.
fn age() -> anyhow::Result<i64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // After the name, which may have anything in it, the start is the twentieth.
    let began =
        stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(19)?.parse::<i64>().ok());
    let uptime = std::fs::read_to_string("/proc/uptime")?;
    let seconds: f64 = uptime.split(' ').next().unwrap_or_default().parse()?;
    #[allow(clippy::cast_possible_truncation, reason = "machines do not run for so long")]
    let now = (seconds * 1000.0) as i64;
    let began = began.context("no start in /proc/self/stat")?;
    Ok((now - began * TICK + TICK).max(0))
}
