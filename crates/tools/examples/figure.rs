//! temporary
use claw_tools::process::{Job, run};
use claw_tools::sandbox::{Reach, SandboxPolicy};
use std::sync::Arc;
fn cpu() -> f64 { let mut t = 0.0; for who in [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN] { let mut u: libc::rusage = unsafe { std::mem::zeroed() }; unsafe { libc::getrusage(who, &mut u) }; t += (u.ru_utime.tv_sec + u.ru_stime.tv_sec) as f64 * 1e3 + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) as f64 / 1e3; } t }
#[tokio::main(flavor = "current_thread")]
async fn main() {
    for (reach, git) in [(Reach::WorkspaceWrite, false), (Reach::WorkspaceWrite, true), (Reach::ReadOnly, true), (Reach::Full, true)] {
        let d = tempfile::tempdir().unwrap();
        if git { std::fs::create_dir_all(d.path().join(".git/hooks")).unwrap(); std::fs::copy("/etc/hostname", d.path().join(".git/config")).unwrap(); }
        let p = Arc::new(SandboxPolicy::new(reach, d.path()));
        let c = claw_kernel::cancel::CancelToken::new();
        let mut best = (f64::MAX, f64::MAX);
        for _ in 0..5 {
        let (t, u) = (std::time::Instant::now(), cpu());
        for _ in 0..100 { let mut j = Job::shell("true", d.path(), p.clone()); j.report_folder = true; run(j, &c).await.unwrap(); }
        best = (best.0.min(t.elapsed().as_secs_f64() * 10.0), best.1.min((cpu() - u) / 100.0));
        }
        println!("{reach:?} git={git}: wall {:.2} ms cpu {:.2} ms", best.0, best.1);
    }
}
