use super::*;
use crate::sandbox::{Network, Reach, SandboxPolicy};
use claw_kernel::cancel::CancelToken;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const HANG: Duration = Duration::from_secs(20);

fn free(folder: &Path) -> Arc<SandboxPolicy> {
    Arc::new(SandboxPolicy::full(folder))
}

fn walled(folder: &Path) -> Arc<SandboxPolicy> {
    Arc::new(SandboxPolicy::new(Reach::WorkspaceWrite, folder))
}

async fn done(job: Job) -> Finished {
    tokio::time::timeout(HANG, run(job, &CancelToken::new())).await.expect("it hangs").unwrap()
}

async fn sh(line: &str, policy: &Arc<SandboxPolicy>) -> Finished {
    done(Job::shell(own(line), policy.workspace(), Arc::clone(policy))).await
}

/// A line or argument that only this test process uses: `@` becomes its number.
fn own(text: &str) -> String {
    text.replace('@', &std::process::id().to_string())
}

/// Whether a process with this argument lives.
fn lives(argument: &str) -> bool {
    let argument = own(argument);
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == argument.as_bytes())
    })
}

#[tokio::test]
async fn what_a_command_leaves_behind_is_ended_after_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let policy = free(folder.path());
    let cases = [
        ("sleep 301.1@ & echo started", "started\n", 0, "301.1@"),
        ("(sleep 301.2@ >/dev/null &) ; echo x", "x\n", 0, "301.2@"),
        ("sleep 301.3@ 2>/dev/null & exit 3", "", 3, "301.3@"),
        ("sleep 301.4@ >/dev/null 2>&1 & disown; echo y", "y\n", 0, "301.4@"),
        ("setsid sleep 301.5@ >/dev/null 2>&1 & echo z", "z\n", 0, "301.5@"),
        ("(setsid nohup sleep 301.6@ &) ; echo z", "z\n", 0, "301.6@"),
    ];
    for (line, out, code, mark) in cases {
        let began = Instant::now();
        let ended = sh(line, &policy).await;
        assert_eq!(ended.end, End::Exited(code), "{line}");
        assert_eq!(ended.out.text(1000), out, "{line}");
        assert_eq!(ended.left_behind, 1, "{line}");
        assert!(!lives(mark), "{line}");
        assert!(began.elapsed() < Duration::from_secs(10), "{line}");
    }
}

#[tokio::test]
async fn a_background_process_that_ends_by_itself_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let ended = sh("(read x < /dev/null; echo late) & echo early", &free(folder.path())).await;
    assert_eq!(ended.left_behind, 0);
    assert!(ended.out.text(100).contains("late"));
}

#[tokio::test]
async fn there_is_no_terminal_and_no_input() {
    let folder = tempfile::tempdir().unwrap();
    let policy = free(folder.path());
    let ended = sh("cat; read x </dev/tty; echo rc=$?", &policy).await;
    assert_eq!(ended.out.text(100), "rc=1\n");
    let mut job = Job::shell("cat", folder.path(), policy);
    job.stdin = Some("é".repeat(100_000).into_bytes());
    assert_eq!(done(job).await.out.total(), 200_000);
}

#[tokio::test]
async fn time_is_kept_with_everything_below() {
    let folder = tempfile::tempdir().unwrap();
    let policy = free(folder.path());
    for (line, mark) in [
        ("echo so far; sh -c 'sleep 302.1@ & sleep 302.2@'", "302.1@"),
        ("echo so far; trap '' TERM; setsid sleep 302.3@ & while :; do :; done", "302.3@"),
    ] {
        let mut job = Job::shell(own(line), folder.path(), Arc::clone(&policy));
        job.time = Some(Duration::from_millis(300));
        let ended = done(job).await;
        assert_eq!(ended.end, End::TimedOut);
        assert_eq!(ended.out.text(100), "so far\n");
        assert!(!lives(mark), "{line}");
        assert!(ended.took < Duration::from_secs(6), "{:?}", ended.took);
    }
}

