//! The built program on a terminal: keys in, a screen out.

use crate::machine::thread;
use crate::sandbox::Sandbox;
use portable_pty::{Child, CommandBuilder, ExitStatus, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// A start of the program on a terminal.
#[derive(Debug)]
pub struct Pty {
    command: CommandBuilder,
    size: PtySize,
}

/// Keys that are no text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Return.
    Enter,
    /// Escape.
    Esc,
    /// Tabulator.
    Tab,
    /// Backspace.
    Backspace,
    /// Arrow up.
    Up,
    /// Arrow down.
    Down,
    /// Arrow left.
    Left,
    /// Arrow right.
    Right,
    /// Control and a letter.
    Ctrl(char),
}

/// What stands on the screen at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screen {
    /// The lines, trailing blanks removed.
    pub lines: Vec<String>,
    /// Row and column of the cursor, from 0.
    pub cursor: (u16, u16),
    /// The cursor is hidden.
    pub cursor_hidden: bool,
    /// The alternate screen is shown.
    pub alternate: bool,
}

impl Screen {
    /// A screen of 24 rows and 80 columns after these bytes of a program.
    pub fn after(bytes: &str) -> Self {
        let mut parser = vt100::Parser::new(24, 80, 0);
        // As the terminal's driver passes them on.
        parser.process(bytes.replace('\n', "\r\n").as_bytes());
        Self::of(parser.screen())
    }

    fn of(screen: &vt100::Screen) -> Self {
        let (_, columns) = screen.size();
        Self {
            lines: screen.rows(0, columns).map(|line| line.trim_end().to_owned()).collect(),
            cursor: screen.cursor_position(),
            cursor_hidden: screen.hide_cursor(),
            alternate: screen.alternate_screen(),
        }
    }

    /// The whole text, lines ended by line feeds.
    pub fn text(&self) -> String {
        self.lines.join("\n")
    }

    /// Whether the text stands on it.
    pub fn contains(&self, text: &str) -> bool {
        self.text().contains(text)
    }
}

/// How a program on a terminal ended.
#[derive(Clone, Debug)]
pub struct PtyOutput {
    /// The exit code; 1 with `signal` when a signal ended it.
    pub code: u32,
    /// The name of the signal that ended it.
    pub signal: Option<String>,
    /// All bytes it wrote, broken UTF-8 replaced.
    pub raw: String,
    /// The screen at the end.
    pub screen: Screen,
    /// The terminal echoes and edits lines, as a shell wants to find it.
    pub cooked: bool,
}

impl Pty {
    /// The program on a terminal of 24 rows and 100 columns, in the project of the sandbox.
    pub fn new(binary: impl AsRef<Path>, sandbox: &Sandbox) -> Self {
        let mut command = CommandBuilder::new(binary.as_ref());
        command.env_clear();
        for (name, value) in sandbox.environment() {
            command.env(name, value);
        }
        command.env("TERM", "xterm-256color");
        command.cwd(sandbox.project());
        Self { command, size: size(24, 100) }
    }

    /// Adds arguments.
    pub fn args<S: AsRef<std::ffi::OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Rows and columns.
    pub fn size(mut self, rows: u16, columns: u16) -> Self {
        self.size = size(rows, columns);
        self
    }

    /// Starts it.
    ///
    /// # Panics
    /// When there is no terminal to be had, or the program cannot be started.
    pub fn start(self) -> Terminal {
        let pair = native_pty_system().openpty(self.size).expect("a terminal");
        let mut child = pair.slave.spawn_command(self.command).expect("the program can be started");
        let pid = child.process_id().and_then(|id| Pid::from_raw(id.cast_signed())).expect("a process id");
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let writer = pair.master.take_writer().expect("a writer");
        // A terminal without a size has a screen all the same.
        let known = |size: u16, usual: u16| if size == 0 { usual } else { size };
        let parser = vt100::Parser::new(known(self.size.rows, 24), known(self.size.cols, 80), 0);
        let seen = Arc::new(Seen {
            state: Mutex::new(SeenState { raw: Vec::new(), parser, closed: false, status: None }),
            moved: Condvar::new(),
        });
        let reading = Arc::clone(&seen);
        thread("screen", move || {
            let mut piece = vec![0; 64 * 1024];
            loop {
                let read = reader.read(&mut piece).unwrap_or(0);
                let mut state = reading.state.lock().unwrap();
                state.raw.extend_from_slice(&piece[..read]);
                state.parser.process(&piece[..read]);
                state.closed = read == 0;
                drop(state);
                reading.moved.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        let waiting = Arc::clone(&seen);
        // The slave side stays open until the program has ended, so that the state it leaves can be read.
        let (master, slave) = (pair.master, pair.slave);
        thread("exit", move || {
            let status = wait(&mut child);
            waiting.state.lock().unwrap().status = Some(status);
            waiting.moved.notify_all();
        });
        Terminal { pid, seen, writer, master, slave: Some(slave) }
    }
}

fn wait(child: &mut Box<dyn Child + Send + Sync>) -> ExitStatus {
    child.wait().expect("a child can be waited for")
}

fn size(rows: u16, cols: u16) -> PtySize {
    PtySize { rows, cols, pixel_width: 0, pixel_height: 0 }
}

struct Seen {
    state: Mutex<SeenState>,
    moved: Condvar,
}

struct SeenState {
    raw: Vec<u8>,
    parser: vt100::Parser,
    closed: bool,
    status: Option<ExitStatus>,
}

impl SeenState {
    fn screen(&self) -> Screen {
        Screen::of(self.parser.screen())
    }
}

/// A program that runs on a terminal. Dropping it hangs up and kills the program.
pub struct Terminal {
    pid: Pid,
    seen: Arc<Seen>,
    writer: Box<dyn Write + Send>,
    master: Box<dyn MasterPty + Send>,
    slave: Option<Box<dyn portable_pty::SlavePty + Send>>,
}

impl std::fmt::Debug for Terminal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terminal").field("pid", &self.pid).finish_non_exhaustive()
    }
}

impl Terminal {
    /// Types a text.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn send(&mut self, text: &str) {
        self.writer
            .write_all(text.as_bytes())
            .and_then(|()| self.writer.flush())
            .expect("the terminal takes keys");
    }

