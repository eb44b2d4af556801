//! The contract between a session and the machine that it carries.

use super::{Datagram, Machine, PathId};
use crate::told::ToldFacts;
use crate::units::{Bitrate, ByteCount, Duration, Instant};

/// The form in which the machine's packets travel on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TpduForm {
    /// A datagram is a packet, with all its ports, numbers and checks.
    #[default]
    Long,
    /// A datagram is *content*, sealed by a session: frames that leave out what the seal vouches for and what both
    /// ends know (`docs/protocol/aerotp.md`, section 11).
    Short,
}

/// The sizes that the layers below give a path's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathSizes {
    /// The longest packet of the machine that arrives in one piece, header and parity included, in octets; on a path
    /// in the short form, the longest content, type octet included.
    pub tpdu_bytes_max: usize,
    /// Octets that the layers below add to each, network and carrier headers included.
    pub lower_overhead: ByteCount,
}

/// The layer below's knowledge of a path when it is first used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathFacts {
    /// Its round trip.
    pub round_trip: Duration,
    /// The round trip of the peer's first path, if it is known.
    pub home_round_trip: Option<Duration>,
    /// The rate that it carries, if somebody told it; otherwise it is found.
    pub rate: Option<Bitrate>,
    /// Its cost: while another one to the peer that costs less is up, nothing leaves on it. The first costs nothing.
    pub cost: u8,
}

/// A receiver's totals on a path's datagrams, which the session numbers as they leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathAck {
    /// The number of the newest datagram that arrived.
    pub newest: u64,
    /// The time from that arrival to the report.
    pub hold: Duration,
    /// The receiver's clock when it reported: microseconds, modulo 2^32.
    pub clock: u32,
    /// Octets that had arrived then, headers of the layers below included, modulo 2^32.
    pub octets: u32,
    /// Datagrams that had arrived then with a congestion mark, modulo 2^16.
    pub marks: u16,
}

/// The receiver's word which of a path's numbered datagrams arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivalMap<'a> {
    /// The numbers of what left under the keys that the map is about, as far as it may tell of them.
    pub first: u64,
    /// One past the last of those numbers.
    pub end: u64,
    /// Whether those keys are out of use: what has not arrived does not come any more.
    pub is_final: bool,
    /// The number of the newest datagram that arrived.
    pub newest: u64,
    /// A bit for each number, from the newest one down, the highest bit of an octet first: 1 where the datagram arrived.
    pub bits: &'a [u8],
}

impl ArrivalMap<'_> {
    /// Whether the datagram with this number arrived; `None` if the map does not say.
    pub fn arrived(&self, number: u64) -> Option<bool> {
        if !(self.first..self.end).contains(&number) {
            return None;
        }
        if number > self.newest {
            return Some(false);
        }
        let back = usize::try_from(self.newest.checked_sub(number)?).ok()?;
        let octet = self.bits.get(back / 8)?;
        Some(octet << (back % 8) & 0x80 != 0)
    }
}

/// The directions of a path in which a session numbers the datagrams and their receiver tells the sender what arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent words of two ends"
)]
pub struct AckedWays {
    /// The remote tells us of what leaves here.
    pub out: bool,
    /// The session tells the remote of what arrives here.
    pub back: bool,
    /// The remote names those that leave here and arrive there damaged beyond repair.
    pub damaged: bool,
    /// The remote says of each that leaves here whether it arrived.
    pub mapped: bool,
}

/// A numbered datagram that leaves; numbers rise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Its number.
    pub number: u64,
    /// Its contents.
    pub content: SealedContent,
}

/// The contents of a numbered datagram, as far as the remote tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedContent {
    /// Data that the machine just appended, or a piece: told of at once.
    Data,
    /// The machine's answers: told of now and then.
    Answers,
    /// The session's own: counted, and not told of.
    Own,
}

/// A machine that a session carries: what the session learns of a path, the machine is told, and nobody in between
/// need pass it on.
///
/// The session calls these right after its application heard of the event that says the same, and before any other.
pub trait Carried: Machine {
    /// Whether the machine can speak the short form.
    const SHORT: bool = false;

    /// The remote at the end of `path` cannot be reached (`held`), or can again. While a path is held, nothing new is
    /// sent there and no timer that counts silence runs.
    fn hold(&mut self, now: Instant, path: PathId, held: bool);

    /// Packets of these sizes reach the remote at the end of `path` from now on.
    ///
    /// # Errors
    /// The reason, in words, if something the machine has at hand does not fit: it goes in pieces.
    fn set_path_sizes(
        &mut self,
        now: Instant,
        path: PathId,
        sizes: PathSizes,
    ) -> Result<(), String>;

