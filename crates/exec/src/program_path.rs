//! Finds a program the way a shell does, so that a missing one is told from a forbidden one before anything starts.

use std::path::{Path, PathBuf};

use rustix::fs::Access;
use rustix::io::Errno;

use crate::start_failure::{Reason, StartFailure};

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
}
