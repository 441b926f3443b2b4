//! What stands below the help of a verb: examples, and what is worth knowing.

/// Of `run`.
pub const RUN: &str = "\
Examples:
  muster run -- make test                     show the output, exit with the code of make
  muster run --timeout 10m -- ./slow.sh       exit code 124 if it takes longer
  muster run --retries 2 -- curl -f URL       try again if it fails
  muster run --server https://host:7400 -- hostname

With --server or --kubeconfig the task is run by that server. Otherwise it is run on this machine: by the server that
uses the data directory, if there is one, else by a server that lives as long as the command does. Then the
command runs in the current directory (`sh -c 'cd \"$1\" && shift && exec \"$@\"'` is put before it; --in-work-dir turns
that off). A server of this command's own also gives it the whole environment of this shell, which is not stored
(--clean-env turns that off); another server gives its own environment, and --env adds to it.

The command has no standard input. Standard output and standard error are one log.

The exit code is that of the command, 128 and the number of the signal that ended it, 124 after a timeout, and 1 if
it could not be run. Ctrl-C cancels the task, a second one leaves at once.";

/// Of `submit`.
pub const SUBMIT: &str = "\
Examples:
  muster submit -- ./build.sh --fast                       one task; prints its name
  muster submit --follow -- ./build.sh                     and shows its output
  muster submit --kind analyzer --subject Application/inventory --input '{\"depth\": 2}'
  muster submit --addon java-analyzer --input @data.json --wait
  muster submit --suspend -- ./later.sh; muster submit --task later-sh-x7k2p
  muster submit --array 1-1000 --wait -- sh -c 'echo number $MUSTER_INDEX'
  ls *.csv | muster submit --each-line - --wait -- sh -c 'gzip \"$MUSTER_LINE\"'

The tasks of an array have the label muster.dev/array, whose value is printed, and their number in muster.dev/index:
  muster get tasks -l muster.dev/array=ID --field-selector status.state=Failed
  muster cancel -l muster.dev/array=ID";

/// Of `logs`.
pub const LOGS: &str = "\
Examples:
  muster logs build-x7k2p                 what it wrote so far
  muster logs -f build-x7k2p              and what it will write, until it has ended
  muster logs build-x7k2p --tail 20 -c java-rules
  muster logs build-x7k2p --attempt 1     what the first attempt wrote
  muster logs kubejob/cds-a               what is kept of a job of a cluster, all pods one after the other";

/// Of `up`.
pub const UP: &str = "\
Examples:
  muster up                                    everything, for this machine
  muster serve --store-file store.url          in the PostgreSQL of the URL in the file, which has a password
  muster serve --roles api,relay               tells event sinks about changes, runs no tasks
  muster serve --roles relay                   in a cluster: tells RabbitMQ about its jobs, by RABBITMQ_HOST and others
  muster serve --roles responder               keeps the logs of jobs that ended, on the server of MUSTER_SERVER

Without the role engine, the relay makes a sink of RABBITMQ_HOST, _PORT, _VHOST, _USER, _PASSWD, MY_EXCHANGE and REDIS_HOST,
_PORT, _DB_NUM, _PASS. Outside of a cluster KUBE_CONFIG and NAMESPACE say whose jobs. KEEP_JOBS=yes deletes none.";

/// Of `wait`.
pub const WAIT: &str = "\
Examples:
  muster wait build-x7k2p                            until it has ended
  muster wait a b --for state=Running --timeout 30s
  muster wait -l muster.dev/array=k7x2m              all tasks of an array
  muster wait --all
  muster wait job/nightly --timeout 1h

The exit code is 1 if a task failed, was canceled or deleted, can no longer get there, or the time was over.";

/// Of `watch`.
pub const WATCH: &str = "\
Examples:
  muster watch                            all tasks of the namespace
  muster watch build-x7k2p                one, until it has ended
  muster watch -l muster.dev/array=k7x2m
  muster watch job/nightly                its groups as a tree, until it has ended

