//! Which flags have secrets, and the files that have them instead.

use std::io;
use std::path::PathBuf;

use muster_runtime_process::{SecretFlag, read_secret};

use super::trace_args::parse_headers;
use super::{Command, CopyArgs, StoreCommand, UpArgs};

const OF_UP: [SecretFlag; 4] = [
    SecretFlag::InUrl("--store"),
    SecretFlag::InUrl("--mqtt-url"),
    SecretFlag::InUrl("--otlp-endpoint"),
    SecretFlag::Always("--otlp-headers"),
];
const OF_COPY: [SecretFlag; 2] = [SecretFlag::InUrl("--from"), SecretFlag::InUrl("--to")];

impl Command {
    /// Flags of this verb whose values are kept out of the list of processes. A verb that has some does not read its standard input.
    pub fn secret_flags(&self) -> &'static [SecretFlag] {
        match self {
            Self::Up(_) => &OF_UP,
            Self::Store(StoreCommand::Copy(_)) => &OF_COPY,
            _ => &[],
        }
    }

    /// Reads the secrets that are in files.
    pub fn read_secret_files(&mut self) -> io::Result<()> {
        match self {
            Self::Up(args) => args.read_secret_files(),
            Self::Store(StoreCommand::Copy(args)) => args.read_secret_files(),
            _ => Ok(()),
        }
    }
}

impl UpArgs {
    fn read_secret_files(&mut self) -> io::Result<()> {
        read_into(&mut self.store.store, "--store-file", self.store.store_file.as_ref())?;
        read_into(&mut self.robots.mqtt_url, "--mqtt-url-file", self.robots.mqtt_url_file.as_ref())?;
        let mut headers = None;
        read_into(&mut headers, "--otlp-headers-file", self.traces.otlp_headers_file.as_ref())?;
        if let Some(text) = headers {
            let read = parse_headers(&text);
            let read = read.map_err(|why| io::Error::other(format!("--otlp-headers-file: {why}")))?;
            self.traces.otlp_headers = Some(read);
        }
        Ok(())
    }
}

impl CopyArgs {
    fn read_secret_files(&mut self) -> io::Result<()> {
        read_into(&mut self.from, "--from-file", self.from_file.as_ref())?;
        read_into(&mut self.to, "--to-file", self.to_file.as_ref())
    }
}

fn read_into(value: &mut Option<String>, flag: &str, file: Option<&PathBuf>) -> io::Result<()> {
    if let Some(file) = file {
        *value = Some(read_secret(flag, file)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use clap::Parser as _;

    use super::*;
    use crate::cli::Cli;

    fn up(arguments: &[&str]) -> UpArgs {
        let cli = Cli::parse_from([&["muster", "up"], arguments].concat());
        let Command::Up(mut args) = cli.command else { unreachable!("it says up") };
        args.read_secret_files().unwrap();
        *args
    }

    #[test]
    fn secrets_are_read_from_files() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            fs::write(dir.path().join(name), text).unwrap();
            dir.path().join(name).display().to_string()
        };
        let store = file("store", "postgres://me:s@h/d\n");
        let broker = file("broker", "mqtt://me:s@h\n");
        let args = up(&["--store-file", &store, "--mqtt-url-file", &broker, "--mqtt-ca-file", "ca"]);
        assert_eq!(args.store.store.as_deref(), Some("postgres://me:s@h/d"));
        assert_eq!(args.robots.mqtt_url.as_deref(), Some("mqtt://me:s@h"));
        let headers = file("headers", "authorization=Bearer abc\n");
        let args = up(&["--otlp-headers-file", &headers]);
        assert_eq!(args.traces.otlp_headers, parse_headers("authorization=Bearer abc").ok());
    }

    #[test]
    fn every_secret_flag_is_a_flag_of_its_verb() {
        use clap::CommandFactory as _;
        let cli = Cli::command();
        let names = |path: &[&str]| {
            let verb = path.iter().try_fold(&cli, |verb, name| verb.find_subcommand(name)).unwrap();
            verb.get_arguments().filter_map(|arg| Some(format!("--{}", arg.get_long()?))).collect::<Vec<_>>()
        };
        for (flags, path) in [(&OF_UP[..], &["up"][..]), (&OF_COPY, &["store", "copy"])] {
            let known = names(path);
            for flag in flags {
                let (SecretFlag::Always(name) | SecretFlag::InUrl(name)) = flag;
                assert!(known.iter().any(|it| it == name), "{name} of {path:?}");
            }
        }
    }
}
