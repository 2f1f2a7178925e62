//! Sends N requests at once and says what they cost: `many N [MODEL]`, with the same variables as `claw`.

use claw_kernel::cancel::CancelToken;
use claw_kernel::tasks;
use claw_providers::event::RequestEvent;
use claw_providers::message::Message;
use claw_providers::request::{Request, ToolChoice};
use claw_providers::{ProfilesTable, Providers, ProvidersConfig};
use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let count: usize = words.next().unwrap_or_default().parse().unwrap_or(100);
    let model = words.next().unwrap_or_else(|| "mock".to_owned());
    let env = |name: &str| std::env::var(name).ok();
    let providers = Providers::start(ProvidersConfig::from_env(&env, ProfilesTable::default())?)?;
    let started = Instant::now();
    let asked: Vec<_> = (0..count)
        .map(|n| {
            let (providers, model) = (providers.clone(), model.clone());
            tasks::spawn("request", async move {
                let request = Request {
                    models: vec![model].into(),
                    system: "You are brief.".into(),
                    messages: vec![Arc::new(Message::user(format!("request {n}")))],
                    tools: Arc::new([]),
                    tool_choice: ToolChoice::Auto,
                    max_output: None,
                    effort: None,
                    answer_schema: None,
                };
                let (sender, mut receiver) = mpsc::channel(64);
                let listen = async {
                    let mut waits = 0;
                    while let Some(event) = receiver.recv().await {
                        waits += usize::from(matches!(event, RequestEvent::Waiting { .. }));
                    }
                    waits
                };
                let ask = async {
                    let answer = providers.ask(request, &sender, &CancelToken::new()).await;
                    drop(sender);
                    answer.is_ok()
                };
                tokio::join!(ask, listen)
            })
        })
        .collect();
    let (mut good, mut waits) = (0, 0);
    for task in asked {
        let (is_good, waited) = task.await?;
        good += usize::from(is_good);
        waits += waited;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM unknown");
    writeln!(
        std::io::stdout(),
        "{good} of {count} answered, {waits} waits, {} ms, {peak}",
        started.elapsed().as_millis()
    )?;
    Ok(())
}
