//! Any text at all: an answer, never a panic, every place inside the text.

use super::fixture::{HEAD, plan_of};
use crate::expr::{Expr, Render, Scope, ScopeData, Template};
use crate::plan::InputArgs;
use proptest::prelude::*;

const PIECES: &[&str] = &[
    "[node.a]\n",
    "[node.b]\n",
    "[node.a.each]\n",
    "[node.a.body.c]\n",
    "[node.a.body.a]\n",
    "[node.a.loop]\n",
    "[defaults]\n",
    "[budget]\n",
    "kind = 'group'\n",
    "kind = 'gate'\nmessage = 'x'\n",
    "kind = 'workflow'\nfile = 'sub.toml'\n",
    "strategy = 'git'\n",
    "isolation = 'worktree'\n",
    "max = 2\n",
    "carry = { x = 'a' }\n",
    "with = { n = '1' }\n",
    "usd = 1\n",
    "[inputs.x]\n",
    "kind = ",
    "prompt = ",
    "needs = ",
    "run = ",
    "items = ",
    "type = ",
    "'x'",
    "'{{ a.b }}'",
    "\"é{{ inputs.x | head('2B') }}\"",
    "['a', 'b']",
    "[1, 2]",
    "{ a = 1 }",
    "1",
    "\n",
    "=",
    "'",
    "\"\"\"",
    "{{",
    "}}",
    "{%",
    "|",
    "output = ",
    "when = ",
    "from = ",
    "strategy = 'dedupe'\n",
    "kind = 'merge'\n",
    "kind = 'command'\n",
    "kind = 'set'\n",
    "value = ",
    "key = ",
    "each = { range = 3 }\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_text_panics(pieces in proptest::collection::vec(0..PIECES.len(), 0..25), headed in any::<bool>()) {
        let body: String = pieces.iter().map(|at| PIECES[*at]).collect();
        let text = if headed { format!("{HEAD}{body}") } else { body };
        if let Err(problems) = plan_of(&text, &InputArgs::default()) {
            prop_assert!(!problems.is_empty());
            for problem in problems {
                // Those of a nested file have places in that.
                let own = problem.place.file.ends_with("t.toml");
                prop_assert!(!own || problem.place.span.start <= text.len() && problem.place.line <= text.lines().count() + 1, "{}", problem);
            }
        }
    }

    #[test]
    fn no_expression_panics(text in "[a-z.|\\[\\]{}()'\" 0-9=!<>~+*/%-]{0,40}") {
        if let Ok(expr) = Expr::parse(&text) {
            let _ = expr.eval(&Scope::new(ScopeData::default()));
        }
    }

    #[test]
    fn no_template_panics_and_text_without_braces_is_itself(text in "\\PC{0,60}") {
        if let Ok(template) = Template::parse(&text) {
            let rendered = template.render(&Scope::new(ScopeData::default()), Render::Prompt { nonce: "N" });
            if !text.contains('{') {
                prop_assert_eq!(rendered.unwrap(), text);
            }
        }
    }
}
