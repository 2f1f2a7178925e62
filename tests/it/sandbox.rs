//! The sandbox of commands, attacked: as the user who runs the tests and as one without rights. Each attack is a line of a
//! script that says `BROKEN` where it gets through; the host is looked at before and after.

use claw_kit::{
    Claw, Output, Reply, Route, Sandbox, ScriptedProvider, processes_with, run_program, wait_until,
};
use serde_json::{Value, json};
use std::net::TcpListener;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(30);
const SSH: &str = "CANARY_SSH_7f3a";

/// Who runs claw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// Whoever runs the tests.
    Self_,
    /// A user without rights, where the tests can become one.
    Nobody,
}

fn is_root() -> bool {
    run_program(Path::new("/"), "id", &["-u"]).is_some_and(|id| id.trim() == "0")
}

fn all() -> Vec<Who> {
    let args = ["--reuid", "65534", "--regid", "65534", "--clear-groups", CLAW, "--version"];
    let can_become = is_root() && run_program(Path::new("/"), "setpriv", &args).is_some();
    if can_become { vec![Who::Self_, Who::Nobody] } else { vec![Who::Self_] }
}

/// The devices that everybody needs.
fn devices() -> Vec<(u64, u32)> {
    ["null", "zero", "full", "random", "urandom", "tty"]
        .iter()
        .map(|name| std::fs::metadata(format!("/dev/{name}")).map(|meta| (meta.rdev(), meta.mode())).unwrap())
        .collect()
}

struct House {
    sandbox: Sandbox,
    who: Who,
    devices: Vec<(u64, u32)>,
}

impl House {
    fn new(sandbox: Sandbox, who: Who) -> Self {
        sandbox.write_home(".ssh/id_rsa", SSH);
        sandbox.write_home(".claw/credentials.json", "{}");
        sandbox.write_home("notes", "visible");
        sandbox.write(".env", SSH);
        sandbox.write("sub/.env.local", SSH);
        sandbox.write("f", "here");
        let evil = sandbox.project().with_file_name("project-evil");
        std::fs::create_dir_all(&evil).unwrap();
        let house = Self { sandbox, who, devices: devices() };
        house.own();
        house
    }

    /// All of it belongs to whoever runs claw.
    fn own(&self) {
        if self.who == Who::Nobody {
            let top = self.sandbox.project().parent().unwrap().display().to_string();
            run_program(Path::new("/"), "chown", &["-R", "65534:65534", &top]).unwrap();
        }
    }

    fn claw(&self, args: &[&str]) -> Claw {
        match self.who {
            Who::Self_ => Claw::new(CLAW, &self.sandbox).args(args),
            Who::Nobody => Claw::new("setpriv", &self.sandbox)
                .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", CLAW])
                .args(args),
        }
    }

    fn script(&self, flags: &[&str], text: &str) -> Output {
        let args = [&["sandbox"], flags, &["--", "bash", "-c", text]].concat();
        self.claw(&args).run(BOUND)
    }

    fn outside(&self, name: &str) -> std::path::PathBuf {
        self.sandbox.project().with_file_name("project-evil").join(name)
    }

    fn host_is_unchanged(&self) {
        assert_eq!(devices(), self.devices);
        assert_eq!(std::fs::read_dir(self.outside("")).unwrap().count(), 0);
        assert_eq!(self.sandbox.read(".env"), SSH);
        assert_eq!(std::fs::read_to_string(self.sandbox.home().join(".ssh/id_rsa")).unwrap(), SSH);
    }
}

/// Whether the full sandbox is there; a machine without it is told by `doctor`, and tests of it have nothing to say.
fn is_full(house: &House) -> bool {
    let report = house.claw(&["doctor", "--output-format", "json"]).run(BOUND).json();
    section(&report, "sandbox")["kind"] == "full"
}

fn section(report: &Value, name: &str) -> Value {
    let sections = report["sections"].as_array().unwrap();
    sections.iter().find(|section| section["name"] == name).unwrap_or_else(|| panic!("{report}"))["data"]
        .clone()
}

