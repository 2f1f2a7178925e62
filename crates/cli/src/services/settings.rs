//! Where the settings of a command come from: files, decisions, saved keys; and what is told of them at the start.

use super::{config_home, env, home, set};
use crate::args::SettingsFlags;
use crate::error::ExpectedError;
use crate::terminal::say;
use claw_agents::settings::{Beside, Diagnostic, Loaded, Places, Scope, Settings, Severity};
use claw_agents::trust::{Decision, Decisions, TrustFile, TrustItem};
use claw_kernel::visible::{visible, visible_line};
use claw_providers::config::{ProfilesTable, ProvidersConfig};
use claw_providers::saved::{Saved, SavedFile};
use std::path::Path;

/// Items that the line about untrusted ones names.
const MOST_NAMED: usize = 5;
/// Characters of each.
const MOST_OF_ONE: usize = 160;

/// Where settings come from.
#[derive(Debug)]
pub struct SettingsOrigin {
    /// All files, read and checked.
    pub loaded: Loaded,
    /// The user's decisions on this repository.
    pub decisions: Decisions,
    /// Where they are kept.
    pub trust_file: TrustFile,
    trusts_all: bool,
    saved: Saved,
}

impl SettingsOrigin {
    /// Reads files and decisions; what is wrong with the files is in `loaded`.
    ///
    /// # Errors
    /// Decisions or saved keys cannot be read.
    pub fn read(cwd: &Path, flags: &SettingsFlags) -> Result<Self, ExpectedError> {
        let places = Places::new(&home(), &config_home(), cwd);
        let model = ["CLAW_MODEL", "ANTHROPIC_MODEL"].into_iter().find_map(|name| Some((name, set(name)?)));
        let trust_file = TrustFile::new(&places.config_home, &places.project);
        let saved = SavedFile::new(&places.config_home).read()?;
        let decisions = trust_file.read()?;
        let loaded = Loaded::read(places, Beside { flag: flags.settings.clone(), model });
        Ok(Self { loaded, decisions, trust_file, trusts_all: flags.trust, saved })
    }

    /// Whether an item counts.
    pub fn trusts(&self, item: &TrustItem) -> bool {
        self.trusts_all || self.decisions.trusts(item)
    }

    /// The settings that count, where all files can be used.
    ///
    /// # Errors
    /// What cannot.
    pub fn usable(&self) -> Result<Settings, ExpectedError> {
        let mut problems = self.loaded.errors();
        let settings = self.loaded.settle(&|item| self.trusts(item));
        problems.extend(settings.problems.iter().filter(|one| one.severity == Severity::Error).cloned());
        if problems.is_empty() { Ok(settings) } else { Err(ExpectedError::Settings { problems }) }
    }

    /// Reads the decisions again.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn read_decisions(&mut self) -> Result<(), ExpectedError> {
        self.decisions = self.trust_file.read()?;
        Ok(())
    }

    /// What waits for a decision: nothing was decided on it.
    pub fn undecided<'a>(&self, settings: &'a Settings) -> Vec<&'a TrustItem> {
        settings.waiting.iter().filter(|item| self.decisions.on(item) != Some(Decision::Refused)).collect()
    }

    /// Providers and models, out of variables, settings and saved keys.
    ///
    /// # Errors
    /// An address or a number that cannot be read.
    pub fn providers(&self, settings: &Settings) -> Result<ProvidersConfig, ExpectedError> {
        let table = ProfilesTable {
            providers: settings
                .providers
                .iter()
                .map(|(name, one)| (name.clone(), one.value.clone()))
                .collect(),
            aliases: settings.aliases.iter().map(|(name, one)| (name.clone(), one.value.clone())).collect(),
            model: settings.model.as_ref().map(|model| model.value.clone()),
            in_flight: settings.limits.providers.clone(),
            saved_login: self.saved.login.as_ref().map(|login| login.reveal().to_owned()),
            saved_keys: self
                .saved
                .keys
                .iter()
                .map(|(name, key)| (name.clone(), key.reveal().to_owned()))
                .collect(),
        };
        let mut config = ProvidersConfig::from_env(&|name| settings.variable(name, env(name)), table)?;
        if let Some(policy) = settings.model.as_ref().filter(|model| model.origin.scope == Scope::Managed) {
            config.chosen_model = Some(policy.value.clone());
        }
        Ok(config)
    }

    /// All that `claw login` saved, for redaction.
    pub fn saved_secrets(&self) -> Vec<String> {
        let all = self.saved.keys.values().chain(&self.saved.login);
        all.map(|secret| secret.reveal().to_owned()).collect()
    }

    /// Tells what does not count: warnings, and one line about what is not trusted.
    pub fn tell(&self, settings: &Settings) {
        let more = settings.problems.iter().filter(|one| one.severity == Severity::Warning);
        for warning in self.loaded.warnings().iter().chain(more) {
            say(&warning_text(warning));
        }
        if let Some(line) = untrusted(&self.undecided(settings)) {
            say(&line);
        }
    }
}

/// A warning with its help.
fn warning_text(warning: &Diagnostic) -> String {
    visible(&format!("warning: {warning}\n")).into_owned()
}

/// One line: what is not trusted, with file and command.
fn untrusted(items: &[&TrustItem]) -> Option<String> {
    if items.is_empty() {
        return None;
    }
    let named: Vec<String> = items.iter().take(MOST_NAMED).map(|item| named(item)).collect();
    let more = match items.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let list = named.join(", ");
    Some(format!(
        "note: not trusted and ignored: {list}{more}; decide with `claw trust`, or use --trust once\n"
    ))
}

fn named(item: &TrustItem) -> String {
    let line = item.line();
    let shown: String = visible_line(&line).chars().take(MOST_OF_ONE).collect();
    let cut = if shown.chars().count() < visible_line(&line).chars().count() { "…" } else { "" };
    format!("{} `{shown}{cut}` ({})", item.kind, visible_line(&item.origin.to_string()))
}
