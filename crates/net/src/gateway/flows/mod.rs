//! A flow's life between its socket and the link: its place among the others, its octets or messages, its turns, and
//! what is kept of it for the next gateway.

mod admission;
pub mod custody;
mod disk;
mod flow;
mod flow_record;
mod keeping;
pub(super) mod kept_ports;
mod news;
mod restore;
mod stream;
mod turns;

pub(super) use admission::{Admission, Client, Newcomer, Party, Permit, Refusal};
pub(super) use custody::{Budget, Custody, MemoryCustody};
pub(super) use flow::{Body, ClientKey, Flow, Flows, Messages, NewFlow};
pub(super) use flow_record::FlowRecord;
pub(super) use keeping::{Keeping, KeptClient};
pub(super) use news::{Happened, News, Newsbox};
pub(super) use stream::Stream;
pub(super) use turns::MESSAGES_PER_TURN;
