//! Wrong bits in packets that arrive: how many there are, told by the end that sees them, and the parity against them,
//! chosen by the end that sends.
//!
//! A receiver's [`ChannelReport`] estimates the rate of wrong bits, and says when its sender should hear of it
//! (ADR 0015). A sender weighs its choices over the
//! rates that it was told, by an [`Outlook`] (ADR 0017).
//! [`StrengthFollower`] does so for datagrams of a session, whose parity lies outside of what is sealed
//! (ADR 0033).

mod arrival;
mod ber_estimate;
mod causes;
mod later;
mod length;
mod loss_by_length;
mod outlook;
mod strength;

pub use arrival::{arrives, codewords, corrected_for_certain, intact};
pub use ber_estimate::{ChannelReport, SeenErrors, between};
pub use causes::{CAUSES, CauseShare, LossByCause, LossCause, LossCauses};
pub use later::further_steps;
pub use length::{LengthBelief, LengthFollower, PacketShape};
pub use loss_by_length::{LengthLoss, LossByLength};
pub use outlook::{Outlook, RateClass, Uses};
pub use strength::{ProtectedLayout, StrengthFollower};
