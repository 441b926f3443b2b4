//! Limits on cpu and memory by control groups, where the machine lets us make them. Everything works without.
//!
//! One group per attempt that has limits. Its programs go into it before they are what they become: nothing of an attempt can run
//! outside its limits. The executor's own process never does: what is above a limit on memory is killed.
//!
//! With version 1 a group is one directory per controller, with version 2 one directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use muster_types::attempt::Limits;
use rustix::process::{Pid, Signal, kill_process};

/// Length of the period a cpu quota is measured in.
const PERIOD_MICROS: u64 = 100_000;
/// Begins the name of the group that holds an executor's groups; the number of its process follows.
const PREFIX: &str = "muster-";
const CONTROLLERS: [&str; 2] = ["cpu", "memory"];

/// One mounted hierarchy that attempts can be limited with.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hierarchy {
    /// Where the executor's own process lives, and stays.
    home: PathBuf,
    /// Where the groups of attempts are made.
    parent: PathBuf,
    /// What can be limited here.
    controllers: Vec<String>,
    /// Version 2 keeps other files.
    unified: bool,
}

/// The machine's means to limit attempts.
#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    hierarchies: Vec<Hierarchy>,
}

impl Cgroups {
    /// Looks once at what the machine allows, and says in words what it does not.
    pub(crate) fn detect() -> (Self, Vec<String>) {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let name = format!("{PREFIX}{}", std::process::id());
        let mut cgroups = Self::default();
        let mut notices = Vec::new();
        for controller in CONTROLLERS {
            if cgroups.hierarchies.iter().any(|hierarchy| hierarchy.has(controller)) {
                continue;
            }
            match find_hierarchies(controller, &mounts, &own).iter().find_map(|found| found.prepare(&name)) {
                Some(ready) => cgroups.hierarchies.push(ready),
                None => notices.push(format!(
                    "{controller} limits are not enforced: no control group with the {controller} controller can be made \
                     here; run as root, or as a systemd service with Delegate=yes and DelegateSubgroup=server"
                )),
            }
        }
        (cgroups, notices)
    }

    /// Makes a group for an attempt, if it has limits that can be enforced.
    pub(crate) fn create(&self, name: &str, limits: &Limits) -> io::Result<Option<Group>> {
        let wanted = [("cpu", limits.cpu_millis), ("memory", limits.memory)];
        let mut members = Vec::new();
        for hierarchy in &self.hierarchies {
            if wanted.iter().any(|(controller, limit)| limit.is_some() && hierarchy.has(controller)) {
                let directory = hierarchy.parent.join(name);
                fs::create_dir_all(&directory)?;
                members.push(Member { directory, hierarchy: hierarchy.clone() });
            }
        }
        if members.is_empty() {
            return Ok(None);
        }
        let group = Group { members, limits: *limits };
        let limited = group.limit_memory().and_then(|()| group.limit_cpu());
        limited.inspect_err(|_| {
            group.remove();
        })?;
        Ok(Some(group))
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        for hierarchy in &self.hierarchies {
            fs::remove_dir(&hierarchy.parent).ok();
        }
    }
}

impl Hierarchy {
    fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|own| own == controller)
    }

    /// Makes the parent of all attempts' groups and tries it out.
    fn prepare(&self, name: &str) -> Option<Self> {
        let parent = self.parent.join(name);
        if self.unified {
            enable(&self.parent, &self.controllers);
        }
        remove_stale(&self.parent);
        fs::create_dir_all(&parent).ok()?;
        let mut ready = Self { parent, ..self.clone() };
        if ready.try_out().is_none() {
            fs::remove_dir(&ready.parent).ok();
            return None;
        }
        ready.controllers.retain(|controller| CONTROLLERS.contains(&controller.as_str()));
        Some(ready)
    }

    fn try_out(&mut self) -> Option<()> {
        if self.unified {
            enable(&self.parent, &self.controllers);
            let enabled = fs::read_to_string(self.parent.join("cgroup.subtree_control")).ok()?;
            self.controllers.retain(|own| enabled.split_whitespace().any(|name| name == own));
            if self.controllers.is_empty() {
                return None;
            }
        }
        let probe = self.parent.join("probe");
        fs::create_dir(&probe).ok()?;
        let moved = enter(&probe).and_then(|()| enter(&self.home));
        fs::remove_dir(&probe).ok()?;
        moved.ok()
    }
}

