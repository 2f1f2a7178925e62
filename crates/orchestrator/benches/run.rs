//! Whole runs with journal and manifests on, and a model that answers at once: what the house itself costs.

use claw_agents::definition::AgentDefinition;
use claw_agents::model::{Model, ModelTraits};
use claw_agents::permission::{NobodyToAsk, Permission};
use claw_agents::roles::Catalog;
use claw_agents::services::{AgentServices, Sandboxes, Shared};
use claw_kernel::cancel::CancelToken;
use claw_kernel::durable::LogWriter;
use claw_kernel::redact::Redactor;
use claw_orchestrator::plan::InputArgs;
use claw_orchestrator::plan::model::Plan;
use claw_orchestrator::plan::surroundings::{ModelProblem, Surroundings};
use claw_orchestrator::run::{RunOptions, RunServices};
use claw_orchestrator::rundir::Runs;
use claw_providers::error::ProviderError;
use claw_providers::event::{Answer, RequestEvent, StopReason};
use claw_providers::message::Block;
use claw_providers::request::Request;
use claw_providers::usage::Usage;
use claw_tools::registry::Registry;
use divan::Bencher;
use futures_util::future::BoxFuture;
use std::fmt::Write;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::mpsc;

fn main() {
    divan::main();
}

struct AtOnce;

impl Model for AtOnce {
    fn ask<'a>(
        &'a self,
        _request: Request,
        _events: &'a mpsc::Sender<RequestEvent>,
        _cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<Answer, ProviderError>> {
        Box::pin(async {
            Ok(Answer {
                blocks: vec![Block::Text { text: "done".to_owned() }],
                stop: StopReason::EndTurn,
                cut_calls: Vec::new(),
                usage: Usage { input: 10, output: 1, ..Usage::NOTHING },
                provider: "none".to_owned(),
                model: "none".to_owned(),
                attempts: 1,
            })
        })
    }
    fn traits_of(&self, _model: &str) -> ModelTraits {
        ModelTraits {
            window: None,
            max_output: None,
            text_tool_calls: false,
            answer_schema: false,
            price: Some(claw_providers::models::Price::FREE),
        }
    }
    fn default_model(&self) -> String {
        "none".to_owned()
    }
}

struct BuiltIn(Catalog);

impl Surroundings for BuiltIn {
    fn agent(&self, name: &str) -> Option<Arc<AgentDefinition>> {
        self.0.get(name).ok()
    }
    fn agent_names(&self) -> Vec<String> {
        self.0.iter().map(|agent| agent.name.clone()).collect()
    }
    fn tool_names(&self) -> Vec<String> {
        Vec::new()
    }
    fn canonical_tool(&self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }
    fn read_text(&self, _: &Path) -> io::Result<String> {
        Err(io::Error::from(io::ErrorKind::NotFound))
    }
    fn cache_pays(&self, _: Option<&str>) -> bool {
        false
    }

    fn price_known(&self, _: Option<&str>) -> bool {
        true
    }

    fn default_commands(&self) -> usize {
        4
    }
    fn check_model(&self, _: &str) -> Result<(), ModelProblem> {
        Ok(())
    }
}

/// Steps that succeeded in one run of this file in a new folder.
async fn run(text: &str) -> Option<usize> {
    let folder = tempfile::tempdir().ok()?;
    let surroundings = BuiltIn(Catalog::builtin());
    let plan = Plan::from_source(Path::new("bench.toml"), text, &InputArgs::default(), &surroundings).ok()?;
    let logs = LogWriter::start().ok()?;
    let agents = Arc::new(AgentServices {
        model: Arc::new(AtOnce),
        registry: Registry::builtin().into(),
        ports: Arc::default(),
        redactor: Arc::new(Redactor::default()),
        logs: logs.clone(),
        rules: Arc::default(),
        asker: Arc::new(NobodyToAsk),
        sandboxes: Sandboxes::new(Vec::new(), false),
        hooks: Arc::new(claw_agents::hooks::Hooks::none()),
        mcp: claw_agents::mcp::McpServers::none(),
        memory: "".into(),
        protected: Vec::new(),
        compaction: claw_agents::compaction::CompactionSettings::default(),
        shared: Shared::default(),
    });
    let options = RunOptions {
        max_usd: None,
        again: None,
        stubs: None,
        can_ask: false,
        runtime_dir: None,
        workspace: folder.path().to_owned(),
        runs: Runs::of_project(folder.path(), None),
        worktrees: folder.path().join("worktrees"),
        secret_key: folder.path().join("key"),
        resume: None,
        accept_damage: false,
        permission: Permission::WORKSPACE_WRITE,
        model: None,
        version: "bench".to_owned(),
    };
    let handle =
        claw_orchestrator::run::start(RunServices { agents, logs }, Arc::new(plan), options).await.ok()?;
    let report = handle.report().await.ok()?;
    Some(report.steps.len())
}

fn bench(bencher: Bencher, text: &str) {
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().enable_all().build() else { return };
    bencher.bench_local(|| runtime.block_on(run(text)));
}

const HEAD: &str =
    "schema = 1\n[workflow]\nname = \"bench\"\nresult = \"1\"\n[limits]\nconcurrency = 200\nagents = 20000\n";

#[divan::bench(args = [100, 1000], sample_count = 5)]
fn fan_out(bencher: Bencher, agents: usize) {
    let text = format!(
        "{HEAD}[node.a]\nagent = \"Explore\"\nprompt = \"item {{{{ item }}}}\"\n[node.a.each]\nrange = {agents}\nkey = \"{{{{ item }}}}\"\n"
    );
    bench(bencher, &text);
}

#[divan::bench(sample_count = 20)]
fn chain_of_100_sets(bencher: Bencher) {
    let mut text = format!("{HEAD}[node.n0]\nkind = \"set\"\nvalue = \"0\"\n");
    for n in 1..100 {
        let before = n - 1;
        let _ =
            write!(text, "[node.n{n}]\nkind = \"set\"\nneeds = [\"n{before}\"]\nvalue = \"n{before} + 1\"\n");
    }
    bench(bencher, &text);
}
