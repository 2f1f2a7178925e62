//! The words on a run's socket: one JSON object a line. An order goes in; `done`, `refused`, or what is watched comes
//! out. A promise to other versions: fields are added, never changed.

use crate::addr::StepAddr;
use serde::{Deserialize, Serialize};

/// Bytes of an order at most.
pub(super) const MOST_ORDER: usize = 256 * 1024;
/// Bytes of a line that comes back at most.
pub(super) const MOST_LINE: usize = 16 * 1024 * 1024;

/// What another process wants.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum Order {
    /// The board, then every event until the run ends.
    Watch {
        /// The text of agents too.
        #[serde(default)]
        partial: bool,
    },
    /// Stop everything. Done when the run has ended.
    Stop,
    /// Start nothing new.
    Pause {
        /// For people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Answer a question.
    Answer {
        /// Which step asks.
        step: StepAddr,
        /// One of its choices.
        choice: String,
        /// A word with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
    },
    /// Say something to an agent.
    Message {
        /// Which step.
        step: StepAddr,
        /// What.
        text: String,
    },
}

/// What comes back for all but `watch`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Reply {
    /// It is on record.
    Done,
    /// It is not taken.
    Refused {
        /// Why.
        reason: String,
    },
    /// Between events: so many nodes are final by now.
    #[serde(rename = "run.nodes")]
    Nodes {
        /// How many.
        done: usize,
    },
    /// Between events: so many are missing; the board follows again.
    Missed {
        /// How many.
        events: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_stay_as_they_are() {
        let step: StepAddr = "fix@2/edit".parse().unwrap();
        let orders = [
            Order::Watch { partial: false },
            Order::Stop,
            Order::Pause { reason: None },
            Order::Answer { step: step.clone(), choice: "approve".into(), comment: Some("go".into()) },
            Order::Message { step, text: "use b".into() },
        ];
        let lines = orders.map(|order| serde_json::to_string(&order).unwrap());
        insta::assert_snapshot!(lines.join("\n"), @r#"
        {"order":"watch","partial":false}
        {"order":"stop"}
        {"order":"pause"}
        {"order":"answer","step":"fix@2/edit","choice":"approve","comment":"go"}
        {"order":"message","step":"fix@2/edit","text":"use b"}
        "#);
        let read: Order = serde_json::from_str(r#"{"order":"watch","later":1}"#).unwrap();
        assert_eq!(read, Order::Watch { partial: false });
        let missed = serde_json::to_string(&Reply::Missed { events: 3 }).unwrap();
        assert_eq!(missed, r#"{"type":"missed","events":3}"#);
    }
}
