//! What people say of a server: from the value of an `mcpServers` entry to a specification.

use super::expand::expand;
use crate::settings::Origin;
use claw_kernel::digest::Digest;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::time::Duration;

/// Seconds that can be asked for.
const MOST_SECONDS: f64 = 3_600.0;
/// Keys that are understood.
const KEYS: [&str; 13] = [
    "type",
    "transport",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "timeout",
    "startTimeout",
    "lazy",
    "disabled",
    "description",
];

/// How it is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum ServerKind {
    /// A process that is talked to through its pipes.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables beside the allowed ones.
        env: Vec<(String, String)>,
        /// Its folder; `None`: the project's.
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// Sent with every request.
        headers: Vec<(String, String)>,
    },
    /// Known, and not spoken by claw: listed, stops nothing.
    NotSupported {
        /// As written.
        kind: String,
        /// Why, and what to do.
        why: String,
    },
}

impl std::fmt::Debug for ServerKind {
    /// Values of variables and headers are secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

impl ServerKind {
    /// The command line or the address, without variables and headers.
    pub fn shown(&self) -> String {
        match self {
            Self::Stdio { command, args, .. } => {
                [command].into_iter().chain(args).map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            Self::Http { url, .. } => url.clone(),
            Self::NotSupported { kind, .. } => kind.clone(),
        }
    }

    /// `stdio`, `http`, or as written.
    pub fn name(&self) -> &str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
            Self::NotSupported { kind, .. } => kind,
        }
    }
}

/// How long things may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerTimes {
    /// From its start to the end of the handshake.
    pub start: Duration,
    /// All pages of one list.
    pub list: Duration,
    /// A call; news of its progress begin this anew.
    pub call: Duration,
}

impl Default for ServerTimes {
    fn default() -> Self {
        Self { start: Duration::from_secs(10), list: Duration::from_secs(30), call: Duration::from_secs(60) }
    }
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSpec {
    /// As configured.
    pub name: String,
    /// How it is reached.
    pub kind: ServerKind,
    /// How long things may take.
    pub times: ServerTimes,
    /// It starts at its first use.
    pub lazy: bool,
    /// Where it is written.
    pub origin: Origin,
}

impl ServerSpec {
    /// What it is, whatever it is called: the same for entries that count once.
    pub fn identity(&self) -> Digest {
        let mut parts: Vec<String> = vec![self.kind.name().to_owned()];
        match &self.kind {
            ServerKind::Stdio { command, args, .. } => {
                parts.push(command.clone());
                parts.extend(args.iter().cloned());
            }
            ServerKind::Http { url, .. } => parts.push(url.trim_end_matches('/').to_owned()),
            ServerKind::NotSupported { kind, .. } => parts.extend([kind.clone(), self.name.clone()]),
        }
        Digest::of_parts(parts)
    }
}

/// What is wrong with an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerProblem {
    /// Its name.
    pub name: String,
    /// Where it is written.
    pub origin: Origin,
    /// What, and what to do.
    pub message: String,
}

/// Reads one entry. `None`: it is switched off. `look_up`: variables that may be used.
///
/// # Errors
/// It cannot be used.
pub fn parse_server(
    name: &str,
    entry: &Value,
    origin: &Origin,
    look_up: &dyn Fn(&str) -> Option<String>,
) -> Result<(Option<ServerSpec>, Vec<ServerProblem>), ServerProblem> {
    let problem = |message: String| ServerProblem { name: name.to_owned(), origin: origin.clone(), message };
    let unfit = |unfit: Unfit| problem(unfit.0);
    let Value::Object(fields) = entry else {
        return Err(problem("a server is an object with `command` or `url`".to_owned()));
    };
    let entry = Entry { fields, look_up };
    if fields.get("disabled") == Some(&Value::Bool(true)) {
        return Ok((None, Vec::new()));
    }
    let kind = entry.kind().map_err(unfit)?;
    let ignored: Vec<&str> = fields.keys().map(String::as_str).filter(|key| !KEYS.contains(key)).collect();
    let mut problems = Vec::new();
    if !ignored.is_empty() {
        problems.push(problem(format!("not understood and ignored: {}", ignored.join(", "))));
    }
    let usual = ServerTimes::default();
    let times = ServerTimes {
        start: entry.seconds("startTimeout", usual.start).map_err(unfit)?,
        list: usual.list,
        call: entry.seconds("timeout", usual.call).map_err(unfit)?,
    };
    let lazy = fields.get("lazy") == Some(&Value::Bool(true));
    let spec = ServerSpec { name: name.to_owned(), kind, times, lazy, origin: origin.clone() };
    Ok((Some(spec), problems))
}

