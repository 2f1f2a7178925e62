//! Commands that run commands: what they run is listed as if it stood alone.

use super::command::{Analysis, Doubt, SimpleCommand};
use super::scan::{MOST_DEPTH, read};
use super::word::Word;

/// How a command takes the command that it runs.
struct Wrapper {
    names: &'static [&'static str],
    /// Options that take a value of their own.
    valued: &'static [&'static str],
    /// Options without one, as letters; long ones begin with `--`.
    flags: &'static [&'static str],
    /// Words of its own before the command.
    own: usize,
    /// Nothing about it matters but what it runs.
    is_transparent: bool,
    /// It adds arguments.
    adds: bool,
}

const WRAPPERS: &[Wrapper] = &[
    wrapper(
        &["env"],
        &["-u", "--unset", "-C", "--chdir"],
        &["-i", "-", "-0", "-v", "--ignore-environment"],
        0,
        false,
    ),
    wrapper(&["command"], &[], &["-p"], 0, true),
    wrapper(&["builtin", "nohup", "setsid"], &[], &["-c", "-f", "-w", "--ctty", "--fork", "--wait"], 0, true),
    wrapper(
        &["timeout"],
        &["-s", "--signal", "-k", "--kill-after"],
        &["-v", "--foreground", "--preserve-status", "--verbose"],
        1,
        true,
    ),
    wrapper(&["nice"], &["-n", "--adjustment"], &[], 0, true),
    wrapper(&["stdbuf"], &["-i", "-o", "-e", "--input", "--output", "--error"], &[], 0, true),
    wrapper(&["time"], &[], &["-p", "-v", "-a"], 0, true),
    wrapper(&["ionice"], &["-c", "-n", "--class", "--classdata"], &["-t", "--ignore"], 0, true),
    wrapper(&["chrt"], &["-T", "-P", "-D"], &["-b", "-f", "-i", "-o", "-r", "-a", "-v", "-R"], 1, true),
    wrapper(&["exec"], &["-a"], &["-c", "-l"], 0, false),
    wrapper(
        &["sudo"],
        &["-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U", "-r", "-t", "--user", "--group", "--chdir"],
        &["-A", "-b", "-E", "-H", "-i", "-k", "-n", "-P", "-S", "-s", "--non-interactive", "--login"],
        0,
        false,
    ),
    wrapper(&["doas"], &["-u", "-C"], &["-n", "-s", "-L"], 0, false),
    wrapper(&["taskset"], &[], &["-a"], 1, false),
    wrapper(&["chroot"], &[], &[], 1, false),
    wrapper(&["busybox", "toybox"], &[], &[], 0, false),
    Wrapper {
        adds: true,
        ..wrapper(
            &["xargs"],
            &[
                "-a",
                "-d",
                "-E",
                "-I",
                "-L",
                "-n",
                "-P",
                "-s",
                "--arg-file",
                "--delimiter",
                "--max-args",
                "--max-procs",
                "--replace",
            ],
            &["-0", "-r", "-t", "-p", "-x", "-o", "--null", "--no-run-if-empty", "--verbose", "--exit"],
            0,
            false,
        )
    },
];

const fn wrapper(
    names: &'static [&'static str],
    valued: &'static [&'static str],
    flags: &'static [&'static str],
    own: usize,
    is_transparent: bool,
) -> Wrapper {
    Wrapper { names, valued, flags, own, is_transparent, adds: false }
}

/// They run a command somewhere among their arguments.
const LOOSE: &[&str] = &[
    "strace",
    "ltrace",
    "gdb",
    "valgrind",
    "perf",
    "flock",
    "unshare",
    "nsenter",
    "parallel",
    "script",
    "su",
    "runuser",
    "setpriv",
    "capsh",
    "systemd-run",
    "dbus-run-session",
    "fakeroot",
    "numactl",
    "prlimit",
    "cgexec",
    "proot",
    "bwrap",
    "firejail",
    "start-stop-daemon",
    "rlwrap",
    "unbuffer",
    "ssh",
    "faketime",
    "catchsegv",
    "linux32",
    "linux64",
    "setarch",
    "pkexec",
    "run-parts",
    "entr",
    "watchexec",
    "hyperfine",
    "chpst",
    "softlimit",
    "choom",
    "uclampset",
    "tsocks",
    "torsocks",
    "proxychains",
    "xvfb-run",
    "mapfile",
    "readarray",
    "complete",
    "compgen",
    "bind",
    "find",
    "watch",
    "env",
];