    /// The session sent `wire` octets of its own on `path`, headers included: they count towards the path's rate.
    fn on_sent_below(&mut self, now: Instant, path: PathId, wire: ByteCount);

    /// The mean round trip to the remote at the end of `path`: after the handshake that opens a session, if nothing of it
    /// was repeated, and then with each answered probe. What begins there need not measure it again. The first call comes
    /// before the application heard of the session.
    fn on_round_trip(&mut self, _now: Instant, _path: PathId, _round_trip: Duration) {}

    /// The remote at the end of `path` has lost its state. Nothing of its new start has been handed over yet.
    /// Its further paths are undone in the same turn: between [`Carried::part`] and this call the machine is asked
    /// for no datagram, or what was lost there would leave once more, for the new start.
    fn peer_restarted(&mut self, now: Instant, path: PathId);

    /// Packets for `path` are in this form from now on: both ends of the session around it can read it. Without
    /// this call it is the long one.
    ///
    /// In the short form [`Machine::poll_transmit`] appends content, which is one short frame, or 0x00 and the packet in
    /// the long form, and the sizes of [`Carried::set_path_sizes`] are those of content. Sizes for the form are given
    /// right after it. A packet that was made before and is sent again may be longer than they say. Nobody calls
    /// this for a machine that cannot speak the short form.
    fn speak(&mut self, _now: Instant, _path: PathId, _form: TpduForm) {}

    /// Content in the short form arrived under a seal, with a frame for the machine or several: the machine leaves out
    /// those that are the session's own. It is taken whatever form is spoken on the path, since the two ends do not
    /// change over at the same moment.
    fn handle_frames(&mut self, _now: Instant, _datagram: Datagram<'_>) {}

    /// The directions of `path` in which the receiver tells what arrives of the datagrams that the session numbers. Where
    /// the remote does, [`Carried::on_sealed`] follows, and [`Carried::on_path_ack`], [`Carried::on_damaged`] or
    /// [`Carried::on_arrival_map`]. Without this call nobody does.
    fn number_path(&mut self, _now: Instant, _path: PathId, _ways: AckedWays) {}

    /// Both ends of the session around the machine take repair symbols over windows on `path`, or not any more. Without
    /// this call they do not.
    fn use_windows(&mut self, _now: Instant, _path: PathId, _are_taken: bool) {}

    /// Whether the machine wants to be told what arrives of the datagrams on `path`: it finds its rate by that.
    fn finds_rate(&self, _path: PathId) -> bool {
        false
    }

    /// A datagram of `wire` octets, headers included, leaves on `path`.
    fn on_sealed(&mut self, _now: Instant, _path: PathId, _sealed: Sealed, _wire: ByteCount) {}

    /// The remote at the end of `path` told what arrived.
    fn on_path_ack(&mut self, _now: Instant, _path: PathId, _ack: PathAck) {}

    /// The remote at the end of `path` told which datagrams arrived.
    fn on_arrival_map(&mut self, _now: Instant, _path: PathId, _map: ArrivalMap<'_>) {}

    /// The remote at the end of `path` told that the datagram with this number arrived damaged beyond repair: the path
    /// carried it, and its contents are lost.
    fn on_damaged(&mut self, _now: Instant, _path: PathId, _number: u64) {}

    /// The same, where the receiver keeps it and what mends it is on its way. [`Carried::on_damaged`] follows if that did not.
    fn on_mending(&mut self, _now: Instant, _path: PathId, _number: u64) {}

    /// Another link carries `path` from now on: the peer has moved, or damaged datagrams arrive, or do not any more.
    /// Losses have other reasons, and delays another least.
    fn on_other_link(&mut self, _now: Instant, _path: PathId) {}

    /// Lets what is for the peer at `home` leave on `path` as well; what comes on `path` is of that peer. Its sizes, and
    /// who tells what arrives there, are told before. Of one that is bonded, only the cost is taken. Returns whether the machine
    /// does.
    fn bond(&mut self, _now: Instant, _home: PathId, _path: PathId, _facts: PathFacts) -> bool {
        false
    }

    /// Something is due on one of several paths to a peer for longer than answers take there (`is_doubted`), or was heard
    /// there again. It may be down: what has another way goes by that.
    fn doubt(&mut self, _now: Instant, _path: PathId, _is_doubted: bool) {}

    /// The link below `path` tells this of itself, in place of all before: rate, length and cost follow at once. Whether it is
    /// up is the session's to use, which holds the path.
    fn take_told(&mut self, _now: Instant, _path: PathId, _told: ToldFacts) {}

    /// Undoes [`Carried::bond`].
    fn part(&mut self, _now: Instant, _path: PathId) {}

    /// The rate that `path` carries, as it was told or as far as it was seen.
    fn rate_of(&self, _path: PathId) -> Option<Bitrate> {
        None
    }
}
