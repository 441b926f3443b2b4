//! Who may do what.
//!
//! One function decides, for every path and verb, whether it is a read, a write, a watch or a list: nothing is
//! shown by one that another would refuse.

use std::fmt;
use std::str::FromStr;

use muster_ports::delegate::Identity;
use muster_types::addon::Grant;
use muster_types::names::RESOURCES_GROUP;
use muster_types::task::Subject;
use serde::{Deserialize, Serialize};

use crate::kinds::has_infrastructure;
use crate::refusal::Refusal;

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything, tokens included.
    Admin,
    /// Read objects, and change those that are no infrastructure.
    Editor,
    /// Read objects.
    Viewer,
    /// Lets robots join the fleet; opens nothing here.
    Robot,
    /// One adapter: read managed resources, write what it has to say of them.
    Reporter,
    /// One attempt at one task: read it and its subject, write its report and its files. Nobody makes such a token by
    /// hand, so it is not read from anywhere.
    #[serde(skip_deserializing)]
    Addon,
    /// What the roles of the cluster say, which are not known here.
    #[serde(skip_deserializing)]
    Cluster,
}

impl Role {
    /// The roles that tokens can be made for, strongest first.
    pub const ALL: [Self; 5] = [Self::Admin, Self::Editor, Self::Viewer, Self::Robot, Self::Reporter];
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Admin => "admin",
            Self::Editor => "editor",
            Self::Viewer => "viewer",
            Self::Robot => "robot",
            Self::Reporter => "reporter",
            Self::Addon => "addon",
            Self::Cluster => "cluster",
        })
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|role| role.to_string() == text)
            .ok_or_else(|| format!("\"{text}\" is not a role; use admin, editor, viewer, robot or reporter"))
    }
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name of the token, or of the user of the cluster.
    pub name: String,
    /// What it may do.
    pub role: Role,
    /// What it speaks for, if its role is for one thing alone.
    pub bound: Option<Bound>,
}

/// What a token was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bound {
    /// One attempt at a task.
    Attempt(BoundAttempt),
    /// The adapter of this name.
    Adapter(String),
    /// Nothing: it is a user of the cluster.
    Cluster(Identity),
}

/// The attempt that a token was made for, which holds now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundAttempt {
    /// Namespace of the task.
    pub namespace: String,
    /// Name of the task.
    pub task: String,
    /// Number of the attempt.
    pub attempt: u32,
    /// What the task is about.
    pub subject: Option<Subject>,
    /// What its addon was granted.
    pub grants: Vec<Grant>,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ask<'a> {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: &'a str,
    /// API group.
    pub group: &'a str,
    /// Plural, with `/subresource` where there is one.
    pub resource: &'a str,
    /// Namespace; empty for all of them, and for what has none.
    pub namespace: &'a str,
    /// Name; empty for a collection.
    pub name: &'a str,
}

/// The resource name that stands for access tokens.
pub const TOKENS: &str = "tokens";

/// The group of access tokens.
pub const TOKENS_GROUP: &str = "auth.muster.dev";
/// What the attempt's own token may do everything with.
pub const ADDON_PARTS: [&str; 3] = ["tasks/report", "tasks/attachments", "tasks/bucket"];
/// The part of managed resources that a reporter writes.
pub const REPORTER_PART: &str = "/statuses";

/// Decides, for users whose roles are known here.
pub fn allows(user: &User, ask: &Ask<'_>) -> bool {
    let reads = matches!(ask.verb, "get" | "list" | "watch");
    match (user.role, &user.bound) {
        (Role::Admin, _) => true,
        (Role::Editor, _) => ask.group != TOKENS_GROUP && (reads || !has_infrastructure(ask)),
        (Role::Viewer, _) => reads && ask.group != TOKENS_GROUP,
        (Role::Addon, Some(Bound::Attempt(bound))) => bound.allows(ask),
        (Role::Reporter, Some(Bound::Adapter(_))) => reporter_may(ask, reads),
        (Role::Addon | Role::Reporter | Role::Cluster | Role::Robot, _) => false,
    }
}

