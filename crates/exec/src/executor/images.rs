//! Attempts that docker or podman runs: their clients are the programs, and their containers are removed whatever becomes of those.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use muster_types::attempt::{Handle, LaunchContainer, Limits};
use muster_types::image_launch::{ImageDriver, ImageLaunch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::Executor;
use crate::image_run::{self, ImagePlace};
use crate::removal::{Removal, Removing};
use crate::spawn::{Place, Spawned};
use crate::start_failure::{Reason, StartFailure};

/// Below the work root: where directories lie that outlive attempts.
const CACHE: &str = "cache";
/// Below the work root: says that a driver has run containers here.
const USED: &str = ".containers-of-";
/// How long removing containers may take, before it is given up.
pub(super) const REMOVAL_WAIT: Duration = Duration::from_secs(30);
/// The same for what an earlier executor left, while nothing else is done.
const SWEEP_WAIT: Duration = Duration::from_secs(5);

impl Executor {
    /// Whether a driver is there.
    pub(super) fn find_driver(&mut self, driver: ImageDriver) -> Result<(), StartFailure> {
        let (search, root) = (&self.settings.driver_path, self.dirs.root());
        match self.programs.find(driver.program(), search, root) {
            Ok(_) => Ok(()),
            Err(_) => Err(StartFailure::permanent(
                Reason::NoDriver,
                format!(
                    "{driver} is not installed on this machine (searched in {search}); install it, choose a machine that has it, or set \
                     driver: exec and a command"
                ),
            )),
        }
    }

    /// The clients that run the containers of an attempt.
    pub(super) fn render_clients(
        &self,
        handle: &Handle,
        containers: &[LaunchContainer],
        image: &ImageLaunch,
        limits: Limits,
        user: Option<&str>,
    ) -> Vec<LaunchContainer> {
        let work = self.dirs.path(handle).join(crate::attempt_dir::WORK);
        let cache = Some(self.dirs.root().join(CACHE)).filter(|cache| cache.is_dir());
        let own_env = self.client_env();
        let place = ImagePlace {
            driver: image.driver,
            root: self.dirs.root(),
            work: &work,
            cache: cache.as_deref(),
            limits,
            user,
            own_env: &own_env,
        };
        // The next executor looks here for what this one could not remove.
        fs::write(self.used(image.driver), "").ok();
        let pairs = containers.iter().zip(&image.containers);
        pairs.map(|(container, image)| image_run::render_run(&place, handle, container, image)).collect()
    }

    /// Begins to remove the containers of an attempt of which nothing else is left, unless it has begun. False if there is nothing to
    /// wait for.
    pub(super) fn begin_removal(&mut self, id: u64) -> bool {
        let Some(attempt) = self.attempts.get_mut(&id) else { return false };
        let handle = attempt.handle.clone();
        let (driver, names) = match attempt.removal.take() {
            Some(Removal::Due { driver, names }) => (driver, names),
            other => {
                attempt.removal = other;
                return attempt.removal.is_some();
            }
        };
        let client = LaunchContainer {
            name: String::new(),
            command: image_run::render_removal(driver, &names),
            env: self.client_env(),
        };
        let root = self.dirs.root().to_path_buf();
        let spawned = self.spawn(
            id,
            crate::token::REMOVAL,
            &client,
            Place { attempt: &handle, work: &root, account: None, group: None },
        );
        let Some(attempt) = self.attempts.get_mut(&id) else { return false };
        match spawned {
            Ok(Spawned { pid, pidfd, output }) => {
                let give_up_at = Instant::now() + REMOVAL_WAIT;
                attempt.removal =
                    Some(Removal::UnderWay(Removing { pid, _held: [pidfd, output], give_up_at }));
                true
            }
            Err(failure) => {
                self.note(format!("containers of {driver} may be left: {}", failure.message));
                false
            }
        }
    }

    /// Removes the containers that an earlier executor of this work root left. Nobody else may have one here.
    pub(super) fn sweep_containers(&mut self) {
        for driver in ImageDriver::ALL {
            if !self.used(driver).exists() {
                continue;
            }
            let listed = self.call(&image_run::render_list(driver, self.dirs.root()));
            let left: Vec<String> =
                listed.iter().flat_map(|text| text.split_whitespace().map(String::from)).collect();
            let removed = left.is_empty() || self.call(&image_run::render_removal(driver, &left)).is_some();
            if listed.is_none() || !removed {
                self.note(format!(
                    "containers of {driver} that an earlier life left may still run: it does not answer"
                ));
            }
        }
    }

    /// What a client says, if it ends well and in time. Blocks.
    fn call(&self, command: &[String]) -> Option<String> {
        let [program, arguments @ ..] = command else { return None };
        let path =
            crate::program_path::find_program(program, &self.settings.driver_path, self.dirs.root()).ok()?;
        let mut child = Command::new(path)
            .args(arguments)
            .env_clear()
            .envs(self.client_env())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let ended = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        let timeout = Timespec::try_from(SWEEP_WAIT).ok();
        let in_time = ended.is_some_and(|ended| {
            poll(&mut [PollFd::new(&ended, PollFlags::IN)], timeout.as_ref()).is_ok_and(|ready| ready > 0)
        });
        if !in_time {
            child.kill().ok();
        }
        let status = child.wait().ok()?;
        let mut said = String::new();
        child.stdout.take()?.read_to_string(&mut said).ok()?;
        (in_time && status.success()).then_some(said)
    }

    fn client_env(&self) -> Vec<(String, String)> {
        let mut env = image_run::of_client(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))),
        );
        env.retain(|(name, _)| name != "PATH");
        env.push(("PATH".to_owned(), self.settings.driver_path.clone()));
        env
    }

    fn used(&self, driver: ImageDriver) -> PathBuf {
        self.dirs.root().join(format!("{USED}{driver}"))
    }
}
