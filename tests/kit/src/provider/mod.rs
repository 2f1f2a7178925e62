//! The scripted provider: a loopback HTTP/1.1 server with both wires, a queue of answers with pauses,
//! cuts, faults and gates. It records each request and checks it against the laws of its wire.

mod check;
mod connection;
mod gate;
mod http;
mod playlist;
mod reply;
mod request;
mod route;
mod server;
mod wire;

pub use check::violations_in;
pub use gate::Gate;
pub use reply::{End, Reply};
pub use request::{Ended, Request};
pub use route::Route;
pub use server::ScriptedProvider;
pub use wire::Wire;
