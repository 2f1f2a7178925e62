//! Who belongs to a job: its group, and what left the group or lost its parent.
//!
//! This process adopts orphans below it, so that what a finished job left behind is found among its own children:
//! by session, or by the mark in the environment when it made a session of its own. A process that does both, leaves
//! the session and wipes its environment, is not found; only a pid namespace of its own would hold it.

use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions};
use std::collections::{HashSet, VecDeque};
use std::fs;
use std::os::fd::OwnedFd;
use std::sync::{LazyLock, Mutex, PoisonError};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Main processes that another owner waits for.
static LEADERS: LazyLock<Mutex<HashSet<Pid>>> = LazyLock::new(Mutex::default);

/// First processes of pid namespaces that nobody waits for any more.
static DEAD: LazyLock<Mutex<Vec<Pid>>> = LazyLock::new(Mutex::default);

/// Orphans below this process become its children. Once is enough.
pub(crate) fn adopt_orphans() {
    static ONCE: LazyLock<bool> =
        LazyLock::new(|| rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok());
    LazyLock::force(&ONCE);
}

/// The processes of one job.
#[derive(Debug)]
pub(crate) struct Group {
    leader: Pid,
    mark: String,
    /// The first process of the job's own pid namespace: all others of the job are below it, and die with it.
    first: Option<(Pid, OwnedFd)>,
}

impl Group {
    /// The group of a main process that made its own session and carries `mark` (`NAME=value`) in its environment.
    pub(crate) fn new(leader: u32, mark: String) -> Option<Self> {
        let leader = i32::try_from(leader).ok().and_then(Pid::from_raw)?;
        LEADERS.lock().unwrap_or_else(PoisonError::into_inner).insert(leader);
        Some(Self { leader, mark, first: None })
    }

    /// The same for a job in a pid namespace of its own. None: its first process is gone already, or was cleared away.
    pub(crate) fn with_first(mut self, first: Option<Pid>) -> Self {
        self.first = first.and_then(|first| Some((first, pidfd(first)?)));
        self
    }

    /// A signal to everything of the job while its main process has not been waited for.
    pub(crate) fn signal_all(&self, signal: Signal) {
        if let Some((first, fd)) = &self.first {
            if signal == Signal::KILL {
                let _ = rustix::process::pidfd_send_signal(fd, signal);
                let _ = rustix::process::kill_process(self.leader, signal);
            } else {
                for pid in below([*first]) {
                    let _ = rustix::process::kill_process(pid, signal);
                }
            }
            return;
        }
        let strays = self.strays();
        // The main process is at least a zombie: its number is not somebody else's.
        let _ = rustix::process::kill_process_group(self.leader, signal);
        for pid in strays {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }

    fn strays(&self) -> Vec<Pid> {
        let session = self.leader.as_raw_nonzero().get();
        let mut all = below([self.leader]);
        all.extend(self.left_behind());
        all.retain(|pid| stat(*pid).is_some_and(|stat| stat.group != session));
        all
    }

    /// What is left of the job after its main process was waited for: orphans, and what is below them.
    /// Dead ones are cleared away.
    pub(crate) fn left_behind(&self) -> Vec<Pid> {
        let orphans: Vec<Pid> = children_of_this_process()
            .into_iter()
            .filter(|pid| *pid != self.leader && !is_leader(*pid))
            .filter(|pid| self.owns(*pid))
            .filter(|pid| !cleared(*pid))
            .collect();
        if orphans.is_empty() {
            orphans
        } else {
            below(orphans.iter().copied()).into_iter().chain(orphans).collect()
        }
    }

    fn owns(&self, pid: Pid) -> bool {
        let session = self.leader.as_raw_nonzero().get();
        stat(pid).is_some_and(|stat| stat.session == session) || self.is_marked(pid)
    }

    fn is_marked(&self, pid: Pid) -> bool {
        let environment = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == self.mark.as_bytes())
    }

