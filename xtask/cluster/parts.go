//go:build parts

// Package parts names the programs of the test cluster, so that `go mod tidy` keeps what they need in go.mod.
// It is never compiled: `cargo xtask cluster` builds the programs themselves.
package parts

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
