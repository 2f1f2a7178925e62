//! The one way to a plan: text and inputs in, a checked graph or all problems of the first stage that has some.

use super::build::{Build, Facts, Spot, Visible};
use super::graph::{self, Graph};
use super::inputs::{self, InputArgs};
use super::model::{
    Body, EachSource, InputValue, Limits, MergeReport, MergeStrategy, Node, NodeIx, OutputSpec, Plan, Work,
};
use super::surroundings::Surroundings;
use super::{shape, writers};
use crate::expr::Expr;
use crate::workflow::file::{NodeFile, Section, Val, WorkflowFile};
use crate::workflow::keys;
use crate::workflow::problem::{Code, Place, Problem};
use crate::workflow::reader;
use crate::workflow::spans::Source;
use indexmap::IndexMap;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
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
        let source = Source::new(file, text);
        let (written, problems) = reader::read_what_is_good(&source)?;
        let sections = with_defaults(&written);
        check_keys(&source, &written, &sections, problems)?;
        let graph = graph::resolve(&source, &written.nodes)?;
        let (inputs, input_problems) = match inputs::check(&source, &written, args) {
            Ok(inputs) => (inputs, Vec::new()),
            Err(problems) => (declared_only(&written), problems),
        };
        let mut build = Build::new(&source, &written, surroundings, &graph, &inputs);
        build.problems = input_problems;
        build.own_agents(&written);
        let nodes = build.nodes(&written.nodes, &sections);
        let result = build.result(&written);
        build.settle_far();
        let limits = limits(&written.top, surroundings);
        if nodes.len() == written.nodes.len() {
            build.check_limits(&written, &nodes, &limits);
            build.check_writers(&written.nodes, &sections, &nodes);
        }
        let warnings = build.finish()?;
        Ok(Self {
            name: written.top.section("workflow").and_then(|w| w.text("name")).unwrap_or_default().to_owned(),
            description: written
                .top
                .section("workflow")
                .and_then(|w| w.text("description"))
                .unwrap_or_default()
                .to_owned(),
            result,
            top: Body { first: 0, count: u32::try_from(nodes.len()).unwrap_or(u32::MAX) },
            nodes,
            budget: None,
            limits,
            merge: merge_report(&written.top),
            warnings,
            file: file.to_owned(),
            source: text.into(),
            inputs,
        })
    }
}