#[derive(Debug)]
struct Member {
    directory: PathBuf,
    hierarchy: Hierarchy,
}

/// The control group of one attempt.
#[derive(Debug)]
pub(crate) struct Group {
    members: Vec<Member>,
    limits: Limits,
}

impl Group {
    /// Where its programs go, one directory in each hierarchy.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        self.members.iter().map(|member| member.directory.clone()).collect()
    }

    fn limit_cpu(&self) -> io::Result<()> {
        let Some(millis) = self.limits.cpu_millis else { return Ok(()) };
        let quota = (millis.saturating_mul(PERIOD_MICROS) / 1000).max(1000);
        for Member { directory, hierarchy } in
            self.members.iter().filter(|member| member.hierarchy.has("cpu"))
        {
            if hierarchy.unified {
                fs::write(directory.join("cpu.max"), format!("{quota} {PERIOD_MICROS}"))?;
            } else {
                fs::write(directory.join("cpu.cfs_period_us"), PERIOD_MICROS.to_string())?;
                fs::write(directory.join("cpu.cfs_quota_us"), quota.to_string())?;
            }
        }
        Ok(())
    }

    fn limit_memory(&self) -> io::Result<()> {
        let Some(bytes) = self.limits.memory else { return Ok(()) };
        for Member { directory, hierarchy } in
            self.members.iter().filter(|member| member.hierarchy.has("memory"))
        {
            let file = if hierarchy.unified { "memory.max" } else { "memory.limit_in_bytes" };
            fs::write(directory.join(file), bytes.to_string())?;
        }
        Ok(())
    }

    /// Ends everything in it, also what escaped from its process group.
    pub(crate) fn kill(&self) {
        for Member { directory, hierarchy } in &self.members {
            if hierarchy.unified && fs::write(directory.join("cgroup.kill"), "1").is_ok() {
                continue;
            }
            let pids = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
            for pid in pids.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
                kill_process(pid, Signal::KILL).ok();
            }
        }
    }

    /// In words, if the kernel killed something because memory ran out.
    pub(crate) fn out_of_memory(&self) -> Option<String> {
        let limit = self.limits.memory?;
        let ran_out = self.members.iter().any(|Member { directory, hierarchy }| {
            let file = if hierarchy.unified { "memory.events" } else { "memory.oom_control" };
            let events = fs::read_to_string(directory.join(file)).unwrap_or_default();
            let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
            kills.is_some_and(|kills| kills.trim() != "0")
        });
        ran_out.then(|| format!("memory ran out: the limit is {limit} bytes"))
    }

    /// Removes it; false while something in it is still dying.
    pub(crate) fn remove(&self) -> bool {
        let gone = |path: &Path| match fs::remove_dir(path) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        // Every hierarchy is tried, whatever became of the others.
        self.members.iter().filter(|member| !gone(&member.directory)).count() == 0
    }
}

/// Removes what executors left behind that were killed. What is in use cannot be removed.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        if owner.is_none_or(|owner| Path::new(&format!("/proc/{owner}")).exists()) {
            continue;
        }
        for inner in fs::read_dir(entry.path()).into_iter().flatten().flatten() {
            fs::remove_dir(inner.path()).ok();
        }
        fs::remove_dir(entry.path()).ok();
    }
}

/// Moves this process into a group.
pub(crate) fn enter(directory: &Path) -> io::Result<()> {
    fs::write(directory.join("cgroup.procs"), "0")
}

/// Hands controllers down, one by one since one that cannot be would take the others with it.
fn enable(directory: &Path, controllers: &[String]) {
    for controller in controllers {
        fs::write(directory.join("cgroup.subtree_control"), format!("+{controller}")).ok();
    }
}

