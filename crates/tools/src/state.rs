//! What lives as long as one conversation: background commands, interpreters, the todo list, the plan mode, tools that
//! were loaded late.
//!
//! Owns these and their end. Knows nothing of turns or models.

use crate::background::Shells;
use crate::builtin::{Repls, Todo};
use crate::registry::{ToolSpec, key};
use claw_kernel::cancel::CancelToken;
use indexmap::IndexSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// State of one conversation. Dropping it ends what runs, at once; `end` does it in order and waits.
#[derive(Debug, Default)]
pub struct ConversationState {
    shells: Shells,
    repls: Repls,
    todos: Mutex<Vec<Todo>>,
    is_planning: AtomicBool,
    loaded: Mutex<IndexSet<&'static str>>,
    held_back: Mutex<Arc<[ToolSpec]>>,
    over: CancelToken,
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each write is one step: whatever a panic left is whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ConversationState {
    /// Commands in the background.
    pub fn shells(&self) -> &Shells {
        &self.shells
    }

    /// Interpreters.
    pub fn repls(&self) -> &Repls {
        &self.repls
    }

    /// The todo list.
    pub fn todos(&self) -> Vec<Todo> {
        held(&self.todos).clone()
    }

    /// Another todo list; gives the old one.
    pub fn set_todos(&self, todos: Vec<Todo>) -> Vec<Todo> {
        std::mem::replace(&mut held(&self.todos), todos)
    }

    /// Whether nothing but reading is allowed until a plan is accepted.
    pub fn is_planning(&self) -> bool {
        self.is_planning.load(Ordering::Acquire)
    }

    /// Starts or ends the plan mode.
    pub fn set_planning(&self, planning: bool) {
        self.is_planning.store(planning, Ordering::Release);
    }

    /// Tools whose schemas are held back until somebody asks for them.
    pub fn held_back(&self) -> Arc<[ToolSpec]> {
        held(&self.held_back).clone()
    }

    /// The owner of the conversation says which tools are held back.
    pub fn hold_back(&self, tools: Arc<[ToolSpec]>) {
        *held(&self.held_back) = tools;
    }

    /// Asks for tools: the next request holds them. Only those held back count; gives their canonical names.
    pub fn load<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<&'static str> {
        let held_back = self.held_back();
        let known = |name: &str| held_back.iter().find(|spec| key(spec.name) == key(name));
        let found: Vec<_> = names.into_iter().filter_map(|name| known(name).map(|spec| spec.name)).collect();
        held(&self.loaded).extend(found.iter().copied());
        found
    }

    /// Tools that were asked for, in that order.
    pub fn loaded(&self) -> Vec<&'static str> {
        held(&self.loaded).iter().copied().collect()
    }

    /// Cancelled when the conversation is over.
    pub fn over(&self) -> &CancelToken {
        &self.over
    }

    /// Ends everything that still runs and waits for it: at most 2 s.
    pub async fn end(&self) {
        self.over.cancel();
        tokio::join!(self.shells.end_all(), self.repls.end_all());
    }
}

impl Drop for ConversationState {
    fn drop(&mut self) {
        self.over.cancel();
    }
}
