//! Stories of jobs of a cluster, and what is told of each (seed 004).

use muster_relay::classify::{Observed, classify};
use muster_relay::job_board::JobBoard;
use muster_relay::kube_job::{KUBE_JOBS, KeptJob, Sight};
use muster_relay::wants::Wants;
use muster_types::{EventSink, KubeJobEnd, KubeJobView, KubePodView, Message, Millis};
use serde_json::{Value, json};

fn job() -> KubeJobView {
    KubeJobView { uid: "u".into(), name: "cds-a".into(), namespace: "cds".into(), ..KubeJobView::default() }
}

fn failed(reason: &str, pods: u32) -> KubeJobView {
    KubeJobView { failed: pods, end: Some(KubeJobEnd::Failed(reason.into())), ..job() }
}

fn complete(failed: u32) -> KubeJobView {
    KubeJobView { failed, succeeded: 1, end: Some(KubeJobEnd::Complete), ..job() }
}

fn pod(uid: &str, started: i64) -> KubePodView {
    KubePodView { uid: uid.into(), job: "u".into(), started: Some(started), ..KubePodView::default() }
}

fn waiting(uid: &str) -> KubePodView {
    KubePodView { started: None, ..pod(uid, 0) }
}

fn ended_badly(uid: &str, started: i64, at: i64) -> KubePodView {
    KubePodView { failed: Some(at), ..pod(uid, started) }
}

/// What happens in a cluster.
enum News {
    Job(KubeJobView),
    Pod(KubePodView),
}
use News::{Job, Pod};

fn sink(sources: &Value) -> Wants {
    let sink = json!({
        "apiVersion": "muster.dev/v1alpha1", "kind": "EventSink",
        "metadata": {"name": "s", "namespace": "default", "uid": "sink"},
        "spec": {"amqp": {"url": "amqp://b"}, "sources": sources},
    });
    Wants::of(&serde_json::from_value::<EventSink>(sink).expect("a sink"))
}

fn messages(wants: &Wants, before: Option<&KeptJob>, after: &KeptJob) -> Vec<Message> {
    let json = |job: &KeptJob| serde_json::to_vec(job).expect("JSON");
    let (before, after) = (before.map(json), json(after));
    let observed = Observed {
        resource: KUBE_JOBS,
        namespace: "sink",
        revision: 1,
        at: Millis(0),
        before: before.as_deref(),
        after: &after,
        deleted: false,
    };
    classify(wants, &observed).expect("it can be read")
}

/// Topic and id of what is told of a story.
fn told(story: impl IntoIterator<Item = News>) -> Vec<String> {
    let wants = sink(&json!({"kubeJobs": {}}));
    let (mut board, mut before, mut lines) = (JobBoard::default(), None, Vec::new());
    for news in story {
        match news {
            Job(job) => board.observe_job(job),
            Pod(pod) => board.observe_pod(pod),
        }
        let Some(seen) = board.look("u") else { continue };
        let after = KeptJob::new(seen, Sight::Live);
        let due = messages(&wants, before.as_ref(), &after);
        lines.extend(due.iter().map(|message| format!("{} {}", message.topic, message.id)));
        before = Some(after);
    }
    lines
}

const STARTING: &str = "cds.job.starting u/starting";
const RUNNING: &str = "cds.job.running u/running";
const RETRY: &str = "cds.job.retry u/retry/1";
const SUCCESS: &str = "cds.job.success u/success";
const FAILED: &str = "cds.job.failed u/failed";

#[test]
fn an_image_that_takes_long_keeps_a_job_starting() {
    let story = [
        Job(job()),
        Pod(waiting("p")),
        Job(job()),
        Pod(pod("p", 60)),
        Pod(pod("p", 60)),
        Job(complete(0)),
        Job(complete(0)),
    ];
    assert_eq!(told(story), [STARTING, RUNNING, SUCCESS]);
}

#[test]
fn between_two_tries_a_job_has_not_failed() {
    let once = KubeJobView { failed: 1, ..job() };
    let story = [
        Job(job()),
        Pod(pod("p1", 5)),
        Pod(ended_badly("p1", 5, 6)),
        Job(once.clone()),
        Pod(waiting("p2")),
        Job(once),
        Pod(pod("p2", 16)),
        Pod(ended_badly("p2", 16, 17)),
        Job(failed("BackoffLimitExceeded - limit", 2)),
    ];
    assert_eq!(told(story), [STARTING, RUNNING, RETRY, FAILED]);
}

#[test]
fn it_does_not_matter_whether_news_of_jobs_or_of_pods_come_first() {
    let pods = || [Pod(ended_badly("p1", 5, 6)), Pod(pod("p2", 16))];
    let first = pods().into_iter().chain([Job(job()), Job(complete(1))]);
    let last = [Job(job())].into_iter().chain(pods()).chain([Job(complete(1))]);
    let expected = [STARTING, RUNNING, RETRY, SUCCESS];
    assert_eq!(told(first), expected);
    assert_eq!(told(last), expected);
}

#[test]
fn a_failure_beside_a_pod_that_runs_is_no_retry_until_another_begins() {
    let two = || [Job(job()), Pod(pod("a", 5)), Pod(pod("b", 5)), Pod(ended_badly("b", 5, 7))];
    assert_eq!(told(two()), [STARTING, RUNNING]);
    assert_eq!(told(two().into_iter().chain([Pod(pod("c", 17))])), [STARTING, RUNNING, RETRY]);
}

#[test]
fn a_container_that_is_started_again_in_its_pod_is_a_retry() {
    let again = KubePodView { restarts: 1, ..pod("p", 9) };
    assert_eq!(told([Job(job()), Pod(pod("p", 5)), Pod(again)]), [STARTING, RUNNING, RETRY]);
}

