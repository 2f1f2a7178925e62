//! What the sandbox adds to a command: `true`, without one, behind the write wall and in namespaces of its own.

#![expect(clippy::expect_used, reason = "a measurement that cannot be taken ends")]

use claw_kernel::cancel::CancelToken;
use claw_tools::process::{End, Job, run};
use claw_tools::sandbox::{Most, Reach, SandboxPolicy};
use divan::Bencher;
use std::sync::Arc;

fn main() {
    divan::main();
}

#[divan::bench(args = ["none", "write wall", "full"], sample_count = 200, sample_size = 1)]
fn a_command_that_does_nothing(bencher: Bencher<'_, '_>, kind: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let policy = match kind {
        "none" => SandboxPolicy::full(folder.path()),
        "write wall" => SandboxPolicy::new(Reach::WorkspaceWrite, folder.path()).with_most(Most::WriteWall),
        _ => SandboxPolicy::new(Reach::WorkspaceWrite, folder.path()),
    };
    let policy = Arc::new(policy);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    bencher.bench_local(|| {
        let job = Job::shell("true", folder.path(), Arc::clone(&policy));
        let ended = runtime.block_on(run(job, &CancelToken::new())).expect("a command");
        assert_eq!(ended.end, End::Exited(0));
    });
}
