//! `bench pods`: tasks as pods of a real API server, beside the cluster's own Job controller in the same run.
//!
//! Pods are ended by a stand-in for the kubelet, so that what is measured is the control plane: how fast pods are made, seen
//! and let go, and with how many calls.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use futures_util::future::join_all;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use muster_e2e::http::Http;
use serde_json::json;

use crate::clients::load;
use crate::muster_peer::Muster;
use crate::plot::{Bar, Series, bars, number};
use crate::process::program;
use crate::report::{Report, circumstances};
use crate::stand_in::StandIn;

/// To reach: calls to the API server for one task.
const GOAL_OF_CALLS: f64 = 6.0;
const CLIENTS: usize = 16;
const IMAGE: &str = "muster.local/none:1";
/// How long one side may take.
const PATIENCE: Duration = Duration::from_mins(15);

/// Runs the benchmark.
pub fn run(quick: bool, write: bool) -> anyhow::Result<()> {
    let count = if quick { 200 } else { 2_000 };
    let kubeconfig = program("MUSTER_TEST_KUBECONFIG").context(
        "MUSTER_TEST_KUBECONFIG is not set; `cargo xtask bench pods` starts a cluster and sets it",
    )?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut report = Report::default();
    let plot = runtime.block_on(measure(&kubeconfig, count, &mut report))?;
    if write && !quick {
        let svg = bars(&format!("{count} pods, made, ended and let go"), "per s", &plot);
        report.write("pods", &circumstances("cargo xtask bench pods"), &svg)?;
    }
    Ok(())
}

async fn measure(kubeconfig: &Path, count: usize, report: &mut Report) -> anyhow::Result<Vec<Bar>> {
    let cluster = Ground::prepare(kubeconfig).await?;
    let ours = cluster.run_muster(kubeconfig, count, count).await?;
    let few = cluster.run_muster(kubeconfig, count / 4, 50).await?;
    let many = cluster.run_muster(kubeconfig, count * 5, 50).await?;
    let jobs = cluster.run_jobs(count).await?;
    cluster.stand_in.end().await?;
    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    namespaces.delete(&cluster.namespace, &DeleteParams::background()).await?;
    report.line(
        format!("muster: {count} tasks, each a pod, end to end"),
        format!("{}/s", number(ours.rate)),
        format!(
            "the cluster's Job controller: {}/s; muster is {:.1} times that",
            number(jobs.rate),
            ours.rate / jobs.rate
        ),
    );
    report.line(
        "calls to the API server for one task",
        format!("{:.2}", ours.calls),
        format!("goal {GOAL_OF_CALLS}; for one Job, with its pod: {:.2}", jobs.calls),
    );
    report.line(
        format!("calls for one task, {} queued and 50 pods allowed", count * 5),
        format!("{:.2}", many.calls),
        format!("{} queued: {:.2}", count / 4, few.calls),
    );
    report.line("muster: resident memory after that", format!("{:.1} MB", ours.megabytes), "");
    let bar = |label: &str, value, series| Bar { label: label.into(), value, series };
    Ok(vec![
        bar("muster", ours.rate, Series::Muster),
        bar("muster, 50 pods at a time", many.rate, Series::Muster),
        bar("Job controller", jobs.rate, Series::Peer),
    ])
}

/// What was measured of one side.
struct Found {
    rate: f64,
    calls: f64,
    megabytes: f64,
}

/// A namespace with a stand-in.
struct Ground {
    client: Client,
    namespace: String,
    stand_in: StandIn,
}

impl Ground {
    async fn prepare(kubeconfig: &Path) -> anyhow::Result<Self> {
        let file = Kubeconfig::read_from(kubeconfig)?;
        let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        let client = Client::try_from(config)?;
        let namespace = format!("bench-{}", std::process::id());
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let object = serde_json::from_value(json!({ "metadata": { "name": namespace } }))?;
        namespaces.create(&PostParams::default(), &object).await?;
        let certificates: PathBuf =
            kubeconfig.parent().context("a kubeconfig is in a directory")?.join("certificates");
        let stand_in = StandIn::start(client.clone(), &namespace, &certificates).await?;
        Ok(Self { client, namespace, stand_in })
    }

