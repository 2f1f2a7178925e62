//! Ids: types that cannot be swapped.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A text that is no id of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{raw}` is not {kind}")]
pub struct NotAnId {
    /// The text.
    pub raw: String,
    /// Such as `a run id`.
    pub kind: &'static str,
}

macro_rules! text_serde {
    ($name:ident) => {
        impl TryFrom<String> for $name {
            type Error = NotAnId;
            fn try_from(raw: String) -> Result<Self, NotAnId> {
                raw.parse()
            }
        }
        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.to_string()
            }
        }
    };
}

/// A run: a ULID, so that names sort by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(ulid::Ulid);

impl RunId {
    /// A new one.
    pub fn fresh() -> Self {
        let ms = u64::try_from(crate::clock::now().as_millis()).unwrap_or(0);
        Self(ulid::Ulid::from_parts(ms, fastrand::u128(..)))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for RunId {
    type Err = NotAnId;
    fn from_str(raw: &str) -> Result<Self, NotAnId> {
        let id =
            ulid::Ulid::from_string(raw).map_err(|_| NotAnId { raw: raw.to_owned(), kind: "a run id" })?;
        Ok(Self(id))
    }
}
text_serde!(RunId);

/// A session: a UUID v7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(uuid::Uuid);

impl SessionId {
    /// A new one.
    pub fn fresh() -> Self {
        Self(uuid::Uuid::now_v7())
    }

    /// The one that belongs to a content: the same for the same bytes.
    pub fn of_digest(digest: &crate::digest::Digest) -> Self {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest.as_bytes()[..16]);
        Self(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl FromStr for SessionId {
    type Err = NotAnId;
    fn from_str(raw: &str) -> Result<Self, NotAnId> {
        let id = raw.parse().map_err(|_| NotAnId { raw: raw.to_owned(), kind: "a session id" })?;
        Ok(Self(id))
    }
}
text_serde!(SessionId);

/// An agent: `ag_` and 26 random base-32 characters, never counted up.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentId(Box<str>);

const BASE32: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl AgentId {
    /// A new one.
    pub fn fresh() -> Self {
        let mut text = String::with_capacity(29);
        text.push_str("ag_");
        for _ in 0..26 {
            text.push(char::from(BASE32[fastrand::usize(..32)]));
        }
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for AgentId {
    type Err = NotAnId;
    fn from_str(raw: &str) -> Result<Self, NotAnId> {
        let tail = raw.strip_prefix("ag_").unwrap_or_default();
        if tail.len() == 26 && tail.bytes().all(|b| BASE32.contains(&b)) {
            Ok(Self(raw.into()))
        } else {
            Err(NotAnId { raw: raw.to_owned(), kind: "an agent id" })
        }
    }
}
text_serde!(AgentId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_back_and_strangers_do_not() {
        let run = RunId::fresh();
        assert_eq!(run.to_string().parse(), Ok(run));
        let agent = AgentId::fresh();
        assert_eq!(agent.to_string().parse(), Ok(agent.clone()));
        let session = SessionId::fresh();
        assert_eq!(session.to_string().parse(), Ok(session));
        assert!("../x".parse::<RunId>().is_err());
        assert!("ag_1".parse::<AgentId>().is_err());
    }
}
