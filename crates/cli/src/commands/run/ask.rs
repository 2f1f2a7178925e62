//! The one question before a run that is big.

use crate::args::RunFlags;
use crate::error::ExpectedError;
use crate::services::Setup;
use crate::terminal::confirm;
use claw_orchestrator::plan::estimate::Estimate;
use claw_orchestrator::plan::model::Plan;

/// More agents than these are worth a question.
const MANY_AGENTS: usize = 25;
/// And so many dollars.
const MANY_DOLLARS: f64 = 5.0;

/// Shows the estimate of a new run that is big and asks once. A run that is gone on with was wanted.
///
/// # Errors
/// It was not wanted.
pub(super) fn before_a_big_run(setup: &Setup, plan: &Plan, flags: &RunFlags) -> Result<(), ExpectedError> {
    let goes_on =
        flags.resume.is_some() || flags.from.is_some() || flags.only.is_some() || flags.rerun.is_some();
    if flags.yes || goes_on {
        return Ok(());
    }
    let default = flags.model.clone().unwrap_or_else(|| setup.config.default_model());
    let price = |model: &str| {
        let route = setup.config.route(model).ok()?;
        route.profile.info(&route.model).price
    };
    let estimate = plan.estimate(&default, &price);
    if !is_big(&estimate) || confirm(&format!("{}\nGo on?", estimate.text(&plan.name))) {
        return Ok(());
    }
    Err(ExpectedError::Declined)
}

fn is_big(estimate: &Estimate) -> bool {
    estimate.agents > MANY_AGENTS || estimate.usd > MANY_DOLLARS
}
