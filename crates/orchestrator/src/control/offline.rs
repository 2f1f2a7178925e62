//! An answer for a run that nobody works on: written to its journal, for the take that goes on with it.

use super::error::ControlError;
use crate::addr::StepAddr;
use crate::journal::record::{Answer, EndState, Entry, Question, Record};
use crate::journal::store::{self, JournalWriter};
use crate::rundir::{self, RunDir};
use claw_kernel::durable::LogWriter;
use indexmap::IndexMap;

/// Questions that wait for an answer, by step, in the order in which they were asked; with the attempt that asked.
pub fn open_questions(records: &[Record]) -> IndexMap<StepAddr, (Option<u32>, Question)> {
    let mut open = IndexMap::new();
    for record in records {
        let Some(step) = &record.step else { continue };
        match &record.entry {
            Entry::Asked(question) => {
                open.insert(step.clone(), (record.attempt, question.clone()));
            }
            Entry::Answered(_) => {
                open.shift_remove(step);
            }
            Entry::Ended(ended) => match ended.state {
                // The question goes on with the next take.
                EndState::Interrupted | EndState::Cancelled => {}
                EndState::Succeeded | EndState::Failed | EndState::Skipped | EndState::Cached => {
                    open.shift_remove(step);
                }
            },
            Entry::Take(_)
            | Entry::Expanded { .. }
            | Entry::Admitted { .. }
            | Entry::Intent { .. }
            | Entry::Done { .. }
            | Entry::Turn { .. }
            | Entry::Spawned { .. }
            | Entry::MergeEnqueued { .. }
            | Entry::MergeDelivered { .. }
            | Entry::Steered { .. }
            | Entry::Paused { .. }
            | Entry::RunEnded { .. }
            | Entry::Damaged { .. } => {}
        }
    }
    open
}

/// Takes the run, writes the answer, lets it go.
///
/// # Errors
/// The run is held, the step does not ask, the choice is none of its choices, or the journal cannot be used.
pub async fn answer(run: &RunDir, step: &StepAddr, answer: Answer) -> Result<(), ControlError> {
    let _held = rundir::take_from_the_dead(run, None).await?;
    let (attempt, question) = {
        let records = store::load(run)?.records;
        let mut open = open_questions(&records);
        let is_known = records.iter().any(|record| record.step.as_ref() == Some(step));
        open.shift_remove(step).ok_or_else(|| refused(not_asking(step, is_known, &open)))?
    };
    if !question.choices.contains(&answer.choice) {
        return Err(refused(format!(
            "`{}` is no choice of {step}: {}",
            answer.choice,
            question.choices.join(", ")
        )));
    }
    let logs = LogWriter::start().map_err(ControlError::Gone)?;
    let journal = JournalWriter::open(&logs, run).await?.writer;
    journal.record(Some(step), attempt, Entry::Answered(answer)).await?.done().await?;
    Ok(())
}

fn refused(reason: String) -> ControlError {
    ControlError::Refused { reason }
}

fn not_asking(step: &StepAddr, is_known: bool, open: &IndexMap<StepAddr, (Option<u32>, Question)>) -> String {
    let asks = match open.len() {
        0 => "no step of this run waits for an answer".to_owned(),
        _ => {
            let steps: Vec<String> = open.keys().map(StepAddr::to_string).collect();
            format!("these wait: {}", steps.join(", "))
        }
    };
    if is_known {
        format!("{step} does not wait for an answer; {asks}")
    } else {
        format!("the run has no step `{step}`; {asks}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::record::AnsweredBy;
    use crate::rundir::take_lock;
    use claw_kernel::durable::private_dir;
    use claw_kernel::ids::RunId;

    fn question() -> Entry {
        Entry::Asked(Question {
            message: "Go on?".into(),
            show: Vec::new(),
            choices: vec!["yes".into(), "no".into()],
            default: None,
            until: None,
        })
    }

    fn choose(choice: &str) -> Answer {
        Answer { choice: choice.into(), comment: None, by: AnsweredBy::Person }
    }

    #[tokio::test]
    async fn only_an_open_question_takes_an_answer_and_only_one_of_its_choices() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::at(folder.path(), RunId::fresh());
        private_dir(run.root()).unwrap();
        let step: StepAddr = "approve".parse().unwrap();
        let other: StepAddr = "b".parse().unwrap();
        let logs = LogWriter::start().unwrap();
        let journal = JournalWriter::open(&logs, &run).await.unwrap().writer;
        journal.record(Some(&step), Some(1), question()).await.unwrap().done().await.unwrap();
        drop(journal);
        let said = |error: ControlError| error.to_string();
        let wrong = answer(&run, &step, choose("maybe")).await.map_err(said);
        assert_eq!(wrong, Err("`maybe` is no choice of approve: yes, no".into()));
        let wrong = answer(&run, &other, choose("yes")).await.map_err(said);
        assert_eq!(wrong, Err("the run has no step `b`; these wait: approve".into()));
        let held = take_lock(&run, None).unwrap();
        assert!(matches!(answer(&run, &step, choose("yes")).await, Err(ControlError::Folder(_))));
        drop(held);
        answer(&run, &step, choose("yes")).await.unwrap();
        let wrong = answer(&run, &step, choose("yes")).await.map_err(said);
        let text = "approve does not wait for an answer; no step of this run waits for an answer";
        assert_eq!(wrong, Err(text.into()));
        let last = store::load(&run).unwrap().records.pop().unwrap();
        assert_eq!((last.attempt, last.entry), (Some(1), Entry::Answered(choose("yes"))));
    }
}
