//! A running interpreter: code goes in, what it writes comes out, until the mark that says that it is done.

use super::Language;
use crate::error::ToolError;
use crate::process::{Capture, Job, Kept, Live, Stream, run_live};
use crate::sandbox::SandboxPolicy;
use crate::tool::ToolContext;
use claw_kernel::cancel::CancelToken;
use claw_kernel::ids::RunId;
use claw_kernel::tasks;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Mutex as AsyncMutex, mpsc, watch};

/// Bytes kept of each stream of an evaluation.
const KEEP: usize = 128 * 1024;
/// Bytes of a status behind a mark.
const MOST_WORD: usize = 40;
/// For an interpreter that is ended, with its whole group.
const MOST_END: Duration = Duration::from_millis(2_500);

/// The interpreters of one conversation: one for each language, started when first needed.
#[derive(Debug, Default)]
pub struct Repls {
    slots: [AsyncMutex<Option<Session>>; 3],
}

/// What an evaluation gave.
#[derive(Debug)]
pub(super) struct Evaluated {
    pub(super) out: Kept,
    pub(super) err: Kept,
    pub(super) how: How,
    /// There was an interpreter, which could not be gone on with: its state is lost.
    pub(super) is_anew: bool,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// With this word of the driver: `ok`, `error`, an exit code.
    Said(String),
    /// The interpreter ended; the next call starts another.
    Gone,
    /// Its time was over; the interpreter was ended.
    TimedOut,
    /// Cancelled; the interpreter was ended.
    Cancelled,
}

impl Repls {
    /// Evaluates code. One at a time for each language.
    pub(super) async fn evaluate(
        &self,
        ctx: &ToolContext,
        language: Language,
        (code, time): (&str, Duration),
    ) -> Result<Evaluated, ToolError> {
        let mut slot = tokio::select! {
            slot = self.slots[language as usize].lock() => slot,
            () = ctx.cancel.cancelled() => return Err(ToolError::Cancelled),
        };
        let known = slot.take();
        let is_known = known.is_some();
        let session = match known {
            Some(known) if known.fits(ctx) => known,
            Some(_) | None => Session::start(ctx, language)?,
        };
        let is_anew = is_known && session.is_new;
        session.begin(&ctx.redactor);
        let sent = session.input.send(language.framed(code)).await.is_ok();
        let how = if sent { session.wait(time, &ctx.cancel).await } else { How::Gone };
        let (out, err) = session.taken();
        match how {
            How::Said(_) => *slot = Some(session.used()),
            How::Gone => {}
            How::TimedOut | How::Cancelled => session.end().await,
        }
        Ok(Evaluated { out, err, how, is_anew })
    }

    /// Ends all interpreters and waits for them.
    pub async fn end_all(&self) {
        let ends = self.slots.iter().map(|slot| async {
            // One that evaluates just now ends with its own call.
            let session = slot.try_lock().ok().and_then(|mut slot| slot.take());
            if let Some(session) = session {
                session.end().await;
            }
        });
        futures_util::future::join_all(ends).await;
    }
}

#[derive(Debug)]
struct Session {
    input: mpsc::Sender<Vec<u8>>,
    heard: Arc<Mutex<Heard>>,
    state: watch::Receiver<State>,
    cancel: CancelToken,
    sandbox: Arc<SandboxPolicy>,
    is_new: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Running,
    /// So many evaluations are done.
    Said(u64),
    Gone,
}

/// Both streams since the evaluation began.
struct Heard {
    mark: Vec<u8>,
    /// The end of each stream, in which a mark may have begun.
    open: [Vec<u8>; 2],
    word: [Option<String>; 2],
    capture: Option<Capture>,
}

impl std::fmt::Debug for Heard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Heard").field("word", &self.word).finish_non_exhaustive()
    }
}

