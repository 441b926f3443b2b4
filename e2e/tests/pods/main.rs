//! Tasks as pods of a real Kubernetes: real containers, real quotas, real ends.

mod real_pods;
