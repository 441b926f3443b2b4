//! The data of a task as a file of the directory its programs run in, where also those find it that docker or podman run.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use muster_types::attempt::{DATA_FILE_VARIABLE, LaunchContainer, TaskData};

/// What the file is called. Hidden, so that a program that lists its own files does not meet it.
const NAME: &str = ".muster-data.json";

/// Writes the file and names it to all programs.
pub(crate) fn give_data(data: &TaskData, work: &Path, containers: &mut [LaunchContainer]) -> io::Result<()> {
    let path = std::path::absolute(work.join(NAME))?;
    // A file that was fetched for the attempt may be called so, or be a link to elsewhere.
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
    file.write_all(data.as_str().as_bytes())?;
    let named =
        path.to_str().ok_or_else(|| io::Error::other("the path of the work directory is not UTF-8"))?;
    for container in containers {
        container.env.retain(|(name, _)| name != DATA_FILE_VARIABLE);
        container.env.push((DATA_FILE_VARIABLE.to_owned(), named.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_lies_where_the_file_goes_is_replaced_and_not_followed() {
        let temp = tempfile::tempdir().unwrap();
        let (work, other) = (temp.path().join("work"), temp.path().join("other"));
        fs::create_dir(&work).unwrap();
        fs::write(&other, "kept").unwrap();
        symlink(&other, work.join(NAME)).unwrap();
        let env = vec![(DATA_FILE_VARIABLE.to_owned(), "forged".to_owned())];
        let mut containers = [LaunchContainer { name: "addon".into(), command: vec![], env }];
        give_data(&TaskData::new("{\"a\":1}".into()), &work, &mut containers).unwrap();
        let path = work.join(NAME);
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\":1}");
        assert_eq!(fs::read_to_string(&other).unwrap(), "kept");
        let named = (DATA_FILE_VARIABLE.to_owned(), path.to_str().unwrap().to_owned());
        assert_eq!(containers[0].env, [named]);
    }
}
