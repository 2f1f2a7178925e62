//! The task list of a session: shared by its agents, kept in one file.
//!
//! Owns the rules: a task is blocked by tasks that exist, never by itself. Knows nothing of who works on them.

use claw_kernel::durable::{self, Mode, Sync};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The version of the file.
const VERSION: u32 = 1;
/// Tasks of one list.
const MOST: usize = 1_000;
/// Bytes of a file that is read.
const MOST_BYTES: u64 = 16 << 20;

/// How a task stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Nobody has begun.
    #[default]
    Pending,
    /// Somebody works on it.
    InProgress,
    /// Done.
    Completed,
    /// Given up.
    Cancelled,
}

impl TaskStatus {
    /// As in a file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
        }
    }

    fn is_over(self) -> bool {
        match self {
            Self::Completed | Self::Cancelled => true,
            Self::Pending | Self::InProgress => false,
        }
    }
}

/// One task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// From 1.
    pub id: u32,
    /// What is to be done, in a line.
    pub subject: String,
    /// More about it; may be empty.
    #[serde(default)]
    pub description: String,
    /// How it stands.
    pub status: TaskStatus,
    /// Who works on it.
    #[serde(default)]
    pub owner: Option<String>,
    /// Tasks that come first.
    #[serde(default)]
    pub blocked_by: Vec<u32>,
}

/// What a task becomes; what is left out stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskChange {
    /// What is to be done.
    pub subject: Option<String>,
    /// More about it.
    pub description: Option<String>,
    /// How it stands.
    pub status: Option<TaskStatus>,
    /// Who works on it; empty: nobody.
    pub owner: Option<String>,
    /// Tasks that come first.
    pub blocked_by: Option<Vec<u32>>,
}

/// Why a list did not change.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// No such task.
    #[error("there is no task {0}; task_list shows all")]
    Unknown(u32),
    /// Nothing to do in it.
    #[error("the subject is blank")]
    Blank,
    /// It would wait for itself.
    #[error("task {id} would wait for itself, through task {through}")]
    Circle {
        /// The task.
        id: u32,
        /// The one that waits for it.
        through: u32,
    },
    /// Too many.
    #[error("the list holds {MOST} tasks already; complete some of them")]
    Full,
    /// The file could not be written: the list is as before.
    #[error("the task list could not be kept in {}", path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Stored {
    version: u32,
    tasks: Vec<Task>,
}

/// A task list. Every change is in its file before it is told.
#[derive(Debug, Default)]
pub struct TaskList {
    tasks: Mutex<Vec<Task>>,
    file: Option<PathBuf>,
}

impl TaskList {
    /// One that is kept nowhere.
    pub fn in_memory() -> Self {
        Self::default()
    }

    /// The list of a file, which is made with the first task. Errors: it cannot be read, or is of another version.
    pub fn open(path: &Path) -> io::Result<Self> {
        let tasks = match path.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
            Ok(meta) if !meta.is_file() || meta.len() > MOST_BYTES => {
                return Err(io::Error::other("it is no task list"));
            }
            Ok(_) => {
                let stored: Stored =
                    serde_json::from_slice(&std::fs::read(path)?).map_err(io::Error::other)?;
                if stored.version != VERSION {
                    return Err(io::Error::other(format!("it is of version {}", stored.version)));
                }
                stored.tasks
            }
        };
        Ok(Self { tasks: Mutex::new(tasks), file: Some(path.to_owned()) })
    }

    /// All tasks, in the order of their ids.
    pub fn all(&self) -> Vec<Task> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// One task.
    pub fn get(&self, id: u32) -> Result<Task, TaskError> {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.iter().find(|task| task.id == id).cloned().ok_or(TaskError::Unknown(id))
    }

    /// Tasks that `task` waits for and that are not over.
    pub fn open_needs(&self, task: &Task) -> Vec<u32> {
        let tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let is_open = |id: &u32| tasks.iter().any(|task| task.id == *id && !task.status.is_over());
        task.blocked_by.iter().copied().filter(is_open).collect()
    }

    /// Adds a task. Blocks.
    pub fn create(&self, change: TaskChange) -> Result<Task, TaskError> {
        self.change(|tasks| {
            if tasks.len() >= MOST {
                return Err(TaskError::Full);
            }
            let id = tasks.last().map_or(0, |task| task.id) + 1;
            let empty = Task {
                id,
                subject: String::new(),
                description: String::new(),
                status: TaskStatus::Pending,
                owner: None,
                blocked_by: Vec::new(),
            };
            tasks.push(empty);
            apply(tasks, id, change)
        })
    }

    /// Changes a task. Blocks.
    pub fn update(&self, id: u32, change: TaskChange) -> Result<Task, TaskError> {
        self.change(|tasks| apply(tasks, id, change))
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Vec<Task>) -> Result<Task, TaskError>,
    ) -> Result<Task, TaskError> {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new = tasks.clone();
        let changed = change(&mut new)?;
        if let Some(path) = &self.file {
            store(path, &new).map_err(|source| TaskError::Store { path: path.clone(), source })?;
        }
        *tasks = new;
        Ok(changed)
    }
}

