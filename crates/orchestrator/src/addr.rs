//! Names of steps: one type, the same text in journal, events, manifests and on the screen.

use claw_kernel::safe_name;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::Arc;

/// Bytes that the folder of most addresses fits in.
const FOLDER: usize = 48;

/// A name that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddrError {
    /// A node's name must match `[a-z][a-z0-9_]{0,47}`.
    #[error("`{0}` is not a name (a letter a-z, then at most 47 of a-z, 0-9, _)")]
    Ident(String),
    /// An address does not parse.
    #[error("`{0}` is not the address of a step")]
    Addr(String),
}

/// Names one node of a workflow: `[a-z][a-z0-9_]{0,47}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NodeId(Arc<str>);

impl NodeId {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for NodeId {
    type Error = AddrError;
    fn try_from(raw: String) -> Result<Self, AddrError> {
        raw.parse()
    }
}

impl FromStr for NodeId {
    type Err = AddrError;
    fn from_str(raw: &str) -> Result<Self, AddrError> {
        let mut bytes = raw.bytes();
        let head = bytes.next().is_some_and(|b| b.is_ascii_lowercase());
        let tail = bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if head && tail && raw.len() <= 48 {
            Ok(Self(raw.into()))
        } else {
            Err(AddrError::Ident(raw.to_owned()))
        }
    }
}

impl From<NodeId> for String {
    fn from(id: NodeId) -> Self {
        id.0.as_ref().to_owned()
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key of an item under `each`, in the form that is safe in an address and in a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemKey(Arc<str>);

impl ItemKey {
    /// Makes any text safe: two different texts never give one key.
    pub fn of(raw: &str) -> Self {
        Self(safe_name::encode(raw).into())
    }

    /// The safe form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ItemKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One part of an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddrPart {
    /// `<node>`, `<node>=<item>`, `<node>@<n>`, `<node>=<item>@<n>`.
    Node {
        /// The node.
        node: NodeId,
        /// Under `each`.
        item: Option<ItemKey>,
        /// Under `loop`, from 1.
        iteration: Option<u32>,
    },
    /// `+<k>`: the k-th child that a model started, from 1.
    Child(u32),
}

/// The address of one unit of work. Never empty but for [`StepAddr::session`]. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StepAddr(Arc<[AddrPart]>);

impl StepAddr {
    /// A node's own step.
    pub fn node(node: NodeId) -> Self {
        Self([AddrPart::Node { node, item: None, iteration: None }].into())
    }

    /// The conversation of a session, above its agents `+1`, `+2`. It is no step, and stands on no record.
    pub(crate) fn session() -> Self {
        Self([].into())
    }

    /// Whether it is that of a session's own conversation.
    pub(crate) fn is_session(&self) -> bool {
        self.0.is_empty()
    }

    /// One item of a node.
    pub fn item(node: NodeId, item: ItemKey) -> Self {
        Self([AddrPart::Node { node, item: Some(item), iteration: None }].into())
    }

    /// A step below this one.
    pub fn below(&self, part: AddrPart) -> Self {
        Self(self.0.iter().cloned().chain([part]).collect())
    }

    /// The n-th iteration of this one, from 1.
    pub fn iteration(&self, n: u32) -> Self {
        let (last, before) = match self.0.split_last() {
            Some((last, before)) => (last.clone(), before),
            None => return self.clone(),
        };
        let last = match last {
            AddrPart::Node { node, item, .. } => AddrPart::Node { node, item, iteration: Some(n) },
            AddrPart::Child(k) => AddrPart::Child(k),
        };
        Self(before.iter().cloned().chain([last]).collect())
    }

    /// This one for an item.
    pub fn with_item(&self, key: ItemKey) -> Self {
        let (last, before) = match self.0.split_last() {
            Some((last, before)) => (last.clone(), before),
            None => return self.clone(),
        };
        let last = match last {
            AddrPart::Node { node, iteration, .. } => AddrPart::Node { node, item: Some(key), iteration },
            AddrPart::Child(k) => AddrPart::Child(k),
        };
        Self(before.iter().cloned().chain([last]).collect())
    }

    /// The parts, never empty.
    pub fn parts(&self) -> &[AddrPart] {
        &self.0
    }

    /// The steps that this one stands in, the outermost first: groups, their iterations, agents that started it.
    pub fn above(&self) -> Vec<Self> {
        let mut above = Vec::new();
        for end in 1..=self.0.len() {
            let (before, rest) = self.0.split_at(end - 1);
            if let [AddrPart::Node { node, item, iteration: Some(_) }, ..] = rest {
                let whole = AddrPart::Node { node: node.clone(), item: item.clone(), iteration: None };
                above.push(Self(before.iter().cloned().chain([whole]).collect()));
            }
            if end < self.0.len() {
                above.push(Self(self.0[..end].into()));
            }
        }
        above
    }

    /// Ids of the nodes that it goes through, without items, iterations and children.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            AddrPart::Node { node, .. } => Some(node.as_str()),
            AddrPart::Child(_) => None,
        })
    }