    /// Ends all that is left behind; gives how many. Some may start others meanwhile: looked for again.
    pub(crate) async fn end_left_behind(&self) -> usize {
        if let Some((first, fd)) = &self.first {
            let ended = below([*first]).len();
            let _ = rustix::process::pidfd_send_signal(fd, Signal::KILL);
            self.first_gone().await;
            return ended;
        }
        let mut ended = HashSet::new();
        for _ in 0..64 {
            let left = self.left_behind();
            if left.is_empty() {
                break;
            }
            let watched: Vec<(Pid, OwnedFd)> =
                left.iter().filter_map(|pid| Some((*pid, pidfd(*pid)?))).collect();
            for (pid, fd) in &watched {
                if rustix::process::pidfd_send_signal(fd, Signal::KILL).is_ok() {
                    ended.insert(*pid);
                }
            }
            wait_for_all(watched).await;
        }
        ended.len()
    }

    /// Ready when nothing of the job is left; what starts meanwhile counts.
    pub(crate) async fn gone(&self) {
        if self.first.is_some() {
            return self.first_gone().await;
        }
        loop {
            let left = self.left_behind();
            if left.is_empty() {
                return;
            }
            wait_for_all(left.iter().filter_map(|pid| Some((*pid, pidfd(*pid)?))).collect()).await;
        }
    }
}

impl Group {
    /// Ready when the first process of a pid namespace, and so all of it, is gone.
    async fn first_gone(&self) {
        if let Some((first, fd)) = &self.first
            && let Ok(fd) = fd.try_clone()
        {
            wait_for_all(vec![(*first, fd)]).await;
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some((first, fd)) = &self.first {
            // Mostly it is gone already. Where the call was dropped, it dies now, and is cleared away with a later one.
            let _ = rustix::process::pidfd_send_signal(fd, Signal::KILL);
            let mut dead = DEAD.lock().unwrap_or_else(PoisonError::into_inner);
            dead.push(*first);
            dead.retain(|pid| !is_cleared(*pid));
        }
        LEADERS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.leader);
    }
}

fn is_leader(pid: Pid) -> bool {
    LEADERS.lock().unwrap_or_else(PoisonError::into_inner).contains(&pid)
}

/// Whether it was a dead child of ours; it is gone then.
fn cleared(pid: Pid) -> bool {
    matches!(rustix::process::waitpid(Some(pid), WaitOptions::NOHANG), Ok(Some(_)))
}

/// Whether it is no child of ours, any more or at all.
fn is_cleared(pid: Pid) -> bool {
    !matches!(rustix::process::waitpid(Some(pid), WaitOptions::NOHANG), Ok(None))
}

fn pidfd(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()
}

async fn wait_for_all(processes: Vec<(Pid, OwnedFd)>) {
    for (pid, fd) in processes {
        // SAFETY: an owned descriptor is given away: it stays open, and the same, as long as it is registered.
        if let Ok(watched) = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) } {
            let _ = watched.readable().await.map(drop);
        }
        cleared(pid);
    }
}

/// Orphans come to the first thread of this process.
fn children_of_this_process() -> Vec<Pid> {
    let me = std::process::id();
    pids(&format!("/proc/{me}/task/{me}/children"))
}

fn pids(path: &str) -> Vec<Pid> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|word| Pid::from_raw(word.parse().ok()?)).collect()
}

/// Everything below some processes, without these. Bounded.
fn below(roots: impl IntoIterator<Item = Pid>) -> Vec<Pid> {
    const MOST: usize = 100_000;
    let mut queue: VecDeque<Pid> = roots.into_iter().collect();
    let mut found = Vec::new();
    while let Some(pid) = queue.pop_front() {
        let tasks = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
        for task in tasks.into_iter().flatten().flatten() {
            let children = pids(&task.path().join("children").to_string_lossy());
            found.extend_from_slice(&children);
            queue.extend(children);
        }
        if found.len() > MOST {
            break;
        }
    }
    found
}

struct Stat {
    group: i32,
    session: i32,
}

fn stat(pid: Pid) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The name in brackets may hold anything: the fields start after the last bracket.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(2);
    Some(Stat { group: fields.next()?.parse().ok()?, session: fields.next()?.parse().ok()? })
}
