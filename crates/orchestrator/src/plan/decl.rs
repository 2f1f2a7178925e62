//! What an input may be.

use super::model::InputValue;
use serde_json::Value;

/// Type of an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputType {
    /// One line or more, trusted like the file.
    String,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// `true`, `false`.
    Bool,
    /// One of these.
    Enum(Vec<String>),
    /// A path.
    Path,
    /// Any JSON; data from outside: fenced in prompts.
    Json,
    /// A long text from outside: fenced in prompts.
    Text,
}

/// An input that a file declares.
#[derive(Clone, Debug, PartialEq)]
pub struct InputDecl {
    /// What a value must be.
    pub ty: InputType,
    /// `None`: one must be given.
    pub default: Option<Value>,
    /// Never in prompts, manifests, logs.
    pub secret: bool,
}

/// A value that does not fit its input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputRefused {
    /// Another type.
    #[error("it must be {wanted}")]
    Type {
        /// What would do.
        wanted: String,
    },
    /// Nothing is given and there is no default.
    #[error("it is required")]
    Missing,
}

impl InputDecl {
    /// Takes a value, or the default where it is null.
    ///
    /// # Errors
    /// Where it does not fit.
    pub fn accept(&self, value: Value) -> Result<InputValue, InputRefused> {
        let value = match (value, &self.default) {
            (Value::Null, Some(default)) => default.clone(),
            (Value::Null, None) if self.ty != InputType::Json => return Err(InputRefused::Missing),
            (value, _) => value,
        };
        if !self.ty.fits(&value) {
            return Err(InputRefused::Type { wanted: self.ty.wanted() });
        }
        Ok(self.holding(value))
    }

    /// A value that was checked already.
    pub(super) fn holding(&self, value: Value) -> InputValue {
        let fenced = matches!(self.ty, InputType::Json | InputType::Text);
        InputValue { value, secret: self.secret, fenced }
    }
}

impl InputType {
    /// Whether a value is of this type.
    pub fn fits(&self, value: &Value) -> bool {
        match self {
            Self::String | Self::Path | Self::Text => value.is_string(),
            Self::Int => value.is_i64() || value.is_u64(),
            Self::Float => value.is_number(),
            Self::Bool => value.is_boolean(),
            Self::Enum(words) => value.as_str().is_some_and(|word| words.iter().any(|one| one == word)),
            Self::Json => true,
        }
    }

    /// A text of the command line as a value; `None` where it is none of this type.
    pub fn read(&self, text: &str) -> Option<Value> {
        let value = match self {
            Self::String | Self::Path | Self::Text | Self::Enum(_) => Value::from(text),
            Self::Int => Value::from(text.trim().parse::<i64>().ok()?),
            Self::Float => Value::from(text.trim().parse::<f64>().ok().filter(|n| n.is_finite())?),
            Self::Bool => Value::from(text.trim().parse::<bool>().ok()?),
            Self::Json => serde_json::from_str(text).ok()?,
        };
        self.fits(&value).then_some(value)
    }

    /// What would do, in words.
    pub fn wanted(&self) -> String {
        match self {
            Self::String | Self::Path | Self::Text => "a text".to_owned(),
            Self::Int => "a whole number".to_owned(),
            Self::Float => "a number".to_owned(),
            Self::Bool => "`true` or `false`".to_owned(),
            Self::Enum(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                format!("one of {}", words.join(", "))
            }
            Self::Json => "JSON".to_owned(),
        }
    }
}
