//! Command lines and what they would run. The lines of attackers are lists here: add to them.

use super::*;
use proptest::prelude::*;

fn names(line: &str) -> Vec<String> {
    analyse(line).commands.iter().map(|command| command.base_name().unwrap_or("?").to_owned()).collect()
}

fn texts(line: &str) -> Vec<String> {
    let text = |command: &SimpleCommand| {
        command.words.iter().map(|word| word.text.clone()).collect::<Vec<_>>().join(" ")
    };
    analyse(line).commands.iter().map(text).collect()
}

/// Lines in which `touch` runs with a spelling that is read for certain.
const RUNS_TOUCH: &[&str] = &[
    "git status; touch PWNED",
    "git status && touch PWNED",
    "git status || touch PWNED",
    "git status | touch PWNED",
    "git status & touch PWNED",
    "git status\ntouch PWNED",
    "git status\r\ntouch PWNED",
    "echo \"$(touch PWNED)\"",
    "echo `touch PWNED`",
    "echo \"`touch PWNED`\"",
    "echo ${x:=$(touch PWNED)}",
    "echo \"${x:=$(touch PWNED)}\"",
    "echo $((a[$(touch PWNED)]))",
    "((a[$(touch PWNED)]++))",
    "cat <(touch PWNED)",
    "cat < <(touch PWNED)",
    "tee >(touch PWNED)",
    "env touch PWNED",
    "env -u X -i touch PWNED",
    "env -S 'touch PWNED'",
    "env --split-string='touch PWNED'",
    "sudo -S touch PWNED",
    "command touch PWNED",
    "command -p touch PWNED",
    "timeout 1 touch PWNED",
    "timeout -s KILL --kill-after=3 1 touch PWNED",
    "nice touch PWNED",
    "nice -n 5 touch PWNED",
    "nice -5 touch PWNED",
    "exec touch PWNED",
    "exec -a x touch PWNED",
    "printf PWNED | xargs touch",
    "printf PWNED | xargs -I {} -P 4 touch {}",
    "nohup setsid stdbuf -oL touch PWNED",
    "\\touch PWNED",
    "t\"ou\"ch PWNED",
    "$'\\x74ouch' PWNED",
    "$'t\\157uch' PWNED",
    "/usr/bin/touch PWNED",
    "(touch PWNED)",
    "{ touch PWNED; }",
    "if true; then touch PWNED; fi",
    "if touch PWNED; then :; fi",
    "while touch PWNED; do break; done",
    "until touch PWNED; do :; done",
    "for i in 1 2; do touch PWNED; done",
    "for ((i=0;i<1;i++)); do touch PWNED; done",
    "for i in $(touch PWNED); do :; done",
    "case x in x) touch PWNED;; esac",
    "case x in a|b) :;; (x) touch PWNED;; esac",
    "case $(touch PWNED) in x) ;; esac",
    "f() { touch PWNED; }; f",
    "f () ( touch PWNED ); f",
    "function f { touch PWNED; }; f",
    "! touch PWNED",
    "time -p touch PWNED",
    "sh -c 'touch PWNED'",
    "bash -ec \"touch PWNED\"",
    "bash -o errexit -c 'touch PWNED'",
    "eval 'touch PWNED'",
    "eval touch PWNED",
    "trap 'touch PWNED' EXIT",
    "find . -exec touch PWNED \\;",
    "find . -name x -execdir touch {} +",
    "sudo -u root touch PWNED",
    "sudo A=b touch PWNED",
    "busybox touch PWNED",
    "/lib64/ld-linux-x86-64.so.2 /bin/touch PWNED",
    "cat <<EOF\n$(touch PWNED)\nEOF",
    "cat <<-'E' ; touch PWNED\n\tx\n\tE",
    "cat <<'E'\nit's\nE\ntouch PWNED",
    "echo a # it's\ntouch PWNED",
    "echo 'a\n#' ; touch PWNED",
    "echo a\\\n; touch PWNED",
    "[[ -n $(touch PWNED) ]]",
    "[[ a =~ (b|c) ]] && touch PWNED",
    "x=$(touch PWNED)",
    "x=(a $(touch PWNED))",
    "> $(touch PWNED)",
    "echo \"$(echo \")\" \"$(touch PWNED)\")\"",
    "echo $(case x in x) touch PWNED;; esac)",
    "true && (cd / && { true; touch PWNED; })",
    "watch -n 1 touch PWNED",
    "a=1 b=2 touch PWNED",
    "2>/dev/null touch PWNED",
    "select x in a; do touch PWNED; done",
];

#[test]
fn all_that_a_line_runs_is_listed() {
    for line in RUNS_TOUCH {
        assert!(names(line).contains(&"touch".to_owned()), "{line:?}: {:?}", analyse(line));
    }
}

