//! Arriving datagrams: parity, header, keys, replay, and only then the content.

use super::Session;
use crate::session::config::{EarlyData, PeerIndex};
use crate::session::correction::Damage;
use crate::session::counters::DropReason;
use crate::session::dialect::Wire;
use crate::session::early::Salt;
use crate::session::event::{HandshakeRefusal, SessionEvent};
use crate::session::keyring::Slot;
use crate::session::path_slot::PathSlot;
use crate::session::peer::Peer;
use crate::session::seal::{Told, Unopened};
use crate::session::sizes::NetworkHeaders;
use crate::session::wire::{
    Armoured, DATA_HEADER_BYTES, DataHeader, DatagramType, HEADER_BYTES, Header, HeaderReject,
    Message, QUESTION_VERSION, SESSION_VERSION,
};
use fulmar_proto::machine::{Carried, Datagram, Ecn, PathId};
use fulmar_proto::units::{Duration, FecStrength, Instant};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// An IPv6 address (or an IPv4 one as such) and a port.
pub(super) const SOURCE_BYTES: usize = 18;

/// The origin of a datagram, in the driver's and in the network's terms.
#[derive(Clone, Copy)]
pub(super) struct Origin<'a> {
    pub(super) path: PathId,
    /// The place of that path among those to its peer, once the peer is known. `None`: it is in none of them, so what comes says
    /// nothing of any path.
    pub(super) place: Option<PathSlot>,
    pub(super) source: &'a [u8],
    pub(super) ecn: Ecn,
    /// The time at which it came, which may be before the time at which it is taken.
    pub(super) at: Instant,
    /// Octets of the whole datagram.
    pub(super) octets: usize,
    /// Whether it is armoured data, whose source may be damaged.
    pub(super) is_armoured: bool,
    /// Whether it was damaged, and mended as a whole.
    pub(super) is_mended: bool,
    /// Whether it came damaged before, and was kept.
    pub(super) is_kept: bool,
    /// Our index of the keys that it opened under.
    pub(super) keys: Option<u32>,
}

/// A datagram that came, as far as a driver knows it.
#[derive(Clone, Copy, Debug)]
pub struct DatagramArrival<'a> {
    /// The datagram.
    pub datagram: Datagram<'a>,
    /// The octets of the address that it came from ([`source_octets`]).
    pub source: &'a [u8],
    /// The time at which the system took it in: before the time at which it is handed over, if the driver slept.
    pub at: Instant,
}

/// The octets of an address, for [`Session::handle_datagram_from`].
pub fn source_octets(from: SocketAddr) -> [u8; SOURCE_BYTES] {
    let ip = match from.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut octets = [0; SOURCE_BYTES];
    octets[..16].copy_from_slice(&ip.octets());
    octets[16..].copy_from_slice(&from.port().to_be_bytes());
    octets
}

/// The address that [`source_octets`] made octets of.
fn source_address(octets: &[u8]) -> Option<SocketAddr> {
    let (ip, port) = octets.split_first_chunk::<16>()?;
    let port = u16::from_be_bytes(port.try_into().ok()?);
    Some(SocketAddr::new(Ipv6Addr::from(*ip).to_canonical(), port))
}

impl<M: Carried> Session<M> {
    /// Handles a datagram that arrives now; `source` are the octets of the address that it came from
    /// ([`source_octets`]).
    pub fn handle_datagram_from(&mut self, now: Instant, datagram: Datagram<'_>, source: &[u8]) {
        let at = now;
        let arrival = DatagramArrival {
            datagram,
            source,
            at,
        };
        self.handle_arrival(now, arrival);
    }

    /// Handles a datagram that arrived. Cookies, which prove addresses while too many handshakes arrive, are bound to the
    /// octets of its source. The peer whose rate is found is told when it came, and not when it was handled: a driver
    /// that wakes late is no queue.
    pub fn handle_arrival(&mut self, now: Instant, arrival: DatagramArrival<'_>) {
        self.take_arrival(now, arrival);
        self.take_carried(now, arrival);
    }