    async fn run_muster(&self, kubeconfig: &Path, count: usize, slots: usize) -> anyhow::Result<Found> {
        let dir = tempfile::tempdir()?;
        let slots = slots.to_string();
        let kubeconfig = kubeconfig.to_str().context("a path that is text")?;
        let flags = [
            "--roles",
            "api,engine",
            "--runtime",
            "pod",
            "--cluster-kubeconfig",
            kubeconfig,
            "--pod-namespace",
            &self.namespace,
            "--pod-slots",
            &slots,
        ];
        let muster = Muster::start_with(&dir.path().join("data"), &flags).await?;
        let before = self.calls().await?;
        let begun = Instant::now();
        let node = self.stand_in.node.clone();
        let body = move |number: usize| {
            let spec = json!({
                "container": { "image": IMAGE, "command": ["true"] }, "pod": { "nodeName": node },
                "retention": { "succeeded": "0s" },
            });
            let task = json!({
                "apiVersion": "muster.dev/v1alpha1", "kind": "Task",
                "metadata": { "name": format!("bench-{number}") }, "spec": spec,
            });
            task.to_string().into_bytes()
        };
        load(&muster.plain, CLIENTS, count, crate::muster_peer::TASKS, body).await?;
        let token = muster.plain.authorization.trim_start_matches("Bearer ").to_owned();
        let http = Http::new(&muster.plain.address, Some(&token));
        wait_for(move || {
            let left =
                format!("{}?fieldSelector=status.state%21%3DSucceeded&limit=1", crate::muster_peer::TASKS);
            let answer = http.get(&left);
            Ok(answer.json()["items"].as_array().is_some_and(Vec::is_empty))
        })
        .await?;
        let took = begun.elapsed();
        // The last pods are let go after their tasks ended.
        self.wait_empty().await?;
        let calls = self.calls().await?.since(&before);
        #[allow(clippy::cast_precision_loss, reason = "bytes as megabytes")]
        let megabytes = muster.process.rss()? as f64 / 1e6;
        muster.process.terminate()?;
        Ok(Found { rate: per(count, took.as_secs_f64()), calls: calls / per(count, 1.0), megabytes })
    }

    async fn run_jobs(&self, count: usize) -> anyhow::Result<Found> {
        let jobs: Api<Job> = Api::namespaced(self.client.clone(), &self.namespace);
        let before = self.calls().await?;
        let begun = Instant::now();
        let workers = (0..CLIENTS).map(|worker| {
            let (jobs, node) = (jobs.clone(), self.stand_in.node.clone());
            async move {
                for number in (worker..count).step_by(CLIENTS) {
                    let job: Job = serde_json::from_value(json!({
                        "metadata": { "name": format!("bench-{number}") },
                        "spec": { "template": { "spec": {
                            "restartPolicy": "Never", "nodeName": node,
                            "containers": [{ "name": "addon", "image": IMAGE, "command": ["true"] }],
                        } } },
                    }))?;
                    jobs.create(&PostParams::default(), &job).await?;
                }
                anyhow::Ok(())
            }
        });
        for done in join_all(workers).await {
            done?;
        }
        let deadline = begun + PATIENCE;
        loop {
            let all = jobs.list(&ListParams::default()).await?;
            let ended = all
                .items
                .iter()
                .filter(|job| job.status.as_ref().and_then(|status| status.succeeded).unwrap_or(0) > 0);
            if ended.count() >= count {
                break;
            }
            if Instant::now() > deadline {
                bail!("the Job controller did not end its Jobs in time");
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let took = begun.elapsed();
        let calls = self.calls().await?.since(&before);
        Ok(Found { rate: per(count, took.as_secs_f64()), calls: calls / per(count, 1.0), megabytes: 0.0 })
    }

    async fn wait_empty(&self) -> anyhow::Result<()> {
        let pods: Api<k8s_openapi::api::core::v1::Pod> =
            Api::namespaced(self.client.clone(), &self.namespace);
        let deadline = Instant::now() + PATIENCE;
        while !pods.list(&ListParams::default().limit(1)).await?.items.is_empty() {
            if Instant::now() > deadline {
                bail!("pods are left behind");
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        Ok(())
    }

    async fn calls(&self) -> anyhow::Result<Calls> {
        let request = http_get("/metrics")?;
        Ok(Calls::parse(&self.client.request_text(request).await?))
    }
}

fn http_get(path: &str) -> anyhow::Result<hyper::Request<Vec<u8>>> {
    Ok(hyper::Request::get(path).body(Vec::new())?)
}

/// Calls that the API server counted, by what they were.
struct Calls(BTreeMap<String, f64>);

impl Calls {
    /// What control planes ask for: pods, their logs, secrets and jobs. What the stand-in, this program and the collector of
    /// garbage ask for is left out.
    fn parse(metrics: &str) -> Self {
        let mut calls = BTreeMap::new();
        for line in metrics.lines().filter(|line| line.starts_with("apiserver_request_total{")) {
            let has = |label: &str| line.contains(label);
            let pods = has("resource=\"pods\"") && !has("subresource=\"status\"") && !has("verb=\"LIST\"");
            let secrets = has("resource=\"secrets\"") && has("verb=\"POST\"");
            let jobs = has("resource=\"jobs\"") && has("subresource=\"status\"");
            let Some(count) = line.rsplit(' ').next().and_then(|count| count.parse::<f64>().ok()) else {
                continue;
            };
            if pods || secrets || jobs {
                *calls.entry(line.split('}').next().unwrap_or_default().to_owned()).or_insert(0.0) += count;
            }
        }
        Self(calls)
    }

    fn since(&self, before: &Self) -> f64 {
        self.0.iter().map(|(what, count)| count - before.0.get(what).copied().unwrap_or(0.0)).sum()
    }
}

async fn wait_for(look: impl Fn() -> anyhow::Result<bool> + Send + Sync + 'static) -> anyhow::Result<()> {
    let waited = tokio::task::spawn_blocking(move || {
        let deadline = Instant::now() + PATIENCE;
        while !look()? {
            if Instant::now() > deadline {
                bail!("the tasks did not end in time");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    });
    waited.await?
}

#[allow(clippy::cast_precision_loss, reason = "counts are small")]
fn per(count: usize, seconds: f64) -> f64 {
    count as f64 / seconds
}
