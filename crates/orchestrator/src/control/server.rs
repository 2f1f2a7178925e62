//! The owner's end: takes connections, one order each. Never in the way of the run: every reader has a queue of its own,
//! is told what it missed, and is left when the run is over.

use super::lines::Lines;
use super::peer::{self, Peer};
use super::place::Listener;
use super::wire::{MOST_ORDER, Order, Reply};
use crate::journal::record::{Answer, AnsweredBy};
use crate::report::bus::EventBus;
use crate::report::event::{RunEvent, RunEventKind};
use crate::report::json;
use crate::run::{NotTaken, RunOrders};
use claw_kernel::cancel::CancelToken;
use claw_kernel::tasks;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Semaphore;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::task::TaskTracker;

/// Connections at once.
const MOST_CLIENTS: usize = 32;
/// How long a connection may take to say what it wants.
const FIRST_WORD: Duration = Duration::from_secs(10);
/// How long readers get for what they were not sent yet when the run is over.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The system has no descriptor left: so long nobody new is listened to.
const BREATH: Duration = Duration::from_millis(200);

/// A socket that is served.
pub(crate) struct Server {
    closing: CancelToken,
    tracker: TaskTracker,
}

struct Door {
    orders: RunOrders,
    bus: Arc<EventBus>,
    /// Cancelled when the run is over.
    closing: CancelToken,
    room: Semaphore,
}

impl Server {
    /// Serves from now on.
    pub fn start(listener: Listener, orders: RunOrders, bus: Arc<EventBus>) -> Self {
        let (closing, tracker) = (CancelToken::new(), TaskTracker::new());
        let room = Semaphore::new(MOST_CLIENTS);
        let door = Arc::new(Door { orders, bus, closing: closing.clone(), room });
        let clients = tracker.clone();
        let guard = tracker.token();
        tasks::spawn("socket", async move {
            let _guard = guard;
            accept(listener, &door, &clients).await;
        });
        Self { closing, tracker }
    }

