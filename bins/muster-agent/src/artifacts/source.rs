//! Where a file comes from and where it goes: never out of the directory it is fetched into.

use std::fmt;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::failure::FetchFailure;

/// Where a file comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A web server. The URL may hold a user, a password and a signature: it is not for showing.
    Web(String),
    /// This machine.
    File(PathBuf),
}

impl Source {
    /// Reads a URL or a path.
    pub fn parse(text: &str) -> Result<Self, FetchFailure> {
        let is_web = text.starts_with("http://") || text.starts_with("https://");
        // What has no readable server may be a password with a slash in it.
        if is_web && !shown(text).contains(HIDDEN_SERVER) {
            return Ok(Self::Web(text.to_owned()));
        }
        let path = Path::new(text.strip_prefix("file://").unwrap_or(text));
        if path.is_absolute() {
            return Ok(Self::File(path.to_owned()));
        }
        Err(FetchFailure::bad(format!(
            "{:?} is no source of an artifact; write http://…, https://…, file:///… or an absolute path",
            shown(text)
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

impl fmt::Display for Source {
    /// Without its secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Web(url) => f.write_str(&shown(url)),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Stands for a server that cannot be told from a password.
const HIDDEN_SERVER: &str = "://…";

/// A URL as it may stand in messages and logs: without user, password, query and fragment, any of which may be a secret.
pub fn shown(url: &str) -> String {
    let (plain, is_cut) = match url.find(['?', '#']) {
        Some(at) => (&url[..at], true),
        None => (url, false),
    };
    let (scheme, rest) = plain.split_once("://").map_or(("", plain), |(scheme, rest)| (scheme, rest));
    let (server, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let server = server.rsplit_once('@').map_or(server, |(_, server)| server);
    let port = server.rsplit(']').next().and_then(|end| end.split_once(':')).map_or("", |(_, port)| port);
    let end = if is_cut { "?…" } else { "" };
    match (scheme, port.parse::<u16>().is_ok() || port.is_empty()) {
        ("", true) => format!("{server}{path}{end}"),
        (scheme, true) => format!("{scheme}://{server}{path}{end}"),
        (scheme, false) => format!("{scheme}{HIDDEN_SERVER}"),
    }
}

/// What another library says, each word of which may be a URL.
pub fn shown_words(text: &str) -> String {
    let may_be_url = |word: &str| word.contains(['@', '?', '#']) || word.contains("://");
    let words = text.split(' ').map(|word| if may_be_url(word) { shown(word) } else { word.to_owned() });
    words.collect::<Vec<_>>().join(" ")
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
    fn a_url_is_shown_without_its_secrets() {
        for (url, expected) in [
            ("https://a.example:8443/b/c.tar", "https://a.example:8443/b/c.tar"),
            ("https://me:hunter2@a.example/b", "https://a.example/b"),
            ("https://hunter2@[::1]:80/b@c", "https://[::1]:80/b@c"),
            ("https://a/b?X-Amz-Signature=hunter2", "https://a/b?…"),
            ("https://a/b#hunter2", "https://a/b?…"),
            ("https://me:p@hunter2@a/b", "https://a/b"),
            ("ftp://me:hunter2@a/b", "ftp://a/b"),
            ("me:hunter2@a/b", "a/b"),
            ("https://me:hunter2/x@a/b", "https://…"),
            ("https://me:hunter2?x@a/b", "https://…"),
            ("https://me:hunter2", "https://…"),
        ] {
            assert_eq!(shown(url), expected);
        }
        assert_eq!(shown_words("bad: https://me:hunter2@a/b?c=d (2)"), "bad: https://a/b?… (2)");
        assert_eq!(
            shown_words("location header is malformed: /a?s=hunter2"),
            "location header is malformed: /a?…"
        );
    }

    #[test]
    fn a_source_that_is_refused_is_named_without_its_secrets() {
        for text in ["ftp://me:hunter2@a/b", "https://me:hunter2/x@a/b.tar", "x?s=hunter2"] {
            let failure = Source::parse(text).unwrap_err();
            assert_eq!(failure.reason, "BadArtifact", "{text}");
            assert!(!failure.message.contains("hunter2"), "{}", failure.message);
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