/// The rest of the stage of keys: what the table cannot say. Only where the table had nothing to say itself.
fn check_keys(
    source: &Source<'_>,
    file: &WorkflowFile,
    sections: &[Cow<'_, Section>],
    mut problems: Vec<Problem>,
) -> Result<(), Vec<Problem>> {
    let bad: HashSet<String> = problems
        .iter()
        .map(|problem| problem.path.split('.').take(2).collect::<Vec<_>>().join("."))
        .collect();
    let said = |path: String| bad.contains(&path);
    if !problems.iter().any(|problem| problem.path.starts_with("inputs")) {
        problems.extend(inputs::declarations(source, file));
    }
    let defaults_are_bad = problems.iter().any(|problem| problem.path.starts_with("defaults"));
    for (node, keys) in file.nodes.iter().zip(sections).filter(|_| !defaults_are_bad) {
        if !said(format!("node.{}", node.id)) {
            problems.extend(shape::check(source, node, keys));
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    in_order(&mut problems);
    Err(problems)
}

fn in_order(problems: &mut Vec<Problem>) {
    problems.sort_by(|a, b| {
        (&a.place.file, a.place.span.start, a.code).cmp(&(&b.place.file, b.place.span.start, b.code))
    });
    problems.dedup();
}

/// The keys of each node with `defaults` filled in where its kind has them.
fn with_defaults(file: &WorkflowFile) -> Vec<Cow<'_, Section>> {
    let defaults = file.top.section("defaults").filter(|defaults| !defaults.entries.is_empty());
    let fill = |node: &NodeFile, defaults: &Section| {
        let mut own = node.keys.clone();
        // A node that says where its prompt is does not want the default one beside it.
        let prompted = own.get("prompt").is_some() || own.get("prompt_file").is_some();
        let agent_merge = own.text("strategy") == Some("agent");
        own.fill_from(defaults, |key| {
            let of_agent = keys::own(keys::NodeKind::Agent).iter().any(|known| known.name == key.name);
            let fits = keys::of(node.kind).any(|known| known.name == key.name)
                && (node.kind != keys::NodeKind::Merge || agent_merge || !of_agent);
            fits && !(prompted && matches!(key.name, "prompt" | "prompt_file"))
        });
        own
    };
    let section = |node| match defaults {
        Some(defaults) => Cow::Owned(fill(node, defaults)),
        None => Cow::Borrowed(&node.keys),
    };
    file.nodes.iter().map(section).collect()
}

/// Inputs whose values are wrong, so that names are still checked against what is declared.
fn declared_only(file: &WorkflowFile) -> IndexMap<String, InputValue> {
    let declared = file.top.map("inputs").iter().map(|(id, _, value)| {
        let secret = value.section().and_then(|keys| keys.flag("secret")).unwrap_or(false);
        (id.to_string(), InputValue { value: serde_json::Value::Null, secret, fenced: false })
    });
    declared.collect()
}

fn limits(top: &Section, surroundings: &dyn Surroundings) -> Limits {
    let none = Section::default();
    let keys = top.section("limits").unwrap_or(&none);
    let providers = keys
        .map("providers")
        .iter()
        .filter_map(|(name, _, value)| Some((name.to_string(), usize::try_from(value.int()?).ok()?)));
    Limits {
        concurrency: keys.count("concurrency").unwrap_or(16),
        commands: keys.count("commands").unwrap_or_else(|| surroundings.default_commands()),
        agents: keys.count("agents").unwrap_or(200),
        depth: keys.int("depth").and_then(|depth| u32::try_from(depth).ok()).unwrap_or(2),
        providers: providers.collect(),
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
        source: &'a Source<'a>,
        file: &'a WorkflowFile,
        surroundings: &'a dyn Surroundings,
        graph: &'a Graph,
        inputs: &'a IndexMap<String, InputValue>,
    ) -> Self {
        Self {
            source,
            folder: source.file.parent().unwrap_or(Path::new("")).to_owned(),
            surroundings,
            graph,
            ids: file.nodes.iter().map(|node| node.id.as_str()).collect(),
            inputs,
            facts: Vec::new(),
            own_agents: HashMap::new(),
            agents: HashMap::new(),
            models: HashMap::new(),
            problems: Vec::new(),
            late: Vec::new(),
            warnings: Vec::new(),
            far: Vec::new(),
            near_left: 50,
        }
    }

    fn nodes(&mut self, files: &'a [NodeFile], sections: &'a [Cow<'a, Section>]) -> Vec<Node> {
        let outputs: Vec<OutputSpec> =
            files.iter().zip(sections).map(|(node, keys)| self.output(node, keys)).collect();
        let facts = outputs.iter().zip(sections).map(|(output, keys)| Facts {
            schema: match output {
                OutputSpec::Schema(schema) => Some(Arc::clone(schema)),
                OutputSpec::Text | OutputSpec::Json => None,
            },
            each: keys.get("each").is_some(),
        });
        self.facts = facts.collect();
        let mut nodes = Vec::with_capacity(files.len());
        for (at, ((node, keys), output)) in files.iter().zip(sections).zip(outputs).enumerate() {
            let ix = NodeIx(u32::try_from(at).unwrap_or(u32::MAX));
            nodes.extend(self.node(ix, node, keys, output));
        }
        nodes
    }

    fn result(&mut self, file: &WorkflowFile) -> Option<Expr> {
        let value = file.top.section("workflow")?.get("result")?;
        let spot = Spot {
            source: self.source,
            span: value.span.clone(),
            node: "",
            key: "workflow.result",
            exact: false,
        };
        self.expr(&spot, value.text()?, &Visible::default())
    }

    /// E132: agents that the plan is sure to need.
    fn check_limits(&mut self, file: &WorkflowFile, nodes: &[Node], limits: &Limits) {
        let needed: usize = nodes.iter().map(agents_of).sum();
        if needed <= limits.agents {
            return;
        }
        let value = file.top.section("limits").and_then(|keys| keys.get("agents"));
        let span = value.map_or(0..0, |value: &Val| value.span.clone());
        let message = format!("the plan needs {needed} agents, the limit is {}", limits.agents);
        let problem = self.source.problem(Code::E132, span, "limits.agents", message);
        self.late.push(problem.with_help("raise `limits.agents`, or take items out"));
    }

    /// W140 once, or E140 for each node that forbids it.
    fn check_writers(&mut self, files: &[NodeFile], sections: &[Cow<'_, Section>], nodes: &[Node]) {
        let found = writers::side_by_side(self.graph, nodes);
        let Some(first) = found.first() else { return };
        let names: Vec<&str> = found.iter().take(5).map(|at| self.ids[*at]).collect();
        let more = if found.len() > names.len() {
            format!(" and {} more", found.len() - names.len())
        } else {
            String::new()
        };
        let said = format!("these may write in one folder at the same time: {}{more}", names.join(", "));
        let forbidden: Vec<usize> = found
            .iter()
            .copied()
            .filter(|at| sections[*at].text("shared_writes") == Some("forbid"))
            .collect();
        for at in &forbidden {
            let problem = self.source.problem(
                Code::E140,
                files[*at].span.clone(),
                format!("node.{}", files[*at].id),
                said.clone(),
            );
            self.late.push(problem.with_help("order them by `after`, or narrow `tools` or `permission`"));
        }
        if forbidden.is_empty() {
            let place = &files[*first];
            let warning =
                self.source.problem(Code::W140, place.span.clone(), format!("node.{}", place.id), said);
            self.warnings.push(warning.with_help(
                "order them by `after`, or give the ones that only read `permission = \"read-only\"`",
            ));
        }
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

/// Agents that a node is sure to need.
fn agents_of(node: &Node) -> usize {
    let one = match &node.work {
        Work::Agent(_) => 1,
        Work::Merge(merge) => usize::from(matches!(merge.strategy, MergeStrategy::Agent { .. })),
        Work::Command(_) | Work::Set { .. } | Work::Group(_) | Work::Gate(_) => 0,
    };
    match node.each.as_ref().map(|each| &each.source) {
        Some(EachSource::Static(items)) => one * items.len(),
        Some(_) | None => one,
    }
}
