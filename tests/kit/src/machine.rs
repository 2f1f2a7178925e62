//! The one room of the kit that starts threads and processes, writes files and waits by looking again.
//! Knows nothing of claw.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Stack of a kit thread. A thousand of them are address space only, not memory.
const STACK: usize = 256 * 1024;

/// Starts a thread with a small stack.
pub(crate) fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> std::thread::JoinHandle<()> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(STACK)
        .spawn(work)
        .expect("a thread can be started")
}

/// A process builder with an empty environment.
#[expect(clippy::disallowed_methods, reason = "tests start the program under test from outside")]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    command
}

/// Writes a file, with its folders. For test inputs; not atomic.
///
/// # Panics
/// When the file cannot be written.
#[expect(clippy::disallowed_methods, reason = "test inputs need no durable write")]
pub fn replace_file(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
    let path = path.as_ref();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).unwrap_or_else(|e| panic!("cannot make {}: {e}", folder.display()));
    }
    std::fs::write(path, bytes).unwrap_or_else(|e| panic!("cannot write {}: {e}", path.display()));
}

/// Runs a program of the machine to its end, `PATH` and `HOME` from this process, and returns its stdout.
/// `None` when it is not there or fails.
pub fn run_program(folder: &Path, program: &str, args: &[&str]) -> Option<String> {
    let mut command = command(program);
    for name in ["PATH", "HOME"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    let output = command.args(args).current_dir(folder).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Looks again and again until `holds` says yes: for what has no event, such as a file of another process.
///
/// # Panics
/// When it does not hold within `bound`; the message names `what`.
pub fn wait_until(what: &str, bound: Duration, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + bound;
    while !holds() {
        assert!(Instant::now() < end, "waited {bound:?} in vain for: {what}");
        pause(Duration::from_millis(3));
    }
}

/// How many processes of the machine have this in their command line, arguments divided by blanks.
pub fn processes_with(line: &str) -> usize {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let holds = |path: std::path::PathBuf| {
        std::fs::read(path).is_ok_and(|text| String::from_utf8_lossy(&text).replace('\0', " ").contains(line))
    };
    entries.filter(|entry| holds(entry.path().join("cmdline"))).count()
}

/// Lets time pass. Only the kit's own server and its file waits may.
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}
