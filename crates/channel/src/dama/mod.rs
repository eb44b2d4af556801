//! A return link whose capacity is assigned on demand (DAMA), as DVB-RCS terminals have.
//!
//! ```text
//! packets -> MAC buffer -> slots of the super-frame, as many as the network control centre assigned
//!              | request, once a super-frame                          ^ burst time plan
//!              +-- 250 ms up ------ scheduling -------- 250 ms down --+
//! ```
//!
//! [`Dama`] describes it, [`terminal::Terminal`] is the buffer and its transmitter, and
//! [`requests`] what is asked for and what comes of it. When a packet leaves depends on packets
//! that are still to come, so its verdict is known only then: the driver polls for it.
//!
//! # Sources
//! EN 301 790 6.6.1 (capacity categories); sns3 and `OpenSAND` (how terminals compute requests);
//! spec/protocols.md 3.2 and C4. `docs/models/dama.md` has the model and its parameters.

mod config;
mod requests;
mod terminal;
mod text;

pub use config::{Assignment, Dama};
pub(crate) use terminal::Terminal;
