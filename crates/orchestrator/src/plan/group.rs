//! Groups, loops and nested files.

use super::build::{Build, Spot, Stand, Visible};
use super::decl::{InputDecl, InputRefused};
use super::from_source::budget;
use super::inputs;
use super::model::{GroupWork, Loop, NestedFile, NodeIx, OnExhausted};
use crate::expr::{Expr, Root, Scope, ScopeData};
use crate::workflow::file::{NodeFile, Val};
use crate::workflow::keys::NodeKind;
use crate::workflow::problem::Code;
use claw_kernel::near::nearest;
use indexmap::IndexMap;
use std::ops::Range;

impl<'a> Build<'a> {
    pub(super) fn group(&mut self, ix: NodeIx, node: &'a NodeFile) -> Option<GroupWork> {
        let inner = self.forest.slot(ix).inner?;
        let behind = Visible::from(Stand::Behind(inner));
        let result = match node.keys.get("result") {
            Some(_) => Some(self.optional_expr(node, &node.keys, ("result", "result"), &behind)?),
            None => None,
        };
        Some(GroupWork {
            body: self.forest.body(ix),
            result,
            timeout: node.keys.duration("timeout"),
            nested: None,
        })
    }

    pub(super) fn nested(
        &mut self,
        ix: NodeIx,
        node: &'a NodeFile,
        visible: &Visible<'_>,
    ) -> Option<GroupWork> {
        let inner = self.forest.slot(ix).inner?;
        let file = self.forest.graphs[inner].file;
        let unit = &self.forest.files[file];
        let declared = inputs::declared(&unit.written);
        let with = self.with(node, &declared, visible);
        let caller = self.file;
        self.enter(file);
        let result = self.result_of(file, inner);
        self.enter(caller);
        let workflow = unit.written.top.section("workflow");
        Some(GroupWork {
            body: self.forest.body(ix),
            result,
            timeout: node.keys.duration("timeout"),
            nested: Some(NestedFile {
                file: unit.source.file.clone(),
                name: workflow.and_then(|keys| keys.text("name")).unwrap_or_default().to_owned(),
                with,
                inputs: declared,
                limits: self.limits[file].clone(),
                budget: unit.written.top.section("budget").map(budget),
            }),
        })
    }

    /// `workflow.result` of the file that is entered.
    pub(super) fn result_of(&mut self, file: usize, graph: usize) -> Option<Expr> {
        let value = self.forest.files[file].written.top.section("workflow")?.get("result")?;
        let spot = Spot {
            source: self.source,
            span: value.span.clone(),
            node: None,
            key: "workflow.result",
            exact: false,
        };
        self.expr(&spot, value.text()?, &Visible::from(Stand::Behind(graph)))
    }

    /// `with`, held against what the nested file declares.
    fn with(
        &mut self,
        node: &'a NodeFile,
        declared: &IndexMap<String, InputDecl>,
        visible: &Visible<'_>,
    ) -> Vec<(String, Expr)> {
        let mut out = Vec::new();
        for (id, span, value) in node.keys.map("with") {
            match declared.get(id.as_ref()) {
                Some(decl) => {
                    let expr = self.with_one(node, (id, decl), value, visible);
                    out.extend(expr.map(|expr| (id.to_string(), expr)));
                }
                None => {
                    let near = nearest(id, declared.keys().map(String::as_str));
                    let message = format!("the nested file has no input `{id}`");
                    self.with_problem(node, (id, span), Code::E122, message, near.map(near_help));
                }
            }
        }
        let place = node.keys.entry("with").map_or(node.span.clone(), |entry| entry.key_span.clone());
        for (id, _) in declared.iter().filter(|(_, decl)| decl.default.is_none()) {
            if !node.keys.map("with").iter().any(|(given, _, _)| given.as_ref() == id) {
                let message = format!("the input `{id}` of the nested file is missing");
                let help = format!("write `with = {{ {id} = \"…\" }}`, an expression");
                self.with_problem(node, (id, &place), Code::E120, message, Some(help));
            }
        }
        out
    }

    fn with_problem(
        &mut self,
        node: &NodeFile,
        (id, span): (&str, &Range<usize>),
        code: Code,
        message: String,
        help: Option<String>,
    ) {
        let path = format!("node.{}.with.{id}", node.path());
        let mut problem = self.source.problem(code, span.clone(), path, message);
        problem.help = help;
        self.problems.push(problem);
    }

    fn with_one(
        &mut self,
        node: &'a NodeFile,
        (id, decl): (&str, &InputDecl),
        value: &Val,
        visible: &Visible<'_>,
    ) -> Option<Expr> {
        let spot = self.spot(node, "with", value);
        let text = value.text()?;
        // A secret goes as it is into an input that is secret, and nowhere else.
        let alone = Expr::parse(text).is_ok_and(|expr| {
            expr.references().iter().all(|name| name.root() == Root::Inputs && name.text() == text.trim())
        });
        let expr = self.expr(&spot, text, &Visible { secrets: decl.secret && alone, ..*visible })?;
        if expr.references().is_empty() {
            let known = expr.eval(&Scope::new(ScopeData::default()));
            let wrong = match known.map(|value| (value.clone(), decl.accept(value))) {
                Ok((_, Ok(_))) => return Some(expr),
                Ok((value, Err(InputRefused::Type { wanted }))) => {
                    format!("the input `{id}` of the nested file must be {wanted}, not `{value}`")
                }
                Ok((_, Err(InputRefused::Missing))) => {
                    format!("the input `{id}` of the nested file must have a value")
                }
                Err(error) => {
                    self.problems.push(spot.problem(error.code(), error.to_string()));
                    return None;
                }
            };
            self.with_problem(node, (id, &value.span), Code::E121, wrong, None);
            return None;
        }
        Some(expr)
    }

    /// `loop`. Of a group it looks at the body of this iteration; of any other node at the node itself.
    pub(super) fn repeat(&mut self, ix: NodeIx, node: &'a NodeFile, visible: &Visible<'_>) -> Option<Loop> {
        let keys = node.keys.section("loop")?;
        let over = match (node.kind, self.forest.slot(ix).inner) {
            (NodeKind::Group, Some(inner)) => Visible::from(Stand::Behind(inner)),
            _ => Visible { itself: true, ..*visible },
        };
        let until = self.optional_expr(node, keys, ("until", "loop.until"), &over);
        let mut carry = Vec::new();
        for (name, span, value) in keys.map("carry") {
            let named = Spot { span: span.clone(), ..self.spot(node, "loop.carry", value) };
            self.carry_hides(&named, name, ix, &over);
            let spot = self.spot(node, "loop.carry", value);
            if let Some(expr) = self.expr(&spot, value.text().unwrap_or_default(), &over) {
                carry.push((name.to_string(), expr));
            }
        }
        let number = |name| keys.int(name).and_then(|n| u32::try_from(n).ok());
        Some(Loop {
            max: number("max").unwrap_or(1),
            until,
            carry,
            stall: number("stall"),
            on_exhausted: match keys.text("on_exhausted") {
                Some("continue") => OnExhausted::Continue,
                Some(_) | None => OnExhausted::Fail,
            },
        })
    }
}

fn near_help(name: &str) -> String {
    format!("did you mean `{name}`?")
}