/// Managed resources are read, and their statuses written; for whom is seen when a report is read.
fn reporter_may(ask: &Ask<'_>, reads: bool) -> bool {
    let is_status = ask.resource.ends_with(REPORTER_PART) && !ask.resource.starts_with('/');
    let is_object = !ask.resource.contains('/');
    ask.group == RESOURCES_GROUP
        && ((reads && (is_object || is_status)) || (is_status && ask.verb == "update"))
}

impl BoundAttempt {
    /// True if it may write the tags of its subject.
    pub fn writes_tags(&self) -> bool {
        self.grants.contains(&Grant::SubjectTags)
    }

    fn allows(&self, ask: &Ask<'_>) -> bool {
        let subject = self.subject.as_ref().filter(|subject| subject.kind == "Application");
        ask.group == "muster.dev"
            && ask.namespace == self.namespace
            && match (ask.resource, ask.verb) {
                ("tasks", "get") => ask.name == self.task,
                ("applications", "get") => subject.is_some_and(|subject| subject.name == ask.name),
                // Of which only the tags: that is seen when the change is read.
                ("applications", "patch" | "update") => {
                    self.writes_tags() && subject.is_some_and(|subject| subject.name == ask.name)
                }
                (part, "get" | "create" | "update" | "delete") => {
                    ADDON_PARTS.contains(&part) && ask.name == self.task
                }
                _ => false,
            }
    }
}

