//! The way out, to the destinations: what a peer's clients ask for, whether it is permitted, and the connection to it.

mod connect;
mod permission;
mod relaying;
mod requests;

pub(super) use requests::{Asked, Exits};
