//! Debian's `kubectl` 1.20: the main verbs again. Modules are named so that every test has `old_kubectl` in its path.

mod old_kubectl_reads;
mod old_kubectl_writes;