    /// Presses a key.
    pub fn press(&mut self, key: Key) {
        let text = match key {
            Key::Enter => "\r".to_owned(),
            Key::Esc => "\x1b".to_owned(),
            Key::Tab => "\t".to_owned(),
            Key::Backspace => "\x7f".to_owned(),
            Key::Up => "\x1b[A".to_owned(),
            Key::Down => "\x1b[B".to_owned(),
            Key::Right => "\x1b[C".to_owned(),
            Key::Left => "\x1b[D".to_owned(),
            Key::Ctrl(letter) => char::from(u8::try_from(letter).unwrap_or(b'@') & 0x1f).to_string(),
        };
        self.send(&text);
    }

    /// The process id of the program.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Sends a signal to the program. Nothing happens when it ended.
    pub fn signal(&self, signal: Signal) {
        if self.seen.state.lock().unwrap().status.is_none() {
            // It may end at this very moment.
            let _ended = kill_process(self.pid, signal);
        }
    }

    /// Changes the size of the terminal; the program gets SIGWINCH.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn resize(&self, rows: u16, columns: u16) {
        self.seen.state.lock().unwrap().parser.screen_mut().set_size(rows, columns);
        self.master.resize(size(rows, columns)).expect("the terminal can be resized");
    }

    /// The screen now.
    pub fn screen(&self) -> Screen {
        self.seen.state.lock().unwrap().screen()
    }

    /// All bytes so far, broken UTF-8 replaced.
    pub fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen.state.lock().unwrap().raw).into_owned()
    }

    /// Waits until the screen is as `holds` wants it, and returns it.
    ///
    /// # Panics
    /// When it is not within `bound`, or the program ends before; the message holds the screen.
    pub fn wait_for_screen(&self, what: &str, bound: Duration, holds: impl Fn(&Screen) -> bool) -> Screen {
        let seen = self.until(what, bound, |state| holds(&state.screen()) || state.status.is_some());
        assert!(holds(&seen), "it ended without {what}; the screen:\n{}", seen.text());
        seen
    }

    /// Waits until the text stands on the screen.
    ///
    /// # Panics
    /// As [`Terminal::wait_for_screen`].
    pub fn wait_for_text(&self, text: &str, bound: Duration) -> Screen {
        self.wait_for_screen(&format!("{text:?}"), bound, |screen| screen.contains(text))
    }

    /// Waits until the program is stopped, as the shell's job control stops it.
    ///
    /// # Panics
    /// When it is not within `bound`.
    pub fn wait_until_stopped(&self, bound: Duration) {
        let end = Instant::now() + bound;
        let path = format!("/proc/{}/stat", self.pid());
        let is_stopped = || {
            let stat = std::fs::read_to_string(&path).unwrap_or_default();
            stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['T', 't']))
        };
        while !is_stopped() {
            assert!(Instant::now() < end, "it is not stopped; the screen:\n{}", self.screen().text());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end of the program.
    ///
    /// # Panics
    /// When it does not come within `bound`; the message holds the screen.
    pub fn wait(mut self, bound: Duration) -> PtyOutput {
        self.until("its end", bound, |state| state.status.is_some());
        let cooked = self.is_cooked();
        self.slave = None;
        let screen = self.until("the last output", bound, |state| state.closed);
        let state = self.seen.state.lock().unwrap();
        let status = state.status.clone().expect("it ended");
        PtyOutput {
            code: status.exit_code(),
            signal: status.signal().map(str::to_owned),
            raw: String::from_utf8_lossy(&state.raw).into_owned(),
            screen,
            cooked,
        }
    }

    /// Whether the terminal edits lines and echoes.
    pub fn is_cooked(&self) -> bool {
        const ECHO_AND_CANONICAL: u32 = 0o12;
        let flags = self.master.get_termios().map_or(0, |settings| settings.local_flags.bits());
        flags & ECHO_AND_CANONICAL == ECHO_AND_CANONICAL
    }

    fn until(&self, what: &str, bound: Duration, holds: impl Fn(&SeenState) -> bool) -> Screen {
        let end = Instant::now() + bound;
        let mut state = self.seen.state.lock().unwrap();
        while !holds(&state) {
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                let text = state.screen().text();
                drop(state);
                panic!("waited {bound:?} in vain for {what}; the screen:\n{text}");
            }
            state = self.seen.moved.wait_timeout(state, rest).unwrap().0;
        }
        state.screen()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let ended = self.seen.state.lock().is_ok_and(|state| state.status.is_some());
        if !ended {
            // It may end at this very moment.
            let _ended = kill_process(self.pid, Signal::KILL);
        }
    }
}