/// Decides, with the words of a refusal.
pub fn authorize(user: &User, ask: &Ask<'_>) -> Result<(), Refusal> {
    if allows(user, ask) {
        return Ok(());
    }
    let Ask { verb, group, resource, .. } = ask;
    let needed;
    let advice = match user.role {
        Role::Addon => {
            "the token of an attempt opens its own task, its subject, what it reports and what spec.grants of its addon names"
        }
        Role::Reporter => "the token of a reporter opens managed resources and what its adapter says of them",
        Role::Robot => "the token is for robots to join with; it opens nothing here",
        Role::Cluster => "the roles of the cluster decide",
        Role::Admin | Role::Editor | Role::Viewer => {
            let suffices = |role: &Role| allows(&User { role: *role, bound: None, ..user.clone() }, ask);
            let role = [Role::Editor, Role::Admin].into_iter().find(suffices).unwrap_or(Role::Admin);
            needed =
                format!("it takes the role {role}; ask an admin to do it, or for a token with that role");
            &needed
        }
    };
    Err(Refusal::forbidden(format!(
        "{resource}.{group} is forbidden: user \"{}\" with role {} cannot {verb} resource \"{resource}\"; {advice}",
        user.name, user.role
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(role: Role, verb: &str, group: &str) -> bool {
        let user = User { name: "someone".to_owned(), role, bound: None };
        allows(&user, &Ask { verb, group, resource: "tasks", ..Ask::default() })
    }

    fn addon_may(verb: &str, resource: &str, namespace: &str, name: &str) -> bool {
        let subject = Subject { kind: "Application".to_owned(), name: "inventory".to_owned() };
        let bound = BoundAttempt {
            namespace: "ns".to_owned(),
            task: "own".to_owned(),
            attempt: 1,
            subject: Some(subject),
            grants: Vec::new(),
        };
        let user = User { name: "addon".to_owned(), role: Role::Addon, bound: Some(Bound::Attempt(bound)) };
        allows(&user, &Ask { verb, group: "muster.dev", resource, namespace, name })
    }

    #[test]
    fn an_addon_reads_its_task_and_its_subject_and_no_other() {
        assert!(addon_may("get", "tasks", "ns", "own"));
        assert!(addon_may("get", "applications", "ns", "inventory"));
        for (verb, resource, namespace, name) in [
            ("get", "tasks", "ns", "other"),
            ("get", "tasks", "other", "own"),
            ("list", "tasks", "ns", ""),
            ("watch", "tasks", "ns", "own"),
            ("patch", "tasks", "ns", "own"),
            ("delete", "tasks", "ns", "own"),
            ("get", "applications", "ns", "billing"),
            ("patch", "applications", "ns", "inventory"),
            ("get", "taskkinds", "ns", "inventory"),
            ("update", "tasks/status", "ns", "own"),
            ("create", "tasks/retry", "ns", "own"),
        ] {
            assert!(!addon_may(verb, resource, namespace, name), "{verb} {resource} {namespace}/{name}");
        }
    }

    #[test]
    fn an_addon_writes_its_own_report_and_files() {
        for part in ADDON_PARTS {
            for verb in ["get", "create", "update", "delete"] {
                assert!(addon_may(verb, part, "ns", "own"), "{verb} {part}");
                assert!(!addon_may(verb, part, "ns", "other"), "{verb} {part}");
            }
        }
    }

    #[test]
    fn a_token_that_is_bound_to_nothing_may_do_nothing() {
        assert!(!may(Role::Addon, "get", "muster.dev"));
        assert!(!may(Role::Reporter, "get", RESOURCES_GROUP));
    }

    #[test]
    fn a_reporter_reads_managed_resources_and_writes_their_statuses_alone() {
        let bound = Some(Bound::Adapter("dns".to_owned()));
        let user = User { name: "dns".to_owned(), role: Role::Reporter, bound };
        let may = |verb, group, resource| allows(&user, &Ask { verb, group, resource, ..Ask::default() });
        for verb in ["get", "list", "watch"] {
            assert!(may(verb, RESOURCES_GROUP, "clusters"), "{verb}");
            assert!(!may(verb, "muster.dev", "tasks"), "{verb}");
            assert!(!may(verb, "muster.dev", "resourcetypes"), "{verb}");
            assert!(!may(verb, RESOURCES_GROUP, "clusters/status"), "{verb}");
        }
        assert!(may("get", RESOURCES_GROUP, "clusters/statuses"));
        assert!(may("update", RESOURCES_GROUP, "clusters/statuses"));
        for (verb, resource) in [
            ("create", "clusters"),
            ("update", "clusters"),
            ("patch", "clusters"),
            ("delete", "clusters"),
            ("deletecollection", "clusters"),
            ("update", "clusters/status"),
            ("patch", "clusters/statuses"),
            ("update", "/statuses"),
        ] {
            assert!(!may(verb, RESOURCES_GROUP, resource), "{verb} {resource}");
        }
    }

    #[test]
    fn nobody_can_ask_for_a_token_of_an_addon() {
        assert!("addon".parse::<Role>().is_err());
        assert!(serde_json::from_str::<Role>("\"addon\"").is_err());
    }

    #[test]
    fn a_viewer_reads_and_nothing_else() {
        assert!(["get", "list", "watch"].iter().all(|verb| may(Role::Viewer, verb, "muster.dev")));
        let writes = ["create", "update", "patch", "delete", "deletecollection", "anything"];
        assert!(!writes.iter().any(|verb| may(Role::Viewer, verb, "muster.dev")));
    }

    #[test]
    fn only_an_admin_sees_tokens() {
        let roles: Vec<_> =
            Role::ALL.into_iter().filter(|role| may(*role, "list", "auth.muster.dev")).collect();
        assert_eq!(roles, [Role::Admin]);
    }

    #[test]
    fn an_editor_writes() {
        assert!(may(Role::Editor, "deletecollection", "muster.dev"));
    }

    #[test]
    fn an_editor_reads_infrastructure_and_a_refusal_says_who_writes_it() {
        let user = |role| User { name: "ed".to_owned(), role, bound: None };
        for resource in ["eventsinks", "adapters", "resourcetypes", "robots", "robots/status", "*"] {
            for group in ["muster.dev", "*"] {
                let ask = |verb| Ask { verb, group, resource, ..Ask::default() };
                assert!(
                    allows(&user(Role::Editor), &ask("watch")) && allows(&user(Role::Admin), &ask("create"))
                );
                for verb in ["create", "update", "patch", "delete", "deletecollection", "*"] {
                    let refusal = authorize(&user(Role::Editor), &ask(verb)).unwrap_err();
                    assert!(refusal.to_string().contains("it takes the role admin"), "{refusal}");
                }
            }
        }
        let everything = Ask { verb: "*", resource: "*", ..Ask::default() };
        assert!(!allows(&user(Role::Editor), &everything) && allows(&user(Role::Admin), &everything));
        let named_alike =
            Ask { verb: "create", group: RESOURCES_GROUP, resource: "robots", ..Ask::default() };
        assert!(allows(&user(Role::Editor), &named_alike));
        let refusal = authorize(&user(Role::Viewer), &named_alike).unwrap_err();
        assert!(refusal.to_string().contains("it takes the role editor"), "{refusal}");
    }
}
