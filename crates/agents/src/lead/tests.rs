//! A lead with a scripted model, in paused time.

use super::*;
use crate::conversation::tests::fakes::{Desk, Reply, Said, calls, say};
use crate::outcome::AgentEnd;
use crate::permission::Permission;
use crate::roles::lead;
use crate::session::{Found, OpenSession, Store};
use claw_kernel::ids::{AgentId, RunId};
use claw_providers::message::Block;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

struct Room {
    desk: Desk,
    store: Store,
}

struct Seated {
    lead: Lead,
    news: mpsc::Receiver<LeadEvent>,
    heard: Vec<LeadEvent>,
}

impl Room {
    fn new(script: impl IntoIterator<Item = Reply>) -> Self {
        let desk = Desk::new(script);
        let store = Store::new(&desk.folder().join("home"), desk.folder());
        Self { desk, store }
    }

    async fn session(&self) -> OpenSession {
        self.store.create(&self.desk.services().logs, "m").await.unwrap()
    }

    fn seat(&self, session: OpenSession) -> Seated {
        let setup = LeadSetup {
            services: self.desk.services(),
            id: AgentId::fresh(),
            definition: Arc::new(lead()),
            models: Vec::new(),
            effort: None,
            tools: None,
            deny_tools: Vec::new(),
            permission: Permission::WORKSPACE_WRITE,
            max_turns: None,
            system_append: None,
            workspace: self.desk.folder().canonicalize().unwrap(),
            idle_timeout: Duration::from_secs(60),
            purse: None,
            spawner: None,
        };
        let (door, news) = mpsc::channel(256);
        Seated { lead: Lead::start(setup, session, door), news, heard: Vec::new() }
    }

    fn texts(&self, request: usize) -> Vec<String> {
        self.desk.model.requests()[request].messages.iter().map(|message| message.text()).collect()
    }
}

impl Seated {
    async fn until(&mut self, wanted: impl Fn(&LeadEvent) -> bool) -> LeadEvent {
        loop {
            let event = self.news.recv().await.expect("the lead lives");
            self.heard.push(event.clone());
            if wanted(&event) {
                return event;
            }
        }
    }

    async fn idle(&mut self) {
        self.until(|event| matches!(event, LeadEvent::Idle)).await;
    }

    async fn say(&mut self, text: &str) -> AgentEnd {
        self.lead.orders().say(text).unwrap();
        let ended = self.until(|event| matches!(event, LeadEvent::TurnEnded { .. })).await;
        self.idle().await;
        match ended {
            LeadEvent::TurnEnded { outcome, .. } => outcome.end,
            _ => unreachable!(),
        }
    }

    async fn leave(mut self) {
        self.lead.order(LeadCommand::Shutdown).unwrap();
        self.until(|event| matches!(event, LeadEvent::Closed)).await;
        self.lead.ended().await;
    }
}

fn done(text: &str) -> AgentEnd {
    AgentEnd::Completed { text: text.into(), output: None }
}

#[tokio::test(start_paused = true)]
async fn prompts_follow_each_other_and_the_session_goes_on_in_another_process() {
    let room = Room::new([say("one"), say("two"), say("three")]);
    let mut seated = room.seat(room.session().await);
    seated.idle().await;
    assert_eq!(seated.say("first").await, done("one"));
    assert_eq!(seated.say("second").await, done("two"));
    seated.leave().await;
    let found = room.store.find(&crate::session::Reference::Latest).unwrap();
    let session = room.store.open(found, &room.desk.services().logs, None).await.unwrap();
    assert!(session.repairs.is_empty(), "{:?}", session.repairs);
    let mut again = room.seat(session);
    assert_eq!(again.say("third").await, done("three"));
    assert_eq!(room.texts(2), ["first", "one", "second", "two", "third"]);
    again.leave().await;
    let listed = room.store.list().unwrap();
    assert_eq!((listed.len(), listed[0].prompts, listed[0].title.as_deref()), (1, Some(3), Some("first")));
}

