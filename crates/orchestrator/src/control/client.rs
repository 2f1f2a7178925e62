//! The other end: connects, gives one order, hears what became of it.

use super::error::ControlError;
use super::lines::Lines;
use super::place;
use super::wire::{MOST_LINE, Order, Reply};
use crate::report::board::Board;
use crate::report::event::RunEvent;
use crate::report::reading::{self, NotAnEvent};
use crate::report::snapshot::{self, BoardLines};
use serde::Deserialize;
use std::path::Path;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// A connection to the owner of a run.
#[derive(Debug)]
pub struct Connection(UnixStream);

/// What is heard of a run.
#[derive(Debug)]
pub enum Told {
    /// How it stands: what was heard before is void.
    Board(Box<Board>),
    /// What happened then.
    Event(Box<RunEvent>),
    /// So many nodes are final by now.
    Nodes(usize),
    /// So many events are missing here; a board follows.
    Missed(u64),
}

/// A run that is watched.
#[derive(Debug)]
pub struct Watching {
    lines: Lines<BufReader<OwnedReadHalf>>,
    begun: Option<BoardLines>,
    /// Open as long as somebody watches: the owner sees when it closes.
    _write: OwnedWriteHalf,
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// Nobody listens there.
    pub async fn open(socket: &Path) -> Result<Self, ControlError> {
        let unreachable = |source| ControlError::Unreachable { socket: socket.to_owned(), source };
        place::connect(socket).await.map(Self).map_err(unreachable)
    }

    /// Gives an order and waits until it is on record.
    ///
    /// # Errors
    /// It is refused, or the owner is gone.
    pub async fn order(self, order: &Order) -> Result<(), ControlError> {
        let mut lines = self.send(order).await?.lines;
        let line =
            lines.next().await?.ok_or(std::io::ErrorKind::UnexpectedEof).map_err(std::io::Error::from)?;
        match serde_json::from_str(&line) {
            Ok(Reply::Done) => Ok(()),
            Ok(Reply::Refused { reason }) => Err(ControlError::Refused { reason }),
            Ok(Reply::Missed { .. } | Reply::Nodes { .. }) => Err(ControlError::Garbled(line)),
            Err(error) => Err(ControlError::Garbled(error.to_string())),
        }
    }

    /// Watches.
    ///
    /// # Errors
    /// The owner is gone.
    pub async fn watch(self, partial: bool) -> Result<Watching, ControlError> {
        self.send(&Order::Watch { partial }).await
    }

    async fn send(self, order: &Order) -> Result<Watching, ControlError> {
        let (read, mut write) = self.0.into_split();
        let mut line = serde_json::to_string(order).map_err(std::io::Error::from)?;
        line.push('\n');
        write.write_all(line.as_bytes()).await?;
        Ok(Watching { lines: Lines::new(BufReader::new(read), MOST_LINE), begun: None, _write: write })
    }
}

impl Watching {
    /// The next line as it came, see `report::json` and `report::snapshot`; `None`: there is no more. Cancel-safe.
    ///
    /// # Errors
    /// Refused, or the owner is gone.
    pub async fn line(&mut self) -> Result<Option<String>, ControlError> {
        Ok(self.lines.next().await?)
    }

    /// What is heard next; `None`: there is no more. Cancel-safe.
    ///
    /// # Errors
    /// Refused, the owner is gone, or speaks another language.
    pub async fn next(&mut self) -> Result<Option<Told>, ControlError> {
        loop {
            let Some(line) = self.lines.next().await? else { return Ok(None) };
            if let Some(told) = self.take(&line)? {
                return Ok(Some(told));
            }
        }
    }

    /// What a line says; `None` where it is a part of something. Lines of kinds that are not known here say nothing.
    ///
    /// # Errors
    /// As for `next`.
    pub fn take(&mut self, line: &str) -> Result<Option<Told>, ControlError> {
        let garbled = |error: NotAnEvent| ControlError::Garbled(error.to_string());
        let Kind { kind } = serde_json::from_str(line).map_err(|error| garbled(error.into()))?;
        match &*kind {
            snapshot::RUN => self.begun = Some(BoardLines::begin(line).map_err(garbled)?),
            snapshot::STEP => {
                if let Some(begun) = &mut self.begun {
                    begun.add(line).map_err(garbled)?;
                }
            }
            "run.nodes" | "missed" | "refused" | "done" => match serde_json::from_str(line) {
                Ok(Reply::Missed { events }) => return Ok(Some(Told::Missed(events))),
                Ok(Reply::Refused { reason }) => return Err(ControlError::Refused { reason }),
                Ok(Reply::Nodes { done }) => return Ok(Some(Told::Nodes(done))),
                Ok(Reply::Done) => return Ok(None),
                Err(error) => return Err(garbled(error.into())),
            },
            _ => {
                return match reading::event(line) {
                    Ok(event) => Ok(Some(Told::Event(Box::new(event)))),
                    Err(NotAnEvent::Unknown(_)) => Ok(None),
                    Err(error) => Err(garbled(error)),
                };
            }
        }
        let whole = self.begun.take_if(|begun| !begun.wants_more());
        Ok(whole.map(|begun| Told::Board(Box::new(begun.board()))))
    }
}
