//! `${NAME}` and `${NAME:-default}` in the configuration of a server. Pure.

/// A variable that is not set and has no default.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the variable {0} is not set and has no default (`${{{0}:-default}}`)")]
pub(super) struct Unset(pub(super) String);

/// Replaces variables once: what a value holds is not looked at again. Anything else with a `$` stays as it is.
pub(super) fn expand(text: &str, look_up: &dyn Fn(&str) -> Option<String>) -> Result<String, Unset> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        rest = from;
        let Some(end) = from.find('}') else { break };
        let inner = &from[2..end];
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            out.push_str("${");
            rest = &from[2..];
            continue;
        }
        // As in a shell: an empty value counts as none where there is a default.
        let value = look_up(name).filter(|value| default.is_none() || !value.is_empty());
        match value.or_else(|| default.map(str::to_owned)) {
            Some(value) => out.push_str(&value),
            None => return Err(Unset(name.to_owned())),
        }
        rest = &from[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_and_defaults_are_put_in_once() {
        let look_up = |name: &str| match name {
            "A" => Some("x${B}".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        for (text, wanted) in [
            ("${A}/y", "x${B}/y"),
            ("${C:-d}-${C:-}", "d-"),
            ("${EMPTY:-e}${EMPTY}", "e"),
            ("$A ${not a name} ${", "$A ${not a name} ${"),
        ] {
            assert_eq!(expand(text, &look_up).as_deref(), Ok(wanted), "{text}");
        }
        assert_eq!(expand("${C}", &look_up), Err(Unset("C".into())));
    }
}
