//! Entry point; everything lives in the library.
fn main() -> std::process::ExitCode {
    claw_cli::main()
}
