//! Fading: received optical power, the bit error rate it means, and the bits that are inverted.

mod receiver;

pub use receiver::ReceiverModel;