    /// Nobody new; those who are there get a moment for the last words.
    pub async fn close(&self) {
        self.closing.cancel();
        self.tracker.close();
        // Who is stuck is left: its connection ends with this process.
        let _ = tokio::time::timeout(LAST_WORDS, self.tracker.wait()).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

async fn accept(listener: Listener, door: &Arc<Door>, clients: &TaskTracker) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = door.closing.cancelled() => return,
            accepted = listener.socket.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (door, guard) = (Arc::clone(door), clients.token());
                tasks::spawn("socket client", async move {
                    let _guard = guard;
                    if let Err(error) = serve(stream, &door).await {
                        tracing::debug!(%error, "a client of the run's socket is gone");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the run's socket takes nobody at the moment");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}

/// One connection.
async fn serve(stream: UnixStream, door: &Door) -> io::Result<()> {
    let peer = peer::of(&stream)?;
    let (read, mut write) = stream.into_split();
    if peer == Peer::Stranger {
        return refuse(&mut write, "this run belongs to another user").await;
    }
    let Ok(_place) = door.room.try_acquire() else {
        return refuse(&mut write, &format!("{MOST_CLIENTS} others talk to this run already")).await;
    };
    let mut lines = Lines::new(BufReader::new(read), MOST_ORDER);
    let line = match tokio::time::timeout(FIRST_WORD, lines.next()).await {
        Ok(Ok(Some(line))) => line,
        Ok(Ok(None)) | Err(_) => return Ok(()),
        Ok(Err(error)) => return refuse(&mut write, &error.to_string()).await,
    };
    let order = match serde_json::from_str::<Order>(&line) {
        Ok(order) => order,
        Err(error) => return refuse(&mut write, &format!("not an order: {error}")).await,
    };
    match (order, peer) {
        (Order::Watch { partial }, _) => watch(door, lines, write, partial).await,
        (_, Peer::Inside | Peer::Stranger) => {
            refuse(&mut write, "a run takes no orders from what it started itself").await
        }
        (order, Peer::User) => {
            let reply = match carry_out(door, order).await {
                Ok(()) => Reply::Done,
                Err(not_taken) => Reply::Refused { reason: not_taken.to_string() },
            };
            send(&mut write, &reply).await
        }
    }
}

async fn carry_out(door: &Door, order: Order) -> Result<(), NotTaken> {
    let orders = &door.orders;
    match order {
        Order::Watch { .. } => Ok(()),
        Order::Stop => stop(door).await,
        Order::Pause { reason } => {
            let reason = reason.unwrap_or_else(|| "paused by `claw runs pause`".to_owned());
            orders.pause(reason, None).await
        }
        Order::Answer { step, choice, comment } => {
            orders.answer(step, Answer { choice, comment, by: AnsweredBy::Person }).await
        }
        Order::Message { step, text } => orders.message(step, text).await,
    }
}

/// Done when the run has ended: that is its record.
async fn stop(door: &Door) -> Result<(), NotTaken> {
    let mut events = door.bus.subscribe();
    door.bus.note(None, "stopped by `claw runs stop`".to_owned());
    door.orders.cancel(None);
    loop {
        tokio::select! {
            biased;
            event = events.recv() => match event {
                Ok(event) if is_end(&event) => return Ok(()),
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return Ok(()),
            },
            () = door.closing.cancelled() => return Ok(()),
        }
    }
}

fn is_end(event: &RunEvent) -> bool {
    matches!(event.kind, RunEventKind::RunEnded { .. })
}

/// The board, then events. Ends with the run, or when the reader goes.
async fn watch(
    door: &Door,
    lines: Lines<BufReader<OwnedReadHalf>>,
    mut write: OwnedWriteHalf,
    partial: bool,
) -> io::Result<()> {
    let reading = async {
        tokio::select! {
            sent = send_all(door, &mut write, partial) => sent,
            () = gone(lines) => Ok(()),
        }
    };
    reading.await?;
    write.shutdown().await
}

/// Done when the other side closes: after its order it has nothing to say.
async fn gone(lines: Lines<BufReader<OwnedReadHalf>>) {
    let mut rest = lines.into_inner();
    let mut waste = [0; 512];
    while rest.read(&mut waste).await.is_ok_and(|read| read > 0) {}
}

async fn send_all(door: &Door, write: &mut OwnedWriteHalf, partial: bool) -> io::Result<()> {
    let mut events = board(door, write).await?;
    let mut nodes = 0;
    loop {
        let event = tokio::select! {
            biased;
            event = events.recv() => event,
            // All that was told before is in the queue: it is empty.
            () = door.closing.cancelled() => return Ok(()),
        };
        match event {
            Ok(RunEvent { kind: RunEventKind::AgentText(_), .. }) if !partial => {}
            Ok(event) => {
                let is_end = is_end(&event);
                line(write, json::line(&event)?).await?;
                let done = door.bus.board().head().nodes_done;
                if std::mem::replace(&mut nodes, done) != done {
                    send(write, &Reply::Nodes { done }).await?;
                }
                if is_end {
                    return Ok(());
                }
            }
            Err(RecvError::Lagged(missed)) => {
                send(write, &Reply::Missed { events: missed }).await?;
                events = board(door, write).await?;
            }
            Err(RecvError::Closed) => return Ok(()),
        }
    }
}

async fn board(door: &Door, write: &mut OwnedWriteHalf) -> io::Result<Receiver<RunEvent>> {
    let (snapshot, events) = door.bus.watch();
    for text in snapshot.lines()? {
        line(write, text).await?;
    }
    Ok(events)
}

async fn refuse(write: &mut OwnedWriteHalf, reason: &str) -> io::Result<()> {
    send(write, &Reply::Refused { reason: reason.to_owned() }).await
}

async fn send(write: &mut OwnedWriteHalf, reply: &Reply) -> io::Result<()> {
    line(write, serde_json::to_string(reply)?).await
}

async fn line(write: &mut OwnedWriteHalf, mut text: String) -> io::Result<()> {
    text.push('\n');
    write.write_all(text.as_bytes()).await
}
