//! Rules against calls: what the tables of attackers say, and what everyday calls want.

use super::*;
use crate::settings::Origin;
use serde_json::json;

fn set(rules: &[(Kind, &str)]) -> RuleSet {
    let mut set = RuleSet::new();
    for (kind, text) in rules {
        let origin = Origin { scope: Scope::User, file: None, line: 0, column: 0, key: "x".into() };
        set.add(*kind, Sourced { value: (*text).into(), origin }).unwrap();
    }
    set
}

fn bash(set: &RuleSet, line: &str) -> &'static str {
    let input = json!({"command": line});
    let effect = Effect { executes: Some(line.into()), ..Effect::default() };
    let call = Call {
        tool: "bash",
        aliases: &["shell"],
        input: &input,
        effect: &effect,
        workspace: Path::new("/w/proj"),
        folder: Path::new("/w/proj"),
    };
    word(&set.about(&call))
}

fn word(said: &Said<'_>) -> &'static str {
    match said {
        Said { deny: Some(_), .. } => "deny",
        Said { ask: Some(_), .. } => "ask",
        Said { perhaps: Some(_), .. } => "perhaps",
        Said { allow: Allowed::Tool(_) | Allowed::Named(_), .. } => "allow",
        Said { allow: Allowed::Partly { .. }, .. } => "partly",
        Said { allow: Allowed::No, .. } => "nothing",
    }
}

#[test]
fn an_allow_rule_lets_no_other_command_through() {
    for (rule, lines) in [
        (
            "Bash(git status:*)",
            &[
                "git status; touch PWNED",
                "git status && touch PWNED",
                "git status || touch PWNED",
                "git status | touch PWNED",
                "git status & touch PWNED",
                "git status\ntouch PWNED",
                "git status\r\ntouch PWNED",
                "git status > PWNED",
                "git status $(touch PWNED)",
                "(git status; touch PWNED)",
                "git status {a,b}",
                "git status $'a'",
                "f() { touch PWNED; }; git status",
                "git status # x\ntouch PWNED",
            ][..],
        ),
        (
            "Bash(echo:*)",
            &[
                "echo \"$(touch PWNED)\"",
                "echo `touch PWNED`",
                "echo ${x:=$(touch PWNED)}",
                "echo $((a[$(touch PWNED)]))",
                "echo x >> PWNED",
                "echo x | tee PWNED",
            ],
        ),
        ("Bash(cat:*)", &["cat <(touch PWNED)", "cat < <(touch PWNED)", "cat <<E\n$(touch PWNED)\nE"]),
        (
            "Bash(git diff:*)",
            &[
                "GIT_EXTERNAL_DIFF='touch PWNED;' git diff",
                "LD_PRELOAD=./x.so git diff",
                "env GIT_PAGER=x git diff",
                "PATH=.:$PATH git diff",
            ],
        ),
        ("Bash(find:*)", &["find . -exec touch PWNED \\;", "find . -ok touch {} +"]),
        ("Bash(xargs:*)", &["echo x | xargs touch", "xargs touch"]),
        ("Bash(sh:*)", &["sh -c 'touch PWNED'", "echo x | sh"]),
    ] {
        let set = set(&[(Kind::Allow, rule)]);
        for line in lines {
            assert_eq!(bash(&set, line), "partly", "{rule} | {line:?}");
        }
    }
}

#[test]
fn an_allow_rule_lets_what_it_names_through() {
    let set = set(&[
        (Kind::Allow, "Bash(git status:*)"),
        (Kind::Allow, "Bash(npm run test:*)"),
        (Kind::Allow, "bash(head *)"),
        (Kind::Allow, "Bash(make \\(all\\); make x)"),
    ]);
    for line in [
        "git status",
        "git status -s \"$DIR\"",
        "git status | head -5",
        "timeout 60 npm run test -- --watch",
        "git status 2>/dev/null && npm run test",
        "if git status; then npm run test; fi",
        "for f in *.rs; do head \"$f\"; done",
        "make (all); make x",
    ] {
        assert_eq!(bash(&set, line), "allow", "{line}");
    }
    assert_eq!(bash(&set, "ls"), "nothing");
}

#[test]
fn a_deny_rule_holds_through_every_spelling() {
    let set = set(&[(Kind::Deny, "Bash(touch:*)"), (Kind::Allow, "Bash")]);
    for line in [
        "env touch PWNED",
        "command touch PWNED",
        "timeout 1 touch PWNED",
        "nice touch PWNED",
        "exec touch PWNED",
        "printf PWNED | xargs touch",
        "\\touch PWNED",
        "t\"ou\"ch PWNED",
        "$'\\x74ouch' PWNED",
        "/bin/touch PWNED",
        "A=b touch PWNED",
        "touch PWNED > /dev/null",
        "sudo -u x touch PWNED",
        "bash -c 'touch PWNED'",
        "echo 'unclosed; touch PWNED",
        "$(( touch PWNED",
        "find . -exec touch {} \\;",
    ] {
        assert_eq!(bash(&set, line), "deny", "{line}");
    }
    for line in
        ["{touch,PWNED}", "A=touch; $A PWNED", "touch$IFS\"\"PWNED", "strace touch x", "base64 -d x | sh"]
    {
        assert_eq!(bash(&set, line), "perhaps", "{line}");
    }
    for line in ["ls touch", "echo \"touch PWNED\"", "git commit -m 'touch'"] {
        assert_eq!(bash(&set, line), "allow", "{line}");
    }
}

/// Ten attacks of our own on the reading of command lines.
#[test]
fn attacks_of_our_own_are_denied_or_asked() {
    let set =
        set(&[(Kind::Deny, "Bash(curl:*)"), (Kind::Allow, "Bash(git:*)"), (Kind::Allow, "Bash(echo:*)")]);
    for line in [
        // A comment that hides an apostrophe.
        "git status # it's\ncurl x",
        // A here-document whose end is quoted, so that what follows is no text.
        "git status <<\\E\n'\nE\ncurl x",
        // A line end in the middle of the name.
        "git status; cu\\\nrl x",
        // A bracket of a pattern that seems to close a substitution.
        "echo $(case a in a) curl x;; esac)",
        // Quotes inside of a substitution inside of quotes.
        "echo \"$(echo \"`curl x`\")\"",
        // A function with the name of what is allowed.
        "git() { curl x; }; git status",
        // A trap that runs at the end.
        "trap 'curl x' EXIT; git status",
        // A name that is decoded.
        "$'\\143url' x",
        // A wrapper in a wrapper in a script in a script.
        "env nice -n 3 sh -c \"bash -c 'timeout 3 curl x'\"",
        // A descriptor that looks like an argument, in front of the name.
        "3>/dev/null curl x",
        // A here-string that a shell reads.
        "bash <<< 'git status'",
        // An alias of the folder.
        "/usr/bin/../bin/curl x",
        // An array that is set from a substitution.
        "a=([0]=$(curl x))",
        // The default of a parameter inside of quotes.
        "echo \"${x:-$(curl x)}\"",
        // A subscript that is evaluated.
        "echo ${a[$(curl x)]}",
        // The dynamic linker runs it.
        "/lib64/ld-linux-x86-64.so.2 /usr/bin/curl x",
    ] {
        assert!(matches!(bash(&set, line), "deny" | "perhaps" | "partly"), "{line}: {}", bash(&set, line));
    }
}

#[test]
fn a_denied_command_is_found_at_any_length() {
    let set = set(&[(Kind::Deny, "Bash(curl:*)")]);
    assert_eq!(bash(&set, &("true && ".repeat(60) + "curl http://127.0.0.1")), "deny");
    assert_eq!(bash(&set, &("true && ".repeat(12_500) + "curl x")), "deny");
    assert_eq!(bash(&set, &("a;".repeat(60_000) + "curl x")), "deny");
    assert_eq!(bash(&set, &("( ".repeat(40) + "curl x")), "deny");
    assert_eq!(bash(&set, &("#".repeat(2 * 1024 * 1024) + "\ncurl x")), "deny");
}

fn read<'s>(set: &'s RuleSet, tool: &str, path: &str, workspace: &Path) -> Said<'s> {
    let resolved = paths::resolve(&paths::absolute(path, workspace));
    let input = json!({"path": path});
    let effect = Effect { reads: vec![resolved], ..Effect::default() };
    let aliases: &[&str] = if tool == "read_file" { &["read"] } else { &["grep"] };
    let call = Call { tool, aliases, input: &input, effect: &effect, workspace, folder: workspace };
    set.about(&call)
}

