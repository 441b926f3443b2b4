//! Where a file comes from and where it goes: never out of the directory it is fetched into.

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::failure::FetchFailure;

/// Where a file comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A web server.
    Web(String),
    /// This machine.
    File(PathBuf),
}

impl Source {
    /// Reads a URL or a path.
    pub fn parse(text: &str) -> Result<Self, FetchFailure> {
        if text.starts_with("http://") || text.starts_with("https://") {
            return Ok(Self::Web(text.to_owned()));
        }
        let path = Path::new(text.strip_prefix("file://").unwrap_or(text));
        if path.is_absolute() {
            return Ok(Self::File(path.to_owned()));
        }
        Err(FetchFailure::bad(format!(
            "{text:?} is no source of an artifact; write http://…, https://…, file:///… or an absolute path"
        )))
    }

    /// The last part of it, without what is asked of it.
    pub fn file_name(&self) -> &str {
        match self {
            Self::Web(url) => {
                let path = url.split(['?', '#']).next().unwrap_or_default();
                path.splitn(4, '/').nth(3).and_then(|path| path.rsplit('/').next()).unwrap_or_default()
            }
            Self::File(path) => path.file_name().and_then(|name| name.to_str()).unwrap_or_default(),
        }
    }
}

/// Where something goes below a directory; what lies between is made. Links in it are not followed out of the directory.
pub fn place_below(dir: &Path, name: &str) -> Result<PathBuf, FetchFailure> {
    let relative = Path::new(name);
    let inside = relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !inside {
        return Err(FetchFailure::bad(format!("the destination {name:?} is not below the work directory")));
    }
    let place = dir.join(relative);
    let is_dir = place == dir || relative.components().next().is_none();
    let home = if is_dir { dir } else { place.parent().unwrap_or(dir) };
    fs::create_dir_all(home).map_err(|error| FetchFailure::of_disk(home, &error))?;
    let real = |path: &Path| path.canonicalize().map_err(|error| FetchFailure::of_disk(path, &error));
    if !real(home)?.starts_with(real(dir)?) {
        return Err(FetchFailure::bad(format!("the destination {name:?} leads out of the work directory")));
    }
    if place.symlink_metadata().is_ok_and(|meta| meta.is_symlink()) {
        return Err(FetchFailure::bad(format!("the destination {name:?} is a link")));
    }
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_urls_and_absolute_paths() {
        let name = |text: &str| Source::parse(text).map(|source| source.file_name().to_owned());
        assert_eq!(name("http://a/b/c.tar?x=/y").as_deref(), Ok("c.tar"));
        assert_eq!(name("https://a:1/c").as_deref(), Ok("c"));
        assert_eq!(name("http://a").as_deref(), Ok(""));
        assert_eq!(name("file:///etc/hosts").as_deref(), Ok("hosts"));
        assert_eq!(name("/etc/hosts").as_deref(), Ok("hosts"));
        for text in ["", "hosts", "ftp://a/b", "../x"] {
            assert_eq!(Source::parse(text).unwrap_err().reason, "BadArtifact", "{text}");
        }
    }

    #[test]
    fn nothing_is_put_outside_of_the_work_directory() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("work");
        fs::create_dir(&dir).unwrap();
        assert_eq!(place_below(&dir, "a/b").unwrap(), dir.join("a/b"));
        assert!(dir.join("a").is_dir());
        std::os::unix::fs::symlink(temp.path(), dir.join("out")).unwrap();
        for name in ["../x", "/x", "a/../../x", "out/x", "out"] {
            assert_eq!(place_below(&dir, name).unwrap_err().reason, "BadArtifact", "{name}");
        }
    }
}
