//! The responder over a queue, a cluster and an archive in memory: nothing is deleted before it was kept.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use muster_engine::responder::{Outside, Settings, run};
use muster_ports::inbox::{Answer, Delivered, Inbox, Inboxes};
use muster_ports::job_archive::{ArchiveError, JobArchive, LogPieces};
use muster_ports::kube_jobs::{FinishedJob, FinishedJobs, FinishedPod, KubeError, PodContainer};
use muster_ports::publisher::{Boxed, PublishError};
use muster_types::kube_job::KubeJobSpec;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, interval};

/// Everything outside, in the order in which things were done.
#[derive(Default)]
struct State {
    queue: VecDeque<Delivered>,
    answers: BTreeMap<u64, Answer>,
    jobs: BTreeMap<String, String>,
    done: Vec<String>,
    archive_down: bool,
    log_breaks: bool,
}

#[derive(Clone, Default)]
struct World(Arc<Mutex<State>>);

impl Inboxes for World {
    fn open(&self) -> Boxed<'_, Result<Box<dyn Inbox>, PublishError>> {
        Box::pin(async { Ok(Box::new(self.clone()) as Box<dyn Inbox>) })
    }
}

impl Inbox for World {
    fn next(&mut self) -> Boxed<'_, Result<Delivered, PublishError>> {
        Box::pin(async {
            let mut looks = interval(Duration::from_millis(1));
            loop {
                if let Some(delivered) = self.0.lock().queue.pop_front() {
                    return Ok(delivered);
                }
                looks.tick().await;
            }
        })
    }

    fn answer(&mut self, tag: u64, answer: Answer) -> Boxed<'_, Result<(), PublishError>> {
        Box::pin(async move {
            self.0.lock().answers.insert(tag, answer);
            Ok(())
        })
    }
}

struct Pieces(VecDeque<io::Result<Bytes>>);

impl LogPieces for Pieces {
    fn next(&mut self) -> Boxed<'_, Option<io::Result<Bytes>>> {
        Box::pin(async { self.0.pop_front() })
    }
}

impl FinishedJobs for World {
    fn find<'a>(
        &'a self,
        namespace: &'a str,
        name: &'a str,
        uid: &'a str,
    ) -> Boxed<'a, Result<Option<FinishedJob>, KubeError>> {
        Box::pin(async move {
            if namespace == "foreign" {
                return Err(KubeError::Forbidden("no".to_owned()));
            }
            if self.0.lock().jobs.get(name).is_none_or(|known| known != uid) {
                return Ok(None);
            }
            let run = |pod: &str, container: &str| PodContainer {
                pod: pod.to_owned(),
                container: container.to_owned(),
                previous: false,
            };
            let pods = ["p1", "p2"].map(|pod| FinishedPod {
                name: pod.to_owned(),
                containers: vec![run(pod, "main"), run(pod, "silent")],
            });
            Ok(Some(FinishedJob { document: json!({"kind": "Job"}), pods: pods.to_vec() }))
        })
    }

    fn log<'a>(
        &'a self,
        _: &'a str,
        container: &'a PodContainer,
    ) -> Boxed<'a, Result<Option<Box<dyn LogPieces>>, KubeError>> {
        Box::pin(async move {
            if container.container == "silent" {
                return Ok(None);
            }
            let mut pieces = VecDeque::from([Ok(Bytes::from("hello "))]);
            let rest = Ok(Bytes::from(container.pod.clone()));
            pieces.push_back(if self.0.lock().log_breaks { Err(io::Error::other("cut")) } else { rest });
            Ok(Some(Box::new(Pieces(pieces)) as Box<dyn LogPieces>))
        })
    }

    fn delete<'a>(&'a self, _: &'a str, name: &'a str, _: &'a str) -> Boxed<'a, Result<(), KubeError>> {
        Box::pin(async move {
            let mut state = self.0.lock();
            state.jobs.remove(name);
            state.done.push(format!("delete {name}"));
            Ok(())
        })
    }
}

impl World {
    fn archive(&self, done: String) -> Result<(), ArchiveError> {
        let mut state = self.0.lock();
        if state.archive_down {
            return Err(ArchiveError("the server is away".to_owned()));
        }
        state.done.push(done);
        Ok(())
    }
}

impl JobArchive for World {
    fn begin<'a>(&'a self, _: &'a str, job: &'a KubeJobSpec) -> Boxed<'a, Result<String, ArchiveError>> {
        Box::pin(async move {
            self.archive(format!("begin {} {}", job.job_name, job.outcome))?;
            Ok(job.job_name.clone())
        })
    }

    fn keep_log<'a>(
        &'a self,
        _: &'a str,
        name: &'a str,
        container: &'a PodContainer,
        mut log: Box<dyn LogPieces>,
    ) -> Boxed<'a, Result<(), ArchiveError>> {
        Box::pin(async move {
            let mut text = Vec::new();
            while let Some(piece) = log.next().await {
                text.extend(piece.map_err(|error| ArchiveError(error.to_string()))?);
            }
            let text = String::from_utf8_lossy(&text).into_owned();
            self.archive(format!("log {name} {} {text}", container.container))
        })
    }

    fn finish<'a>(&'a self, _: &'a str, name: &'a str) -> Boxed<'a, Result<(), ArchiveError>> {
        Box::pin(async move { self.archive(format!("finish {name}")) })
    }
}

