//! The server behind the API server of a real cluster, installed from `deploy/server`, used with kubectl.

mod real_pods_server;