const ATTACKS: &str = r#"
t() { if eval "$2" >/dev/null 2>&1; then echo "BROKEN $1"; fi; }
t sibling          'echo x > ../project-evil/x'
t sibling-resolved 'echo x > "$PWD"/.././project-evil/x'
t link-out         'ln -s ../project-evil l && echo x > l/x'
t hard-link        'ln ~/notes h'
t home             'echo x > ~/x'
t modes            'chmod 600 ~/notes'
t times            'touch -d 2001-01-01 ~/notes'
t delete           'rm -f ~/notes && ! test -e ~/notes'
t ssh              'grep -r CANARY ~/.ssh'
t credentials      'grep . ~/.claw/credentials.json'
t env-file         'cat .env || cat sub/.env.local'
t env-file-link    'ln -s .env e2; cat e2'
t env-file-moved   'mv .env moved || ln .env moved'
t env-file-fd      'exec 9<.env'
t proc-environ     'tr "\0" "\n" < /proc/1/environ | grep -i key'
t proc-parent      'cat /proc/$PPID/environ || cat /proc/1/maps | grep .'
t proc-root        'ls /proc/1/root/ || ls /proc/1/cwd/ || readlink /proc/1/fd/* || ls /proc/1/map_files/ | grep .'
t proc-others      'test -e /proc/$HOST'
t kill             'kill -0 $HOST'
t kill-first       'kill -9 1; ! test -d /proc/1'
t trace            'python3 -c "import ctypes,sys; sys.exit(ctypes.CDLL(None).ptrace(16,1,0,0)!=0)"'
t sysctl           'echo x > /proc/sys/kernel/core_pattern'
t sys              'echo x > /sys/kernel/uevent_helper || echo 1 > /sys/fs/cgroup/x'
t remount          'mount -o remount,rw / '
t unmount          'umount ~/.ssh || umount /tmp'
t unmount-inside   'unshare -Urm umount ~/.ssh'
t bind-inside      'unshare -Urm sh -c "mount --bind / /tmp && cat /tmp/$HOME/.ssh/id_rsa"'
t mount-inside     'unshare -Urm mount -t tmpfs t ~'
t enter            'nsenter -t 1 -m true'
t chroot           'mkdir -p /tmp/c && unshare -Ur chroot /proc/1/root true'
t block-device     'head -c1 /dev/vda || head -c1 /dev/sda || head -c1 /dev/mem || head -c1 /dev/kmsg'
t make-device      'mknod d b 254 0 || mknod /tmp/d c 1 1'
t tcp              'exec 8<>/dev/tcp/127.0.0.1/$PORT'
t udp              'python3 -c "import socket; s=socket.socket(2,2); s.connect((\"1.1.1.1\",53))"'
t vsock            'python3 -c "import socket; socket.socket(40,1,0)"'
t packet           'python3 -c "import socket; socket.socket(17,3,0)"'
t unix             'python3 -c "import socket; socket.socket(1,1).connect(\"$SOCK\")"'
t abstract         'python3 -c "import socket; socket.socket(1,1).connect(\"\\0claw-test-$HOST\")"'
t services         'ls -A /run | grep .'
t files            'ls /proc/self/fd | grep -v "^[0123]$"'
t key-in-env       'env | grep -i canary'
t privileges       'grep -q "NoNewPrivs:.0" /proc/self/status'
t git-folder       'mv .git .git2 || rm -rf .git/hooks || rmdir .git'
t git-config       'git config core.fsmonitor "touch x"'
t git-hook         'echo x > .git/hooks/pre-commit'
t governor         'echo x > .claude/settings.json || rm -r .claude || mv .claude .c'
t terminal         'echo x > /dev/tty'
echo x > /tmp/private && test -e /tmp/private && echo works
echo y > new && mkdir d && mv new d/ && cat d/new ~/notes && echo works
"#;

