//! The events that a session tells the application.

use super::asking::NotIntroduced;
use super::checksum_choice::ChecksumReason;
use super::config::PeerIndex;
use super::dialect::Wire;
use super::keys::PublicKey;
use super::kinds::SecurityKinds;
use super::peer_status::Reach;
use super::sizes::Sizes;
use super::wire::Capability;
use fulmar_proto::machine::PathId;
use fulmar_proto::units::Duration;
use std::net::SocketAddr;

/// A change of one of several paths to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChange {
    /// Nothing was heard there for so long: the others carry what was for it.
    Down(Duration),
    /// Nothing proved for so long that what is sent there arrives, though the peer is heard: the others carry what was for it.
    Unproved(Duration),
    /// A probe was answered there for the first time.
    Found,
    /// Something came back after so long, or what is sent there arrives again.
    Up(Duration),
}

/// An event of a session, or of the machine inside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent<E> {
    /// The ends have keys, and data flows. When keys are merely replaced, `Rekeyed` comes instead.
    Up {
        /// The peer.
        peer: PeerIndex,
        /// The capabilities that it states.
        capabilities: Vec<Capability>,
        /// Whether it still has the state of our last session.
        resumed: bool,
        /// The form of the data between the ends from now on.
        wire: Wire,
    },
    /// Newer keys are in use beside the old ones, which end soon.
    Rekeyed(PeerIndex),
    /// The peer lost its state: every connection with it is over. Comes before its `Up`, and before anything of its new
    /// start reaches the machine inside, but for early data.
    PeerRestarted(PeerIndex),
    /// The peer began a handshake in this epoch. Where early data is taken, write it to the disk: no
    /// epoch up to it may be taken for new after a restart.
    EpochSeen {
        /// The peer.
        peer: PeerIndex,
        /// The epoch.
        epoch: u64,
    },
    /// The peer tells that it shuts down.
    Closed(PeerIndex),
    /// Nothing comes back: sending is held.
    LinkDown {
        /// The peer.
        peer: PeerIndex,
        /// The time for which nothing had been heard.
        silent_for: Duration,
    },
    /// Something came back: sending goes on.
    LinkUp {
        /// The peer.
        peer: PeerIndex,
        /// The time for which sending was held.
        outage: Duration,
    },
    /// One of several paths to a peer carries nothing any more, or carries data, for the first time or again.
    Path {
        /// The peer.
        peer: PeerIndex,
        /// The place of the path among those to it.
        place: u8,
        /// The change.
        change: PathChange,
    },
    /// The peer is now at another outer path.
    Moved {
        /// The peer.
        peer: PeerIndex,
        /// The path.
        path: PathId,
    },
    /// The sizes of what goes to the peer have changed. Told with every `Up`, and at each change. Inner
    /// datagrams that were made before and are larger are cut to pieces from now on.
    MtuChanged {
        /// The peer.
        peer: PeerIndex,
        /// The sizes, layer by layer.
        sizes: Sizes,
    },
    /// Datagrams to the peer have other parity, by what it tells of damage, and so other sizes inside the same packets.
    ParityChanged {
        /// The peer.
        peer: PeerIndex,
        /// The sizes, layer by layer.
        sizes: Sizes,
    },
    /// Data to the peer leaves in this form of UDP from now on. Told of peers whose carrier is searched for.
    CarrierChosen {
        /// The peer.
        peer: PeerIndex,
        /// Whether it is armoured and has no checksum.
        is_unchecked: bool,
        /// The reason.
        why: ChecksumReason,
    },
    /// A datagram of the inner machine does not fit the sizes of the `MtuChanged` before: it goes in pieces.
    TooNarrow {
        /// The peer.
        peer: PeerIndex,
        /// The inner machine's words, about the path's MTU.
        why: String,
    },
    /// A report to the peer is due: answer with [`Session::report`](super::Session::report). Told once a second at
    /// most, while there is something new, if both ends have the capability [`reports`](super::reports()).
    ReportDue(PeerIndex),
    /// The peer has reported: the octets that its application gave to
    /// [`Session::report`](super::Session::report).
    Reported {
        /// The peer.
        peer: PeerIndex,
        /// The octets of its application.
        octets: Vec<u8>,
    },
    /// The peer is genuine, but the ends do not agree. The handshake is tried again once a minute.
    Mismatch {
        /// The peer.
        peer: PeerIndex,
        /// The capability on which they do not agree.
        what: String,
        /// Our value.
        ours: String,
        /// The peer's value.
        theirs: String,
    },
    /// A handshake was refused. Told at most once a minute for each reason.
    Refused {
        /// The path that it came from.
        path: PathId,
        /// The peer, as far as it is known.
        peer: Option<PeerIndex>,
        /// The reason.
        reason: HandshakeRefusal,
    },
    /// Somebody who saw our initiation tells why the peer does not answer it. Nobody vouches for that:
    /// the attempts go on. Told at most once a minute for each hint.
    TurnedAway {
        /// The peer.
        peer: PeerIndex,
        /// The path that the hint came from.
        path: PathId,
        /// The hint.
        hint: Hint,
    },
    /// The peer has answered none of our initiations so far. Told once until it does.
    NoAnswer {
        /// The peer.
        peer: PeerIndex,
        /// The time since the first of them.
        waited: Duration,
    },
    /// A hub tells where the peer calls from: give [`Session::set_told_address`](super::Session::set_told_address) the path to that
    /// address, from the socket by which the hub is reached. A few calls leave for it.
    Introduced {
        /// The peer.
        peer: PeerIndex,
        /// The address.
        address: SocketAddr,
        /// Whether it is another one than the hub told last.
        is_news: bool,
    },
    /// The hub does not introduce the peer. It is asked again; told once for each reason.
    NotIntroduced {
        /// The peer.
        peer: PeerIndex,
        /// The hub.
        hub: PeerIndex,
        /// The reason.
        why: NotIntroduced,
    },
    /// The peer, which a hub introduced, is now reached in another way.
    Reached {
        /// The peer.
        peer: PeerIndex,
        /// The way.
        reach: Reach,
    },
    /// An event of the inner machine.
    Inner(E),
}

