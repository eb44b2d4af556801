//! The ports of the gateway and who comes in through them: TCP and UDP clients of forwards, transparent entries and
//! SOCKS proxies, until each has its flow.

mod applicant;
mod applicants;
mod association;
mod clients;
mod datagrams;
mod entrance;
pub(super) mod entry;
mod newcomers;
mod ports;
mod proxies;
mod replies;
pub mod socks;

pub(super) use entrance::Entries;
pub(super) use entry::{Entry, Rule};
pub(super) use ports::open_entry;
pub(super) use replies::{connected, refused};