    pub(super) fn take_arrival(&mut self, now: Instant, arrival: DatagramArrival<'_>) {
        self.now = now;
        let DatagramArrival {
            datagram,
            source,
            at,
        } = arrival;
        let origin = Origin {
            path: datagram.path,
            place: Some(PathSlot::FIRST),
            source,
            ecn: datagram.ecn,
            at: at.min(now),
            octets: datagram.octets.len(),
            is_armoured: false,
            is_mended: false,
            is_kept: false,
            keys: None,
        };
        let verdict = if DataHeader::begins(datagram.octets) {
            self.take_data_in_two(now, origin, datagram.octets)
        } else if let Some(armoured) =
            Armoured::read(datagram.octets, &mut self.code, &mut self.scratch)
        {
            self.take_armoured(now, origin, (armoured, 0), datagram.octets)
        } else {
            self.take_whole(now, origin, datagram.octets)
        };
        if let Some(tap) = &mut self.tap {
            tap.received(now, source, datagram.octets, verdict);
        }
        if let Err(reason) = verdict {
            self.counters.drop(reason);
            if reason == DropReason::WrongMac {
                self.on_wrong_key(now, origin.path, datagram.octets);
            }
        }
    }

    /// Takes a datagram with the header of version 1: data in wire 1, or a message of a handshake.
    fn take_whole(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        octets: &[u8],
    ) -> Result<(), DropReason> {
        match Header::parse(octets) {
            Ok(header) => {
                let verdict = self.take(now, origin, header, octets);
                match verdict {
                    // Parity is worth a try where it is the parity that both ends agreed upon: anybody can write
                    // another one into a header.
                    Err(DropReason::Forged | DropReason::WrongMac)
                        if self.is_worth_correcting(header.fec) =>
                    {
                        self.take_corrected(now, origin, Damage::Content, octets)
                            .unwrap_or(verdict)
                    }
                    verdict => verdict,
                }
            }
            Err(HeaderReject::Check) => self
                .take_mended(now, origin, octets)
                .or_else(|| self.take_corrected(now, origin, Damage::Header, octets))
                .unwrap_or(Err(DropReason::HeaderCheck)),
            Err(reject @ HeaderReject::Truncated) => {
                Err(self.judge_header(now, origin.path, reject))
            }
            // One damaged header in 2^16 checks by chance as one of another version.
            Err(reject) => match self.take_mended(now, origin, octets) {
                Some(verdict) => verdict,
                None => Err(self.judge_header(now, origin.path, reject)),
            },
        }
    }

    fn judge_header(&mut self, now: Instant, path: PathId, reject: HeaderReject) -> DropReason {
        match reject {
            HeaderReject::Truncated => DropReason::Truncated,
            HeaderReject::Check => DropReason::HeaderCheck,
            HeaderReject::Type => DropReason::Unknown,
            HeaderReject::Version {
                theirs,
                initiation_from,
            } => {
                let ours = SESSION_VERSION;
                // A question is no caller that has to be turned away.
                if theirs != QUESTION_VERSION {
                    self.refuse(now, path, None, HandshakeRefusal::Version { ours, theirs });
                }
                if let Some(receiver) = initiation_from
                    && self.guard.may_refuse(now)
                {
                    let answer = Header {
                        kind: DatagramType::Version,
                        fec: FecStrength::NONE,
                        receiver,
                        low: 0,
                    };
                    self.answer_stranger(path, answer.to_octets().to_vec());
                }
                DropReason::Version
            }
        }
    }

    pub(super) fn take(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        header: Header,
        octets: &[u8],
    ) -> Result<(), DropReason> {
        let end = octets.len().checked_sub(header.fec.parity_bytes());
        let octets = end.and_then(|end| octets.get(..end));
        let octets = octets.ok_or(DropReason::Truncated)?;
        let body = octets.get(HEADER_BYTES..).ok_or(DropReason::Truncated)?;
        match header.kind {
            DatagramType::Data => self.take_data(now, origin, header, body),
            DatagramType::Initiation => self.take_initiation(now, origin, header, octets),
            DatagramType::Response => self.take_response(now, origin, header, body),
            DatagramType::Cookie => self.take_cookie(now, origin.path, header, body),
            DatagramType::Version => self.take_version(now, origin.path, header, octets),
            DatagramType::Early => self.take_early(now, origin, header, body),
            DatagramType::Notice => self.take_notice(now, origin, header, body),
        }
    }

