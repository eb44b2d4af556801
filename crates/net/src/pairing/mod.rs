//! Pairing: two machines that share nothing but a short code exchange their public keys.
//!
//! The end that can be reached listens ([`PairingListener`]) and shows a code; the other one calls ([`PairingCaller`]) with
//! the code that a person typed. SPAKE2 makes a key out of the code, under which each end proves that it has the code and
//! seals its public key. Both are machines without sockets, clocks and files; [`PairingPort`] runs either over UDP.
//!
//! # Promises
//! - Whoever does not know the code learns nothing by which codes could be tried later: each try takes an exchange with the
//!   listener. A wrong try spends the code, and the listener ends after [`WRONG_CODES_MAX`] of them.
//! - An end is told the other's key once the other has proved that it knows the code.
//! - Datagrams may be lost, repeated, reordered and damaged. Strangers' datagrams take constant memory, and none of them is
//!   answered by a longer one.
//!
//! # Does not
//! - Write files: the program writes them when an event says so, and tells the machine.
//!
//! `docs/protocol/pairing.md` specifies the octets, `docs/threat-model.md` the odds.

mod caller;
mod calls;
mod code;
mod end;
mod exchange;
mod fingerprint;
mod listener;
mod port;
#[cfg(test)]
mod tests;
mod wire;

pub use caller::{CallerEvent, PairingCaller, PairingFailure};
pub use code::{PairingCode, PairingCodeError};
pub use end::PairingEnd;
pub use exchange::TERMS_BYTES_MAX;
pub use fingerprint::fingerprint;
pub use listener::{ListenerEvent, PairingListener, WRONG_CODES_MAX};
pub use port::PairingPort;
pub use wire::PAIRING_VERSION;