#[tokio::test]
async fn cancel_ends_everything() {
    let folder = tempfile::tempdir().unwrap();
    let cancel = CancelToken::new();
    let job = Job::shell(own("sleep 303.1@ & sleep 303.2@"), folder.path(), free(folder.path()));
    let (ended, ()) = tokio::join!(run(job, &cancel), async {
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    let ended = ended.unwrap();
    assert_eq!(ended.end, End::Cancelled);
    assert!(!lives("303.1@") && !lives("303.2@"));
    let late = run(Job::shell("true", folder.path(), free(folder.path())), &cancel).await;
    assert!(matches!(late, Err(crate::error::ToolError::Cancelled)));
}

#[tokio::test]
async fn dropping_the_call_kills() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready");
    rustix::fs::mkfifoat(rustix::fs::CWD, &ready, rustix::fs::Mode::RWXU).unwrap();
    let job = Job::shell(own("echo > ready; exec sleep 304.1@"), folder.path(), free(folder.path()));
    let cancel = CancelToken::new();
    tokio::select! {
        _ = run(job, &cancel) => panic!("it ended"),
        _ = tokio::fs::read(&ready) => {}
    }
    let gone = async {
        while lives("304.1@") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(HANG, gone).await.unwrap();
}

#[tokio::test]
async fn output_is_bounded_and_the_whole_is_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let spill = folder.path().join("spill");
    let mut job =
        Job::shell("head -c 3000000 /dev/zero | tr '\\0' a; echo end", folder.path(), free(folder.path()));
    job.keep = 1000;
    job.spill = Some(SpillTo { folder: spill.clone(), over: 500, most: 2_000_000 });
    let ended = done(job).await;
    assert_eq!(ended.out.total(), 3_000_004);
    assert_eq!(ended.out.missing(), 2_999_004);
    assert!(ended.out.text(100).ends_with("aend\n"));
    let spilled = ended.spilled.unwrap();
    assert_eq!((spilled.bytes, spilled.lost), (2_000_000, 1_000_004));
    assert_eq!(std::fs::metadata(spilled.path).unwrap().len(), 2_000_000);
}

#[tokio::test]
async fn bad_bytes_and_floods_are_safe() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = Job::shell("head -c 100000 /dev/urandom; yes", folder.path(), free(folder.path()));
    job.time = Some(Duration::from_millis(500));
    let ended = done(job).await;
    assert_eq!(ended.end, End::TimedOut);
    assert!(ended.out.text(30_000).chars().count() < 30_100);
}

#[tokio::test]
async fn the_environment_is_a_list_and_files_are_closed() {
    let folder = tempfile::tempdir().unwrap();
    let policy = free(folder.path());
    let (here, _there) = std::io::pipe().unwrap();
    rustix::io::fcntl_setfd(&here, rustix::io::FdFlags::empty()).unwrap();
    let mut job = Job::argv("env", [], folder.path(), Arc::clone(&policy));
    job.env = vec![("MINE".into(), "1".into())];
    let text = done(job).await.out.text(10_000);
    assert!(text.contains("MINE=1") && text.contains("PATH=") && text.contains("CLAW_JOB="), "{text}");
    assert!(!text.contains("CARGO_"), "{text}");
    let files = done(Job::argv("ls", ["/proc/self/fd".into()], folder.path(), policy)).await.out.text(1000);
    assert_eq!(files, "0\n1\n2\n3\n", "3 is the folder that ls reads");
}

#[tokio::test]
async fn a_missing_program_or_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let policy = walled(folder.path());
    let cancel = CancelToken::new();
    let job = Job::argv("/no/such/program", [], folder.path(), Arc::clone(&policy));
    let text = run(job, &cancel).await.unwrap_err().to_string();
    assert!(text.contains("cannot start /no/such/program"), "{text}");
    let text = run(Job::shell("true", "/no/folder", policy), &cancel).await.unwrap_err().to_string();
    assert!(text.contains("/no/folder: the working folder is not there"), "{text}");
}

#[tokio::test]
async fn writes_stay_in_the_workspace_and_the_temporary_folder() {
    let outside = tempfile::tempdir().unwrap();
    let work = outside.path().join("work");
    std::fs::create_dir_all(work.join("sub")).unwrap();
    let policy = walled(&work);
    if !policy.status().is_walled() {
        return;
    }
    let line = "echo a > in; echo b > sub/in; mkdir -p sub/x/y; echo c > \"$TMPDIR/t\" && echo tmp ok; \
                echo d > ../out; echo e > /tmp/claw-out-of-wall; echo f > /dev/null && echo null ok; \
                mv in ../in; mknod dev c 1 3; ln -s .. link; echo g > link/out; rm -r sub; echo $TMPDIR";
    let ended = sh(line, &policy).await;
    let out = ended.out.text(1000);
    assert!(out.contains("tmp ok") && out.contains("null ok"), "{out} {}", ended.err.text(2000));
    assert!(!outside.path().join("out").exists() && !outside.path().join("in").exists());
    assert!(!Path::new("/tmp/claw-out-of-wall").exists());
    assert!(!work.join("dev").exists(), "not even root makes devices");
    assert!(work.join("in").exists() && !work.join("sub").exists());
    assert!(!Path::new(out.lines().last().unwrap()).exists(), "{out}");
    assert!(Path::new("/dev/null").exists());
    let root = policy.scratch().unwrap().path().to_owned();
    assert!(root.exists());
    policy.close();
    assert!(!root.exists(), "{}", root.display());
}

