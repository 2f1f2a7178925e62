//! What of a repository's word counts at once, what waits for the user's decision, what never counts.

use super::diagnostic::{Diagnostic, Severity};
use super::keys::Who;
use super::leaf::Leaf;
use super::node::Value;
use super::origin::Scope;
use crate::permission::{Permission, Reach};
use crate::trust::{ItemKind, TrustItem};

/// Something said, and whether it counts.
#[derive(Clone, Debug)]
pub struct Gated {
    /// What is said.
    pub leaf: Leaf,
    /// It counts only where the user trusts this. A mode counts before that as well, as far as it narrows.
    pub item: Option<TrustItem>,
}

/// Variables that lead programs or requests elsewhere: no repository sets them, trusted or not.
const LEADING: [&str; 26] = [
    "PATH",
    "HOME",
    "SHELL",
    "IFS",
    "ENV",
    "BASH_ENV",
    "PROMPT_COMMAND",
    "TMPDIR",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "BROWSER",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_EXTRA_CA_CERTS",
    "PERL5OPT",
    "PERL5LIB",
    "RUBYOPT",
    "RUBYLIB",
    "JAVA_TOOL_OPTIONS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "RUSTC_WRAPPER",
    "CLASSPATH",
    "SSH_ASKPASS",
];
const LEADING_STARTS: [&str; 11] = [
    "LD_",
    "DYLD_",
    "GIT_",
    "CLAW_",
    "CLAUDE_",
    "CLAWD_",
    "ANTHROPIC_",
    "XDG_",
    "PYTHON",
    "npm_config_",
    "AWS_",
];
const LEADING_ENDS: [&str; 7] =
    ["_BASE_URL", "_PROXY", "_API_KEY", "_AUTH_TOKEN", "_TOKEN", "_SECRET_KEY", "_ENDPOINT"];

/// Whether a variable leads programs or requests elsewhere.
pub fn is_leading(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    LEADING.contains(&upper.as_str())
        || LEADING_STARTS.iter().any(|start| upper.starts_with(&start.to_ascii_uppercase()))
        || LEADING_ENDS.iter().any(|end| upper.ends_with(end))
}

/// Sorts everything that is said, in its order.
pub fn gate(leaves: Vec<Leaf>) -> (Vec<Gated>, Vec<Diagnostic>) {
    let users = users_mode(&leaves);
    let mut gated = Vec::new();
    let mut refused = Vec::new();
    for leaf in leaves {
        match judged(leaf, users) {
            Ok(one) => gated.push(one),
            Err(problem) => refused.push(*problem),
        }
    }
    // A mode that asks for too much is told, and counts as the widest that it may be.
    refused.extend(gated.iter_mut().filter_map(capped));
    policies(&mut gated);
    (gated, refused)
}

/// The mode that holds without the repository.
fn users_mode(leaves: &[Leaf]) -> Permission {
    let own = leaves.iter().filter(|leaf| leaf.place.source.scope == Scope::User);
    own.filter_map(mode_of).next_back().unwrap_or(Permission::WORKSPACE_WRITE)
}

/// The mode that a leaf asks for.
pub fn mode_of(leaf: &Leaf) -> Option<Permission> {
    leaf.is_at(&["permissions", "defaultMode"]).then(|| leaf.node.text()?.parse().ok()).flatten()
}

fn judged(leaf: Leaf, users: Permission) -> Result<Gated, Box<Diagnostic>> {
    let scope = leaf.place.source.scope;
    let warn = |leaf: &Leaf, message: &str, help: &str| {
        Box::new(Diagnostic::new(Severity::Warning, leaf.origin(), message).with_help(help))
    };
    match leaf.who {
        Who::Managed if scope != Scope::Managed => {
            Err(warn(&leaf, "only the administrator's policy says this: ignored", "take it out"))
        }
        Who::User if scope.is_of_repository() => Err(warn(
            &leaf,
            "a repository does not say this, trusted or not: ignored",
            "write it into your own settings",
        )),
        Who::Trusted(ItemKind::Variable) if scope.is_of_repository() && is_leading(leaf.name()) => Err(warn(
            &leaf,
            "a repository does not set this variable, trusted or not: ignored",
            "set it yourself, or in your own settings",
        )),
        Who::Trusted(kind) if scope.is_of_repository() && needs_trust(&leaf, kind) => {
            let item = TrustItem::of(&leaf, kind);
            Ok(Gated { leaf, item: Some(item) })
        }
        Who::Anyone if scope.is_of_repository() && widens(&leaf, users) => {
            let item = TrustItem::of(&leaf, ItemKind::Mode);
            Ok(Gated { leaf, item: Some(item) })
        }
        Who::Anyone | Who::User | Who::Managed | Who::Trusted(_) => Ok(Gated { leaf, item: None }),
    }
}

/// An agent that brings neither hooks nor servers starts nothing by itself.
fn needs_trust(leaf: &Leaf, kind: ItemKind) -> bool {
    let starts = |name: &str| leaf.node.get(name).is_some();
    kind != ItemKind::Agent || starts("hooks") || starts("mcpServers") || starts("mcp_servers")
}

fn widens(leaf: &Leaf, users: Permission) -> bool {
    mode_of(leaf).map(no_danger).is_some_and(|mode| users.intersect(mode) != mode)
}

fn no_danger(mode: Permission) -> Permission {
    Permission { reach: mode.reach.min(Reach::WorkspaceWrite), ..mode }
}

fn capped(gated: &mut Gated) -> Option<Diagnostic> {
    let mode = mode_of(&gated.leaf)?;
    if !gated.leaf.place.source.scope.is_of_repository() || mode.reach != Reach::DangerFullAccess {
        return None;
    }
    let message = format!("a repository does not give {mode}: it stays at workspace-write");
    let problem = Diagnostic::new(Severity::Warning, gated.leaf.origin(), message)
        .with_help("use --permission-mode, or your own settings");
    gated.leaf.node.value = Value::Text(no_danger(mode).to_string());
    Some(problem)
}

/// What the policy keeps for itself.
fn policies(gated: &mut Vec<Gated>) {
    let says = |name: &str| {
        gated.iter().any(|one| one.leaf.is_at(&[name]) && one.leaf.node.value == Value::Bool(true))
    };
    let hooks = says("allowManagedHooksOnly");
    let rules = says("allowManagedPermissionRulesOnly");
    gated.retain(|one| {
        let leaf = &one.leaf;
        let is_rule = leaf.is_at(&["permissions", "allow"]) || leaf.is_at(&["permissions", "ask"]);
        let is_hook = leaf.is_below(&["hooks"]);
        leaf.place.source.scope == Scope::Managed || !(hooks && is_hook || rules && is_rule)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_that_lead_elsewhere_are_known() {
        for name in [
            "ANTHROPIC_BASE_URL",
            "OPENAI_BASE_URL",
            "HTTPS_PROXY",
            "https_proxy",
            "NODE_OPTIONS",
            "LD_PRELOAD",
            "PYTHONPATH",
            "GIT_SSH_COMMAND",
            "PATH",
            "CLAW_CONFIG_HOME",
            "OPENAI_API_KEY",
        ] {
            assert!(is_leading(name), "{name}");
        }
        for name in ["RUST_LOG", "CI", "MY_FLAG", "DATABASE_NAME"] {
            assert!(!is_leading(name), "{name}");
        }
    }
}
