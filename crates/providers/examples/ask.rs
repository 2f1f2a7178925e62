//! Sends one prompt and prints the events: `ask MODEL PROMPT`, with the same variables as `claw`.
//! `ask --schema MODEL PROMPT` holds the answer to `{"answer": string}`; `--tool` offers one tool.

use claw_kernel::cancel::CancelToken;
use claw_kernel::tasks;
use claw_providers::event::{RequestEvent, StreamEvent};
use claw_providers::message::Message;
use claw_providers::request::{Request, ToolChoice, ToolSpec};
use claw_providers::{ProfilesTable, Providers, ProvidersConfig};
use serde_json::json;
use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut flag = |name: &str| words.iter().position(|w| w == name).map(|at| words.remove(at)).is_some();
    let (with_schema, with_tool) = (flag("--schema"), flag("--tool"));
    let mut words = words.into_iter();
    let env = |name: &str| std::env::var(name).ok();
    let providers = Providers::start(ProvidersConfig::from_env(&env, ProfilesTable::default())?)?;
    let model = words.next().unwrap_or_else(|| providers.default_model());
    let prompt = words.next().unwrap_or_else(|| "Say hello.".to_owned());
    let schema =
        json!({"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]});
    let tool = ToolSpec {
        name: "read_file".into(),
        description: "Reads a file.".into(),
        input_schema: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
    };
    let request = Request {
        models: vec![model].into(),
        system: "You are brief.".into(),
        messages: vec![Arc::new(Message::user(prompt))],
        tools: with_tool.then_some(tool).into_iter().collect(),
        tool_choice: ToolChoice::Auto,
        max_output: Some(200),
        effort: None,
        answer_schema: with_schema.then(|| Arc::new(schema)),
    };
    let started = Instant::now();
    let (sender, mut receiver) = mpsc::channel(64);
    let printer = tasks::spawn("printer", async move {
        let mut deltas = 0;
        while let Some(event) = receiver.recv().await {
            if matches!(event, RequestEvent::Stream(StreamEvent::TextDelta { .. })) {
                deltas += 1;
            } else {
                let _ = writeln!(std::io::stdout(), "{:>6} ms  {event:?}", started.elapsed().as_millis());
            }
        }
        deltas
    });
    let answer = providers.ask(request, &sender, &CancelToken::new()).await;
    drop(sender);
    let deltas = printer.await?;
    let mut out = std::io::stdout();
    match answer {
        Ok(answer) => writeln!(out, "{deltas} text deltas\n{answer:#?}")?,
        Err(error) => writeln!(out, "{deltas} text deltas\nerror: {error}\n{error:#?}")?,
    }
    Ok(())
}
