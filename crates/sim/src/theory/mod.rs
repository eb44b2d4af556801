//! Closed forms for repetition over links with bit errors: a protocol's goodput in theory.
//!
//! The thirteen equations of the source, each where its units are types:
//!
//! | equation | | here |
//! |---|---|---|
//! | 1, 2 | short-term bit error rate from received power; the Gaussian tail | [`ReceiverModel`] |
//! | 3 | the window that keeps the link busy | [`window`] |
//! | 4 | the round-trip time | [`round_trip_time`] |
//! | 5 | loss of a packet | [`packet_loss`] |
//! | 6 | the same with its acknowledgement | [`packet_or_acknowledgement_loss`] |
//! | 7 | packets in a round trip | [`RoundTripCapacity`] |
//! | 8, 9, 10 | goodput of selective repeat, stop-and-wait, go-back-N | [`ArqClass::goodput`] |
//! | 11 | the best length for selective repeat | [`best_length`] |
//! | 12, 13 | blocks that selective repeat has to tell apart; a quantile | [`BlockDemand`] |
//!
//! # Limits, all the source's
//! The link is always busy, errors are independent (no fading), the window never
//! limits, timers are ideal, acknowledgements take no time. Real protocols stay below; a fading link of the
//! same *mean* bit error rate loses fewer packets (1 - (1 - b)^n is concave in b), so an ideal selective
//! repeat exceeds these figures there.
//!
//! # Source
//! Epple, "Performance optimization of free-space optical communication protocols based on results
//! from FSO demonstrations", sections 2 to 4. Where its text and its Table 1 disagree, the functions say
//! which they follow.

mod arq;
mod blocks;
mod length;
mod link;
mod loss;

pub use arq::{ArqClass, Goodput, Packing, RoundTripCapacity, back_channel_share};
pub use blocks::BlockDemand;
pub use fulmar_channel::fading::ReceiverModel;
pub use length::{BestLength, best_length, search_best_length};
pub use link::{round_trip_time, window};
pub use loss::{packet_loss, packet_or_acknowledgement_loss};