#[test]
fn one_completion_of_several_is_no_success() {
    let some = KubeJobView { succeeded: 1, ..job() };
    assert_eq!(told([Job(job()), Pod(pod("p", 5)), Job(some)]), [STARTING, RUNNING]);
}

#[test]
fn a_suspended_job_says_nothing_until_it_is_resumed() {
    let suspended = || Job(KubeJobView { suspended: true, ..job() });
    assert_eq!(told([suspended(), suspended(), Job(job())]), [STARTING]);
    let story = [Job(job()), Pod(pod("p", 5)), suspended(), Job(job()), Pod(pod("q", 50)), Job(complete(0))];
    assert_eq!(told(story), [STARTING, RUNNING, SUCCESS], "nor when it is resumed after it ran");
}

#[test]
fn a_pod_that_was_drained_is_tried_again_and_one_of_a_suspended_job_is_not() {
    let drained = KubePodView { deleted: true, ..ended_badly("p", 5, 6) };
    let story = |failed| {
        let again = KubeJobView { failed, ..job() };
        told([Job(job()), Pod(pod("p", 5)), Pod(drained.clone()), Job(again), Pod(pod("q", 16))])
    };
    assert_eq!(story(1), [STARTING, RUNNING, RETRY]);
    assert_eq!(story(0), [STARTING, RUNNING]);
}

#[test]
fn a_pod_that_ends_because_its_job_is_suspended_has_not_failed_though_another_is_counted() {
    let stopped = |uid, at| KubePodView { deleted: true, ..ended_badly(uid, 5, at) };
    let suspended = KubeJobView { suspended: true, ..job() };
    let story = [
        Job(job()),
        Pod(pod("p", 5)),
        Job(suspended),
        Pod(stopped("p", 6)),
        Job(job()),
        Pod(pod("q", 16)),
        Pod(KubePodView { started: Some(16), ..stopped("q", 20) }),
        Job(failed("DeadlineExceeded", 1)),
    ];
    assert_eq!(told(story), [STARTING, RUNNING, FAILED]);
}

#[test]
fn a_job_whose_image_is_never_there_fails_without_having_run() {
    assert_eq!(told([Job(job()), Pod(waiting("p")), Job(failed("DeadlineExceeded", 0))]), [STARTING, FAILED]);
}

#[test]
fn a_board_asks_for_the_pods_of_a_job_that_ended_before_they_were_seen() {
    let mut board = JobBoard::default();
    board.observe_job(job());
    board.look("u");
    assert!(!board.needs_pods("u"), "it has not ended");
    board.observe_job(failed("BackoffLimitExceeded", 1));
    assert!(board.needs_pods("u"));
    board.observe_pod(ended_badly("p", 5, 6));
    let seen = board.look("u").unwrap();
    assert!(seen.has_run && !board.needs_pods("u"), "once is enough");
}

#[test]
fn after_a_gap_exactly_what_was_missed_is_told_unless_only_what_comes_is_wanted() {
    let mut board = JobBoard::default();
    board.observe_job(job());
    board.observe_pod(pod("p", 5));
    let before = KeptJob::new(board.look("u").unwrap(), Sight::Live);
    board.observe_job(failed("DeadlineExceeded - late", 1));
    let after = KeptJob::new(board.look("u").unwrap(), Sight::AfterGap);
    let ids = |wants: &Wants| -> Vec<String> {
        messages(wants, Some(&before), &after).iter().map(|message| message.id.clone()).collect()
    };
    assert_eq!(ids(&sink(&json!({"kubeJobs": {}}))), ["u/failed"]);
    assert_eq!(ids(&sink(&json!({"kubeJobs": {"onExpired": "latest"}}))), [""; 0]);
    assert_eq!(ids(&sink(&json!({"work": {}}))), [""; 0], "who did not ask for jobs hears nothing");
    let first = KeptJob::new(after.seen.clone(), Sight::Before);
    assert!(
        messages(&sink(&json!({"kubeJobs": {}})), None, &first).is_empty(),
        "what was before is not told"
    );
}

#[test]
fn the_reason_and_the_number_of_tries_are_in_the_message() {
    let mut board = JobBoard::default();
    board.observe_job(failed("BackoffLimitExceeded - limit", 7));
    let after = KeptJob::new(board.look("u").unwrap(), Sight::Live);
    let due = messages(&sink(&json!({"kubeJobs": {}})), None, &after);
    let body: Value = serde_json::from_slice(&due.last().unwrap().body).unwrap();
    assert_eq!(
        body,
        json!({
            "job-id": "u", "job-name": "cds-a", "job-namespace": "cds", "retry-count": 7,
            "failure-reason": "BackoffLimitExceeded - limit",
        })
    );
}

#[test]
fn as_a_cloud_event_a_job_is_named_as_the_cluster_names_it() {
    let mut wants = sink(&json!({"kubeJobs": {}}));
    wants.profile = muster_types::event_sink::Profile::CloudEvents;
    let mut board = JobBoard::default();
    board.observe_job(complete(0));
    let after = KeptJob::new(board.look("u").unwrap(), Sight::Live);
    let due = messages(&wants, None, &after);
    let event: Value = serde_json::from_slice(&due.last().unwrap().body).unwrap();
    assert_eq!(event["type"], "dev.muster.kubejob.success");
    assert_eq!(event["source"], "/apis/batch/v1/namespaces/cds/jobs/cds-a");
    assert_eq!((&event["data"]["apiVersion"], &event["data"]["kind"]), (&json!("batch/v1"), &json!("Job")));
}
