//! The runtime that runs attempts as processes of this machine.
//!
//! Is: the server's side of a shepherd (see `muster-exec`): it starts one, tells it what to do, passes on what it sees, and
//! says `Lost` of every attempt it took with it when it died, then starts another. Is not: the parent of any attempt. The
//! server may be killed at any instant, and everything it asked for ends with it; unless it was asked for with
//! [`Settings::that_go_on`], as agents of robots do: then whoever comes next takes the shepherd over.
//!
//! It also keeps secrets among the arguments of this program out of the list of processes: [`Arguments`].
//!
//! Start here: [`ProcessRuntime`].

#![warn(missing_docs)]

mod claim;
mod keep_logs;
mod link;
mod live_logs;
mod port;
mod runtime;
mod secret_arguments;
mod shepherd_process;
mod supervise;

pub use live_logs::LiveLogs;
pub use muster_exec::{SHEPHERD_VARIABLE, machine_time, shepherd_main};
pub use runtime::{ProcessRuntime, Settings};
pub use secret_arguments::{Arguments, SecretFlag, read_secret};
