//! The one way to a plan: text and inputs in, a checked graph or all problems of the first stage that has some.

use super::build::Build;
use super::facts;
use super::files::{self, FileUnit};
use super::forest::Forest;
use super::inputs::{self, InputArgs};
use super::model::{Budget, InputValue, Limits, MergeReport, Node, Plan};
use super::surroundings::Surroundings;
use crate::workflow::file::{Section, Val, WorkflowFile};
use crate::workflow::problem::{Code, Place, Problem};
use indexmap::IndexMap;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

impl Plan {
    /// Reads the file, then as [`Plan::from_source`].
    ///
    /// # Errors
    /// E109 where it cannot be read.
    pub fn from_file(
        file: &Path,
        args: &InputArgs,
        surroundings: &dyn Surroundings,
    ) -> Result<Self, Vec<Problem>> {
        match surroundings.read_text(file) {
            Ok(text) => Self::from_source(file, &text, args, surroundings),
            Err(error) => Err(vec![Problem {
                code: Code::E109,
                place: Place::whole(file),
                path: String::new(),
                message: format!("the file cannot be read: {error}"),
                help: None,
            }]),
        }
    }

    /// Parse, resolve, expand the static parts, check.
    ///
    /// # Errors
    /// All problems of the first stage that has some: TOML; keys; graph; names and templates; agents, tools and
    /// limits.
    pub fn from_source(
        file: &Path,
        text: &str,
        args: &InputArgs,
        surroundings: &dyn Surroundings,
    ) -> Result<Self, Vec<Problem>> {
        Self::planned(file, text, (args, true), surroundings).map(|(plan, _)| plan)
    }

    /// The same of a file that is only looked at: inputs without a value stay open. Their names stand beside the plan,
    /// which is not one to run.
    ///
    /// # Errors
    /// As for [`Self::from_source`], without E120 of the file's own inputs.
    pub fn checked(
        file: &Path,
        text: &str,
        args: &InputArgs,
        surroundings: &dyn Surroundings,
    ) -> Result<(Self, Vec<String>), Vec<Problem>> {
        Self::planned(file, text, (args, false), surroundings)
    }

    fn planned(
        file: &Path,
        text: &str,
        (args, demands): (&InputArgs, bool),
        surroundings: &dyn Surroundings,
    ) -> Result<(Self, Vec<String>), Vec<Problem>> {
        let loaded = files::load(file, text, surroundings)?;
        let forest = Forest::new(&loaded)?;
        let top = &forest.files[0];
        let open = if demands { Vec::new() } else { inputs::missing(&top.written, args) };
        let (known, input_problems) = match inputs::check(&top.source, &top.written, args, &open) {
            Ok(known) => (known, Vec::new()),
            Err(problems) => (declared_only(&top.written), problems),
        };
        let nested = forest.files.iter().skip(1).map(|file| declared_only(&file.written));
        let inputs: Vec<_> = std::iter::once(known).chain(nested).collect();
        let limits = all_limits(forest.files, surroundings);
        let mut build = Build::new(&forest, surroundings, (&inputs, &open), &limits);
        build.problems = input_problems;
        for file in 0..forest.files.len() {
            build.enter(file);
            build.own_agents();
        }
        let nodes = build.nodes();
        build.body_names_hide();
        build.enter(0);
        let result = build.result_of(0, 0);
        build.settle_far();
        if nodes.len() == forest.slots.len() {
            build.check_limits(&nodes);
            build.check_prices(&nodes);
            build.check_locks(&nodes);
            build.check_writers(&nodes);
        }
        let warnings = build.finish()?;
        let keys = &top.written.top;
        let workflow = |name| keys.section("workflow").and_then(|w| w.text(name)).unwrap_or_default();
        let plan = Self {
            name: workflow("name").to_owned(),
            description: workflow("description").to_owned(),
            result,
            top: forest.graphs[0].body(),
            nodes,
            budget: keys.section("budget").map(budget),
            host: None,
            limits: limits[0].clone(),
            merge: merge_report(keys),
            warnings,
            file: file.to_owned(),
            source: Arc::clone(&top.source.text),
            inputs: inputs.into_iter().next().unwrap_or_default(),
        };
        Ok((plan, open))
    }
}

pub(super) fn in_order(problems: &mut Vec<Problem>) {
    problems.sort_by(|a, b| {
        (&a.place.file, a.place.span.start, a.code).cmp(&(&b.place.file, b.place.span.start, b.code))
    });
    problems.dedup();
}

