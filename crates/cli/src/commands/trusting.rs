//! The question about what a repository brings, before anything of it could run. Default no.

use crate::error::ExpectedError;
use crate::services::Setup;
use crate::terminal::{TrustAnswer, confirm, trust_question};
use claw_agents::trust::{Decision, TrustItem};

/// Asks about items that nothing was decided on, and keeps the answer.
///
/// # Errors
/// The decision cannot be kept.
pub fn ask(setup: &mut Setup) -> Result<(), ExpectedError> {
    let items = setup.origin.undecided(&setup.settings);
    if items.is_empty() {
        return Ok(());
    }
    let (trusted, refused): (Vec<&TrustItem>, Vec<&TrustItem>) = match trust_question(&items) {
        TrustAnswer::All => (items, Vec::new()),
        TrustAnswer::NotNow => return Ok(()),
        TrustAnswer::Never => (Vec::new(), items),
        TrustAnswer::Each => {
            let yes = |item: &&TrustItem| confirm(&format!("\n{}\nTrust it?", item.lines.join("\n")));
            (items.into_iter().filter(yes).collect(), Vec::new())
        }
    };
    setup.origin.trust_file.decide(&trusted, Decision::Trusted)?;
    setup.origin.trust_file.decide(&refused, Decision::Refused)?;
    setup.decided()
}
