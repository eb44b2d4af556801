//! A return link whose capacity is assigned on demand (DAMA), as DVB-RCS terminals have.
//!
//! ```text
//! packets -> MAC buffer -> slots of the super-frame, as many as the network control centre assigned
//!              | request, once a super-frame                          ^ burst time plan
//!              +-- 250 ms up ------ scheduling -------- 250 ms down --+
//! ```
//!
//! [`Dama`] describes it, [`terminal::Terminal`] is the buffer and its transmitter, and
//! [`requests`] makes the requests and keeps their answers. The time at which a packet leaves
//! depends on packets that are still to come, so its verdict is known only then: the driver polls
//! for it.
//!
//! # Sources
//! EN 301 790 6.6.1 (capacity categories); sns3 and `OpenSAND` (how terminals compute requests).
//! `docs/models/dama.md` has the model, its parameters, and the assumptions where these sources are
//! silent.

mod config;
mod requests;
mod terminal;
mod text;

pub use config::{Assignment, Dama};
pub(crate) use terminal::Terminal;
