//! The mailboxes of running attempts: what a person says to an agent waits here until its conversation takes it.
//!
//! Bounded with the conversation's own room. Knows nothing of journals: what gets here is on record.

use crate::addr::StepAddr;
use crate::scheduler::StepIx;
use claw_agents::{NotSteered, Orders};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Messages for an attempt whose conversation has not begun.
const MOST_EARLY: usize = 16;

/// All mailboxes of one run.
#[derive(Default)]
pub(crate) struct Mailboxes(Mutex<HashMap<StepIx, Mailbox>>);

struct Mailbox {
    addr: StepAddr,
    early: Vec<String>,
    agent: Option<Orders>,
}

impl Mailboxes {
    fn all(&self) -> MutexGuard<'_, HashMap<StepIx, Mailbox>> {
        // Every change of the map is whole: a panic elsewhere leaves it usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An attempt of an agent starts.
    pub fn open(&self, step: StepIx, addr: StepAddr) {
        self.all().insert(step, Mailbox { addr, early: Vec::new(), agent: None });
    }

    /// Its conversation begins: it hears what was said before, in order.
    pub fn attach(&self, step: StepIx, agent: Orders) {
        if let Some(mailbox) = self.all().get_mut(&step) {
            for text in mailbox.early.drain(..) {
                // There is room for all of them; a conversation that has ended hears nothing.
                let _ = agent.steer(text);
            }
            mailbox.agent = Some(agent);
        }
    }

    /// The attempt is over.
    pub fn close(&self, step: StepIx) {
        self.all().remove(&step);
    }

    /// Puts a message in.
    pub fn put(&self, step: StepIx, text: String) -> Result<(), NotSteered> {
        let mut all = self.all();
        let mailbox = all.get_mut(&step).ok_or(NotSteered::Ended)?;
        match &mailbox.agent {
            Some(agent) => agent.steer(text),
            None if mailbox.early.len() < MOST_EARLY => {
                mailbox.early.push(text);
                Ok(())
            }
            None => Err(NotSteered::Full),
        }
    }

    /// Why a message to that step would not be heard by the agent that runs there; `None` where it would, or where no
    /// agent is known here.
    pub fn refuses(&self, addr: &StepAddr) -> Option<String> {
        let all = self.all();
        let mailbox = all.values().find(|mailbox| mailbox.addr == *addr)?;
        let has_room = match &mailbox.agent {
            Some(agent) => agent.has_room(),
            None => mailbox.early.len() < MOST_EARLY,
        };
        (!has_room).then(|| format!("{addr}: {}", NotSteered::Full))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_before_the_conversation_begins_waits_for_it_and_is_bounded() {
        let boxes = Mailboxes::default();
        let (step, addr): (StepIx, StepAddr) = (StepIx(3), "a".parse().unwrap());
        assert_eq!(boxes.put(step, "too early".into()), Err(NotSteered::Ended));
        boxes.open(step, addr.clone());
        for n in 0..MOST_EARLY {
            assert_eq!((boxes.refuses(&addr), boxes.put(step, n.to_string())), (None, Ok(())));
        }
        assert!(boxes.refuses(&addr).is_some_and(|why| why.starts_with("a: 16 messages wait")));
        assert_eq!(boxes.put(step, "more".into()), Err(NotSteered::Full));
        boxes.close(step);
        assert_eq!(boxes.put(step, "too late".into()), Err(NotSteered::Ended));
    }
}
