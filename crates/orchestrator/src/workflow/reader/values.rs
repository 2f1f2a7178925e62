//! One value by its type.

use super::{At, Reader, Value, float, integer, json, short};
use crate::workflow::file::{Section, Val, ValKind};
use crate::workflow::keys::{self, Key, NodeKind, Ty};
use crate::workflow::problem::Code;
use crate::workflow::units::{parse_duration, parse_size};
use toml::de::{DeTable, DeValue};

impl Reader<'_> {
    /// `None` where a problem was said.
    pub(super) fn value(&mut self, ty: &Ty, value: &Value<'_>, at: &At<'_>) -> Option<ValKind> {
        match ty {
            Ty::Str
            | Ty::Tmpl
            | Ty::Expr
            | Ty::Slug
            | Ty::Ident
            | Ty::NodeName
            | Ty::AgentName
            | Ty::Enum(..) => self.text(ty, value, at),
            Ty::Bool => {
                value.get_ref().as_bool().map(ValKind::Bool).or_else(|| self.not(value, "true or false", at))
            }
            Ty::Int(least, most) => self.whole(*least, *most, value, at),
            Ty::Float(least) => match float(value.get_ref()) {
                Some(number) if number.is_finite() && number >= *least => Some(ValKind::Float(number)),
                Some(_) => self.refuse(value, format!("this must be a number of at least {least}"), at),
                None => self.not(value, "a number", at),
            },
            Ty::Dur => {
                self.unit(value, "a duration (\"90s\")", at, |text| parse_duration(text).map(ValKind::Dur))
            }
            Ty::Size => {
                self.unit(value, "a size (\"64KiB\")", at, |text| parse_size(text).map(ValKind::Size))
            }
            Ty::List(inner) => self.list(inner, value, at),
            Ty::OneOrList(inner) => match value.get_ref() {
                DeValue::Array(_) => self.list(inner, value, at),
                _ => self.value(inner, value, at),
            },
            Ty::Map(inner) | Ty::Idents(inner) | Ty::Agents(inner) => self.map(ty, inner, value, at),
            Ty::Table(keys) => {
                let table = self.table(value, at)?;
                Some(ValKind::Section(self.section(table, value.span(), keys, at)))
            }
            // A table of nodes never comes here: it is read by whoever keeps them.
            Ty::Nodes => self.not(value, "a table", at),
            Ty::Defaults => {
                let table = self.table(value, at)?;
                Some(ValKind::Section(self.defaults(table, value, at)))
            }
            Ty::Json => self.any(value, at),
            Ty::Output => match value.get_ref() {
                DeValue::String(_) => self.text(&OUTPUT_WORDS, value, at),
                DeValue::Table(_) => self.any(value, at),
                _ => self.not(value, "`text`, `json` or a schema", at),
            },
            Ty::Either(forms) => match forms.iter().find(|form| fits(form, value.get_ref())) {
                Some(form) => self.value(form, value, at),
                None => self.not(value, "a text or a list", at),
            },
        }
    }

    fn not(&mut self, value: &Value<'_>, wanted: &str, at: &At<'_>) -> Option<ValKind> {
        self.wrong(value, wanted, at);
        None
    }

    fn refuse(&mut self, value: &Value<'_>, message: String, at: &At<'_>) -> Option<ValKind> {
        self.say(Code::E103, value.span(), at, message);
        None
    }

    fn table<'v, 'i>(&mut self, value: &'v Value<'i>, at: &At<'_>) -> Option<&'v DeTable<'i>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.wrong(value, "a table", at);
        }
        table
    }

    fn any(&mut self, value: &Value<'_>, at: &At<'_>) -> Option<ValKind> {
        match json(value.get_ref()) {
            Some(json) => Some(ValKind::Json(json)),
            None => self.refuse(value, "a number here must be finite and fit 64 bits".to_owned(), at),
        }
    }

    fn text(&mut self, ty: &Ty, value: &Value<'_>, at: &At<'_>) -> Option<ValKind> {
        let Some(text) = value.get_ref().as_str() else { return self.not(value, "a text", at) };
        let span = value.span();
        match ty {
            Ty::Slug => {
                self.shape(text, span, at, "_-", "a letter a-z, then at most 47 of a-z, 0-9, _, -")?
            }
            // The default's own word may be written out.
            Ty::Ident if text != "item" => self.ident(text, span, at)?,
            Ty::AgentName => self.agent_name(text, span, at)?,
            Ty::Enum(now, later) => self.word(text, now, later, value, at)?,
            _ => {}
        }
        Some(ValKind::Text(text.into()))
    }

    fn agent_name(&mut self, text: &str, span: std::ops::Range<usize>, at: &At<'_>) -> Option<()> {
        let good = !text.is_empty()
            && text.len() <= 64
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        if !good {
            self.say(Code::E103, span, at, format!("`{}` is not the name of an agent", short(text))).help =
                Some("letters, digits, `-`, `_`, at most 64".into());
        }
        good.then_some(())
    }

    fn word(
        &mut self,
        text: &str,
        now: &[&str],
        later: &[&str],
        value: &Value<'_>,
        at: &At<'_>,
    ) -> Option<()> {
        if now.contains(&text) {
            return Some(());
        }
        let stem = text.split(':').next().unwrap_or(text);
        if later.contains(&stem) || (text.starts_with("n:") && later.contains(&"any_succeeded")) {
            self.later(value.span(), at, &format!("`{text}`"));
            return None;
        }
        let near = self.near(text, now.iter().copied());
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "one of {}",
                now.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
            ),
        };
        self.say(Code::E103, value.span(), at, format!("`{}` is not allowed here", short(text))).help =
            Some(help);
        None
    }

    fn whole(&mut self, least: i64, most: i64, value: &Value<'_>, at: &At<'_>) -> Option<ValKind> {
        if !value.get_ref().is_integer() {
            return self.not(value, "a whole number", at);
        }
        match integer(value.get_ref()) {
            Some(number) if (least..=most).contains(&number) => Some(ValKind::Int(number)),
            _ if most == i64::MAX => self.refuse(value, format!("this must be at least {least}"), at),
            _ => self.refuse(value, format!("this must be from {least} to {most}"), at),
        }
    }

    fn unit<E: std::fmt::Display>(
        &mut self,
        value: &Value<'_>,
        wanted: &str,
        at: &At<'_>,
        parse: impl Fn(&str) -> Result<ValKind, E>,
    ) -> Option<ValKind> {
        let Some(text) = value.get_ref().as_str() else { return self.not(value, wanted, at) };
        match parse(text) {
            Ok(kind) => Some(kind),
            Err(error) => self.refuse(value, error.to_string(), at),
        }
    }

    fn list(&mut self, inner: &Ty, value: &Value<'_>, at: &At<'_>) -> Option<ValKind> {
        let DeValue::Array(list) = value.get_ref() else { return self.not(value, "a list", at) };
        let mut out = Vec::with_capacity(list.len());
        let mut whole = true;
        for item in list.iter() {
            match self.value(inner, item, at) {
                Some(kind) => out.push(Val { span: item.span(), kind }),
                None => whole = false,
            }
        }
        whole.then_some(ValKind::List(out))
    }

    fn map(&mut self, ty: &Ty, inner: &Ty, value: &Value<'_>, at: &At<'_>) -> Option<ValKind> {
        let table = self.table(value, at)?;
        let mut out = Vec::with_capacity(table.len());
        for (name, item) in table.iter() {
            let here = at.child(name.get_ref());
            match ty {
                Ty::Idents(_) => drop(self.ident(name.get_ref(), name.span(), &here)),
                Ty::Agents(_) => drop(self.agent_name(name.get_ref(), name.span(), &here)),
                _ => {}
            }
            if let Some(kind) = self.value(inner, item, &here) {
                out.push((name.get_ref().as_ref().into(), name.span(), Val { span: item.span(), kind }));
            }
        }
        Some(ValKind::Map(out))
    }

    /// Any key that some kind of node has.
    fn defaults(&mut self, table: &DeTable<'_>, value: &Value<'_>, at: &At<'_>) -> Section {
        let known = |name: &str| -> Option<&'static Key> {
            let common = keys::common().iter().find(|key| key.name == name && key.name != "kind");
            common.or_else(|| {
                NodeKind::ALL
                    .iter()
                    .flat_map(|kind| keys::own(*kind))
                    .find(|key| key.name == name && key.name != "body")
            })
        };
        let mut out = Section { span: value.span(), entries: Vec::new() };
        for (name, item) in table.iter() {
            match known(name.get_ref()) {
                Some(key) => self.entry(&mut out, key, name.span(), item, &at.child(name.get_ref())),
                None => {
                    let names = NodeKind::ALL.iter().flat_map(|kind| keys::own(*kind)).chain(keys::common());
                    self.unknown(name, at, names.map(|key| key.name));
                }
            }
        }
        out
    }
}

const OUTPUT_WORDS: Ty = Ty::Enum(&["text", "json", "lines", "lines0", "jsonl"], &[]);

fn fits(form: &Ty, value: &DeValue<'_>) -> bool {
    match value {
        DeValue::Array(_) => matches!(form, Ty::List(_)),
        DeValue::String(_) => matches!(form, Ty::Str | Ty::Expr | Ty::Tmpl),
        _ => false,
    }
}
