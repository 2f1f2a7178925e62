//! A gate holds an answer back until the test lets it pass. Knows nothing of answers.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Holds answers until the test opens it. Clones are the same gate.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Debug, Default)]
struct State {
    open: bool,
    passes: usize,
    waiting: usize,
}

impl Gate {
    /// A closed gate.
    pub fn closed() -> Self {
        Self::default()
    }

    /// Opens the gate for everybody, now and later.
    pub fn open(&self) {
        self.inner.state.lock().unwrap().open = true;
        self.inner.moved.notify_all();
    }

    /// Lets `count` answers pass, waiting ones first.
    pub fn let_pass(&self, count: usize) {
        self.inner.state.lock().unwrap().passes += count;
        self.inner.moved.notify_all();
    }

    /// How many answers wait at the gate.
    pub fn waiting(&self) -> usize {
        self.inner.state.lock().unwrap().waiting
    }

    /// Waits until at least `count` answers stand at the gate.
    ///
    /// # Panics
    /// When they do not within `bound`.
    pub fn wait_for_waiting(&self, count: usize, bound: Duration) {
        let end = Instant::now() + bound;
        let mut state = self.inner.state.lock().unwrap();
        while state.waiting < count {
            let rest = end.saturating_duration_since(Instant::now());
            assert!(!rest.is_zero(), "{} of {count} answers at the gate after {bound:?}", state.waiting);
            state = self.inner.moved.wait_timeout(state, rest).unwrap().0;
        }
    }

    /// Waits to pass. `gone` is asked now and then whether anybody still wants the answer; returns false
    /// when not.
    pub(crate) fn pass(&self, mut gone: impl FnMut() -> bool) -> bool {
        let mut state = self.inner.state.lock().unwrap();
        state.waiting += 1;
        self.inner.moved.notify_all();
        let passed = loop {
            if state.open {
                break true;
            }
            if state.passes > 0 {
                state.passes -= 1;
                break true;
            }
            let (next, wait) = self.inner.moved.wait_timeout(state, Duration::from_millis(100)).unwrap();
            state = next;
            if wait.timed_out() {
                drop(state);
                let nobody = gone();
                state = self.inner.state.lock().unwrap();
                if nobody {
                    break false;
                }
            }
        };
        state.waiting -= 1;
        passed
    }
}
