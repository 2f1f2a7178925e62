//! The chat completions wire.

mod calls;
mod request;
mod stream;

pub use request::body;
pub use stream::ChatDecoder;
