//! A flow's life between its socket and the link: its place among the others, its octets or messages, its turns, and
//! what is kept of it for the next gateway.

mod admission;
pub mod custody;
mod disk;
mod floor;
mod flow;
mod flow_record;
mod keeping;
pub(super) mod kept_ports;
mod news;
mod outliving;
mod relayed;
mod relays;
mod restore;
mod silence;
mod stream;
mod traffic;
mod turns;

pub(super) use admission::{Client, Newcomer, Party, Permit, Refusal};
pub(super) use floor::Floor;
pub(super) use flow::{Answers, Body, ClientKey, Flow, Messages, NewFlow, Wish};
pub(super) use flow_record::FlowRecord;
pub(super) use keeping::{Keeping, KeptClient, record};
pub(super) use news::{Happened, News};
pub(super) use relays::Onward;
pub(super) use stream::Stream;
pub(super) use traffic::Traffic;
pub(super) use turns::MESSAGES_PER_TURN;
