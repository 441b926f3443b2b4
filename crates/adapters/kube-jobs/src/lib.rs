//! The KubeJobs of a Kubernetes cluster, for the relay and the responder.
//!
//! Is: lists and watches of jobs and their pods that can be taken up anywhere (the relay reads, and no more), and logs and
//! deletion of jobs that have ended (the responder). Is not: a place that decides what is told, or when a job may go.
//!
//! Start here: [`ClusterJobs`]. What is read out of a job and a pod is in `views`, pure.

#![warn(missing_docs)]

mod cluster_jobs;
mod errors;
mod finished;
mod follow;
mod objects;
mod views;

pub use cluster_jobs::ClusterJobs;