/// A difference between the configurations of the two ends, in words that fit both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The preset key, by the first check of an initiation.
    #[error("its preset key is another than ours: copy one preset key file to both ends")]
    PresetKey,
    /// The label, by the first check of an initiation.
    #[error(
        "without security ends find each other by their places in the lists of [[peer]], which \
         differ: give the two ends the same place"
    )]
    Label,
    /// The kind of security.
    #[error("its security kind is {theirs}, ours {ours}: write the same kind at both ends")]
    Security {
        /// The kinds of this end's peers, or of the one it calls.
        ours: SecurityKinds,
        /// The kinds of the other end.
        theirs: SecurityKinds,
    },
}

/// Keys that do not exist cannot differ.
fn why_forged(kind: SecurityKinds) -> &'static str {
    if kind == SecurityKinds::NONE {
        "something on the way alters datagrams"
    } else {
        "the preset keys differ, or somebody interferes"
    }
}

fn why_unconfirmed(kind: SecurityKinds) -> &'static str {
    if kind == SecurityKinds::NONE {
        "our answers do not reach it"
    } else {
        "the preset keys differ, or our answers do not reach it"
    }
}

/// The reason for a refused handshake, in words that help at the end that reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeRefusal {
    /// Its first check was made with another public key than this, which is ours.
    #[error(
        "the caller has a wrong public key of this end, whose right one is {0}: write that as public_key of this end's \
         [[peer]] in the caller's file"
    )]
    WrongPublicKey(PublicKey),
    /// The ends are configured differently.
    #[error(transparent)]
    Mismatch(Mismatch),
    /// A genuine handshake of a key that is not configured here.
    #[error(
        "no [[peer]] in the file of this end has the caller's public key {0}: if the caller is to come in, write that as \
         public_key of its [[peer]]"
    )]
    UnknownPeer(PublicKey),
    /// An initiation older than one that was answered.
    #[error(
        "its handshake is older than its last: another gateway started later with a copy of its key \
         (give each its own by `fulmar keygen`) or, where there are no keys, as the same [[peer]] (only \
         one can call); or it lost its state_dir while its clock was behind, or somebody replays"
    )]
    OldEpoch,
    /// Our own initiation came back to us.
    #[error("it sends back our own handshake: the address is our own, or somebody replays")]
    Reflected,
    /// The peer's answer does not verify, under this kind of security.
    #[error("its answer does not verify: {}", why_forged(*.0))]
    ResponseForged(SecurityKinds),
    /// The peer never used the keys that we agreed on, under this kind of security.
    #[error("it starts handshakes and does not finish them: {}", why_unconfirmed(*.0))]
    Unconfirmed(SecurityKinds),
    /// The peer speaks another version of the session format.
    #[error("it speaks session version {theirs}, we speak {ours}: update the older end")]
    Version {
        /// Our version.
        ours: u8,
        /// Their version.
        theirs: u8,
    },
}

