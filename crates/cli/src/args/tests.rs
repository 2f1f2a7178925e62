use super::*;
use crate::error::ExpectedError;

fn early(args: &[&str]) -> Early {
    match parse(std::iter::once(&"claw").chain(args)) {
        Ok(command) => panic!("{args:?} is {command:?}"),
        Err(early) => early,
    }
}

fn wrong(args: &[&str]) -> ExpectedError {
    match early(args) {
        Early::Wrong(error) => error,
        other => panic!("{args:?}: {other:?}"),
    }
}

#[test]
fn a_typo_is_never_a_prompt() {
    let table: &[&[&str]] = &[
        &["runn", "wf.toml"],
        &["run"],
        &["doctor", "--json"],
        &["doctorr"],
        &[""],
        &["   "],
        &["fix the bug in main.rs"],
        &["runs", "lst"],
        &["workflow", "chek", "wf.toml"],
        &["run", "wf.toml", "--max-parallel", "0"],
        &["run", "wf.toml", "--max-parallel", "-1"],
        &["run", "wf.toml", "--concurrency", "0"],
        &["run", "wf.toml", "--concurrency", "-1"],
        &["run", "wf.toml", "--model", ""],
        &["run", "wf.toml", "--modle", "x"],
        &["run", "wf.toml", "--permission-mode", "read-onyl"],
        &["run", "wf.toml", "--output-format", "jsn"],
        &["run", "wf.toml", "--graph", "svg"],
        &["run", "wf.toml", "--plan", "--graph", "dot"],
        &["run", "wf.toml", "--input", "base"],
        &["run", "a.toml", "b.toml"],
        &["run", "wf.toml", "--include-partial-messages"],
        &["-p", ""],
        &["prompt", "  "],
        &["-p", "hi", "--max-turns", "0"],
        &["-p", "hi", "--model", " "],
        &["-p", "hi", "there"],
        &["-p", "hi", "run", "wf.toml"],
        &["--output-format", "json"],
        &["--dangerously"],
        &["completions", "tcsh"],
    ];
    let mut said = String::new();
    for args in table {
        let error = wrong(args);
        assert_eq!(error.exit_code(), 2, "{args:?}");
        said.push_str(&format!("$ claw {}\n{}\n", args.join(" "), error.text()));
    }
    insta::assert_snapshot!(said);
}

#[test]
fn a_question_is_what_follows_the_flag_and_nothing_else() {
    for args in [
        &["-p", "hi", "--model", "x", "--output-format", "json"][..],
        &["--model", "x", "--output-format", "json", "-p", "hi"],
        &["prompt", "hi", "--model", "x", "--output-format", "json"],
        &["--print=hi", "--model=x", "--output-format=json"],
    ] {
        let Ok(Command::Print(flags)) = parse(std::iter::once(&"claw").chain(args)) else {
            panic!("{args:?}")
        };
        assert_eq!(flags.text.as_deref(), Some("hi"));
        assert_eq!(flags.talk.model.as_deref(), Some("x"));
        assert_eq!(flags.talk.output_format, Some(Format::Json));
    }
    let Ok(Command::Print(flags)) = parse(["claw", "-p", "--max-turns", "3"]) else { panic!("no question") };
    assert_eq!((flags.text, flags.talk.max_turns), (None, Some(3)));
}

#[test]
fn a_run_takes_its_flags() {
    let args = ["claw", "run", "w.toml", "--input", "a=b=c", "--resume", "--concurrency", "3", "--no-ask"];
    let Ok(Command::Run(flags)) = parse(args) else { panic!("no run") };
    assert_eq!(flags.inputs().input, [("a".to_owned(), "b=c".to_owned())]);
    assert_eq!((flags.resume, flags.concurrency, flags.no_ask), (Some(None), Some(3), true));
    let Ok(Command::Run(flags)) = parse(["claw", "run", "--resume=01ABC", "w.toml"]) else {
        panic!("no run")
    };
    assert_eq!(flags.resume, Some(Some("01ABC".to_owned())));
}

#[test]
fn tools_are_named_by_comma_and_again() {
    let args = ["claw", "-p", "hi", "--allowedTools", "Read,Grep", "--allowed-tools", "Bash"];
    let Ok(Command::Print(flags)) = parse(args) else { panic!("no question") };
    assert_eq!(flags.talk.allowed_tools, ["Read,Grep", "Bash"]);
}

#[test]
fn help_is_as_reviewed() {
    let Early::Asked(text) = early(&["--help"]) else { panic!("no help") };
    insta::assert_snapshot!("help", text);
    let Early::Asked(text) = early(&["run", "--help"]) else { panic!("no help") };
    insta::assert_snapshot!("help_run", text);
    let Early::Asked(text) = early(&["--version"]) else { panic!("no version") };
    assert!(text.starts_with("claw "), "{text}");
}

#[test]
fn claw_alone_is_a_conversation_and_half_a_command_says_what_there_is() {
    assert!(matches!(parse(["claw"]), Ok(Command::Lead(_))));
    let Ok(Command::Lead(talk)) = parse(["claw", "--model", "haiku"]) else { panic!("something else") };
    assert_eq!(talk.model.as_deref(), Some("haiku"));
    let Early::Incomplete(text) = early(&["runs"]) else { panic!("something else") };
    assert!(text.contains("list") && text.contains("show"), "{text}");
}

#[test]
fn completions_name_the_commands() {
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let script = String::from_utf8(completions(shell)).unwrap();
        assert!(script.contains("workflow") && script.contains("permission-mode"), "{shell:?}");
    }
}
