//! The ports of the gateway and who comes in through them: TCP and UDP clients of forwards, transparent entries and
//! SOCKS proxies, until each has its flow.

mod applicants;
mod association;
mod clients;
mod datagrams;
pub(super) mod entry;
mod newcomers;
mod ports;
mod proxies;
pub mod socks;

pub(super) use applicants::{Applicant, LastWord};
pub(super) use association::Association;
pub(super) use clients::Wish;
pub(super) use entry::{Entry, Port, Rule};