impl World {
    fn start(settings: Settings) -> Self {
        let world = Self::default();
        let outside = Outside {
            inboxes: Arc::new(world.clone()),
            jobs: Arc::new(world.clone()),
            archive: Arc::new(world.clone()),
        };
        tokio::spawn(run(outside, settings));
        world
    }

    fn deliver(&self, tag: u64, topic: &str, body: &str) {
        let (topic, body) = (topic.to_owned(), body.as_bytes().to_vec());
        self.0.lock().queue.push_back(Delivered { tag, topic, id: tag.to_string(), body });
    }

    fn job(&self, name: &str, uid: &str) {
        self.0.lock().jobs.insert(name.to_owned(), uid.to_owned());
    }

    async fn answered(&self, tag: u64) -> Answer {
        let answer = || self.0.lock().answers.get(&tag).copied();
        self.until("an answer", || answer().is_some()).await;
        answer().expect("it is answered")
    }

    async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut looks = interval(Duration::from_millis(1));
        while !holds() {
            assert!(Instant::now() < deadline, "{what} did not come: {:?}", self.0.lock().done);
            looks.tick().await;
        }
    }

    fn done(&self) -> Vec<String> {
        self.0.lock().done.clone()
    }
}

fn message(name: &str, uid: &str, namespace: &str) -> String {
    json!({"job-id": uid, "job-name": name, "job-namespace": namespace, "retry-count": 0}).to_string()
}

const KEPT: [&str; 4] = ["begin a success", "log a main hello p1", "log a main hello p2", "finish a"];

#[tokio::test]
async fn the_logs_of_all_pods_are_kept_and_then_the_job_is_deleted() {
    let world = World::start(Settings::default());
    world.job("a", "u");
    world.deliver(1, "cds.job.success", &message("a", "u", "n"));
    assert_eq!(world.answered(1).await, Answer::Done);
    assert_eq!(world.done(), [&KEPT[..], &["delete a"]].concat());
}

#[tokio::test]
async fn a_job_that_is_to_be_kept_is_not_deleted() {
    let world = World::start(Settings { keep_jobs: true });
    world.job("a", "u");
    world.deliver(1, "cds.job.success", &message("a", "u", "n"));
    assert_eq!(world.answered(1).await, Answer::Done);
    assert_eq!(world.done(), KEPT);
}

#[tokio::test]
async fn a_job_that_is_gone_or_another_by_now_is_left_alone() {
    let world = World::start(Settings::default());
    world.job("a", "another");
    world.deliver(1, "cds.job.failed", &message("gone", "u", "n"));
    world.deliver(2, "cds.job.failed", &message("a", "u", "n"));
    world.deliver(3, "cds.job.running", &message("a", "another", "n"));
    for tag in 1..=3 {
        assert_eq!(world.answered(tag).await, Answer::Done);
    }
    assert_eq!(world.done(), [""; 0]);
}

#[tokio::test]
async fn what_cannot_be_understood_or_is_forbidden_is_set_aside() {
    let world = World::start(Settings::default());
    world.deliver(1, "cds.job.failed", "nonsense");
    world.deliver(2, "cds.job.failed", &message("a", "u", "foreign"));
    assert_eq!(world.answered(1).await, Answer::SetAside);
    assert_eq!(world.answered(2).await, Answer::SetAside);
}

#[tokio::test]
async fn while_logs_cannot_be_kept_or_read_nothing_is_deleted_and_others_go_on() {
    let world = World::start(Settings::default());
    world.job("a", "u");
    world.0.lock().archive_down = true;
    world.deliver(1, "cds.job.success", &message("a", "u", "n"));
    world.deliver(2, "cds.job.success", &message("gone", "x", "n"));
    assert_eq!(world.answered(2).await, Answer::Done);
    {
        let mut state = world.0.lock();
        (state.archive_down, state.log_breaks) = (false, true);
    }
    world.until("a try", || world.done().contains(&"begin a success".to_owned())).await;
    assert!(world.0.lock().jobs.contains_key("a"), "its log broke off");
    world.0.lock().log_breaks = false;
    assert_eq!(world.answered(1).await, Answer::Done);
    assert!(!world.0.lock().jobs.contains_key("a"));
    assert!(world.done().ends_with(&[KEPT[3].to_owned(), "delete a".to_owned()]), "{:?}", world.done());
}