    /// The path of its node in the plan: those ids joined by `/`.
    pub fn path(&self) -> String {
        self.nodes().collect::<Vec<_>>().join("/")
    }

    /// The folder of one attempt, below `nodes/`: `<address>.<attempt>`.
    pub fn folder(&self, attempt: u32) -> String {
        let mut folder = String::with_capacity(FOLDER);
        // Writing to a String cannot fail.
        let _ = write!(folder, "{self}.{attempt}");
        folder
    }
}

impl fmt::Display for AddrPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node { node, item, iteration } => {
                f.write_str(node.as_str())?;
                if let Some(item) = item {
                    f.write_str("=")?;
                    f.write_str(item.as_str())?;
                }
                if let Some(n) = iteration {
                    write!(f, "@{n}")?;
                }
                Ok(())
            }
            Self::Child(k) => write!(f, "+{k}"),
        }
    }
}

impl fmt::Display for StepAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, part) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("/")?;
            }
            fmt::Display::fmt(part, f)?;
        }
        Ok(())
    }
}

impl FromStr for AddrPart {
    type Err = AddrError;
    fn from_str(raw: &str) -> Result<Self, AddrError> {
        let bad = || AddrError::Addr(raw.to_owned());
        if let Some(k) = raw.strip_prefix('+') {
            return k.parse().map(Self::Child).map_err(|_| bad());
        }
        let (rest, iteration) = match raw.rsplit_once('@') {
            Some((rest, n)) => (rest, Some(n.parse().map_err(|_| bad())?)),
            None => (raw, None),
        };
        let (node, item) = match rest.split_once('=') {
            Some((node, item)) if safe_name::is_encoded(item) => (node, Some(ItemKey(item.into()))),
            Some(_) => return Err(bad()),
            None => (rest, None),
        };
        Ok(Self::Node { node: node.parse()?, item, iteration })
    }
}

impl FromStr for StepAddr {
    type Err = AddrError;
    fn from_str(raw: &str) -> Result<Self, AddrError> {
        raw.split('/').map(str::parse).collect::<Result<Vec<_>, _>>().map(|parts| Self(parts.into()))
    }
}

impl TryFrom<String> for StepAddr {
    type Error = AddrError;
    fn try_from(raw: String) -> Result<Self, AddrError> {
        raw.parse()
    }
}

impl From<StepAddr> for String {
    fn from(addr: StepAddr) -> Self {
        addr.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_knows_what_it_stands_in() {
        let above = |addr: &str| -> Vec<String> {
            addr.parse::<StepAddr>().unwrap().above().iter().map(ToString::to_string).collect()
        };
        assert_eq!(above("fix"), [""; 0]);
        assert_eq!(above("fix@2/edit"), ["fix", "fix@2"]);
        assert_eq!(above("look=a@1/in@3/+1"), ["look=a", "look=a@1", "look=a@1/in", "look=a@1/in@3"]);
    }

    #[test]
    fn an_address_reads_back_as_it_was_written() {
        for text in ["fix", "explore=security", "fix@2/edit", "a=x%2Fy@3/b/+4"] {
            assert_eq!(text.parse::<StepAddr>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn text_that_could_leave_the_folder_is_no_address() {
        for text in ["", "/", "..", "a/..", "A", "a=", "a@x", "+", "a//b", "a=b\0"] {
            assert!(text.parse::<StepAddr>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn any_key_becomes_a_part_of_a_path() {
        let addr = StepAddr::item("explore".parse().unwrap(), ItemKey::of("../../etc/passwd"));
        assert!(!addr.to_string().contains('/'), "{addr}");
        assert_eq!(addr.to_string().parse::<StepAddr>().unwrap(), addr);
    }
}
