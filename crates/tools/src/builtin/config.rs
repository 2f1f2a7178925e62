//! `config`: the user's settings, but for those that say what agents may do.

use crate::cut;
use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::registry::key;
use crate::tool::{Effect, Tool, ToolContext};
use claw_kernel::tasks;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

const NAME: &str = "config";
/// Characters of a value in the result.
const MOST: usize = 10_000;
/// Settings that say what agents may do, what is started, whom claw talks to: a part of a name that begins so is out of
/// reach, whatever is round it.
const GOVERNING: [&str; 20] = [
    "permission",
    "defaultmode",
    "allow",
    "deny",
    "ask",
    "additionaldirectories",
    "hook",
    "disableallhooks",
    "mcp",
    "enableallprojectmcp",
    "provider",
    "profile",
    "sandbox",
    "env",
    "oauth",
    "trust",
    "plugin",
    "enabledplugins",
    "statusline",
    "apikeyhelper",
];

/// Reads and changes settings.
#[derive(Debug)]
pub struct Config;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// Its name; left out: all names are listed.
    #[serde(default, alias = "key", alias = "name")]
    setting: Option<String>,
    /// Its new value; left out: it is read.
    #[serde(default)]
    value: Option<Value>,
}

/// Whether a setting is out of an agent's reach. In any spelling, at any depth.
fn governs(name: &str) -> bool {
    name.split(['.', '/', '[', ']']).map(key).any(|part| {
        let part = part.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
        GOVERNING.iter().any(|word| part.starts_with(word))
            || ["helper", "command", "token", "secret", "password", "apikey", "headers"]
                .iter()
                .any(|word| part.contains(word))
    })
}

fn parse(input: &Value) -> Result<Input, ToolError> {
    let mut input: Input = input::parse(NAME, input)?;
    input.setting = input.setting.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    if let Some(name) = input.setting.as_deref().filter(|name| governs(name)) {
        return Err(ToolError::Refused(format!(
            "`{}` is a setting that only a person reads or changes: it says what agents may do, what is started or whom claw talks to",
            cut::head(name, 100)
        )));
    }
    if input.setting.is_none() && input.value.is_some() {
        let message = "which setting gets the value?".to_owned();
        return Err(ToolError::Input { tool: NAME, path: "setting".to_owned(), message });
    }
    Ok(input)
}

impl Tool for Config {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["settings"]
    }

    fn description(&self) -> String {
        "Reads a setting of the user, or changes it; without a name, lists the settings. Those that govern permissions, \
         hooks, servers, providers, sandbox and environment are out of reach."
            .to_owned()
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "setting": {"type": "string", "description": "Its name; left out: all names are listed."},
                "value": {"description": "Its new value; left out: it is read."},
            },
        })
    }

    fn effect(&self, _ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        let input = parse(input)?;
        let changes = input.value.and(input.setting);
        Ok(Effect { changes, ..Effect::default() })
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        _judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Input { setting, value } = parse(&input)?;
            let settings = ctx.ports.settings.clone();
            let settings =
                settings.ok_or_else(|| ToolError::Refused("there are no settings here".to_owned()))?;
            let Some(name) = setting else {
                let names: Vec<String> = settings.names().into_iter().filter(|name| !governs(name)).collect();
                return Ok(ToolOutput {
                    data: json!({"settings": names}),
                    ..ToolOutput::text(names.join("\n"))
                });
            };
            let refused = |error: crate::ports::SettingError| ToolError::Refused(error.to_string());
            let Some(value) = value else {
                let value = settings.get(&name).map_err(refused)?;
                let text = cut::head(&format!("{name} = {value}"), MOST);
                return Ok(ToolOutput {
                    data: json!({"setting": name, "value": value}),
                    ..ToolOutput::text(text)
                });
            };
            let (to, of, port) = (value.clone(), name.clone(), Arc::clone(&settings));
            let work = tasks::blocking(NAME, move || port.set(&of, to));
            work.await.map_err(|error| ToolError::Panicked(error.to_string()))?.map_err(refused)?;
            let text = cut::head(&format!("{name} is now {value}"), MOST);
            Ok(ToolOutput { data: json!({"setting": name, "value": value}), ..ToolOutput::text(text) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Work, ok, refused};
    use super::*;
    use crate::ports::{Ports, SettingError, SettingsPort};
    use std::sync::Mutex;

    struct Theme(Mutex<Value>);

    impl SettingsPort for Theme {
        fn names(&self) -> Vec<String> {
            vec!["theme".into(), "permissions.allow".into()]
        }
        fn get(&self, name: &str) -> Result<Value, SettingError> {
            match name {
                "theme" => Ok(self.0.lock().unwrap().clone()),
                _ => Err(SettingError::Unknown { name: name.into(), near: Some("theme".into()) }),
            }
        }
        fn set(&self, _: &str, value: Value) -> Result<(), SettingError> {
            *self.0.lock().unwrap() = value;
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_setting_is_read_and_changed_and_only_the_change_has_an_effect() {
        let work = Work::new();
        let mut ctx = work.agent("A");
        ctx.ports = Arc::new(Ports {
            settings: Some(Arc::new(Theme(Mutex::new(json!("dark"))))),
            ..Ports::default()
        });
        let change = json!({"setting": "theme", "value": "light"});
        assert_eq!(Config.effect(&ctx, &change).unwrap().changes.as_deref(), Some("theme"));
        assert!(Config.effect(&ctx, &json!({"setting": "theme"})).unwrap().is_read_only());
        assert_eq!(ok(&Config, &ctx, json!({"setting": "theme"})).await.text, "theme = \"dark\"");
        ok(&Config, &ctx, change).await;
        assert_eq!(ok(&Config, &ctx, json!({"setting": "theme"})).await.text, "theme = \"light\"");
        assert_eq!(ok(&Config, &ctx, json!({})).await.text, "theme");
        assert!(refused(&Config, &ctx, json!({"setting": "thme"})).await.contains("did you mean `theme`"));
    }

    #[test]
    fn what_governs_is_out_of_reach_in_any_spelling() {
        for name in [
            "permissions",
            "permissionMode",
            "permission_mode",
            "PERMISSIONS.allow",
            "permissions.default-mode",
            "hooks.PreToolUse",
            "hooksFailOpen",
            "mcpServers.x",
            "mcp_servers",
            "providers.local.baseUrl",
            "sandbox",
            "env.PATH",
            "profiles.x.permissions",
            "a.permissions",
            "\"permissions\"",
            "permissions[0]",
            "statusLine",
            "apiKeyHelper",
            "trustedFolders",
            "enabledPlugins",
            "some.command",
        ] {
            assert!(governs(name), "{name}");
        }
        for name in ["theme", "model", "compaction.keep", "aliases.fast", "limits.maxTurns", "telemetry"] {
            assert!(!governs(name), "{name}");
        }
    }
}
