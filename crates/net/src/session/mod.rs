//! Secure sessions between gateways: keys, authentication, outages, roaming, datagram sizes.
//!
//! ```text
//!   inner machine (AeroTP)      paths are peers
//!   ─────────────────────────
//!   Session                     seals, opens, keeps keys fresh, notices outages, follows addresses
//!   ─────────────────────────
//!   driver (UDP)                paths are addresses
//! ```
//!
//! A [`Session`] is a [`Machine`](fulmar_proto::machine::Machine) around a machine. The inner
//! machine's [`PathId`](fulmar_proto::machine::PathId) is the peer's place in the configuration, so its
//! connections outlive changes of address and of keys.
//!
//! # Promises
//! - Each datagram that reaches the inner machine was sealed by the configured peer, is handed up once, and is
//!   whole.
//! - No nonce is used twice under one key, even after a crash: keys come from ephemeral secrets and
//!   die with the process.
//! - Nothing is stored for strangers, and no answer to them is larger than their datagram.
//! - Data flows through every rekey. During an outage only probes go out.
//!
//! # Does not
//! - Hide sizes and times of datagrams, or that they are ours.
//! - Retransmit, order or pace anything but its own handshakes: that is the inner machine's part.
//!
//! `docs/protocol/session.md` specifies the octets, `docs/threat-model.md` the defences.

mod arrival_maps;
mod asking;
mod checksum_choice;
mod cipher;
mod config;
mod correction;
mod counters;
mod damage_reports;
mod dialect;
mod early;
mod entropy;
mod epoch;
mod event;
mod fragments;
mod further_path;
mod further_paths;
mod guard;
mod handshake;
mod introductions;
mod key_file;
mod key_question;
mod keyring;
mod keys;
mod kinds;
mod later_repair;
mod machine;
mod path_acks;
mod path_mtu;
mod path_slot;
mod peer;
mod peer_status;
mod primitives;
mod protection;
mod replay;
mod reports;
mod round_trips;
mod seal;
mod sizes;
mod sources;
mod state_file;
mod tap;
mod unchecked;
mod whereabouts;
mod wire;
mod work;

pub use arrival_maps::arrival_maps;
pub use asking::NotIntroduced;
pub use checksum_choice::{ChecksumReason, DamagedShare};
pub use cipher::fast_cipher;
pub use config::{
    EarlyData, GuardConfig, MtuConfig, PEERS_MAX, PeerConfig, PeerIndex, RekeyPolicy, Security,
    SessionConfig, SessionConfigError,
};
pub use counters::{DropReason, SessionCounters};
pub use damage_reports::{DamageCounts, damaged};
pub use dialect::{Wire, window_repair, wire_2};
pub use entropy::Entropy;
pub use epoch::{EpochError, next_boot_epoch};
pub use event::{HandshakeRefusal, Hint, Mismatch, PathChange, SessionEvent};
pub use further_path::PathTerms;
pub use further_paths::{FURTHER_PATHS_MAX, several_paths};
pub(crate) use handshake::initiation_kind;
pub use introductions::{Introduce, rendezvous};
pub use key_file::{
    KeyFileError, read_preset_key, read_secret_key, write_preset_key, write_secret_key,
};
pub use key_question::{KeyAnswer, KeyQuestion};
pub use keys::{KEY_BYTES, KeyError, PresetKey, PublicKey, SecretKey};
pub use kinds::SecurityKinds;
pub use later_repair::parity_follows;
pub use machine::{DatagramArrival, PathSeen, Session, source_octets};
pub use path_acks::path_acks;
pub(crate) use peer::COMPLAINT_PAUSE;
pub use peer_status::{DamageStatus, LinkState, PathStatus, PathUse, PeerStatus, Reach};
pub use primitives::{Performed, performed};
pub(crate) use primitives::{derive_key, keyed_hash};
pub use protection::Armour;
pub(crate) use replay::ReplayWindow;
pub use reports::{Passage, reports};
pub use round_trips::RoundTripQuantiles;
pub use sizes::{SESSION_OVERHEAD, Sizes};
pub(crate) use sources::host_and_network;
pub use state_file::{StateDirectory, StateFileError};
pub use tap::SessionTap;
pub use unchecked::unchecked;
pub use wire::{
    Capability, HelloError, QUESTION_BYTES, SESSION_VERSION, rewrite_message, version_answer,
    version_question,
};
pub use work::Work;