impl Heard {
    /// Takes what came; gives whether the evaluation is done: both streams have the mark.
    fn push(&mut self, stream: Stream, bytes: &[u8]) -> bool {
        let Self { mark, open, word, capture } = self;
        let open = &mut open[stream as usize];
        open.extend_from_slice(bytes);
        let found = open.windows(mark.len()).position(|part| part == mark.as_slice());
        let free = found.unwrap_or_else(|| open.len().saturating_sub(mark.len() - 1));
        let free: Vec<u8> = open.drain(..free).collect();
        if let Some(capture) = capture {
            capture.push(stream, &free);
        }
        if found.is_some() {
            let end = open.iter().position(|byte| *byte == b'\n');
            let end = end.or((open.len() > mark.len() + MOST_WORD).then_some(mark.len() + MOST_WORD));
            let Some(end) = end else { return false };
            let said = String::from_utf8_lossy(&open[mark.len()..end]).into_owned();
            open.drain(..(end + 1).min(open.len()));
            word[stream as usize] = Some(said);
        }
        word.iter().all(Option::is_some)
    }

    fn take(&mut self) -> (Kept, Kept) {
        let Some(mut capture) = self.capture.take() else { return Default::default() };
        for (stream, open) in [Stream::Out, Stream::Err].into_iter().zip(&mut self.open) {
            capture.push(stream, &std::mem::take(open));
        }
        let (out, err, _) = capture.finish();
        (out, err)
    }
}

fn held(heard: &Mutex<Heard>) -> MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    fn start(ctx: &ToolContext, language: Language) -> Result<Self, ToolError> {
        let mark = format!("\u{1}{}\u{2}", RunId::fresh());
        let (program, arguments) = language.command(&mark)?;
        let arguments = arguments.into_iter().map(OsString::from);
        let mut job = Job::argv(program, arguments, ctx.folder.current(), Arc::clone(&ctx.sandbox));
        job.keep = 1024;
        job.env = ctx.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        job.redactor = Arc::clone(&ctx.redactor);
        let heard = Heard {
            mark: mark.into_bytes(),
            open: [Vec::new(), Vec::new()],
            word: [None, None],
            capture: None,
        };
        let heard = Arc::new(Mutex::new(heard));
        let (say, state) = watch::channel(State::Running);
        let say = Arc::new(say);
        let (input, more) = mpsc::channel(1);
        let cancel = ctx.state.over().child_token();
        let (into, said, token) = (Arc::clone(&heard), Arc::clone(&say), cancel.clone());
        let tap = move |stream: Stream, bytes: &[u8]| {
            if held(&into).push(stream, bytes) {
                said.send_modify(|state| {
                    *state = match state {
                        State::Said(before) => State::Said(*before + 1),
                        State::Running | State::Gone => State::Said(1),
                    }
                });
            }
        };
        let live = Live { input: Some(more), tap: Some(Box::new(tap)) };
        // Its end is in `state`.
        tasks::spawn("interpreter", async move {
            if let Err(error) = run_live(job, &token, live).await {
                tracing::debug!(%error, "an interpreter ended");
            }
            say.send_replace(State::Gone);
        });
        let sandbox = Arc::clone(&ctx.sandbox);
        Ok(Self { input, heard, state, cancel, sandbox, is_new: true })
    }

    fn used(mut self) -> Self {
        self.is_new = false;
        self
    }

    /// Whether it still runs, behind the wall that is asked for now.
    fn fits(&self, ctx: &ToolContext) -> bool {
        *self.state.borrow() != State::Gone && Arc::ptr_eq(&self.sandbox, &ctx.sandbox)
    }

    fn begin(&self, redactor: &Arc<claw_kernel::redact::Redactor>) {
        let mut heard = held(&self.heard);
        heard.word = [None, None];
        heard.capture = Some(Capture::new(KEEP, None, String::new(), redactor));
    }

    async fn wait(&self, time: Duration, cancel: &CancelToken) -> How {
        let mut state = self.state.clone();
        let said = || match &held(&self.heard).word {
            [Some(out), Some(_)] => Some(out.clone()),
            [_, _] => None,
        };
        tokio::select! {
            // What it said last counts, also when it ended at once.
            _ = state.wait_for(|now| *now == State::Gone || said().is_some()) => said().map_or(How::Gone, How::Said),
            () = tokio::time::sleep(time) => How::TimedOut,
            () = cancel.cancelled() => How::Cancelled,
        }
    }

    fn taken(&self) -> (Kept, Kept) {
        held(&self.heard).take()
    }

    async fn end(mut self) {
        self.cancel.cancel();
        let _ = tokio::time::timeout(MOST_END, self.state.wait_for(|state| *state == State::Gone)).await;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}
