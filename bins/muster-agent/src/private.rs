//! Files and directories of the agent are readable by its owner alone, also under any umask and if they existed before.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

const FILE: u32 = 0o600;
const DIR: u32 = 0o700;
/// Programs of other users, which only root can start, pass through to their own directory. They cannot look around.
const PASSABLE_DIR: u32 = 0o711;

/// Makes the directory that everything else is in, or takes it from others.
pub fn make_work_dir(path: &Path) -> io::Result<()> {
    let mode = if rustix::process::geteuid().is_root() { PASSABLE_DIR } else { DIR };
    DirBuilder::new().recursive(true).mode(mode).create(path)?;
    tighten(path, mode)
}

/// Reads a file, and takes it from others.
pub fn read(path: &Path) -> io::Result<String> {
    let text = fs::read_to_string(path)?;
    tighten(path, FILE)?;
    Ok(text)
}

/// Takes from others what they may do with a path. If that fails, as on a volume of another user, it warns, and the path is used as it is.
fn tighten(path: &Path, mode: u32) -> io::Result<()> {
    let known = fs::metadata(path)?.permissions().mode();
    if known & 0o777 & !mode != 0
        && let Err(error) = fs::set_permissions(path, Permissions::from_mode(mode))
    {
        tracing::warn!(%error, path = %path.display(), "other users can read this; it cannot be taken from them");
    }
    Ok(())
}

/// Makes a directory of files that only the agent reads, or takes it and what is in it from others.
pub fn make_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIR).create(path)?;
    fs::set_permissions(path, Permissions::from_mode(DIR))?;
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::set_permissions(entry.path(), Permissions::from_mode(FILE))?;
        }
    }
    Ok(())
}

/// Makes the directory of attempts, or tightens it. It stays passable if it was: programs of other users may still run in it.
pub fn make_attempts_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIR).create(path)?;
    let known = fs::metadata(path)?.permissions().mode() & 0o777;
    if known == PASSABLE_DIR { Ok(()) } else { fs::set_permissions(path, Permissions::from_mode(DIR)) }
}

/// Opens a file for writing at its end.
pub fn open(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).mode(FILE).open(path)?;
    file.set_permissions(Permissions::from_mode(FILE))?;
    Ok(file)
}

/// Writes a file whole.
pub fn write(path: &Path, text: &[u8]) -> io::Result<File> {
    let mut file = OpenOptions::new().create(true).write(true).truncate(true).mode(FILE).open(path)?;
    // Before there is anything in it.
    file.set_permissions(Permissions::from_mode(FILE))?;
    file.write_all(text)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn files_are_for_their_owner_alone_also_those_from_before() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("records");
        fs::create_dir(&dir).unwrap();
        for (name, mode) in [("old", 0o644), ("credential", 0o666)] {
            fs::write(dir.join(name), "before").unwrap();
            fs::set_permissions(dir.join(name), Permissions::from_mode(mode)).unwrap();
        }
        fs::set_permissions(&dir, Permissions::from_mode(0o777)).unwrap();
        write(&dir.join("credential"), b"secret").unwrap();
        assert_eq!(mode(&dir.join("credential")), 0o600);
        fs::write(temp.path().join("credential"), "before").unwrap();
        fs::set_permissions(temp.path().join("credential"), Permissions::from_mode(0o644)).unwrap();
        assert_eq!(read(&temp.path().join("credential")).unwrap(), "before");
        assert_eq!(mode(&temp.path().join("credential")), 0o600);
        make_dir(&dir).unwrap();
        write(&dir.join("new"), b"").unwrap();
        open(&dir.join("lock")).unwrap();
        assert_eq!(mode(&dir), 0o700);
        assert_eq!(["old", "credential", "new", "lock"].map(|name| mode(&dir.join(name))), [0o600; 4]);
        assert_eq!(fs::read(dir.join("credential")).unwrap(), b"secret");
    }

    #[test]
    fn programs_of_other_users_pass_through_and_see_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("attempts");
        make_attempts_dir(&dir).unwrap();
        assert_eq!(mode(&dir), 0o700);
        for (before, after) in [(0o711, 0o711), (0o777, 0o700), (0o755, 0o700)] {
            fs::set_permissions(&dir, Permissions::from_mode(before)).unwrap();
            make_attempts_dir(&dir).unwrap();
            assert_eq!(mode(&dir), after);
        }
        make_work_dir(temp.path()).unwrap();
        assert_eq!(mode(temp.path()) & 0o066, 0);
    }
}