    fn take_version(
        &mut self,
        now: Instant,
        path: PathId,
        header: Header,
        octets: &[u8],
    ) -> Result<(), DropReason> {
        let peer = self
            .pending_of(header.receiver, path)
            .ok_or(DropReason::NoSession)?;
        let theirs = octets.first().map_or(0, |first| first >> 4);
        let ours = SESSION_VERSION;
        let index = PeerIndex(u32::try_from(peer).unwrap_or(u32::MAX));
        if let Some(state) = self.peers.get_mut(peer) {
            state.said_no_answer = true;
        }
        self.refuse(
            now,
            path,
            Some(index),
            HandshakeRefusal::Version { ours, theirs },
        );
        Err(DropReason::Version)
    }

    fn take_data(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        header: Header,
        body: &[u8],
    ) -> Result<(), DropReason> {
        let Header { receiver, low, .. } = header;
        let taken = self.take_sealed(now, origin, receiver, Told::Low(low), body);
        if let Err(DropReason::NoSession | DropReason::Expired) = taken {
            let len = HEADER_BYTES + body.len();
            self.tell_lost(now, origin.path, receiver, low.to_be_bytes(), len);
        }
        taken
    }

    fn take_data_in_two(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        octets: &[u8],
    ) -> Result<(), DropReason> {
        let header = DataHeader::parse(octets).ok_or(DropReason::Truncated)?;
        let receiver = header.receiver;
        // One wrong bit makes an armoured datagram look so.
        if !self.indices.contains_key(&receiver)
            && let Some(taken) = self.take_mended(now, origin, octets)
        {
            return taken;
        }
        let (told, body) = (Told::Whole(header.number), &octets[DATA_HEADER_BYTES..]);
        let taken = self.take_sealed(now, origin, receiver, told, body);
        if let Err(DropReason::NoSession | DropReason::Expired) = taken {
            self.tell_lost(now, origin.path, receiver, header.seen(), octets.len());
        }
        taken
    }

    /// Opens data for the keys of `receiver` and takes its content.
    pub(super) fn take_sealed(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        receiver: u32,
        told: Told,
        body: &[u8],
    ) -> Result<(), DropReason> {
        let peer = *self.indices.get(&receiver).ok_or(DropReason::NoSession)?;
        let index = usize::try_from(peer.0).unwrap_or(usize::MAX);
        if !self.may_be_from(index, origin.path) {
            return Err(DropReason::Unknown);
        }
        let state = self.peers.get_mut(index).ok_or(DropReason::NoSession)?;
        let (keys, slot) = state.keys.find(now, receiver).ok_or(DropReason::Expired)?;
        // Keys go with one wire: in another one nobody sealed this.
        if keys.wire != told.wire() {
            return Err(DropReason::Unknown);
        }
        let mut plain = core::mem::take(&mut self.scratch);
        let opened = keys.open(told, body, &mut plain);
        self.work.openings += u64::from(opened != Err(Unopened::Replayed));
        let mut origin = origin;
        if opened.is_ok() {
            keys.confirmed = true;
            if let Told::Whole(number) = told {
                let is_newest = opened == Ok(true) && slot != Slot::Previous;
                let came = (receiver, number, is_newest);
                origin.place = self.count_arrival(now, origin, index, came);
            }
        }
        let taken = match opened {
            Err(Unopened::Replayed) => Err(DropReason::Replayed),
            Err(Unopened::Forged) => Err(DropReason::Forged),
            Ok(newest) => {
                if let Some(tap) = &mut self.tap {
                    let place = origin.place.unwrap_or_default();
                    tap.opened((index, place), &plain);
                }
                // Datagrams under older keys are older than any under newer ones.
                let newest = newest && slot != Slot::Previous;
                self.on_genuine(now, origin, index, slot, newest);
                // It may be the one by which both ends agree to have several paths, or to have them anew.
                let place = origin.place.unwrap_or_default();
                if let Told::Whole(number) = told
                    && number.slot != PathSlot::FIRST
                    && !self.has_place(index, place)
                {
                    origin.place = self.place_of(now, origin, (index, number.slot, newest));
                }
                let origin = Origin {
                    keys: Some(receiver),
                    ..origin
                };
                match told.wire() {
                    Wire::One => self.take_message(now, origin, index, &plain),
                    Wire::Two => self.take_frames(now, origin, index, &plain),
                }
            }
        };
        self.scratch = plain;
        taken
    }