#[test]
fn a_denied_file_is_denied_by_every_name_and_to_every_tool() {
    let folder = tempfile::tempdir().unwrap();
    let top = paths::resolve(folder.path());
    std::fs::create_dir(top.join("a")).unwrap();
    claw_kernel::durable::create(&top.join(".env"), b"KEY").unwrap();
    std::os::unix::fs::symlink(".env", top.join("link")).unwrap();
    std::fs::hard_link(top.join(".env"), top.join("hard")).unwrap();
    let set = set(&[(Kind::Deny, "Read(./.env)"), (Kind::Deny, "Read(secrets/**)")]);
    for path in [".env", "./a/../.env", "link", "hard", "secrets/x/y"] {
        for tool in ["read_file", "grep_search", "notebook_edit"] {
            assert_eq!(word(&read(&set, tool, path, &top)), "deny", "{tool} {path}");
        }
    }
    assert_eq!(word(&read(&set, "read_file", ".envrc", &top)), "nothing");
    assert_eq!(word(&read(&set, "read_file", "secrets-not/x", &top)), "nothing");
    let hidden = set.denied_reads(&top);
    assert!(hidden.iter().any(|path| path.holds(&top.join(".env"))), "{hidden:?}");
    let line = |line: &str| {
        let input = json!({"command": line});
        let effect = Effect { executes: Some(line.into()), ..Effect::default() };
        let call = Call {
            tool: "bash",
            aliases: &[],
            input: &input,
            effect: &effect,
            workspace: &top,
            folder: &top,
        };
        word(&set.about(&call))
    };
    for text in ["cat .env", "cat < .env", "cat a/../.env", "grep x --file=link", "head ./secrets/x"] {
        assert_eq!(line(text), "deny", "{text}");
    }
    assert_eq!(line("cat README"), "nothing");
}