fn store(path: &Path, tasks: &[Task]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        durable::private_dir(folder)?;
    }
    let stored = Stored { version: VERSION, tasks: tasks.to_vec() };
    durable::replace(path, &serde_json::to_vec_pretty(&stored)?, Mode::Private, Sync::Yes)
}

fn apply(tasks: &mut [Task], id: u32, change: TaskChange) -> Result<Task, TaskError> {
    if let Some(needs) = &change.blocked_by {
        may_wait(tasks, id, needs)?;
    }
    let task = tasks.iter_mut().find(|task| task.id == id).ok_or(TaskError::Unknown(id))?;
    let TaskChange { subject, description, status, owner, blocked_by } = change;
    task.subject = subject.map_or_else(|| task.subject.clone(), |subject| subject.trim().to_owned());
    if task.subject.is_empty() {
        return Err(TaskError::Blank);
    }
    task.description = description.unwrap_or_else(|| std::mem::take(&mut task.description));
    task.status = status.unwrap_or(task.status);
    if let Some(owner) = owner {
        task.owner = Some(owner.trim().to_owned()).filter(|owner| !owner.is_empty());
    }
    if let Some(mut needs) = blocked_by {
        needs.sort_unstable();
        needs.dedup();
        task.blocked_by = needs;
    }
    Ok(task.clone())
}

/// Follows what `needs` wait for; none of them may wait for `id`.
fn may_wait(tasks: &[Task], id: u32, needs: &[u32]) -> Result<(), TaskError> {
    for start in needs {
        let mut seen = Vec::new();
        let mut open = vec![*start];
        while let Some(at) = open.pop() {
            if at == id {
                return Err(TaskError::Circle { id, through: *start });
            }
            let task = tasks.iter().find(|task| task.id == at).ok_or(TaskError::Unknown(at))?;
            if !seen.contains(&at) {
                seen.push(at);
                open.extend(&task.blocked_by);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(text: &str) -> TaskChange {
        TaskChange { subject: Some(text.to_owned()), ..TaskChange::default() }
    }

    #[test]
    fn a_list_is_there_again_when_it_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s/tasks.json");
        let list = TaskList::open(&path).unwrap();
        list.create(subject("one")).unwrap();
        let needs = TaskChange { blocked_by: Some(vec![1, 1]), ..subject("two") };
        assert_eq!(list.create(needs).unwrap().blocked_by, [1]);
        let done = TaskChange {
            status: Some(TaskStatus::Completed),
            owner: Some("A".into()),
            ..TaskChange::default()
        };
        let two = list.get(2).unwrap();
        assert_eq!(list.open_needs(&two), [1]);
        list.update(1, done).unwrap();
        assert!(list.open_needs(&two).is_empty());
        assert_eq!(TaskList::open(&path).unwrap().all(), list.all());
    }

    #[test]
    fn a_task_waits_for_tasks_that_are_there_and_never_for_itself() {
        let list = TaskList::in_memory();
        list.create(subject("one")).unwrap();
        list.create(TaskChange { blocked_by: Some(vec![1]), ..subject("two") }).unwrap();
        let on = |id, needs: &[u32]| {
            list.update(id, TaskChange { blocked_by: Some(needs.to_vec()), ..TaskChange::default() })
        };
        assert!(matches!(on(1, &[2]), Err(TaskError::Circle { id: 1, through: 2 })));
        assert!(matches!(on(1, &[9]), Err(TaskError::Unknown(9))));
        assert!(matches!(list.create(subject(" ")), Err(TaskError::Blank)));
        assert_eq!(list.all().len(), 2);
    }
}
