//! What a session tells the application.

use super::config::PeerIndex;
use super::keys::PublicKey;
use super::wire::Capability;
use fulmar_proto::machine::PathId;
use fulmar_proto::units::{ByteCount, Duration};

/// An event of a session, or of the machine inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent<E> {
    /// Keys are there, data flows. Not repeated when keys are merely replaced.
    Up {
        /// Which peer.
        peer: PeerIndex,
        /// What it says about itself.
        capabilities: Vec<Capability>,
        /// Whether it still knows what it knew when we last talked.
        resumed: bool,
    },
    /// The peer lost its state: every connection with it is over. Comes before its `Up`.
    PeerRestarted(PeerIndex),
    /// The peer began a handshake in this epoch. Where early data is taken, write it to the disk: no
    /// epoch up to it may be taken for new after a restart.
    EpochSeen {
        /// Which peer.
        peer: PeerIndex,
        /// The epoch.
        epoch: u64,
    },
    /// The peer says that it shuts down.
    Closed(PeerIndex),
    /// Nothing comes back: sending is held.
    LinkDown {
        /// Which peer.
        peer: PeerIndex,
        /// How long nothing had been heard.
        silent_for: Duration,
    },
    /// Something came back: sending goes on.
    LinkUp {
        /// Which peer.
        peer: PeerIndex,
        /// How long sending was held.
        outage: Duration,
    },
    /// The peer is now at another outer path.
    Moved {
        /// Which peer.
        peer: PeerIndex,
        /// Where.
        path: PathId,
    },
    /// Another size of datagrams is known to arrive.
    MtuChanged {
        /// Which peer.
        peer: PeerIndex,
        /// UDP payload octets.
        datagram: ByteCount,
        /// Octets of an inner datagram that fit.
        payload_budget: ByteCount,
    },
    /// The peer is genuine, but the ends do not agree; tried again once a minute.
    Mismatch {
        /// Which peer.
        peer: PeerIndex,
        /// On what.
        what: String,
        /// What we say.
        ours: String,
        /// What the peer says.
        theirs: String,
    },
    /// A handshake was refused. Said at most once a minute for each reason.
    Refused {
        /// Where it came from.
        path: PathId,
        /// The peer, as far as it is known.
        peer: Option<PeerIndex>,
        /// Why.
        reason: RefuseReason,
    },
    /// The peer has answered none of our initiations so far. Said once until it does.
    NoAnswer {
        /// Which peer.
        peer: PeerIndex,
        /// Since when.
        waited: Duration,
    },
    /// An event of the inner machine.
    Inner(E),
}

/// Why a handshake was refused, in words that help at the end that reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefuseReason {
    /// Its first check was made with another key.
    #[error(
        "it does not know our key: check that the other end has our public key, or the same preset key"
    )]
    WrongKey,
    /// A genuine handshake of a key that is not configured here.
    #[error("its public key {0} is none of our peers'")]
    UnknownPeer(PublicKey),
    /// An initiation older than one that was answered.
    #[error(
        "it repeats an old handshake: a replay, or the other end lost its epoch file and its clock is behind"
    )]
    OldEpoch,
    /// The peer's answer does not verify.
    #[error("its answer does not verify: the preset keys differ, or somebody interferes")]
    ResponseForged,
    /// The peer never used the keys that we agreed on.
    #[error(
        "it starts handshakes and does not finish them: the preset keys differ, or our answers do not reach it"
    )]
    Unconfirmed,
    /// It speaks another version of the session format.
    #[error("it speaks session version {theirs}, we speak {ours}: update the older end")]
    Version {
        /// Ours.
        ours: u8,
        /// Theirs.
        theirs: u8,
    },
}

impl RefuseReason {
    /// A number below [`RefuseReason::COUNT`] for each reason.
    pub(super) const fn kind(self) -> usize {
        match self {
            Self::WrongKey => 0,
            Self::UnknownPeer(_) => 1,
            Self::OldEpoch => 2,
            Self::ResponseForged => 3,
            Self::Unconfirmed => 4,
            Self::Version { .. } => 5,
        }
    }

    pub(super) const COUNT: usize = 6;
}