    /// Data under keys that were there before the handshake.
    fn take_early(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        header: Header,
        body: &[u8],
    ) -> Result<(), DropReason> {
        if self.config.early_data != EarlyData::Take {
            return Err(DropReason::NoSession);
        }
        let (salt, sealed) = Salt::split(body).ok_or(DropReason::Truncated)?;
        let named = |peer: &Peer| peer.early_id == Some(header.receiver);
        let index = self.peers.iter().position(named);
        let index = index.ok_or(DropReason::NoSession)?;
        if !self.may_be_from(index, origin.path) {
            return Err(DropReason::Unknown);
        }
        let state = self.peers.get_mut(index).ok_or(DropReason::NoSession)?;
        let key = state.early_root.as_ref().ok_or(DropReason::NoSession)?;
        let mut plain = core::mem::take(&mut self.scratch);
        let opened =
            state
                .early_intake
                .open(&mut self.work, key, (salt, header.low, sealed), &mut plain);
        let message = Message::read(&plain);
        let taken = match (opened, message) {
            (Err(Unopened::Replayed), _) => Err(DropReason::Replayed),
            (Err(Unopened::Forged), _) => Err(DropReason::Forged),
            (Ok(()), Some(Message::Tpdu(octets))) => {
                if let Some(tap) = &mut self.tap {
                    tap.opened((index, PathSlot::FIRST), &plain);
                }
                state.path.get_or_insert(origin.path);
                let path = state.index.inner_path();
                let ecn = origin.ecn;
                self.counters.received += 1;
                self.counters.received_early += 1;
                self.see_epoch(index, salt.epoch());
                let datagram = Datagram { path, octets, ecn };
                self.inner.handle_datagram(now, datagram);
                Ok(())
            }
            // Only data is sent early: other messages are about a session that is not there yet.
            (Ok(()), _) => Err(DropReason::Unknown),
        };
        self.scratch = plain;
        taken
    }

    /// Tells the application of a peer's new epoch, where forgetting it would do harm.
    pub(super) fn see_epoch(&mut self, index: usize, epoch: u64) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        if state.early_id.is_some() && epoch > state.epoch_said {
            state.epoch_said = epoch;
            let peer = state.index;
            self.events
                .push_back(SessionEvent::EpochSeen { peer, epoch });
        }
    }

    /// Handles the news of an opened datagram: the peer shares the keys, the link works, and the peer is at this path.
    fn on_genuine(
        &mut self,
        now: Instant,
        origin: Origin<'_>,
        index: usize,
        slot: Slot,
        newest: bool,
    ) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        state.corrections.earn();
        let is_first = origin.place == Some(PathSlot::FIRST);
        let is_elsewhere = is_first && state.path.is_some_and(|known| known != origin.path);
        let is_doubtful = newest && origin.is_armoured && is_elsewhere;
        if newest && !is_doubtful && is_first {
            state.path_proven = true;
            state.source = source_address(origin.source).filter(|_| !origin.path.is_inside());
            state.on_proven(origin.path);
            self.see_headers(index, origin.source);
            self.move_to(now, index, origin.path);
        }
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        if slot == Slot::Next {
            state.keys.promote(now);
            state.pending = None;
            let answers = state.answered.as_ref().map(|answered| answered.count);
            if let Some(answered) = state.answered.as_mut() {
                answered.settle(now);
            }
            if let Some(offer) = state.offer.take() {
                let is_new = !state.announced || state.boot != Some(offer.boot);
                let took = now.saturating_since(offer.since);
                state.set_up_in = (answers == Some(1)).then_some(took);
                state.use_key(offer.key);
                state.epoch_seen = state.epoch_seen.max(offer.epoch);
                state.early_intake.raise(offer.epoch);
                self.see_epoch(index, offer.epoch);
                self.announce(now, index, offer.boot, offer.capabilities);
                // A datagram that comes sooner by another path says nothing of the home.
                if is_new && !is_first && offer.path == origin.path {
                    self.begin_beside_home(now, (index, origin.path), Duration::ZERO);
                }
                // The probe measures the round trip, by which silences are judged.
                self.send_probe(now, index);
            }
        }
        // Under keys that this datagram may have brought into use.
        if is_doubtful {
            self.ask_at(now, origin, index);
        }
    }

    /// Notes the headers of packets to a peer that talks to us from `source`.
    pub(super) fn see_headers(&mut self, index: usize, source: &[u8]) {
        let Some(state) = self.peers.get_mut(index) else {
            return;
        };
        let headers = NetworkHeaders::of_source(source);
        if state.headers != headers {
            state.headers = headers;
            if state.announced {
                self.say_sizes(index);
            }
        }
    }
}
