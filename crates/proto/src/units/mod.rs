//! Quantities with their units: instants, spans, rates, amounts, probabilities, powers, distances.
//!
//! Every number with a unit that crosses a function boundary has one of these types. Text is parsed
//! and printed here and nowhere else, in one notation: `10ms`, `5Mbit/s`, `1500B`, `2%`, `1e-5`.

mod amount;
mod fec_strength;
mod optics;
mod parse;
mod probability;
mod rate;
mod time;

pub use amount::ByteCount;
pub use core::time::Duration;
pub use fec_strength::FecStrength;
pub use optics::{Distance, OpticalPower};
pub use parse::{UnitError, format_duration, parse_duration};
pub use probability::{BitErrorRate, PacketErrorRate, Probability};
pub use rate::Bitrate;
pub use time::Instant;
