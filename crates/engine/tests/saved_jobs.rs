//! What is kept of jobs of a cluster goes when its object does, also if a crash came between.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use muster_engine::saved_jobs::run;
use muster_ports::blobs::{BlobKey, Blobs, MemoryBlobs};
use muster_ports::clock::SystemClock;
use muster_ports::store::{Batch, Draft, History, Key, MemoryLog, Precondition, ResourceName, Store, Write};
use muster_types::KubeJob;
use tokio::time::{Instant, interval};

fn keep(blobs: &dyn Blobs, uid: &str) {
    let key = BlobKey::of_kube_job(uid).and_then(|key| key.join("pod/main.log")).expect("a key");
    let mut writer = blobs.write(&key).expect("a writer");
    writer.write_all(b"hello").expect("it is written");
    writer.finish().expect("it is kept");
}

async fn put(store: &Store, uid: &str) {
    let mut job = KubeJob::default();
    uid.clone_into(&mut job.metadata.uid);
    uid.clone_into(&mut job.metadata.name);
    let draft = Draft::of_object(serde_json::to_vec(&job).expect("JSON")).expect("a place");
    let write = Write::Put { key: key(uid), expect: Precondition::Absent, draft };
    store.commit(Batch::of(write)).await.expect("it is committed");
}

fn key(name: &str) -> Key {
    Key::new(&ResourceName::new("kubejobs.muster.dev"), "default", name)
}

#[tokio::test]
async fn logs_go_with_their_job_and_those_without_one_at_the_start() {
    let store = Store::open(MemoryLog::default(), History::default(), SystemClock).expect("a store");
    let blobs: Arc<dyn Blobs> = Arc::new(MemoryBlobs::default());
    for uid in ["left-behind", "stays", "goes"] {
        keep(&*blobs, uid);
    }
    put(&store, "stays").await;
    put(&store, "goes").await;
    tokio::spawn(run(store.clone(), blobs.clone()));
    let kept = || -> Vec<String> {
        let files = blobs.list(&BlobKey::of_kube_jobs()).expect("files");
        files.into_iter().map(|file| file.path).collect()
    };
    let until = async |expected: &[&str]| {
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut looks = interval(Duration::from_millis(1));
        while kept() != expected {
            assert!(Instant::now() < deadline, "{:?}", kept());
            looks.tick().await;
        }
    };
    until(&["goes/pod/main.log", "stays/pod/main.log"]).await;
    let gone = Write::Delete { key: key("goes"), expect: Precondition::Exists };
    store.commit(Batch::of(gone)).await.expect("it is deleted");
    until(&["stays/pod/main.log"]).await;
}