#[tokio::test(start_paused = true)]
async fn what_is_said_during_a_turn_is_heard_at_its_next_step() {
    let room = Room::new([calls([("wait", json!({"ms": 1_000}))]), say("heard you")]);
    let mut seated = room.seat(room.session().await);
    seated.lead.orders().say("go").unwrap();
    room.desk.model.asked(1).await;
    seated.lead.orders().say("and be quick").unwrap();
    seated.idle().await;
    seated.idle().await;
    let last = room.desk.model.requests()[1].messages.last().unwrap().clone();
    assert!(last.text().contains("and be quick"), "{last:?}");
    assert_eq!(room.desk.model.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_ends_the_turn_gives_back_what_waits_and_the_next_request_is_valid() {
    let script = [calls([("wait", json!({"ms": 60_000})), ("wait", json!({"ms": 70_000}))]), say("gone on")];
    let room = Room::new(script);
    let mut seated = room.seat(room.session().await);
    seated.lead.orders().say("go").unwrap();
    seated
        .until(|event| matches!(event, LeadEvent::Agent(crate::event::AgentEvent::ToolStarted { .. })))
        .await;
    seated.lead.orders().say("too late").unwrap();
    seated.lead.order(LeadCommand::Interrupt).unwrap();
    seated.idle().await;
    let unheard = seated.heard.iter().find_map(|event| match event {
        LeadEvent::Unheard { messages } => Some(messages.clone()),
        _ => None,
    });
    assert_eq!(unheard, Some(vec![vec![Block::Text { text: "too late".into() }]]));
    assert_eq!(seated.say("continue").await, done("gone on"));
    let results = room.desk.results_of_request(1);
    assert_eq!(results, ["cancelled by user", "cancelled by user"]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_dies_is_told_and_the_next_one_works() {
    let room = Room::new([say("one"), Reply::Panic, say("three")]);
    let mut seated = room.seat(room.session().await);
    seated.idle().await;
    seated.say("first").await;
    let died = seated.say("second").await;
    assert!(matches!(died, AgentEnd::Failed { .. }), "{died:?}");
    assert_eq!(seated.say("third").await, done("three"));
    let texts = room.texts(2);
    assert!(texts[0].contains("first") && texts.last().unwrap().contains("third"), "{texts:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rewind_takes_back_messages_and_gives_the_prompt() {
    let room = Room::new([say("one"), say("two"), say("again")]);
    let mut seated = room.seat(room.session().await);
    seated.idle().await;
    seated.say("first").await;
    seated.say("second").await;
    seated.lead.order(LeadCommand::Rewind { prompt: 2, what: Rewinding::Both }).unwrap();
    let event = seated.until(|event| matches!(event, LeadEvent::Rewound { .. })).await;
    let LeadEvent::Rewound { said, .. } = event else { unreachable!() };
    assert_eq!(said, [Block::Text { text: "second".into() }]);
    seated.idle().await;
    seated.say("other").await;
    assert_eq!(room.texts(2), ["first", "one", "other"]);
    seated.lead.order(LeadCommand::Rewind { prompt: 9, what: Rewinding::Both }).unwrap();
    seated.until(|event| matches!(event, LeadEvent::Refused { what: "rewind", .. })).await;
}

#[tokio::test(start_paused = true)]
async fn a_compaction_by_hand_keeps_the_newest_and_is_the_same_after_loading() {
    let long = "an answer ".repeat(200);
    let room = Room::new((0..4).map(|_| say(&long)).chain([say("- POINT"), say("after"), say("loaded")]));
    let mut seated = room.seat(room.session().await);
    seated.idle().await;
    for n in 0..4 {
        seated.say(&format!("question {n}")).await;
    }
    seated.lead.order(LeadCommand::Compact { keep: None }).unwrap();
    let event = seated.until(|event| matches!(event, LeadEvent::Compacted { .. })).await;
    let LeadEvent::Compacted { removed, before, after, without_model } = event else { unreachable!() };
    assert!(removed == 4 && after < before && without_model.is_none(), "{removed} {before} {after}");
    seated.idle().await;
    seated.say("go on").await;
    let texts = room.texts(5);
    assert!(texts[0].contains("POINT") && texts.last().unwrap() == "go on", "{texts:?}");
    seated.leave().await;
    let found = room.store.find(&crate::session::Reference::Latest).unwrap();
    let session = room.store.open(found, &room.desk.services().logs, None).await.unwrap();
    let mut again = room.seat(session);
    again.say("more").await;
    let later = room.texts(6);
    assert_eq!(later[..texts.len()], texts[..], "what was sent before is sent again");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_agent_is_told_between_two_turns_and_once() {
    let room = Room::new([calls([("wait", json!({"ms": 1_000}))]), say("one"), say("I see")]);
    let mut seated = room.seat(room.session().await);
    seated.lead.orders().say("go").unwrap();
    room.desk.model.asked(1).await;
    let run = RunId::fresh();
    let tell = || LeadCommand::Tell { run, number: 1, text: "agent A ended".into() };
    seated.lead.order(tell()).unwrap();
    seated.until(|event| matches!(event, LeadEvent::Told { number: 1, .. })).await;
    seated.idle().await;
    assert_eq!(room.texts(2).last().unwrap(), "agent A ended");
    seated.lead.order(tell()).unwrap();
    seated.until(|event| matches!(event, LeadEvent::Told { number: 1, .. })).await;
    seated.idle().await;
    assert_eq!(room.desk.model.requests().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_cleared_session_begins_anew_and_the_old_one_stays() {
    let room = Room::new([say("one"), say("two"), Reply::Hang(Said::Nothing)]);
    let mut seated = room.seat(room.session().await);
    seated.idle().await;
    seated.say("first").await;
    seated.lead.order(LeadCommand::Clear).unwrap();
    seated.idle().await;
    seated.say("second").await;
    assert_eq!(room.texts(1), ["second"]);
    assert_eq!(room.store.list().unwrap().len(), 2);
    seated.lead.orders().say("hangs").unwrap();
    room.desk.model.asked(3).await;
    seated.lead.orders().stop_because("the test is over");
    seated.until(|event| matches!(event, LeadEvent::Closed)).await;
}

#[tokio::test]
async fn one_process_holds_a_session() {
    let room = Room::new([]);
    let session = room.session().await;
    let found = || Found::Own { id: session.id, path: session.path.clone() };
    let logs = &room.desk.services().logs;
    let refused = room.store.open(found(), logs, None).await.unwrap_err().to_string();
    assert!(refused.contains(&std::process::id().to_string()), "{refused}");
    assert!(room.store.delete(found()).await.is_err());
    room.store.fork(found(), logs, None).await.unwrap();
}