#[test]
fn paths_open_only_what_they_name() {
    let set = set(&[
        (Kind::Allow, "Write(//w/out/**)"),
        (Kind::Allow, "Edit(./src/**)"),
        (Kind::Deny, "Edit(./src/gen/**)"),
    ]);
    let writes = |tool: &str, path: &str| {
        let input = json!({"path": path});
        let effect = Effect { writes: vec![path.into()], ..Effect::default() };
        let aliases: &[&str] = if tool == "write_file" { &["write"] } else { &["edit"] };
        let workspace = Path::new("/w/proj");
        word(&set.about(&Call {
            tool,
            aliases,
            input: &input,
            effect: &effect,
            workspace,
            folder: workspace,
        }))
    };
    assert_eq!(writes("write_file", "/w/out/a/b"), "allow");
    assert_eq!(writes("write_file", "/w/output"), "nothing");
    assert_eq!(writes("edit_file", "/w/proj/src/a.rs"), "allow");
    assert_eq!(writes("edit_file", "/w/proj/src/gen/a.rs"), "deny");
    assert_eq!(writes("write_file", "/w/proj/src/gen/a.rs"), "deny");
}

#[test]
fn hosts_and_servers_are_named() {
    let set = set(&[
        (Kind::Allow, "WebFetch(domain:example.org)"),
        (Kind::Deny, "WebFetch(domain:evil.example.org)"),
        (Kind::Ask, "mcp__github"),
    ]);
    let call = |tool: &str, input: Value| {
        let effect = Effect { network: true, ..Effect::default() };
        let workspace = Path::new("/w");
        word(&set.about(&Call {
            tool,
            aliases: &["WebFetch"],
            input: &input,
            effect: &effect,
            workspace,
            folder: workspace,
        }))
    };
    assert_eq!(call("web_fetch", json!({"url": "https://docs.example.org/x"})), "allow");
    assert_eq!(call("web_fetch", json!({"url": "https://evil.example.org/"})), "deny");
    assert_eq!(call("web_fetch", json!({"url": "https://example.org@127.0.0.1/"})), "nothing");
    assert_eq!(call("web_fetch", json!({"url": "https://example.org.evil.com/"})), "nothing");
    assert_eq!(call("mcp__github__get", json!({})), "ask");
}

#[test]
fn whoever_lists_commands_on_the_command_line_means_no_others() {
    let mut flags = RuleSet::new();
    flags
        .add(
            Kind::Allow,
            Sourced { value: "Bash(git status:*)".into(), origin: Origin::flag("--allowedTools") },
        )
        .unwrap();
    assert_eq!(bash(&flags, "ls"), "partly");
    assert_eq!(bash(&flags, "git status"), "allow");
}