On a terminal it is a table that is drawn anew; otherwise each change is a line.";

/// Of `top`.
pub const TOP: &str = "\
Examples:
  muster top                              the tasks of the namespace
  muster top -A                           of all namespaces
  muster top -l app=shop                  only these

Keys: arrows or j and k move, Tab goes to the next panel, Enter opens a task, l follows its log, c cancels it after a
question, r makes a new task like it, / filters by name, label or state (build, app=shop, Failed), ? shows all keys,
Esc goes back, q quits. No mouse is needed. NO_COLOR turns colours off.

It needs a terminal; `muster watch` prints each change as a line.";

/// Of `cancel`.
pub const CANCEL: &str = "\
Examples:
  muster cancel build-x7k2p
  muster cancel -l muster.dev/array=k7x2m --wait
  muster cancel --all
  muster cancel job/nightly

Tasks that have ended stay as they are.";

/// Of `retry`.
pub const RETRY: &str = "\
Examples:
  muster retry build-x7k2p                 a new task like it; prints its name
  muster retry -l muster.dev/array=k7x2m   those of an array that failed or were canceled
  muster retry job/nightly                 a new job with what did not succeed; prints its name

The new task or job names the old one in the annotation muster.dev/retry-of. The new job has the groups that did not
succeed and those that depend on them. Of a batch or of replicas only the tasks that did not succeed run again, with
the MUSTER_INDEX they had; a pipeline goes on with the first that did not succeed.";

/// Of `explain`.
pub const EXPLAIN: &str = "\
Examples:
  muster explain build-x7k2p
  muster explain build-x7k2p -o json";

/// Of `report`.
pub const REPORT: &str = "\
Examples, in a script that is an addon:
  muster report --activity 'reading the sources' --total 40
  muster report --increment
  muster report --error 'no such file: a.java' --severity Warning
  muster report --result '{\"findings\": 7}'
  muster report attach findings.csv
  muster report bucket put rules/a.yaml a.yaml
  muster report bucket get rules/a.yaml -o a.yaml

The server puts what is needed into the environment of every attempt: MUSTER_URL, MUSTER_TOKEN, MUSTER_NAMESPACE and
MUSTER_TASK. If the URL begins with https, MUSTER_CA_FILE names a file with the authority of its certificate; without
it the one in the data directory is used. MUSTER_TASK_DATA_FILE names a file with the data of the task, if it has some.";

/// Of `apply`.
pub const APPLY: &str = "\
Examples:
  muster apply -f tasks.yaml            every object of a file
  muster apply -f manifests/ -R         all files (.yaml, .yml, .json) of a directory and those below
  cat tasks.yaml | muster apply -f -    from standard input
  muster apply -f tasks.yaml --dry-run  only say what would happen

Objects with generateName and no name are created anew each time. Fields that another manager owns are not
touched; the error names them, and --force-conflicts takes them over.";

/// Of `get`.
pub const GET: &str = "\
Examples:
  muster get tasks                      the tasks of the namespace
  muster get task/a addon/b             single objects
  muster get tasks -A -o wide           of all namespaces, with more columns
  muster get tasks,addons               several resources; `muster get muster` is all of them
  muster get tasks -l app=shop -w       selected by label, and every change of them
  muster get tasks --field-selector status.state=Failed
  muster get task a -o yaml             the whole object

A resource can be named by plural, singular, short name or kind, with its group if need be (tasks.muster.dev).";

/// Of `describe`.
pub const DESCRIBE: &str = "\
Examples:
  muster describe task a
  muster describe task/a addon/b
  muster describe tasks -l app=shop";

/// Of `delete`.
pub const DELETE: &str = "\
Examples:
  muster delete task a b                  objects by name
  muster delete -f tasks.yaml             the objects of a file
  muster delete tasks -l app=shop         selected by label
  muster delete tasks --all               all of the namespace
  muster delete task a --cascade orphan   keep what it owns";

