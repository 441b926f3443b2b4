//! Users of this machine, by name, and what is theirs.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, lchown};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::start_failure::{Reason, StartFailure};

/// Where users are written down.
const PASSWD: &str = "/etc/passwd";
/// Others may pass through a directory, and not look around in it.
const PASSABLE: u32 = 0o711;

/// A user of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Account {
    /// The user whose programs are to run; `None` if that is who runs this anyway.
    pub(crate) fn find(name: &str) -> Result<Option<Self>, StartFailure> {
        let users = fs::read_to_string(PASSWD)
            .map_err(|error| StartFailure::of_resources(&format!("read {PASSWD}"), &error))?;
        let Some(found) = read(&users, name) else {
            let message = format!("there is no user {name} on this machine");
            return Err(StartFailure::permanent(Reason::NoSuchUser, message));
        };
        let own = rustix::process::geteuid();
        if own.as_raw() == found.uid {
            return Ok(None);
        }
        if !own.is_root() {
            let message =
                format!("only root can run programs as {name}, and this runs as user {}", own.as_raw());
            return Err(StartFailure::permanent(Reason::NotPermitted, message));
        }
        Ok(Some(found))
    }

    /// Gives a directory and all that is in it to this user, who can then pass through those above, up to a root.
    pub(crate) fn take_over(self, work: &Path, root: &Path) -> io::Result<()> {
        for above in work.ancestors().skip(1).take_while(|above| above.starts_with(root)) {
            fs::set_permissions(above, fs::Permissions::from_mode(PASSABLE))?;
        }
        self.own(work)
    }

    fn own(self, path: &Path) -> io::Result<()> {
        // A link is given away, not what it leads to.
        lchown(path, Some(self.uid), Some(self.gid))?;
        if path.symlink_metadata()?.is_dir() {
            for entry in fs::read_dir(path)? {
                self.own(&entry?.path())?;
            }
        }
        Ok(())
    }
}

fn read(users: &str, name: &str) -> Option<Account> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next()? == name && !name.is_empty()).then_some(())?;
        let (uid, gid) = (fields.nth(1)?, fields.next()?);
        Some(Account { uid: uid.parse().ok()?, gid: gid.parse().ok()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name() {
        let users = "root:x:0:0:root:/root:/bin/sh\nbad:x:y:z\nrobot:x:1000:1001::/home/robot:/bin/sh\n";
        assert_eq!(read(users, "robot"), Some(Account { uid: 1000, gid: 1001 }));
        for name in ["", "bad", "robo", "x"] {
            assert_eq!(read(users, name), None, "{name}");
        }
    }

    #[test]
    fn a_user_that_is_not_there_is_refused_in_words() {
        let failure = Account::find("nobody-is-called-so").unwrap_err();
        assert_eq!((failure.reason, failure.transient), (Reason::NoSuchUser, false));
    }
}
