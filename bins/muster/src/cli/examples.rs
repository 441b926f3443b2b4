//! What stands below the help of a verb: examples, and what is worth knowing.

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
  muster token list
  muster token revoke ci";

/// Of `completion`.
pub const COMPLETION: &str = "\
Examples:
  muster completion bash > ~/.local/share/bash-completion/completions/muster
  muster completion zsh > ~/.zfunc/_muster
  muster completion fish > ~/.config/fish/completions/muster.fish";
