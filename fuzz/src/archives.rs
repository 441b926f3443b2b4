//! Archives: those that robots fetch, and those that are put into the bucket of a task.

use std::fs;
use std::path::Path;

use hyper::header::ACCEPT;
use serde_json::Value;
use tempfile::TempDir;

use crate::Target;
use crate::agent_archives::{Archive, Interrupt};
use crate::api_server::{Ask, judge, with_server};

const INSIDE: &str =
    "nothing is written, changed or removed outside of the directory, and a link is not written through";

pub const TAR: Target =
    Target { name: "archive_tar", property: INSIDE, run: |input| unpack(Archive::Tar, input) };
pub const TAR_GZ: Target =
    Target { name: "archive_tar_gz", property: INSIDE, run: |input| unpack(Archive::TarGz, input) };
pub const ZIP: Target =
    Target { name: "archive_zip", property: INSIDE, run: |input| unpack(Archive::Zip, input) };
pub const BUCKET: Target = Target {
    name: "bucket",
    property: "an archive is refused and nothing of it is kept, or what is kept is given out as an archive that keeps the same",
    run: bucket,
};

const BUCKET_PATH: &str = "/apis/muster.dev/v1alpha1/namespaces/default/tasks/a/bucket";
const TAR_MEDIA: &str = "application/x-tar";
const MARK: &str = "was here before";

fn unpack(kind: Archive, input: &[u8]) {
    let place = tempfile::tempdir().unwrap();
    let (archive, outside) = (place.path().join("archive"), place.path().join("outside"));
    fs::write(&archive, input).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), MARK).unwrap();
    let before = fs::metadata(outside.join("file")).unwrap().permissions();
    drop(kind.unpack(&archive, &place.path().join("dir"), &Interrupt::default()));
    assert_eq!(listing(place.path()), ["archive", "dir", "outside"], "beside the directory");
    assert_eq!(listing(&outside), ["file"], "outside of the directory");
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), MARK);
    assert_eq!(fs::metadata(outside.join("file")).unwrap().permissions(), before);
    assert_eq!(fs::read(&archive).unwrap(), input, "the archive itself");
    remove(place);
}

fn listing(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    names
}

/// Directories of an archive may be closed even to their owner.
fn remove(place: TempDir) {
    let path = place.path().to_owned();
    if place.close().is_err() {
        open_all(&path);
        drop(fs::remove_dir_all(path));
    }
}

fn open_all(directory: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    drop(fs::set_permissions(directory, fs::Permissions::from_mode(0o700)));
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_all(&entry.path());
        }
    }
}

fn bucket(input: &[u8]) {
    with_server(|server| {
        let put = server.send(&Ask::new("PUT", &format!("{BUCKET_PATH}/one/")).body(TAR_MEDIA, input));
        judge(&put);
        let kept = server.send(&Ask::new("GET", &format!("{BUCKET_PATH}/")));
        judge(&kept);
        if !put.is_good() {
            assert!(
                entries(&kept.json()).is_empty(),
                "of an archive that is refused something is kept: {kept:?}"
            );
            return;
        }
        let mut told = entries(&put.json());
        let one = entries(&server.send(&Ask::new("GET", &format!("{BUCKET_PATH}/"))).json());
        // A name that is there twice is kept once, as the later one.
        told.reverse();
        told.sort_by(|one, other| one.0.cmp(&other.0));
        told.dedup_by(|one, other| one.0 == other.0);
        assert_eq!(one, told.iter().map(|(path, size)| (format!("one/{path}"), *size)).collect::<Vec<_>>());
        let given = server.send(&Ask::new("GET", &format!("{BUCKET_PATH}/one/")).header(&ACCEPT, TAR_MEDIA));
        if !one.is_empty() {
            assert!(given.is_good(), "{given:?}");
            let again = Ask::new("PUT", &format!("{BUCKET_PATH}/two/")).body(TAR_MEDIA, given.bytes.to_vec());
            let mut twice = entries(&server.send(&again).json());
            twice.sort_unstable();
            assert_eq!(twice, told, "what was given out keeps something else");
        }
        server.send(&Ask::new("DELETE", &format!("{BUCKET_PATH}/one/")));
        server.send(&Ask::new("DELETE", &format!("{BUCKET_PATH}/two/")));
    });
}

fn entries(answer: &Value) -> Vec<(String, u64)> {
    let items = answer["items"].as_array().into_iter().flatten();
    let entry = |item: &Value| {
        let path = item["path"].as_str().unwrap_or_default().to_owned();
        (path, item["size"].as_u64().unwrap_or(0))
    };
    let mut entries: Vec<_> = items.map(entry).collect();
    entries.sort_by(|one, other| one.0.cmp(&other.0));
    entries
}
