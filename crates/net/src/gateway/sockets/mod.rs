//! The kernel's side: sockets and their options, datagrams with their addresses, the poller, the machine's interfaces and
//! addresses, and the thread that asks for names.

mod interfaces;
pub(super) mod kernel;
pub(super) mod packets;
mod poller;
mod resolver;
mod watched;

pub(crate) use crate::own_address::listed;
pub(super) use crate::own_address::{innermost, is_own, special};
pub(super) use interfaces::{InterfaceBell, NetInterface, interfaces_up};
pub(super) use packets::{Here, MESSAGE_MAX, Received};
pub(super) use poller::{Came, Poller, Token};
pub(super) use resolver::{Answer, Question, Resolver};
pub(super) use watched::{Sockets, Target};
