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
        let fits = match &self.ty {
            InputType::String | InputType::Path | InputType::Text => value.is_string(),
            InputType::Int => value.is_i64() || value.is_u64(),
            InputType::Float => value.is_number(),
            InputType::Bool => value.is_boolean(),
            InputType::Enum(words) => value.as_str().is_some_and(|word| words.iter().any(|one| one == word)),
            InputType::Json => true,
        };
        if !fits {
            return Err(InputRefused::Type { wanted: self.ty.wanted() });
        }
        let fenced = matches!(self.ty, InputType::Json | InputType::Text);
        Ok(InputValue { value, secret: self.secret, fenced })
    }
}

impl InputType {
    fn wanted(&self) -> String {
        match self {
            Self::String | Self::Path | Self::Text => "a text".to_owned(),
            Self::Int => "a whole number".to_owned(),
            Self::Float => "a number".to_owned(),
            Self::Bool => "true or false".to_owned(),
            Self::Enum(words) => format!("one of {}", words.join(", ")),
            Self::Json => "any JSON".to_owned(),
        }
    }
}
