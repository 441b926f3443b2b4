//! Who may do what.
//!
//! One function decides, for every path and verb, whether it is a read, a write, a watch or a list: nothing is
//! shown by one that another would refuse.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;

/// What a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything, tokens included.
    Admin,
    /// Read and change objects.
    Editor,
    /// Read objects.
    Viewer,
}

impl Role {
    /// All roles, strongest first.
    pub const ALL: [Self; 3] = [Self::Admin, Self::Editor, Self::Viewer];
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Admin => "admin",
            Self::Editor => "editor",
            Self::Viewer => "viewer",
        })
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|role| role.to_string() == text)
            .ok_or_else(|| format!("\"{text}\" is not a role; use admin, editor or viewer"))
    }
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// The name of the token.
    pub name: String,
    /// What it may do.
    pub role: Role,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask<'a> {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: &'a str,
    /// API group.
    pub group: &'a str,
    /// Plural, with `/subresource` where there is one.
    pub resource: &'a str,
}

/// The resource name that stands for access tokens.
pub const TOKENS: &str = "tokens";

/// Decides.
pub fn allows(role: Role, ask: &Ask<'_>) -> bool {
    let reads = matches!(ask.verb, "get" | "list" | "watch");
    match role {
        Role::Admin => true,
        Role::Editor => ask.group != "auth.muster.dev",
        Role::Viewer => reads && ask.group != "auth.muster.dev",
    }
}

/// Decides, with the words of a refusal.
pub fn authorize(user: &User, ask: &Ask<'_>) -> Result<(), Refusal> {
    if allows(user.role, ask) {
        return Ok(());
    }
    let Ask { verb, group, resource } = ask;
    Err(Refusal::forbidden(format!(
        "{resource}.{group} is forbidden: user \"{}\" with role {} cannot {verb} resource \"{resource}\"; \
         ask an admin for a token with another role",
        user.name, user.role
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(role: Role, verb: &str, group: &str) -> bool {
        allows(role, &Ask { verb, group, resource: "tasks" })
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
}
