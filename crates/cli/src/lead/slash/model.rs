//! `/model`: which model answers.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::{Deed, Pick, PickItem};
use crate::lead::editor::Choice;
use claw_agents::lead::LeadCommand;
use claw_providers::config::ModelEntry;
use futures_util::future::BoxFuture;

pub(super) struct Model;

/// Aliases and models of providers that have credentials: name and what it is.
fn known(desk: &Desk) -> Vec<(String, String)> {
    let config = &desk.setup.config;
    let usable = config.profiles.iter().filter(|profile| profile.is_usable());
    let models = usable.flat_map(|profile| {
        profile
            .models
            .iter()
            .map(ModelEntry::name)
            .map(|name| (format!("{}/{name}", profile.name), String::new()))
    });
    let aliases = config.aliases.iter().filter(|(_, model)| config.route(model).is_ok());
    let aliases = aliases.map(|(name, model)| (name.clone(), model.clone()));
    aliases.chain(models).collect()
}

fn set(name: String) -> Deed {
    Deed::Order(LeadCommand::SetModel { models: vec![name] })
}

impl Slash for Model {
    fn name(&self) -> &'static str {
        "model"
    }

    fn args(&self) -> &'static str {
        "[MODEL]"
    }

    fn about(&self) -> &'static str {
        "chooses the model of the next request"
    }

    fn values(&self, desk: &Desk) -> Vec<Choice> {
        known(desk).into_iter().map(|(insert, about)| Choice { insert, about }).collect()
    }

    fn run(&self, args: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        if args.is_empty() {
            let items = known(&desk)
                .into_iter()
                .map(|(text, about)| PickItem { deed: set(text.clone()), text, about })
                .collect();
            let title = format!("Model (now {})", desk.status.model);
            return ready([Deed::Pick(Pick { title, items })]);
        }
        match desk.setup.check_model(&args) {
            Ok(()) => ready([set(args)]),
            Err(error) => ready([Deed::Wrong(error.text().trim_end().to_owned())]),
        }
    }
}