impl HandshakeRefusal {
    /// A number below [`HandshakeRefusal::COUNT`] for each reason.
    pub(super) const fn kind(self) -> usize {
        match self {
            Self::WrongPublicKey(_) => 0,
            Self::UnknownPeer(_) => 1,
            Self::OldEpoch => 2,
            Self::ResponseForged(_) => 3,
            Self::Unconfirmed(_) => 4,
            Self::Version { .. } => 5,
            Self::Mismatch(Mismatch::PresetKey) => 6,
            Self::Mismatch(Mismatch::Label) => 7,
            Self::Mismatch(Mismatch::Security { .. }) => 8,
            Self::Reflected => 9,
        }
    }

    pub(super) const COUNT: usize = 10;
}

/// The called end's word on a refusal, in words that help at the calling end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Hint {
    /// It has another key than this, under which we call it.
    #[error("{}", self.between("this end", "the other end"))]
    WrongPublicKey(PublicKey),
    /// The ends are configured differently.
    #[error(transparent)]
    Mismatch(Mismatch),
    /// It has no peer with this public key, which is ours.
    #[error("{}", self.between("this end", "the other end"))]
    UnknownCaller(PublicKey),
    /// It holds a session of a later start with our key.
    #[error(
        "a gateway that started later calls with our key, or without keys as the same [[peer]]: stop it, \
         or give each a key of its own by `fulmar keygen`; then restart this one. Or our state_dir was lost \
         while the clock was behind"
    )]
    Superseded,
}

impl Hint {
    /// The hint in words that name the calling end, `here`, and the called one, `there`: a reader has the files of both.
    pub(crate) fn between(&self, here: &str, there: &str) -> String {
        match self {
            Self::WrongPublicKey(key) => format!(
                "the public key of {there} is not {key}: run `fulmar keygen --public FILE` at {there}, and write what it prints as \
                 public_key of the [[peer]] of {there} in the file of {here}"
            ),
            Self::UnknownCaller(own) => format!(
                "{there} has no [[peer]] with the public key of {here}, {own}: write that as public_key of the [[peer]] of {here} \
                 in the file of {there}"
            ),
            Self::Mismatch(_) | Self::Superseded => self.to_string(),
        }
    }

    /// A number for each hint, after those of [`HandshakeRefusal::kind`].
    pub(super) const fn kind(self) -> usize {
        HandshakeRefusal::COUNT
            + match self {
                Self::WrongPublicKey(_) => 0,
                Self::Mismatch(Mismatch::PresetKey) => 1,
                Self::Mismatch(Mismatch::Label) => 2,
                Self::Mismatch(Mismatch::Security { .. }) => 3,
                Self::UnknownCaller(_) => 4,
                Self::Superseded => 5,
            }
    }

    pub(super) const COUNT: usize = 6;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Entropy, SecretKey};

    #[test]
    fn a_key_that_does_not_fit_is_told_with_the_end_that_has_it_and_the_file_that_needs_it() {
        let key = SecretKey::generate(&mut Entropy::from_seed([1; 32])).public();
        let wrong = Hint::WrongPublicKey(key).between("`air`", "`ground`");
        assert!(
            wrong.contains("`fulmar keygen --public FILE` at `ground`")
                && wrong.contains("[[peer]] of `ground` in the file of `air`"),
            "{wrong}"
        );
        let unknown = Hint::UnknownCaller(key).between("`air`", "`ground`");
        assert!(
            unknown.starts_with("`ground` has no [[peer]] with the public key of `air`")
                && unknown.ends_with("in the file of `ground`"),
            "{unknown}"
        );
        for said in [
            Hint::WrongPublicKey(key).to_string(),
            Hint::UnknownCaller(key).to_string(),
            HandshakeRefusal::WrongPublicKey(key).to_string(),
            HandshakeRefusal::UnknownPeer(key).to_string(),
        ] {
            let mut words = said.split([' ', ':', ',']);
            assert!(
                words.all(|word| !["here", "there"].contains(&word)),
                "{said}"
            );
            assert!(
                said.contains("this end") && said.contains(&key.to_string()),
                "{said}"
            );
        }
    }

    #[test]
    fn without_security_no_key_is_named() {
        for kind in [
            SecurityKinds::NOISE,
            SecurityKinds::PRESET,
            SecurityKinds::NONE,
        ] {
            for reason in [
                HandshakeRefusal::ResponseForged(kind),
                HandshakeRefusal::Unconfirmed(kind),
            ] {
                let said = reason.to_string();
                assert_eq!(said.contains("key"), kind != SecurityKinds::NONE, "{said}");
            }
        }
    }
}