/// Inputs without their values: those of nested files, and where the values are wrong.
fn declared_only(file: &WorkflowFile) -> IndexMap<String, InputValue> {
    let declared = inputs::declared(file).into_iter();
    declared.map(|(id, decl)| (id, decl.holding(serde_json::Value::Null))).collect()
}

/// `limits` of each file. What a nested file does not say is what its caller says.
fn all_limits(files: &[FileUnit], surroundings: &dyn Surroundings) -> Vec<Limits> {
    let mut out: Vec<Limits> = Vec::with_capacity(files.len());
    for file in files {
        let outer = file.caller.map(|caller| out[caller].clone());
        let outer = outer.unwrap_or_else(|| surroundings.default_limits());
        out.push(limits(&file.written.top, outer));
    }
    out
}

fn limits(top: &Section, outer: Limits) -> Limits {
    let Some(keys) = top.section("limits") else { return outer };
    let mut providers = outer.providers;
    for (name, _, value) in keys.map("providers") {
        let Some(most) = value.int().and_then(|most| usize::try_from(most).ok()) else { continue };
        let known = providers.get(name.as_ref()).copied().unwrap_or(usize::MAX);
        providers.insert(name.to_string(), most.min(known));
    }
    Limits {
        concurrency: keys.count("concurrency").unwrap_or(outer.concurrency),
        commands: keys.count("commands").unwrap_or(outer.commands),
        agents: keys.count("agents").unwrap_or(outer.agents),
        depth: keys.int("depth").and_then(|depth| u32::try_from(depth).ok()).unwrap_or(outer.depth),
        providers,
    }
}

/// `budget`, checked with the keys.
pub(super) fn budget(keys: &Section) -> Budget {
    let part = |key| keys.get(key).and_then(Val::float);
    let count = |key| keys.int(key).and_then(|number| u64::try_from(number).ok());
    Budget {
        usd: part("usd"),
        tokens: count("tokens"),
        output_tokens: count("output_tokens"),
        wall: keys.duration("wall"),
        turns: count("turns"),
        warn: part("warn").unwrap_or(0.8),
        reserve: part("reserve").unwrap_or(0.05),
        tokens_only: keys.text("unknown_price") == Some("tokens_only"),
    }
}

fn merge_report(top: &Section) -> MergeReport {
    let keys = top.section("merge");
    MergeReport {
        max_tokens: keys.and_then(|keys| keys.count("max_tokens")).unwrap_or(2000),
        per_node_tokens: keys.and_then(|keys| keys.count("per_node_tokens")).unwrap_or(300),
    }
}

impl<'a> Build<'a> {
    fn new(
        forest: &'a Forest<'a>,
        surroundings: &'a dyn Surroundings,
        (inputs, open_inputs): (&'a [IndexMap<String, InputValue>], &'a [String]),
        limits: &'a [Limits],
    ) -> Self {
        Self {
            forest,
            file: 0,
            source: &forest.files[0].source,
            folder: &forest.files[0].folder,
            surroundings,
            inputs,
            open_inputs,
            limits,
            facts: Vec::new(),
            own_agents: forest.files.iter().map(|_| HashMap::new()).collect(),
            agents: HashMap::new(),
            models: HashMap::new(),
            problems: Vec::new(),
            late: Vec::new(),
            warnings: Vec::new(),
            far: Vec::new(),
            near_left: 50,
        }
    }

    fn nodes(&mut self) -> Vec<Node> {
        let forest = self.forest;
        let mut outputs = Vec::with_capacity(forest.slots.len());
        for ix in forest.all() {
            self.enter(forest.slot(ix).file);
            outputs.push(self.output(forest.slot(ix).node));
        }
        self.facts = facts::of_all(forest, &outputs);
        let mut nodes = Vec::with_capacity(outputs.len());
        for (ix, output) in forest.all().zip(outputs) {
            nodes.extend(self.node(ix, output));
        }
        nodes
    }

    /// The problems of the first stage that has some, in the order of the file; else the warnings.
    fn finish(mut self) -> Result<Vec<Problem>, Vec<Problem>> {
        for mut stage in [self.problems, self.late] {
            if !stage.is_empty() {
                in_order(&mut stage);
                return Err(stage);
            }
        }
        in_order(&mut self.warnings);
        Ok(self.warnings)
    }
}