#[tokio::test]
async fn a_read_only_policy_writes_nothing() {
    let work = tempfile::tempdir().unwrap();
    std::fs::create_dir(work.path().join(".git")).unwrap();
    let policy = Arc::new(SandboxPolicy::new(Reach::ReadOnly, work.path()));
    if !policy.status().is_walled() {
        return;
    }
    let ended =
        sh("touch a; mkdir b; sed -n 'w c' /etc/passwd; echo x > $TMPDIR/x && echo ok", &policy).await;
    assert_eq!(ended.out.text(100), "ok\n");
    assert_eq!(std::fs::read_dir(work.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn tcp_is_held_where_the_network_is_off() {
    let work = tempfile::tempdir().unwrap();
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let line = format!("exec 3<>/dev/tcp/127.0.0.1/{} && echo open", server.local_addr().unwrap().port());
    let off = walled(work.path());
    if !off.status().network_held {
        return;
    }
    assert_eq!(sh(&line, &off).await.out.text(100), "");
    let on = Arc::new(SandboxPolicy::new(Reach::WorkspaceWrite, work.path()).with_network(Network::On));
    assert_eq!(sh(&line, &on).await.out.text(100), "open\n");
}

#[tokio::test]
async fn what_governs_is_refused_when_it_exists_and_taken_out_when_it_is_made() {
    let work = tempfile::tempdir().unwrap();
    let root = work.path().join("w");
    for folder in [".git/hooks", ".claude", ".git/objects"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    for file in [".git/config", ".claude/settings.json"] {
        claw_kernel::durable::replace(
            &root.join(file),
            b"old",
            claw_kernel::durable::Mode::Keep,
            claw_kernel::durable::Sync::No,
        )
        .unwrap();
    }
    let policy = walled(&root);
    if !policy.status().is_walled() {
        return;
    }
    let line = "echo x > .git/config; echo x > .git/hooks/pre-commit; echo x > .claude/settings.json; \
                rm -rf .claude; mv .git .git2; mv .git/config .git/c2; echo x > .git/objects/ok; \
                echo x > .mcp.json; mkdir .claw; echo x > .claw/settings.json; mkdir .claw/runs; cd .claude && echo x > new";
    let mut job = Job::shell(line, policy.workspace(), Arc::clone(&policy));
    job.spill = Some(SpillTo { folder: work.path().join("spill"), over: 1000, most: 1000 });
    let ended = done(job).await;
    if !policy.status().governors_held {
        return;
    }
    assert_eq!(std::fs::read(root.join(".git/config")).unwrap(), b"old");
    assert_eq!(std::fs::read(root.join(".claude/settings.json")).unwrap(), b"old");
    assert!(!root.join(".git2").exists() && !root.join(".git/hooks/pre-commit").exists());
    assert!(!root.join(".claude/new").exists());
    assert!(root.join(".git/objects/ok").exists() && root.join(".claw/runs").exists());
    assert!(!root.join(".mcp.json").exists() && !root.join(".claw/settings.json").exists());
    assert_eq!(ended.put_aside.len(), 2, "{:?}", ended.put_aside);
    assert!(work.path().join("spill/refused-0-.mcp.json").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_governing_file_that_comes_and_goes_does_not_open_those_that_stay() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("w");
    std::fs::create_dir_all(root.join(".git/hooks")).unwrap();
    let policy = walled(&root);
    if !policy.status().governors_held {
        return;
    }
    let flicker = "trap 'exit 0' TERM; while :; do : > .mcp.json; rm -f .mcp.json; done";
    let stop = CancelToken::new();
    let flickering = run(Job::shell(flicker, policy.workspace(), Arc::clone(&policy)), &stop);
    let plants = async {
        for _ in 0..60 {
            // A start that fails is an error, not a start that is held less.
            let line = "echo x > .git/hooks/pre-commit";
            let job = Job::shell(line, policy.workspace(), Arc::clone(&policy));
            let _ = run(job, &CancelToken::new()).await;
            assert!(!root.join(".git/hooks/pre-commit").exists());
        }
        stop.cancel();
    };
    let _ = tokio::join!(flickering, plants);
    assert!(policy.status().governors_held);
}

#[tokio::test]
async fn a_planted_symlink_leads_nowhere_and_command_jobs_have_an_aside_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (root, outside) = (folder.path().join("w"), folder.path().join("outside"));
    std::fs::create_dir_all(outside.join("hooks")).unwrap();
    std::fs::create_dir_all(&root).unwrap();
    let policy = walled(&root);
    if !policy.status().is_walled() {
        return;
    }
    let line = "ln -s ../outside .claw; ln -s ../outside .git; mkdir .claude";
    let mut job = Job::shell(line, policy.workspace(), Arc::clone(&policy));
    job.aside = Some(folder.path().join("aside"));
    let ended = done(job).await;
    let names: Vec<_> = ended.put_aside.iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, [".git", ".claw", ".claude"]);
    assert!(outside.join("hooks").exists());
    assert_eq!(std::fs::read_dir(root).unwrap().count(), 0);
    assert!(folder.path().join("aside/refused-0-.claude").is_dir());
}

#[tokio::test]
async fn whatever_stands_where_the_folder_is_reported_does_not_hold_the_call() {
    let folder = tempfile::tempdir().unwrap();
    let policy = free(folder.path());
    let f = "trap - EXIT; rm -f $CLAW_FOLDER_FILE; ";
    for (line, known) in [
        ("mkfifo $CLAW_FOLDER_FILE", false),
        ("ln -s /dev/zero $CLAW_FOLDER_FILE", false),
        ("yes /tmp/ | head -c 9000 > $CLAW_FOLDER_FILE", false),
        ("echo /no/folder > $CLAW_FOLDER_FILE", false),
        ("echo . > $CLAW_FOLDER_FILE", false),
        ("mkdir $CLAW_FOLDER_FILE", false),
        ("echo /tmp > $CLAW_FOLDER_FILE", true),
    ] {
        let mut job = Job::shell(format!("{f}{line}"), folder.path(), Arc::clone(&policy));
        job.report_folder = true;
        assert_eq!(done(job).await.folder.is_some(), known, "{line}");
    }
}

#[tokio::test]
async fn a_deep_temporary_folder_is_removed_with_the_job() {
    let folder = tempfile::tempdir().unwrap();
    let policy = walled(folder.path());
    let line = "echo $TMPDIR; cd $TMPDIR; d=$(printf 'a/%.0s' $(seq 1000)); \
                for i in 1 2; do mkdir -p $d; cd $d 2>/dev/null; done";
    let mut job = Job::shell(line, folder.path(), Arc::clone(&policy));
    job.report_folder = true;
    let ended = done(job).await;
    assert!(!ended.out.text(1000).trim().is_empty());
    let left = std::fs::read_dir(policy.scratch().unwrap().path()).unwrap().flatten();
    assert!(left.map(|entry| entry.file_name()).all(|name| name != "0"));
}

#[tokio::test]
async fn the_temporary_folder_is_made_by_the_first_job_and_goes_when_the_policy_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let policy = walled(folder.path());
    if !policy.status().is_walled() {
        return;
    }
    let text = sh("echo $TMPDIR; echo x > $TMPDIR/x && echo ok", &policy).await.out.text(1000);
    assert!(text.ends_with("\nok\n"), "{text}");
    let top = policy.scratch().unwrap().path().to_owned();
    assert!(top.exists());
    policy.close();
    assert!(!top.exists());
    assert_eq!(sh("echo still", &policy).await.out.text(100), "still\n");
    let unused = walled(folder.path());
    unused.close();
    assert!(unused.scratch().is_none());
}

#[tokio::test]
async fn modes_owners_and_times_are_held_outside_the_workspace_and_everywhere_in_read_only() {
    let folder = tempfile::tempdir().unwrap();
    let (root, out) = (folder.path().join("w"), folder.path().join("out"));
    std::fs::create_dir_all(&root).unwrap();
    for path in [root.join("f"), out.clone()] {
        claw_kernel::durable::replace(
            &path,
            b"x",
            claw_kernel::durable::Mode::Private,
            claw_kernel::durable::Sync::No,
        )
        .unwrap();
    }
    let line = "for f in ../out f $TMPDIR/t; do [ -e $f ] || echo x > $f; chmod 640 $f && touch -d 2001-01-01 $f && echo $f; done";
    let writes = walled(&root);
    if !writes.status().governors_held {
        return;
    }
    let text = |ended: Finished| ended.out.text(1000).lines().map(|l| l[..1].to_owned()).collect::<String>();
    let ended = text(sh(line, &writes).await);
    if !writes.status().governors_held {
        return;
    }
    assert_eq!(ended, "f/");
    let reads = Arc::new(SandboxPolicy::new(Reach::ReadOnly, &root));
    assert_eq!(text(sh(line, &reads).await), "/");
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&out), mode(&root.join("f"))), (0o600, 0o640));
}

