//! `providers.<name>`.

use super::table::{Key, Ty, Who};

/// Keys of one provider.
pub(super) const PROVIDER: &[Key] = &[
    Key::new("baseUrl", Ty::Text, Who::User, "where it answers"),
    Key::new("apiKeyEnv", Ty::Text, Who::User, "the variable that holds its key"),
    Key::new(
        "wire",
        Ty::Word(&["chat", "openai", "anthropic"]),
        Who::User,
        "how it is spoken to; `chat` where left out",
    ),
    Key::new(
        "models",
        Ty::List(&Ty::Any),
        Who::User,
        "names, or objects with `name`, `window`, `maxOutput`, `price`",
    ),
    Key::new("headers", Ty::Map(&Ty::Text), Who::User, "more headers"),
    Key::new("textToolCalls", Ty::Bool, Who::User, "the model writes its calls into the text"),
    Key::new("answerSchema", Ty::Bool, Who::User, "it can hold an answer to a schema"),
    Key::new(
        "price",
        Ty::Any,
        Who::User,
        "dollars for a million tokens: `input`, `output`, `cache_read`, `cache_write`",
    ),
    Key::new("firstByteSecs", Ty::Int(1, 86_400), Who::User, "seconds until the first byte"),
];