/// What a word that is read again is counted for, in bytes.
const WORD: usize = 16;

/// Shells whose `-c` is a script.
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish"];

/// Builtins that read the names and subscripts in their arguments as expressions.
const EVALUATING: &[&str] = &[
    "let",
    "test",
    "[",
    "printf",
    "read",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "unset",
    "mapfile",
    "readarray",
    "getopts",
    "wait",
];

/// Lists a command and all that it runs.
pub(super) fn list(mut command: SimpleCommand, depth: usize, found: &mut Analysis) {
    if depth > MOST_DEPTH || (depth > 0 && !found.spend(command.words.len() * WORD)) {
        found.doubt(Doubt::Deep);
        found.is_cut = true;
        return found.push(command);
    }
    if command.assignments.iter().any(Word::is_latent) {
        found.doubt(Doubt::Script);
    }
    let Some(first) = command.words.first() else { return found.push(command) };
    if first.is_open {
        found.doubt(Doubt::Name);
        return found.push(command);
    }
    let name = command.base_name().unwrap_or_default().to_owned();
    command.runs_later_words = LOOSE.contains(&name.as_str());
    let rest = command.words[1..].to_vec();
    let before = found.commands.len();
    found.push(command);
    let is_transparent = inside(&name, &rest, depth, found);
    if is_transparent && let Some(wrapper) = found.commands.get_mut(before) {
        wrapper.is_transparent = true;
    }
}

/// Lists what a command runs. `true`: nothing but that matters.
fn inside(name: &str, rest: &[Word], depth: usize, found: &mut Analysis) -> bool {
    if EVALUATING.contains(&name) && rest.iter().any(Word::is_latent) {
        found.doubt(Doubt::Script);
    }
    // A dynamic linker runs the program that it is given.
    if name.starts_with("ld-linux") || name.starts_with("ld-musl") || name == "ld.so" {
        list(SimpleCommand::of(operands(rest)), depth + 1, found);
        return false;
    }
    if SHELLS.contains(&name) {
        shell(rest, depth, found);
        return false;
    }
    match name {
        "eval" => script(rest, depth, found),
        "trap" => trap(rest, depth, found),
        "watch" => {
            let is_number = |word: &Word| word.text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            let words: Vec<Word> = operands(rest).into_iter().skip_while(is_number).collect();
            script(&words, depth, found);
        }
        "." | "source" if rest.first().is_none_or(|file| file.is_open) => found.doubt(Doubt::Input),
        "find" => find(rest, depth, found),
        // These only tell what would run.
        "command" if rest.first().is_some_and(|word| matches!(word.known(), Some("-v" | "-V"))) => {}
        _ => {
            if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name)) {
                return wrapped(wrapper, rest, depth, found);
            }
        }
    }
    false
}

fn operands(words: &[Word]) -> Vec<Word> {
    words.iter().skip_while(|word| word.text.starts_with('-') && !word.is_open).cloned().collect()
}

/// Words that are joined by blanks and read as a script.
fn script(words: &[Word], depth: usize, found: &mut Analysis) {
    if words.iter().any(|word| word.is_open) {
        found.doubt(Doubt::Script);
    }
    let text: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    text_script(&text.join(" "), depth, found);
}

fn text_script(text: &str, depth: usize, found: &mut Analysis) {
    if depth >= MOST_DEPTH || !found.spend(text.len()) {
        found.doubt(Doubt::Deep);
        found.is_cut = true;
        return;
    }
    read(text, depth + 1, found);
}

fn trap(rest: &[Word], depth: usize, found: &mut Analysis) {
    let action = rest.iter().find(|word| word.known() != Some("--"));
    match action {
        Some(action) if action.is_open => found.doubt(Doubt::Script),
        Some(action) if rest.len() > 1 && !action.text.starts_with('-') => {
            text_script(&action.text, depth, found)
        }
        Some(_) | None => {}
    }
}

