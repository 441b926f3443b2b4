// Pause is the first process of every pod of the test cluster: it holds the pod's namespaces and reaps orphans.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		reap()
	}
}

// reap collects every child that has ended; orphans of the pod become children of this process.
func reap() {
	for {
		if ended, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || ended <= 0 {
			return
		}
	}
}
