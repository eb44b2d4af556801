//! Fading: received optical power, the bit error rate it means, and the bits that are inverted.
//!
//! ```text
//! [trace | Gaussian process -> log-normal or gamma-gamma] x mean power x pass
//!     -> power, sample by sample -> receiver -> short-term bit error rate -> inverted bits
//! [obstructions, tracking losses, horizon] -> dark: the packet is lost
//! ```
//!
//! The mean power gives the long-term bit error rate that was asked for. Power is computed sample
//! by sample along time, whether packets flow or not, from random streams of its own: fades are a
//! function of the seed alone unless a silence lasts longer than 16,384 correlation times.
//!
//! `docs/models/fading.md` has the laws, their limits and validation.
//!
//! # Sources
//! Epple, "Performance optimization of free-space optical communication protocols", section 2.

mod gaussian;
mod model;
mod pass;
mod prepared;
mod preset;
mod process;
mod ready;
mod receiver;
mod text;
mod trace;
mod turbulence;
mod walk;

pub use model::{CourseSeed, FadingModel, PowerSource, Recorded, RecordingPart, Synthetic};
pub use pass::{Leg, Pass, TransmitPower};
pub use preset::Demonstration;
pub(crate) use process::FadingProcess;
pub use ready::Fading;
pub use receiver::ReceiverModel;
pub use trace::{ObstructionRule, PowerTrace, PowerTraceFull};
pub use turbulence::Turbulence;
pub use walk::{Fade, Fades};
