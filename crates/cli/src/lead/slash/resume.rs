//! `/resume`: goes on with another session of this folder.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::{Deed, Pick, PickItem};
use crate::lead::editor::Choice;
use crate::terminal::figures::elapsed;
use claw_agents::session::Listed;
use claw_kernel::clock;
use claw_kernel::tasks;
use futures_util::future::BoxFuture;

pub(super) struct Resume;

/// Sessions that are offered.
const MOST: usize = 200;

/// The words of a session in a list.
pub(super) fn words(session: &Listed) -> String {
    let name = session.name.as_deref().or(session.title.as_deref()).unwrap_or("without a prompt");
    let prompts = session.prompts.map(|count| format!(", {count} prompts")).unwrap_or_default();
    let ago = elapsed(clock::now().since(session.modified));
    format!("{name}  ({ago} ago{prompts})")
}

/// All sessions of the folder but the open one, the newest first; read off the screen's thread.
pub(super) async fn others(desk: &Desk) -> Result<Vec<Listed>, Deed> {
    let store = desk.setup.sessions();
    let own = desk.view.as_ref().map(|view| view.session);
    match tasks::blocking("sessions", move || store.list()).await {
        Ok(Ok(all)) => Ok(all.into_iter().filter(|session| Some(session.id) != own).take(MOST).collect()),
        Ok(Err(error)) => Err(Deed::Wrong(format!("the sessions cannot be listed: {error}"))),
        Err(failed) => Err(Deed::Wrong(failed.to_string())),
    }
}

impl Slash for Resume {
    fn name(&self) -> &'static str {
        "resume"
    }

    fn args(&self) -> &'static str {
        "[SESSION]"
    }

    fn about(&self) -> &'static str {
        "goes on with another session of this folder"
    }

    fn values(&self, desk: &Desk) -> Vec<Choice> {
        let all = desk.setup.sessions().list().unwrap_or_default();
        let choice = |session: &Listed| Choice { insert: session.id.to_string(), about: words(session) };
        all.iter().take(20).map(choice).collect()
    }

    fn run(&self, args: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        if !args.is_empty() {
            return ready([Deed::Resume(args)]);
        }
        Box::pin(async move {
            let all = match others(&desk).await {
                Ok(all) if all.is_empty() => {
                    return vec![Deed::Wrong("there is no other session in this folder".to_owned())];
                }
                Ok(all) => all,
                Err(deed) => return vec![deed],
            };
            let item = |session: &Listed| PickItem {
                text: words(session),
                about: session.id.to_string(),
                deed: Deed::Resume(session.id.to_string()),
            };
            let items = all.iter().map(item).collect();
            vec![Deed::Pick(Pick { title: "Go on with which session?".to_owned(), items })]
        })
    }
}