/// Lines that may run `touch` in a way that nobody can read: they must not pass for harmless.
const DOUBTFUL: &[&str] = &[
    "{touch,PWNED}",
    "A=touch; $A PWNED",
    "touch$IFS\"\"PWNED",
    "$(echo touch) PWNED",
    "`echo touch` PWNED",
    "/bin/t?uch PWNED",
    "/bin/touc[h] PWNED",
    "echo dG91Y2g= | base64 -d | sh",
    "bash <<< 'touch PWNED'",
    "bash -s < script",
    "sh <(echo touch PWNED)",
    "eval \"$X\"",
    "source <(echo touch PWNED)",
    "sh -c \"$X\"",
    "env -S 'touch PWNED'",
    "test -v 'a[$(touch PWNED)]'",
    "[[ -v 'a[$(touch PWNED)]' ]]",
    "let 'a[$(touch PWNED)]=1'",
    "printf -v 'a[$(touch PWNED)]' x",
    "A='x[$(touch PWNED)]'; echo $((A))",
    "echo ${x@P}",
    "coproc { touch PWNED; }",
    "timeout $X touch PWNED",
    "xargs --frobnicate touch",
    "find . -exec {} \\;",
    "echo 'unclosed",
    "echo $(unclosed",
    "( ( (",
    "echo )",
    "\"$@\"",
    "${SHELL} -c x",
];

#[test]
fn what_cannot_be_read_is_said() {
    for line in DOUBTFUL {
        assert!(!analyse(line).doubts.is_empty(), "{line:?}: {:?}", analyse(line));
    }
}

#[test]
fn everyday_lines_are_read_for_certain() {
    for (line, wanted) in [
        ("git status", vec!["git status"]),
        ("cd src && ls -la *.rs 2>/dev/null | head -5", vec!["cd src", "ls -la *.rs", "head -5"]),
        ("echo \"it's $HOME\" 'a;b' a\\;b", vec!["echo it's  a;b a;b"]),
        ("cargo test -- --nocapture 2>&1", vec!["cargo test -- --nocapture"]),
        ("git show HEAD@{1} # comment", vec!["git show HEAD@{1}"]),
        ("[ -f x ] && echo y", vec!["[ -f x ]", "echo y"]),
        ("echo $((1 + 2))", vec!["echo "]),
        ("cat <<EOF\n; touch x\nEOF\nls", vec!["cat", "ls"]),
        ("timeout 5 npm test", vec!["timeout 5 npm test", "npm test"]),
        ("echo if then", vec!["echo if then"]),
    ] {
        let analysis = analyse(line);
        assert_eq!(texts(line), wanted, "{line}");
        assert_eq!(analysis.doubts, [], "{line}");
    }
}

#[test]
fn assignments_redirections_and_tricks_are_told() {
    let of = |line: &str| analyse(line).commands.remove(0);
    assert_eq!(of("GIT_PAGER='x;y' git log").assignments[0].text, "GIT_PAGER=x;y");
    assert_eq!(of("LD_PRELOAD=./x.so git diff").words.len(), 2);
    assert_eq!(of("git diff > out").writes[0].text, "out");
    assert_eq!(of("git diff >& out").writes[0].text, "out");
    assert_eq!(of("git diff &>> out").writes[0].text, "out");
    assert_eq!(of("x <> out").writes[0].text, "out");
    assert_eq!(of("cat < in").reads[0].text, "in");
    assert!(of("git diff > /dev/null 2>&1 <&-").writes.is_empty());
    assert!(of("echo $'a'").words[1].is_trick && of("echo {a,b}").words[1].is_trick);
    assert!(of("git status\r").words[1].is_trick);
    assert!(of("env A=b git diff").is_transparent);
    assert_eq!(analyse("env A=b git diff").commands[1].assignments[0].text, "A=b");
}

#[test]
fn depth_and_length_are_bounded_and_fast() {
    for line in [
        "( ".repeat(50_000),
        "$( ".repeat(30_000),
        "${x:-".repeat(20_000),
        "`".repeat(100_001),
        "$((".repeat(30_000),
        "\"$(".repeat(30_000),
        "case x in a) ".repeat(8_000),
        "f() { ".repeat(15_000),
        "[[ ! ( ".repeat(12_000),
        "a=( ".repeat(20_000),
        "<( ".repeat(30_000),
        "true && ".repeat(12_500),
        "(( ".repeat(30_000),
        format!("echo '{}'", "x".repeat(100_000)),
        "cat <<E\n".repeat(12_000),
        "eval ".repeat(20_000) + "x",
        "timeout 1 ".repeat(10_000) + "x",
    ] {
        let begun = std::time::Instant::now();
        let analysis = analyse(&line);
        // Ten times what an optimised build may take: this one is not.
        assert!(begun.elapsed().as_millis() < 500, "{} {:?}", &line[..20], begun.elapsed());
        assert!(analysis.commands.len() < 60_000);
    }
}

/// The names of the simple commands that another parser sees, substitutions left out.
mod other {
    use brush_parser::ast::*;

    pub(super) fn names(line: &str) -> Option<Vec<String>> {
        let options = brush_parser::ParserOptions::default();
        let tokens = brush_parser::uncached_tokenize_str(line, &options.tokenizer_options()).ok()?;
        let program = brush_parser::parse_tokens(&tokens, &options).ok()?;
        let mut names = Vec::new();
        for list in &program.complete_commands {
            self::list(list, &mut names);
        }
        Some(names)
    }