/// `sh -c SCRIPT`; a shell with nothing to run reads its input.
fn shell(rest: &[Word], depth: usize, found: &mut Analysis) {
    let mut wants_script = false;
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        if word.is_open {
            return found.doubt(if wants_script { Doubt::Script } else { Doubt::Input });
        }
        match word.text.as_str() {
            "--" => {}
            "-s" | "-" => return found.doubt(Doubt::Input),
            "-o" | "+o" | "-O" | "+O" => {
                words.next();
            }
            // They name files that are read first.
            "--rcfile" | "--init-file" => {
                found.doubt(Doubt::Input);
                words.next();
            }
            long if long.starts_with("--") && long.len() > 2 => {
                if long == "--command" {
                    wants_script = true;
                }
            }
            flags if flags.len() > 1 && flags.starts_with(['-', '+']) => {
                wants_script |= flags.contains('c');
                if flags.contains('s') || flags.contains('i') {
                    found.doubt(Doubt::Input);
                }
            }
            text if wants_script => return text_script(text, depth, found),
            // A file: as opaque as any program.
            _ => return,
        }
    }
    found.doubt(Doubt::Input);
}

/// `-exec COMMAND ;` and its like.
fn find(rest: &[Word], depth: usize, found: &mut Analysis) {
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        if !matches!(word.known(), Some("-exec" | "-execdir" | "-ok" | "-okdir")) {
            continue;
        }
        let run: Vec<Word> =
            words.by_ref().take_while(|word| !matches!(word.known(), Some(";" | "+"))).cloned().collect();
        if run.first().is_none_or(|first| first.text.contains("{}")) {
            found.doubt(Doubt::Name);
        }
        listed_open(run, depth, found);
    }
}

fn listed_open(words: Vec<Word>, depth: usize, found: &mut Analysis) {
    let inner = SimpleCommand { is_open_ended: true, ..SimpleCommand::of(words) };
    list(inner, depth + 1, found);
}

fn wrapped(wrapper: &Wrapper, rest: &[Word], depth: usize, found: &mut Analysis) -> bool {
    let mut own = wrapper.own;
    let mut is_sure = true;
    let mut at = 0;
    let mut sets = Vec::new();
    while let Some(word) = rest.get(at) {
        let text = word.text.as_str();
        let names_value =
            |option: &str| text.starts_with(option) && (!option.starts_with("--") || text.contains('='));
        if word.is_open {
            // What stands here may be an option, its value or the command.
            is_sure = false;
            break;
        } else if text == "--" {
            at += 1;
            break;
        } else if let Some(first) = split_string(wrapper, text) {
            found.doubt(Doubt::Script);
            let first = (!first.is_empty()).then(|| Word::plain(first));
            script(&first.into_iter().chain(rest[at + 1..].to_vec()).collect::<Vec<_>>(), depth, found);
            return false;
        } else if wrapper.valued.contains(&text) {
            at += 2;
        } else if wrapper.flags.contains(&text) || wrapper.valued.iter().any(|option| names_value(option)) {
            at += 1;
        } else if text.starts_with('-') {
            let level = text.trim_start_matches('-');
            is_sure &= wrapper.names == ["nice"] && level.bytes().all(|b| b.is_ascii_digit());
            at += 1;
        } else if takes_assignments(wrapper) && is_setting(text) {
            sets.push(word.clone());
            at += 1;
        } else if own > 0 {
            own -= 1;
            at += 1;
        } else {
            break;
        }
    }
    if !is_sure {
        found.doubt(Doubt::Options);
    }
    let inner = rest.get(at..).unwrap_or_default().to_vec();
    let runs = !inner.is_empty() || !sets.is_empty();
    let inner = SimpleCommand { assignments: sets, is_open_ended: wrapper.adds, ..SimpleCommand::of(inner) };
    if runs {
        list(inner, depth + 1, found);
    }
    // `env` alone shows variables; with a command it is nothing but that.
    runs && is_sure && (wrapper.is_transparent || wrapper.names == ["env"])
}

/// The text that `env -S` reads as words, as far as it stands in this one.
fn split_string<'t>(wrapper: &Wrapper, text: &'t str) -> Option<&'t str> {
    if wrapper.names != ["env"] {
        return None;
    }
    let long = || text.strip_prefix("--split-string").map(|rest| rest.trim_start_matches('='));
    text.strip_prefix("-S").or_else(long)
}

fn takes_assignments(wrapper: &Wrapper) -> bool {
    wrapper.names.iter().any(|name| matches!(*name, "env" | "sudo" | "doas"))
}

fn is_setting(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| !name.is_empty() && !name.contains('/'))
}
