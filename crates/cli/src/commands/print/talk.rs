//! Starts the lead, gives it the questions, prints what it says.

use super::input::{self, Incoming};
use super::purse::SessionPurse;
use super::watch::Watch;
use super::{question, shapes, tee::Tee};
use crate::args::{Format, InputFormat, PrintFlags, TalkFlags};
use crate::commands::runtime::block_on;
use crate::error::ExpectedError;
use crate::services::{Setup, config_home};
use crate::sessions::{self, Decided};
use crate::signals::Signals;
use crate::terminal::{Stdout, say};
use claw_agents::lead::{Lead, LeadEvent, with_images};
use claw_agents::offered;
use claw_agents::permission::NobodyToAsk;
use claw_agents::services::AgentServices;
use claw_agents::session::OpenSession;
use claw_kernel::visible::visible_line;
use claw_providers::message::Block;
use std::sync::Arc;
use tokio::sync::mpsc;

/// News that may wait for the screen.
const NEWS: usize = 64;

/// Where the questions come from.
pub(super) enum Questions {
    /// There is one.
    One(Option<Vec<Block>>),
    /// They come in.
    Stream(mpsc::Receiver<Result<Incoming, ExpectedError>>),
}

/// What is decided before anything starts.
struct Talk {
    setup: Setup,
    flags: TalkFlags,
    decided: Decided,
}

/// Questions, and an answer to each.
///
/// # Errors
/// Arguments, credentials, sessions, streams; the conversation's own failure is an exit code.
pub fn run(flags: PrintFlags) -> Result<u8, ExpectedError> {
    let PrintFlags { text, talk: flags } = flags;
    let mut setup = Setup::read_with(flags.cwd.as_deref(), &flags.settings)?;
    setup.origin.tell(&setup.settings);
    let decided = Decided::of(&mut setup, &flags)?;
    let question = match flags.input_format.unwrap_or_default() {
        InputFormat::Text => Some(asked(text, &setup)?),
        InputFormat::StreamJson => None,
    };
    let talk = Talk { setup, flags, decided };
    block_on(talk.go(question))
}

/// The one question, with the images that it names. What a pipe adds is material: no path in it is looked at.
fn asked(text: Option<String>, setup: &Setup) -> Result<Vec<Block>, ExpectedError> {
    let (images, notes) = match &text {
        Some(text) => with_images(text, &setup.cwd),
        None => (Vec::new(), Vec::new()),
    };
    for note in notes {
        say(&format!("note: {}\n", visible_line(&note)));
    }
    let mut blocks = vec![Block::Text { text: question::whole(text)? }];
    blocks.extend(images.into_iter().filter(|block| matches!(block, Block::Image(_))));
    Ok(blocks)
}

impl Talk {
    fn format(&self) -> Format {
        self.flags.output_format.unwrap_or_default()
    }

    async fn go(mut self, question: Option<Vec<Block>>) -> Result<u8, ExpectedError> {
        let mut signals = Signals::listen()?;
        let logs = self.setup.logs()?;
        let model = (self.flags.model.as_deref(), self.decided.model.as_str());
        let session = sessions::open(&self.setup.cwd, &self.flags.session, &logs, model).await?;
        self.decided = self.decided.with_model_of(&session, &self.setup, &self.flags);
        let out = (self.format() == Format::StreamJson).then(|| Arc::new(Stdout::start()));
        let mut services =
            self.setup.agent_services(Arc::new(NobodyToAsk), logs, vec![config_home()], Vec::new())?;
        for folder in sessions::folders(&self.setup, &self.flags)? {
            services.sandboxes.add(folder);
        }
        if let Some(out) = &out {
            self.begin_stream(out, &session, &mut services).await;
        }
        let services = Arc::new(services);
        let (lead, news) = self.lead(session, services.clone());
        let questions = match question {
            Some(question) => Questions::One(Some(question)),
            None => Questions::Stream(input::listen()),
        };
        let mut watch = Watch::new(self.format(), out, lead.orders(), questions);
        let code = watch.until_the_end(news, &mut signals, lead).await;
        services.mcp.stop().await;
        services.sandboxes.close();
        code
    }

    async fn begin_stream(&self, out: &Arc<Stdout>, session: &OpenSession, services: &mut AgentServices) {
        services.mcp.settle().await;
        let definition = claw_agents::roles::lead();
        let tools = self.decided.tools.as_deref();
        let offered = offered(&services.registry.current(), &definition, tools, &self.decided.deny);
        let cwd = self.setup.cwd.display().to_string();
        let mode = self.decided.permission.to_string();
        let init = shapes::init(session.id, &cwd, &self.decided.model, &mode, &offered);
        // That nobody reads is noticed while it runs.
        let _ = out.line(init.to_string()).await;
        let partial = self.flags.include_partial_messages;
        services.model = Arc::new(Tee::new(services.model.clone(), out.clone(), session.id, partial));
    }

    fn lead(&self, session: OpenSession, services: Arc<AgentServices>) -> (Lead, mpsc::Receiver<LeadEvent>) {
        let mut setup = self.decided.clone().lead(&self.setup, &self.flags, services);
        if let Some(most) = self.flags.max_usd {
            setup.purse = Some(Arc::new(SessionPurse::new(most, session.loaded.usage.usd.unwrap_or(0.0))));
        }
        let (door, news) = mpsc::channel(NEWS);
        (Lead::start(setup, session, door), news)
    }
}
