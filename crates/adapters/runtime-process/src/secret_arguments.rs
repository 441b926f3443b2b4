//! Secrets among the arguments of this program, which every user of the machine reads in the list of processes.
//!
//! A program that is given one executes itself again, in the same process, with a word in the place of each secret. The arguments as they
//! were given reach it through its standard input, a file in memory that is closed once it was read. They are never in its environment, so
//! nothing that it starts inherits them. For the moment until then they are visible: files and variables are better.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{self, Command};

use rustix::fs::{MemfdFlags, memfd_create};

/// Holds the id of the process whose arguments are in its standard input. Its children have other ids.
const MARK: &str = "MUSTER_ARGUMENTS_OF";
/// Stands in the list of processes instead of a secret.
const HIDDEN: &str = "(hidden)";

/// A flag whose value may be a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretFlag {
    /// The value is a secret.
    Always(&'static str),
    /// The value is a URL or a connection string, which is one only if it names a user or has settings.
    InUrl(&'static str),
}

/// The arguments of this process.
#[derive(Debug)]
pub struct Arguments {
    all: Vec<OsString>,
    are_hidden: bool,
}

impl Arguments {
    /// All as they were given, also those that are hidden. To be called first, before anything reads the standard input.
    pub fn of_this_process() -> io::Result<Self> {
        let are_hidden = std::env::var(MARK).is_ok_and(|id| id == process::id().to_string());
        if !are_hidden {
            return Ok(Self { all: std::env::args_os().collect(), are_hidden });
        }
        let mut text = Vec::new();
        io::stdin().lock().read_to_end(&mut text)?;
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        Ok(Self { all: decode(&text), are_hidden })
    }

    /// All of them, with the name of the program.
    pub fn all(&self) -> &[OsString] {
        &self.all
    }

    /// Executes this program again if a flag is given that has a secret: then it does not return. To be called before there are threads.
    /// The standard input of the program is empty afterwards.
    pub fn hide(&self, flags: &[SecretFlag]) -> io::Result<()> {
        let shown = without_secrets(&self.all, flags);
        if self.are_hidden || shown == self.all {
            return Ok(());
        }
        let (name, rest) = shown.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        // By its own path, so that the process keeps its name; by the other way if its file was replaced.
        let mut error = io::Error::from(io::ErrorKind::NotFound);
        for program in [std::env::current_exe()?.as_path(), Path::new("/proc/self/exe")] {
            let mut file = File::from(memfd_create("arguments", MemfdFlags::CLOEXEC)?);
            file.write_all(&encode(&self.all))?;
            file.rewind()?;
            let mut command = Command::new(program);
            command.arg0(name).args(rest).env(MARK, process::id().to_string()).stdin(file);
            error = command.exec();
        }
        Err(error)
    }
}

/// Reads a secret from a file: one line, as editors and `echo` leave it.
pub fn read_secret(flag: &str, file: &Path) -> io::Result<String> {
    let failed = |why: &dyn std::fmt::Display| {
        io::Error::other(format!("cannot read {flag} {}: {why}", file.display()))
    };
    let text = fs::read_to_string(file).map_err(|error| failed(&error))?;
    match text.trim() {
        "" => Err(failed(&"the file is empty")),
        secret => Ok(secret.to_owned()),
    }
}

fn encode(arguments: &[OsString]) -> Vec<u8> {
    // No argument has a zero in it.
    arguments.iter().map(|argument| argument.as_bytes()).collect::<Vec<_>>().join(&0)
}

fn decode(text: &[u8]) -> Vec<OsString> {
    text.split(|byte| *byte == 0).map(|argument| OsStr::from_bytes(argument).to_owned()).collect()
}

/// The arguments as everybody may see them.
fn without_secrets(arguments: &[OsString], flags: &[SecretFlag]) -> Vec<OsString> {
    let mut shown = Vec::with_capacity(arguments.len());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            shown.push(argument.clone());
            break;
        }
        let (name, value) = match argument.as_bytes().iter().position(|byte| *byte == b'=') {
            Some(at) => (&argument.as_bytes()[..at], Some(&argument.as_bytes()[at + 1..])),
            None => (argument.as_bytes(), None),
        };
        let Some(flag) = flags.iter().find(|flag| flag.name().as_bytes() == name) else {
            shown.push(argument.clone());
            continue;
        };
        shown.push(flag.name().into());
        let next = || rest.next().map(|value| value.as_bytes());
        if let Some(value) = value.or_else(next) {
            shown.push(if flag.is_secret(value) {
                HIDDEN.into()
            } else {
                OsStr::from_bytes(value).to_owned()
            });
        }
    }
    shown.extend(rest.cloned());
    if shown.iter().any(|argument| argument == HIDDEN) { shown } else { arguments.to_vec() }
}

impl SecretFlag {
    fn name(self) -> &'static str {
        match self {
            Self::Always(name) | Self::InUrl(name) => name,
        }
    }

    fn is_secret(self, value: &[u8]) -> bool {
        match self {
            Self::Always(_) => true,
            Self::InUrl(_) => value.iter().any(|byte| b"@=".contains(byte)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAGS: [SecretFlag; 2] = [SecretFlag::Always("--token"), SecretFlag::InUrl("--store")];

    fn shown(line: &str) -> String {
        let arguments: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let shown = without_secrets(&arguments, &FLAGS);
        shown.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn secrets_are_not_shown_however_they_are_given() {
        assert_eq!(shown("a --token s -x"), "a --token (hidden) -x");
        assert_eq!(shown("a --token=s=t -x"), "a --token (hidden) -x");
        assert_eq!(shown("a --token s --token t"), "a --token (hidden) --token (hidden)");
        assert_eq!(shown("a --store postgres://me:s@h/d"), "a --store (hidden)");
        assert_eq!(shown("a --store=host=h"), "a --store (hidden)");
    }

    #[test]
    fn other_arguments_are_shown_as_they_are() {
        for line in
            ["a --store sqlite:x --y z", "a --store=sqlite:x", "a --tokens s", "a --token", "a -- --token s"]
        {
            assert_eq!(shown(line), line);
        }
        assert_eq!(shown("a --token s -- --token t"), "a --token (hidden) -- --token t");
    }

    #[test]
    fn arguments_are_read_as_they_were_given() {
        let arguments = [OsString::from("a"), OsString::new(), OsStr::from_bytes(b"\xff b\n").to_owned()];
        assert_eq!(decode(&encode(&arguments)), arguments);
    }

    #[test]
    fn a_secret_in_a_file_is_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        fs::write(&file, "hunter2\n").unwrap();
        assert_eq!(read_secret("--token-file", &file).unwrap(), "hunter2");
        fs::write(&file, "\n").unwrap();
        let said = read_secret("--token-file", &file).unwrap_err().to_string();
        assert!(said.contains("--token-file") && said.contains("empty"), "{said}");
    }
}