    fn list(list: &CompoundList, names: &mut Vec<String>) {
        for CompoundListItem(and_or, _) in &list.0 {
            pipeline(&and_or.first, names);
            for AndOr::And(next) | AndOr::Or(next) in &and_or.additional {
                pipeline(next, names);
            }
        }
    }

    fn pipeline(pipeline: &Pipeline, names: &mut Vec<String>) {
        for command in &pipeline.seq {
            match command {
                Command::Simple(simple) => {
                    names.extend(simple.word_or_name.iter().map(|word| word.value.clone()));
                }
                Command::Compound(compound, _) => self::compound(compound, names),
                Command::Function(function) => self::compound(&function.body.0, names),
                Command::ExtendedTest(..) => {}
            }
        }
    }

    fn compound(compound: &CompoundCommand, names: &mut Vec<String>) {
        match compound {
            CompoundCommand::BraceGroup(group) => list(&group.list, names),
            CompoundCommand::Subshell(group) => list(&group.list, names),
            CompoundCommand::ForClause(clause) => list(&clause.body.list, names),
            CompoundCommand::ArithmeticForClause(clause) => list(&clause.body.list, names),
            CompoundCommand::CaseClause(clause) => {
                clause.cases.iter().filter_map(|case| case.cmd.as_ref()).for_each(|cmd| list(cmd, names));
            }
            CompoundCommand::IfClause(clause) => {
                list(&clause.condition, names);
                list(&clause.then, names);
                for other in clause.elses.iter().flatten() {
                    other.condition.iter().for_each(|condition| list(condition, names));
                    list(&other.body, names);
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                list(&clause.0, names);
                list(&clause.1.list, names);
            }
            CompoundCommand::Arithmetic(_) | CompoundCommand::Coprocess(_) => {}
        }
    }
}

fn misses(line: &str) -> Vec<String> {
    let analysis = analyse(line);
    // Line ends that are taken away stand in the one's words, in the other's they do not.
    let joined = |word: &str| word.replace("\\\n", "");
    let first = analysis.commands.iter().flat_map(|it| it.words.first());
    let own: Vec<String> = first.map(|it| joined(&it.raw)).collect();
    let theirs = other::names(line).unwrap_or_default();
    // `time` behind a redirection is a command and no word of the language: it is read as the wrapper that it is then.
    let is_missed = |name: &String| name != "time" && !own.contains(&joined(name));
    // What is said to be unclear is asked; an assignment with nothing behind it is no command.
    if analysis.doubts.is_empty() { theirs.into_iter().filter(is_missed).collect() } else { Vec::new() }
}

#[test]
fn another_parser_sees_no_command_that_is_missed() {
    for line in RUNS_TOUCH.iter().chain(DOUBTFUL) {
        assert_eq!(misses(line), [] as [String; 0], "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn whatever_is_typed_is_read_without_a_panic(line in "[ -~\n\u{e4}\u{202e}]{0,120}") {
        let _ = analyse(&line);
    }

    #[test]
    fn signs_in_any_order_are_read_without_a_panic(
        parts in prop::collection::vec(prop::sample::select(vec![
            "(", ")", "$(", "`", "\"", "'", "${", "}", "{", "<<E", "\nE\n", "((", "))", "$'", "\\", ";", ";;", "|", "&",
            "case", " in ", " x ", "esac", "[[", "]]", "=", "a=(", "<(", ">", "for", "do", "done", "#", "é", "sh -c ",
        ]), 0..60),
    ) {
        let _ = analyse(&parts.concat());
    }

    #[test]
    fn another_parser_sees_no_command_that_is_missed_in_lines_by_chance(
        parts in prop::collection::vec(prop::sample::select(vec![
            "a", "b x", " ; ", " && ", " | ", "\n", "( ", " )", "{ ", "; }", "if ", "; then ", "; fi", "while ", "; do ",
            "; done", "for i in 1", "case x in y) ", ";; esac", "f() ", "'q'", "\"d $v\"", "$v", "\\\n", " # c\n", "> f ", "2>&1 ",
            "<<E\nx\nE\n", "! ", "v=1 ", "else ", "elif ", "until ", "&", " time ",
        ]), 0..14),
    ) {
        let line = parts.concat();
        prop_assert_eq!(misses(&line), Vec::<String>::new(), "{}", line);
    }

    #[test]
    fn a_command_is_found_wherever_it_is_put(
        before in prop::sample::select(vec!["", "true; ", "a b && ", "x | ", "(", "{ ", "! ", "if ", "echo $(", "x=1 ", "time "]),
        wrapper in prop::sample::select(vec!["", "env ", "nice ", "timeout 3 ", "command ", "nohup ", "sudo "]),
    ) {
        let line = format!("{before}{wrapper}touch x");
        prop_assert!(names(&line).contains(&"touch".to_owned()), "{}", line);
    }
}