/// Where groups with a controller might be made: version 1 has one place; with version 2 it is where this process lives, or
/// the directory above, since a group that holds processes cannot hand controllers down. What is above a unit of systemd is
/// systemd's own.
fn find_hierarchies(controller: &str, mounts: &str, own: &str) -> Vec<Hierarchy> {
    let mut found = Vec::new();
    for mount in mounts.lines().filter_map(Mount::parse) {
        let unified = match mount.kind {
            "cgroup" if mount.options.split(',').any(|option| option == controller) => false,
            "cgroup2" => true,
            _ => continue,
        };
        let Some(path) = own.lines().find_map(|line| own_path(line, (!unified).then_some(controller))) else {
            continue;
        };
        let below = Path::new(path).strip_prefix(mount.root).unwrap_or(Path::new(""));
        let home: PathBuf = Path::new(mount.point).components().chain(below.components()).collect();
        let hierarchy = |parent: &Path, controllers: &[&str]| Hierarchy {
            home: home.clone(),
            parent: parent.to_path_buf(),
            controllers: controllers.iter().map(ToString::to_string).collect(),
            unified,
        };
        if unified {
            let above = home.parent().filter(|above| above.starts_with(mount.point) && !is_unit(&home));
            found.extend(
                [Some(home.as_path()), above].into_iter().flatten().map(|at| hierarchy(at, &CONTROLLERS)),
            );
        } else {
            found.push(hierarchy(&home, &[controller]));
        }
    }
    found
}

fn is_unit(directory: &Path) -> bool {
    let kind = directory.extension().and_then(std::ffi::OsStr::to_str);
    kind.is_some_and(|kind| ["service", "scope", "slice"].contains(&kind))
}

/// The path in a line of `/proc/self/cgroup`, if it is about the controller; `None` is version 2.
fn own_path<'a>(line: &'a str, controller: Option<&str>) -> Option<&'a str> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let matches = match controller {
        None => controllers.is_empty(),
        Some(controller) => controllers.split(',').any(|own| own == controller),
    };
    matches.then_some(path)
}

/// A line of `/proc/self/mountinfo`.
struct Mount<'a> {
    root: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (place, file_system) = line.split_once(" - ")?;
        let mut place = place.split(' ').skip(3);
        let mut file_system = file_system.split(' ');
        Some(Self {
            root: place.next()?,
            point: place.next()?,
            kind: file_system.next()?,
            options: file_system.nth(1)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
25 20 0:21 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
26 25 0:22 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
27 25 0:23 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
28 25 0:24 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
";

    fn places(controller: &str, mounts: &str, own: &str) -> Vec<(String, String)> {
        let shown = |path: &Path| path.display().to_string();
        let found = find_hierarchies(controller, mounts, own);
        found.iter().map(|found| (shown(&found.home), shown(&found.parent))).collect()
    }

    #[test]
    fn version_1_has_one_place_per_controller() {
        let own = "4:memory:/docker/abc/inner\n1:cpu,cpuacct:/user\n0::/\n";
        let cpu = "/sys/fs/cgroup/cpu,cpuacct/user".to_string();
        assert_eq!(places("cpu", HYBRID, own)[0], (cpu.clone(), cpu));
        let memory = "/sys/fs/cgroup/memory/inner".to_string();
        assert_eq!(places("memory", HYBRID, own)[0], (memory.clone(), memory));
    }

    #[test]
    fn version_2_is_tried_where_this_process_lives_and_above() {
        let mounts = "30 20 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
        let own = "0::/system.slice/muster.service/server\n";
        let home = "/sys/fs/cgroup/system.slice/muster.service/server";
        let above = "/sys/fs/cgroup/system.slice/muster.service";
        let expected = [(home.to_string(), home.to_string()), (home.to_string(), above.to_string())];
        assert_eq!(places("memory", mounts, own), expected);
        let root = "/sys/fs/cgroup".to_string();
        assert_eq!(places("cpu", mounts, "0::/\n"), [(root.clone(), root)]);
        let unit = above.to_string();
        let own = "0::/system.slice/muster.service\n";
        assert_eq!(places("cpu", mounts, own), [(unit.clone(), unit)], "what is above a unit is not ours");
    }

    #[test]
    fn a_machine_without_control_groups_has_no_place() {
        assert_eq!(places("cpu", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n", "0::/\n"), []);
        assert_eq!(places("cpu", "", ""), []);
    }
}
