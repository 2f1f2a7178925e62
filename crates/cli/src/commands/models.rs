//! `claw models`: providers, their credentials, the models that claw knows of.

use crate::args::{Format, ModelsFlags};
use crate::error::{ExpectedError, exit};
use crate::services::Setup;
use crate::terminal::write_stdout;
use claw_kernel::visible::visible_line;
use claw_providers::config::{ModelEntry, ProvidersConfig};
use serde_json::{Value, json};
use std::fmt::Write;

/// Prints the list.
///
/// # Errors
/// The environment is wrong, or standard output.
pub fn run(flags: &ModelsFlags) -> Result<u8, ExpectedError> {
    let setup = Setup::read(flags.cwd.as_deref())?;
    let text = match flags.output_format {
        Format::Text => text(&setup.config),
        Format::Json | Format::StreamJson => format!("{}\n", data(&setup.config)),
    };
    write_stdout(text)?;
    Ok(exit::OK)
}

fn text(config: &ProvidersConfig) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "default model: {}", visible_line(&config.default_model()));
    for profile in &config.profiles {
        let state = if profile.is_usable() {
            "ready".to_owned()
        } else {
            format!("no credentials; export {}", profile.variables.join(" or "))
        };
        let _ = writeln!(out, "\n{} ({state})", visible_line(&profile.name));
        for entry in &profile.models {
            let info = profile.info(entry.name());
            let window = info.window.map_or_else(|| "window unknown".to_owned(), |n| format!("{n} tokens"));
            let price = info.price.as_ref().map_or_else(
                || "price unknown".to_owned(),
                |price| format!("${} in, ${} out per million", price.input, price.output),
            );
            let _ = writeln!(out, "  {:<24} {window}, {price}", visible_line(entry.name()));
        }
        if profile.models.is_empty() {
            out.push_str("  (whatever the server offers)\n");
        }
    }
    out.push_str("\naliases:");
    for (name, model) in &config.aliases {
        let _ = write!(out, " {} = {};", visible_line(name), visible_line(model));
    }
    out.truncate(out.trim_end_matches(';').len());
    out.push('\n');
    out
}

fn data(config: &ProvidersConfig) -> Value {
    let providers: Vec<Value> = config
        .profiles
        .iter()
        .map(|profile| {
            let models: Vec<&str> = profile.models.iter().map(ModelEntry::name).collect();
            json!({
                "name": profile.name,
                "ready": profile.is_usable(),
                "variables": profile.variables,
                "models": models,
            })
        })
        .collect();
    json!({ "default": config.default_model(), "providers": providers, "aliases": config.aliases })
}