#[tokio::test]
async fn other_streams_than_tcp_are_held_where_the_network_is_off() {
    let folder = tempfile::tempdir().unwrap();
    let off = walled(folder.path());
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let line = format!(
        "python3 - <<'E'\nimport socket\ndef t(name, f):\n  try: f(); print(name)\n  except OSError as e: pass\n\
         S = socket.socket; I = socket.AF_INET\n\
         t('mptcp', lambda: S(I, 1, 262)); t('raw', lambda: S(I, 3, 1)); t('packet', lambda: S(17, 3, 0))\n\
         t('sctp', lambda: S(I, 5, 132)); t('vsock', lambda: S(40, 1, 0))\n\
         t('early', lambda: S(I, 1).sendto(b'x', 0x20000000, ('127.0.0.1', {port})))\n\
         t('tcp', lambda: S(I, 1)); t('udp', lambda: S(socket.AF_INET6, 2)); t('unix', lambda: socket.socketpair())\nE"
    );
    let ended = sh(&line, &off).await;
    if !off.status().network_held || ended.end != End::Exited(0) {
        return;
    }
    assert_eq!(ended.out.text(1000), "tcp\nudp\nunix\n");
}

#[tokio::test]
async fn root_in_the_sandbox_keeps_no_right_that_reaches_round_the_wall() {
    let folder = tempfile::tempdir().unwrap();
    let policy = walled(folder.path());
    if !policy.status().is_walled() || !rustix::process::geteuid().is_root() {
        return;
    }
    let line = "grep -E 'Cap(Prm|Eff|Bnd|Inh)' /proc/self/status; cat /proc/$PPID/environ || echo held; \
                touch f && chown 12:12 f && chmod 600 f && echo mine";
    let out = sh(line, &policy).await.out.text(1000);
    let rights: Vec<u64> = out
        .lines()
        .filter_map(|line| u64::from_str_radix(line.strip_prefix("Cap")?.split('\t').nth(1)?, 16).ok())
        .collect();
    assert_eq!(rights.len(), 4, "{out}");
    assert!(rights.iter().all(|rights| rights & !0b1111_1011 == 0), "{out}");
    assert!(out.ends_with("held\nmine\n"), "{out}");
    let free = sh("grep CapEff /proc/self/status", &free(folder.path())).await.out.text(100);
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    assert!(own.contains(free.trim()), "without a sandbox nothing is given up: {free}");
}

#[tokio::test]
async fn the_sandbox_cannot_signal_outside() {
    let work = tempfile::tempdir().unwrap();
    let policy = walled(work.path());
    if policy.status().abi < 6 {
        return;
    }
    let ended = sh(&format!("kill -0 {} || echo held", std::process::id()), &policy).await;
    assert_eq!(ended.out.text(100), "held\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_each_get_their_own_output() {
    let work = tempfile::tempdir().unwrap();
    let policy = walled(work.path());
    let tasks: Vec<_> = (0..128)
        .map(|n| {
            let policy = Arc::clone(&policy);
            claw_kernel::tasks::spawn("job", async move { (n, sh(&format!("echo {n}"), &policy).await) })
        })
        .collect();
    for task in tasks {
        let (n, ended) = task.await.unwrap();
        assert_eq!(ended.out.text(100), format!("{n}\n"));
        assert_eq!(ended.left_behind, 0);
    }
}
