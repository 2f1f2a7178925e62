//! The last word on a run.

use crate::addr::StepAddr;
use crate::journal::record::{EndState, RunStatus};
use claw_agents::outcome::{Denial, FailureClass};
use claw_kernel::ids::{AgentId, RunId};
use claw_providers::usage::Usage;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

/// The schema of the JSON form.
pub const SCHEMA: u32 = 1;

/// How a run ended, what it gave and what it cost. Serialises to the shape that `json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunReport {
    /// Of this shape.
    pub schema: u32,
    /// Which run.
    pub run_id: RunId,
    /// `workflow.name`.
    pub workflow: String,
    /// Derived.
    pub status: RunStatus,
    /// Of the process.
    pub exit_code: u8,
    /// What the workflow gave; null where it gave nothing.
    pub result: Value,
    /// In the order of the plan.
    pub steps: Vec<StepReport>,
    /// Over all takes.
    pub usage: Usage,
    /// The same money; null where a price is unknown.
    pub total_cost_usd: Option<f64>,
    /// What was denied in all steps.
    pub permission_denials: Vec<StepDenial>,
    /// The command that goes on with this run; `None` where nothing is left to do.
    pub resume: Option<String>,
    /// For people: torn journal, messages put in again, what was not reused and why.
    pub notes: Vec<String>,
    /// The run's folder: not in the JSON form.
    #[serde(skip)]
    pub folder: PathBuf,
    /// Wall time of this take: not in the JSON form.
    #[serde(skip)]
    pub elapsed: Duration,
}

/// One step of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepReport {
    /// Its address.
    pub step: StepAddr,
    /// `None`: it never became final (`pending`).
    #[serde(serialize_with = "state_or_pending")]
    pub status: Option<EndState>,
    /// Over all takes.
    pub attempts: u32,
    /// Of the last attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Why it did not succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Class of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_class: Option<FailureClass>,
    /// Over all attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What it gave, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_file: Option<PathBuf>,
    /// Time of its attempts in this take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// What a step was not allowed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepDenial {
    /// The step.
    pub step: StepAddr,
    /// What was denied.
    #[serde(flatten)]
    pub denial: Denial,
}

impl RunReport {
    /// One line of JSON, without a line end: what `json` prints, and the last line of `stream-json`.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// The steps that failed, without the groups that failed for what failed in them.
    pub fn failures(&self) -> Vec<&StepReport> {
        let failed = || self.steps.iter().filter(|step| step.status == Some(EndState::Failed));
        let groups: HashSet<StepAddr> = failed().flat_map(|step| step.step.above()).collect();
        failed().filter(|step| step.agent_id.is_some() || !groups.contains(&step.step)).collect()
    }

    /// How many steps ended so.
    pub fn count(&self, state: EndState) -> usize {
        self.steps.iter().filter(|step| step.status == Some(state)).count()
    }
}

fn state_or_pending<S: Serializer>(state: &Option<EndState>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.map_or("pending", EndState::as_str))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    pub(crate) fn step(name: &str, status: Option<EndState>) -> StepReport {
        StepReport {
            step: name.parse().unwrap(),
            status,
            attempts: 1,
            agent_id: None,
            error: None,
            error_class: None,
            usage: None,
            output_file: None,
            seconds: None,
        }
    }

    pub(crate) fn report() -> RunReport {
        let usage = Usage { input: 1200, output: 340, usd: Some(0.4242), ..Usage::NOTHING };
        RunReport {
            schema: SCHEMA,
            run_id: "01KBCDEFGHJKMNPQRSTVWXYZ01".parse().unwrap(),
            workflow: "review".into(),
            status: RunStatus::Failed,
            exit_code: 1,
            result: json!({"verdict": "fail"}),
            steps: vec![
                StepReport {
                    usage: Some(usage),
                    seconds: Some(3.25),
                    ..step("diff", Some(EndState::Succeeded))
                },
                StepReport {
                    attempts: 3,
                    agent_id: Some("ag_0123456789abcdefghjkmnpqrs".parse().unwrap()),
                    error: Some("no answer\nfor 5 minutes".into()),
                    error_class: Some(FailureClass::Timeout),
                    output_file: Some("/r/nodes/fix.3/output.md".into()),
                    ..step("fix", Some(EndState::Failed))
                },
                StepReport {
                    attempts: 0,
                    error: Some("needs fix".into()),
                    ..step("verify", Some(EndState::Skipped))
                },
                StepReport { attempts: 0, ..step("tell", None) },
            ],
            usage,
            total_cost_usd: usage.usd,
            permission_denials: vec![StepDenial {
                step: "fix".parse().unwrap(),
                denial: Denial {
                    tool: "bash".into(),
                    subject: "rm -rf /".into(),
                    reason: "mode read-only".into(),
                },
            }],
            resume: Some("claw run review.toml --resume=01KBCDEFGHJKMNPQRSTVWXYZ01".into()),
            notes: vec!["fix: prompt changed".into()],
            folder: "/r".into(),
            elapsed: Duration::from_secs(75),
        }
    }

    #[test]
    fn a_failure_inside_groups_is_named_once() {
        let failed = Some(EndState::Failed);
        let names = ["fix", "fix@1", "fix@1/edit", "other"];
        let report = RunReport { steps: names.map(|name| step(name, failed)).into(), ..report() };
        let named: Vec<String> = report.failures().iter().map(|step| step.step.to_string()).collect();
        assert_eq!(named, ["fix@1/edit", "other"]);
    }

    #[test]
    fn the_json_form_has_the_fields_of_the_contract() {
        let json: Value = serde_json::from_str(&report().to_json().unwrap()).unwrap();
        let fields: Vec<_> = json.as_object().unwrap().keys().map(String::as_str).collect();
        let mut wanted =
            vec!["schema", "run_id", "workflow", "status", "exit_code", "result", "steps", "usage"];
        wanted.extend(["total_cost_usd", "permission_denials", "resume", "notes"]);
        assert_eq!(fields, wanted);
        assert_eq!(json["steps"][1]["error_class"], "timeout");
        assert_eq!(json["steps"][3]["status"], "pending");
        assert_eq!(json["permission_denials"][0]["tool"], "bash");
    }
}