/// Entries with the same command or address count once: the first one stays. Gives those that are left out, with the
/// name of the one that stays.
pub fn without_doubles(specs: Vec<ServerSpec>) -> (Vec<ServerSpec>, Vec<(String, String)>) {
    let mut kept: Vec<ServerSpec> = Vec::new();
    let mut doubles = Vec::new();
    for spec in specs {
        let same = |known: &&ServerSpec| known.identity() == spec.identity() || known.name == spec.name;
        match kept.iter().find(same) {
            Some(known) => doubles.push((spec.name, known.name.clone())),
            None => kept.push(spec),
        }
    }
    (kept, doubles)
}

/// Why an entry cannot be used, for people.
struct Unfit(String);

impl From<&str> for Unfit {
    fn from(words: &str) -> Self {
        Self(words.to_owned())
    }
}

struct Entry<'a> {
    fields: &'a Map<String, Value>,
    look_up: &'a dyn Fn(&str) -> Option<String>,
}

impl Entry<'_> {
    fn kind(&self) -> Result<ServerKind, Unfit> {
        let kind = self.text("type")?.or(self.text("transport")?);
        let has = |key: &str| self.fields.contains_key(key);
        let kind = match kind.as_deref() {
            Some(kind) => kind.to_ascii_lowercase(),
            None if has("command") => "stdio".to_owned(),
            None if has("url") => "http".to_owned(),
            None => return Err("neither `command` nor `url` is given".into()),
        };
        let not_supported = |why: &str| ServerKind::NotSupported { kind: kind.clone(), why: why.to_owned() };
        match kind.as_str() {
            "stdio" => self.stdio(),
            "http" | "streamable-http" | "streamable_http" | "streamablehttp" => self.http(),
            "sse" => Ok(not_supported(
                "it speaks the old SSE transport, which claw does not; most such servers have a streamable HTTP address too: use that with type `http`",
            )),
            "ws" => Ok(not_supported("servers over WebSocket are not supported")),
            "sdk" => Ok(not_supported("servers inside of another program (sdk) are not supported")),
            "claudeai-proxy" => Ok(not_supported("servers behind claude.ai are not supported")),
            other => Err(Unfit(format!("`{other}` is no type of a server: stdio, http"))),
        }
    }

    fn stdio(&self) -> Result<ServerKind, Unfit> {
        let command = self.text("command")?.filter(|command| !command.trim().is_empty());
        let command = command.ok_or("`command` is missing")?;
        let args = match self.fields.get("args") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(args)) => {
                args.iter().map(|arg| self.expanded(arg, "args")).collect::<Result<_, _>>()?
            }
            Some(_) => return Err("`args` is a list of texts".into()),
        };
        let all = args.iter().chain([&command]);
        if all.into_iter().any(|word: &String| word.contains('\0')) {
            return Err("a command cannot hold a NUL".into());
        }
        let cwd = self.text("cwd")?.map(PathBuf::from);
        Ok(ServerKind::Stdio { command, args, env: self.pairs("env")?, cwd })
    }

    fn http(&self) -> Result<ServerKind, Unfit> {
        let url = self.text("url")?.ok_or("`url` is missing")?;
        if !(url.starts_with("http://") || url.starts_with("https://")) {
            return Err(Unfit(format!("`{url}` is no http or https address")));
        }
        Ok(ServerKind::Http { url, headers: self.pairs("headers")? })
    }

    fn text(&self, key: &str) -> Result<Option<String>, Unfit> {
        match self.fields.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => self.expanded(value, key).map(Some),
        }
    }

    fn expanded(&self, value: &Value, key: &str) -> Result<String, Unfit> {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            Value::Null | Value::Array(_) | Value::Object(_) => {
                return Err(Unfit(format!("`{key}` holds no text")));
            }
        };
        expand(&text, self.look_up).map_err(|unset| Unfit(format!("`{key}`: {unset}")))
    }

    fn pairs(&self, key: &str) -> Result<Vec<(String, String)>, Unfit> {
        match self.fields.get(key) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Object(pairs)) => {
                pairs.iter().map(|(name, value)| Ok((name.clone(), self.expanded(value, key)?))).collect()
            }
            Some(_) => Err(Unfit(format!("`{key}` is an object of texts"))),
        }
    }

    fn seconds(&self, key: &str, usual: Duration) -> Result<Duration, Unfit> {
        match self.fields.get(key).map(Value::as_f64) {
            None => Ok(usual),
            // Other programs count in milliseconds: no server of theirs waits for an hour.
            Some(Some(number)) if number >= 1_000.0 && number / 1_000.0 <= MOST_SECONDS => {
                Ok(Duration::from_secs_f64(number / 1_000.0))
            }
            Some(Some(number)) if number > 0.0 && number < 1_000.0 => Ok(Duration::from_secs_f64(number)),
            Some(_) => Err(Unfit(format!("`{key}` is a number of seconds above 0"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(entry: &Value) -> Result<(Option<ServerSpec>, Vec<ServerProblem>), ServerProblem> {
        let look_up = |name: &str| (name == "HOME").then(|| "/home/u".to_owned());
        parse_server("docs", entry, &Origin::flag("mcpServers.docs"), &look_up)
    }

    #[test]
    fn the_shapes_that_people_write_are_understood() {
        let (spec, problems) = parse(
            &json!({"command": "npx", "args": ["-y", "${HOME}/x", 7], "env": {"A": "${B:-b}"}, "timeout": 5, "autoApprove": []}),
        )
        .unwrap();
        let spec = spec.unwrap();
        assert_eq!(problems.len(), 1);
        assert_eq!(
            spec.kind,
            ServerKind::Stdio {
                command: "npx".into(),
                args: vec!["-y".into(), "/home/u/x".into(), "7".into()],
                env: vec![("A".into(), "b".into())],
                cwd: None
            }
        );
        assert_eq!(spec.times.call, Duration::from_secs(5));
        assert!(!format!("{spec:?}").contains("\"b\""), "values of variables are secrets: {spec:?}");
        let http = parse(
            &json!({"type": "http", "url": "https://x/mcp", "headers": {"Authorization": "Bearer t"}, "timeout": 30000}),
        );
        let spec = http.unwrap().0.unwrap();
        assert!(matches!(spec.kind, ServerKind::Http { .. }));
        assert_eq!(spec.times.call, Duration::from_secs(30));
        assert!(parse(&json!({"url": "http://x"})).unwrap().0.is_some());
        assert!(parse(&json!({"command": "x", "disabled": true})).unwrap().0.is_none());
        for kind in ["sse", "ws", "sdk", "claudeai-proxy"] {
            let spec = parse(&json!({"type": kind, "url": "https://x"})).unwrap().0.unwrap();
            assert!(matches!(&spec.kind, ServerKind::NotSupported { kind: known, .. } if known == kind));
        }
        for bad in [
            json!(7),
            json!({}),
            json!({"type": "stdio"}),
            json!({"url": "ftp://x"}),
            json!({"command": "${NONE}"}),
        ] {
            assert!(parse(&bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_same_command_or_address_counts_once() {
        let spec = |name: &str, entry: Value| {
            parse_server(name, &entry, &Origin::flag("x"), &|_| None).unwrap().0.unwrap()
        };
        let (kept, doubles) = without_doubles(vec![
            spec("a", json!({"command": "x", "args": ["1"]})),
            spec("b", json!({"command": "x", "args": ["1"], "env": {"A": "1"}})),
            spec("c", json!({"command": "x", "args": ["2"]})),
            spec("d", json!({"url": "http://x/"})),
            spec("e", json!({"url": "http://x"})),
        ]);
        assert_eq!(kept.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), ["a", "c", "d"]);
        assert_eq!(doubles, [("b".into(), "a".into()), ("e".into(), "d".into())]);
    }
}
