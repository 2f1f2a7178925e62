//! The Messages wire.

mod request;
mod stream;

pub use request::body;
pub use stream::MessagesDecoder;