/// Of `kubeconfig`.
pub const KUBECONFIG: &str = "\
Examples:
  export KUBECONFIG=$(muster kubeconfig --path)   use kubectl on the server
  muster kubeconfig > admin.yaml                  a copy; it holds the admin token, so keep it private";

/// Of `token`.
pub const TOKEN: &str = "\
Examples:
  muster token create ci --role editor --ttl 720h
  muster token create ann --role viewer --as-kubeconfig > ann.yaml
  muster token create dns --role reporter --adapter dns
  muster token list
  muster token revoke ci";

/// Of `completion`.
pub const COMPLETION: &str = "\
Examples:
  muster completion bash > ~/.local/share/bash-completion/completions/muster
  muster completion zsh > ~/.zfunc/_muster
  muster completion fish > ~/.config/fish/completions/muster.fish";

/// Of `adapter`.
pub const ADAPTER: &str = "\
Examples:
  muster adapter dry-run -f dns.yaml --resource cluster/blue      params, preconditions, and the task it would make
  muster adapter dry-run -f adapters.yaml --name dns --resource cluster/blue";

/// Of `schedule`.
pub const SINK: &str = "\
Examples:
  muster sink list -A                          the sinks of all namespaces, with backlog and lag
  muster sink describe rabbit                  how far it is, and what stands in the way
  muster sink test rabbit                      send one test message and wait for its confirmation
  muster sink pause rabbit                     send nothing for now
  muster sink resume rabbit                    go on
  muster sink replay rabbit --from 1200        send again what was committed behind revision 1200
  muster sink replay rabbit --from 2026-11-15T12:00:00Z

A message that is sent again has the same id. Sinks are made with `muster apply`; see docs/reference/messages.md.";

pub const ROBOT: &str = "\
Examples:
  muster robot token create                    a token that robots join with, shown once
  muster robot list -l zone=a                  robots with a label, and how they stand
  muster robot describe r1                     all about one of them
  muster robot approve r1                      let it in, where robots are not let in by themselves
  muster robot drain r1                        give it no new tasks (--undo gives it tasks again)

On the robot: muster-agent --broker URL --token-file FILE --robot-id r1 --label zone=a. See docs/guides/robots.md.";

pub const SCHEDULE: &str = "\
Examples:
  muster schedule preview nightly                        the next 20 times, in its zone and in UTC (-c COUNT)
  muster schedule preview --spec 'R5/T01:00:00/PT1H'     how a timeSpec is understood; no server is asked
  muster schedule run nightly                            make a run now, beside its times
  muster schedule backfill nightly --from 2026-11-01T00:00:00Z --to 2026-11-08T00:00:00Z

A backfill makes runs of times that have passed, behind the regular runs and as the concurrency of the schedule allows. A run
made for a time has a name that follows from it, so a backfill makes no run twice while the first is kept.";

/// Of `store`.
pub const STORE: &str = "\
Examples:
  muster store copy --from sqlite:$HOME/.local/share/muster/muster.db --to postgres://muster@db.example/muster
  muster store copy --from sqlite:muster.db --to postgres://muster@db.example/muster --files-from files --files-to s3://muster
  muster store copy --from-file store.url --to sqlite:muster.db      the URL, with its password, is in a file

Stop the servers of both first. A copy that was cut goes on where it was when the same command is given again. Files of tasks
are not in a store: copy the directory `files` too.";

/// Of `backup` and `restore`.
pub const BACKUP: &str = "\
Examples:
  muster backup monday.tar                       objects of one moment, kept logs and attachments
  muster --data elsewhere restore monday.tar     a data directory that `muster --data elsewhere up` uses

A backup holds what tokens are known by: keep it private. It is checked when it was made, and again before it is restored.
Attempts that ran are lost executors to the restored server, as after a crash.";
