//! Finds a program the way a shell does, so that a missing one is told from a forbidden one before anything starts.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::Access;
use rustix::io::Errno;

use crate::start_failure::{Reason, StartFailure};

/// What was found counts for this long.
const FRESH: Duration = Duration::from_secs(1);
/// More are not remembered.
const MAX_FOUND: usize = 256;

/// Where programs were found lately: most attempts run the same ones.
#[derive(Debug, Default)]
pub(crate) struct FoundPrograms {
    found: HashMap<(String, String), (PathBuf, Instant)>,
}

impl FoundPrograms {
    /// The same as [`find_program`], from memory if it was looked for just now.
    pub(crate) fn find(&mut self, program: &str, search: &str, work: &Path) -> Result<PathBuf, StartFailure> {
        // What is in the work directory is there for one attempt alone.
        if program.contains('/') || search.split(':').any(|directory| !directory.starts_with('/')) {
            return find_program(program, search, work);
        }
        let key = (program.to_string(), search.to_string());
        match self.found.get(&key) {
            Some((path, at)) if at.elapsed() < FRESH => Ok(path.clone()),
            _ => {
                let path = find_program(program, search, work)?;
                if self.found.len() >= MAX_FOUND {
                    self.found.clear();
                }
                self.found.insert(key, (path.clone(), Instant::now()));
                Ok(path)
            }
        }
    }

    /// Something found did not start: everything is looked for anew. Answers whether anything was remembered.
    pub(crate) fn forget(&mut self) -> bool {
        !std::mem::take(&mut self.found).is_empty()
    }
}

/// The file that `program` means: itself if it names a place (relative to `work`), else the first in the search path.
pub(crate) fn find_program(program: &str, search: &str, work: &Path) -> Result<PathBuf, StartFailure> {
    if program.contains('/') {
        return Ok(work.join(program));
    }
    let mut denied = None;
    // An empty part would mean the work directory, which holds nothing to run.
    for directory in search.split(':').filter(|directory| !directory.is_empty()) {
        let path = work.join(directory).join(program);
        match rustix::fs::access(&path, Access::EXEC_OK) {
            Ok(()) if path.is_file() => return Ok(path),
            Err(Errno::ACCESS) => denied = denied.or(Some(path)),
            Ok(()) | Err(_) => {}
        }
    }
    Err(match denied {
        Some(path) => {
            StartFailure::permanent(Reason::NotPermitted, format!("not permitted to run {}", path.display()))
        }
        None => StartFailure::permanent(
            Reason::CommandNotFound,
            format!("command not found: {program} (searched in {search})"),
        ),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_first_that_may_be_run_is_found() {
        let temp = tempfile::tempdir().unwrap();
        for (place, mode) in [("a/tool", 0o644), ("b/tool", 0o755), ("c/tool", 0o755)] {
            let path = temp.path().join(place);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir_all(temp.path().join("a/shadow")).unwrap();
        let find = |program, search| find_program(program, search, temp.path());
        assert_eq!(find("tool", ":a:b:c"), Ok(temp.path().join("b/tool")));
        assert_eq!(find("tool", "a").unwrap_err().reason, Reason::NotPermitted);
        assert_eq!(find("tool", "/nowhere").unwrap_err().reason, Reason::CommandNotFound);
        assert_eq!(find("shadow", "a").unwrap_err().reason, Reason::CommandNotFound);
    }

    #[test]
    fn a_program_that_names_a_place_is_not_searched_for() {
        let find = |program| find_program(program, "/bin", Path::new("/w")).unwrap();
        assert_eq!(find("/opt/tool"), Path::new("/opt/tool"));
        assert_eq!(find("./tool"), Path::new("/w/./tool"));
    }

    #[test]
    fn what_was_found_is_remembered_until_it_is_forgotten() {
        let temp = tempfile::tempdir().unwrap();
        let tool = |place: &str| {
            let path = temp.path().join(place).join("tool");
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let search = format!("{0}/a:{0}/b", temp.path().display());
        let mut programs = FoundPrograms::default();
        let find = |programs: &mut FoundPrograms| programs.find("tool", &search, temp.path());
        assert_eq!(find(&mut programs).unwrap_err().reason, Reason::CommandNotFound);
        let second = tool("b");
        assert_eq!(find(&mut programs), Ok(second), "what was not found is looked for again");
        let first = tool("a");
        assert!(programs.forget());
        assert_eq!(find(&mut programs), Ok(first));
        assert!(programs.forget() && !programs.forget());
    }

    #[test]
    fn what_is_found_in_a_work_directory_is_not_remembered() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("tool");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let mut programs = FoundPrograms::default();
        assert_eq!(programs.find("tool", ".:/bin", temp.path()), Ok(temp.path().join("./tool")));
        assert!(!programs.forget());
    }
}