#[test]
fn attacks_get_nowhere_and_ordinary_work_goes_on() {
    for who in all() {
        let sandbox = Sandbox::new().with_git();
        sandbox.write(".claude/settings.json", "{}");
        let house = House::new(sandbox, who);
        if !is_full(&house) {
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = house.sandbox.project().with_file_name("run").join("service");
        let _service = UnixListener::bind(&socket).unwrap();
        house.own();
        let facts = format!(
            "HOST={} PORT={} SOCK={}\n{ATTACKS}",
            std::process::id(),
            listener.local_addr().unwrap().port(),
            socket.display()
        );
        let output = house.script(&[], &facts);
        assert!(!output.stdout.contains("BROKEN"), "{who:?}: {output}");
        assert_eq!(output.stdout, "works\ny\nvisibleworks\n", "{who:?}: {output}");
        assert_eq!(output.code, Some(0), "{who:?}: {output}");
        house.host_is_unchanged();
        assert!(!Path::new("/tmp/private").exists() && house.sandbox.has("d/new"));
        assert_eq!(house.sandbox.read(".claude/settings.json"), "{}");
        assert!(house.sandbox.has(".git/HEAD") && !house.sandbox.has(".git/hooks/pre-commit"));
    }
}

#[test]
fn what_governs_and_is_not_there_is_not_there_afterwards_and_the_code_says_it() {
    for who in all() {
        let house = House::new(Sandbox::new(), who);
        if !is_full(&house) {
            return;
        }
        for line in [
            "mkdir -p .claude && echo x > .claude/settings.json",
            "echo x > .mcp.json",
            "git init -q .",
            "mkdir .claw && echo x > .claw/settings.json",
        ] {
            let output = house.script(&[], line);
            assert_ne!(output.code, Some(0), "{who:?} {line}: {output}");
            let names: Vec<_> = std::fs::read_dir(house.sandbox.project()).unwrap().flatten().collect();
            let names: Vec<_> = names.iter().map(|entry| entry.file_name().into_string().unwrap()).collect();
            let governing = |name: &&String| [".claude", ".mcp.json", ".git"].contains(&name.as_str());
            assert_eq!(names.iter().find(governing), None, "{who:?} {line}: {output}");
            assert!(!house.sandbox.has(".claw/settings.json"), "{who:?} {line}");
        }
        house.host_is_unchanged();
    }
}

#[test]
fn a_copy_and_caches_leave_no_trace_and_read_only_writes_nothing() {
    for who in all() {
        let house = House::new(Sandbox::new(), who);
        house.sandbox.write_home(".cargo/registry/a", "old");
        house.own();
        if !is_full(&house) {
            return;
        }
        let line = "echo new > f; mkdir n; rm -r sub; cat f; ls -d n; echo c > ~/.cargo/registry/a; cat ~/.cargo/registry/a";
        let output = house.script(&["--copy"], line).expect_code(0);
        assert_eq!(output.stdout, "new\nn\nc\n", "{who:?}: {output}");
        let output = house.script(&["--read-only"], "echo new > f || echo x > $TMPDIR/t && cat $TMPDIR/t");
        assert_eq!(output.stdout, "x\n", "{who:?}: {output}");
        assert!(house.sandbox.read("f") == "here" && house.sandbox.has("sub/.env.local"));
        assert!(!house.sandbox.has("n"));
        assert_eq!(std::fs::read_to_string(house.sandbox.home().join(".cargo/registry/a")).unwrap(), "old");
        house.host_is_unchanged();
    }
}

#[test]
fn what_a_rule_denies_to_read_is_not_seen_by_commands_under_any_name() {
    for who in all() {
        let sandbox = Sandbox::new();
        sandbox.write("keys/one", SSH);
        sandbox.write("a/b/two.pem", SSH);
        sandbox.write("plain", "seen");
        let house = House::new(sandbox, who);
        std::fs::hard_link(
            house.sandbox.project().join("a/b/two.pem"),
            house.sandbox.project().join("other"),
        )
        .unwrap();
        if !is_full(&house) {
            return;
        }
        let settings = r#"{"permissions": {"deny": ["Read(./keys/**)", "Read(./**/*.pem)"]}}"#;
        let line = "cat keys/one a/b/two.pem a/../a/b/two.pem other; ls keys; ln -s a/b/two.pem l; cat l; \
                    cp -r . /tmp/all; grep -r CANARY /tmp/all; mv a a2; cat a2/b/two.pem plain";
        let output = house.script(&["--settings", settings], line);
        assert_eq!(output.stdout, "seen", "{who:?}: {output}");
        assert!(house.sandbox.has("a/b/two.pem"), "a folder above what is masked keeps its name: {output}");
        house.host_is_unchanged();
    }
}

#[test]
fn a_list_of_hosts_goes_through_the_proxy_and_this_machine_is_never_on_it() {
    for who in all() {
        let house = House::new(Sandbox::new(), who);
        if !is_full(&house) || run_program(Path::new("/"), "curl", &["--version"]).is_none() {
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let settings = r#"{"sandbox": {"network": {"hosts": ["localhost"]}}}"#;
        let line = format!(
            "curl -s --noproxy '' http://localhost:{port}/; curl -s http://evil.test/; \
             curl -s --noproxy '' http://127.0.0.1:{port}/; exec 8<>/dev/tcp/127.0.0.1/{port}"
        );
        let output = house.script(&["--settings", settings], &line);
        assert!(output.stdout.contains("localhost leads to no public address"), "{who:?}: {output}");
        assert!(output.stdout.contains("evil.test is not in the list of hosts"), "{who:?}: {output}");
        assert!(output.stdout.contains("127.0.0.1 is not in the list of hosts"), "{who:?}: {output}");
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "{who:?}: somebody came through");
    }
}

#[test]
fn the_exit_code_is_the_commands_and_doctor_tells_what_holds() {
    for who in all() {
        let house = House::new(Sandbox::new(), who);
        for (line, code) in [("exit 7", 7), ("kill -9 $$", 137), ("true", 0)] {
            assert_eq!(house.script(&[], line).code, Some(code), "{who:?} {line}");
        }
        let report = house.claw(&["doctor", "--output-format", "json"]).run(BOUND).expect_code(0).json();
        let sandbox = section(&report, "sandbox");
        for key in
            ["enabled", "supported", "active", "namespaces", "network", "filesystem", "inContainer", "reason"]
        {
            assert!(sandbox.get(key).is_some(), "{key}: {sandbox}");
        }
        assert!(section(&report, "git")["version"].as_str().unwrap().contains("git"));
        let text = house.claw(&["doctor"]).run(BOUND).expect_code(0);
        assert!(text.stdout.contains("sandbox: ") && text.stdout.contains("credentials: warning"), "{text}");
        let wall =
            house.claw(&["doctor", "--output-format", "json"]).env("CLAW_SANDBOX", "write-wall").run(BOUND);
        assert_ne!(section(&wall.json(), "sandbox")["kind"], "full", "{wall}");
    }
}

#[test]
fn nothing_of_a_command_outlives_a_kill_of_claw() {
    for who in all() {
        let mark = format!("600.{}{}", std::process::id(), who as u8);
        let line = format!("setsid sleep {mark} & nohup env -i /bin/sleep {mark} & disown; sleep {mark}");
        let provider = ScriptedProvider::always(Reply::tool("t1", "bash", json!({ "command": line })));
        let house = House::new(Sandbox::anthropic(&provider), who);
        if !is_full(&house) {
            return;
        }
        let running = house.claw(&["-p", "x"]).spawn();
        wait_until("the command", BOUND, || processes_with(&mark) >= 3);
        running.kill9();
        wait_until("its end", BOUND, || processes_with(&mark) == 0);
    }
}

#[test]
fn paths_that_lead_elsewhere_are_refused_to_every_tool() {
    for who in all() {
        let sandbox = Sandbox::new();
        let evil = sandbox.project().with_file_name("project-evil");
        let (evil, project) = (evil.display().to_string(), sandbox.project().display().to_string());
        let calls: Vec<(&str, Value)> = [
            json!({"path": "/proc/self/root/etc/shadow"}),
            json!({"path": "/proc/self/environ"}),
            json!({"path": "/proc/self/cwd/../project-evil/x"}),
            json!({"path": "/dev/fd/3"}),
            json!({"path": "/dev/stdin"}),
            json!({"path": "/proc/1/environ"}),
            json!({"path": "/proc/thread-self/root/etc/passwd"}),
            json!({"path": "~/.ssh/id_rsa"}),
            json!({"path": "lnk/secret"}),
            json!({"path": "/dev/zero"}),
        ]
        .into_iter()
        .map(|input| ("read_file", input))
        .chain(
            [
                format!("{evil}/x"),
                format!("{project}/../project-evil/x"),
                format!("{project}//./../project-evil/x"),
                "lnk/x".to_owned(),
                "new".to_owned(),
                "../project-evil/deep/x".to_owned(),
                "/proc/self/cwd/../project-evil/x".to_owned(),
                ".claude/settings.json".to_owned(),
                ".git/hooks/pre-commit".to_owned(),
                "sub/../.mcp.json".to_owned(),
            ]
            .map(|path| ("write_file", json!({"path": path, "content": "x"}))),
        )
        .collect();
        let many = calls.len();
        let reply = calls
            .into_iter()
            .enumerate()
            .fold(Reply::empty(), |reply, (n, (tool, input))| reply.with_tool(&format!("t{n}"), tool, input));
        let provider = ScriptedProvider::new([
            Route::reply(reply).lacks("tool_result"),
            Route::reply(Reply::text("done")),
        ]);
        let house = House::new(sandbox.with_provider(&provider, claw_kit::Wire::Anthropic), who);
        std::os::unix::fs::symlink("../project-evil", house.sandbox.project().join("lnk")).unwrap();
        std::os::unix::fs::symlink("../project-evil/new", house.sandbox.project().join("new")).unwrap();
        house.claw(&["-p", "x"]).run(BOUND).expect_code(0);
        let told = provider.last_request();
        let text = serde_json::to_string(told.messages()).unwrap();
        assert_eq!(text.matches("\"is_error\":true").count(), many, "{who:?}: {text}");
        assert!(!text.contains(SSH) && !text.contains("root:"), "{who:?}: {text}");
        house.host_is_unchanged();
        assert!(
            !house.sandbox.has(".claude") && !house.sandbox.has(".mcp.json") && !house.sandbox.has(".git")
        );
    }
}
