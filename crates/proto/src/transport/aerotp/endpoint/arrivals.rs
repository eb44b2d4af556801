//! Arriving datagrams: the connections they belong to, and those that they may open.

use super::super::config::ConnectionConfig;
use super::super::event::{ConnectionId, Event};
use super::super::key::Key;
use super::super::tombstones::{Past, Tombstone};
use super::{AerotpEndpoint, ORPHANS_MAX, Orphan};
use crate::machine::{Datagram, Ecn, PathId};
use crate::units::Instant;
use crate::wire::aerotp::{
    BodyCheck, CRC_BYTES, EcnField, FecStrength, Flags, HEADER_BYTES, Header, Reject, Tpdu,
    TpduKind,
};
use crate::wire::{Mode, Port};

/// The circumstances in which a TPDU arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arriving {
    pub(super) path: PathId,
    /// Whether the network marked its datagram.
    pub(super) marked: bool,
    pub(super) corrected_symbols: u32,
    /// Whether the layer below vouches for it and its sender.
    pub(super) sealed: bool,
    /// Its connection, if that is known already.
    pub(super) connection: Option<ConnectionId>,
}

impl Arriving {
    /// The circumstances of what `datagram` brings; of the rest nothing is known yet.
    pub(super) fn of(datagram: &Datagram<'_>, home: PathId, sealed: bool) -> Self {
        Self {
            path: home,
            marked: datagram.ecn == Ecn::Congested,
            corrected_symbols: 0,
            sealed,
            connection: None,
        }
    }
}

impl AerotpEndpoint {
    pub(super) fn receive(&mut self, now: Instant, datagram: Datagram<'_>) {
        self.count_arrival(now, &datagram);
        let arriving = Arriving::of(&datagram, self.home_of(datagram.path), false);
        self.receive_long(now, datagram.octets, arriving);
    }

    /// Counts the octets of a datagram for its path.
    pub(super) fn count_arrival(&mut self, now: Instant, datagram: &Datagram<'_>) {
        if let Some(schedule) = self.paths.get_mut(&datagram.path) {
            schedule.on_arrived(now, datagram.octets.len());
        }
    }

    /// Takes a TPDU in the long form.
    pub(super) fn receive_long(&mut self, now: Instant, octets: &[u8], arriving: Arriving) {
        let schedule = self.paths.get(&arriving.path);
        let known = schedule.map_or(FecStrength::NONE, |schedule| schedule.strength_seen);
        let mut intake = core::mem::take(&mut self.intake);
        match intake.read(octets, known) {
            Ok(read) => {
                let arriving = Arriving {
                    corrected_symbols: read.corrected_symbols,
                    ..arriving
                };
                self.route(now, &read.tpdu, arriving);
            }
            Err(reject) => {
                self.counters.rejected += 1;
                if reject == Reject::HeaderCheck {
                    self.counters.rejected_header_check += 1;
                }
            }
        }
        self.intake = intake;
    }

    pub(super) fn route(&mut self, now: Instant, tpdu: &Tpdu<'_>, arriving: Arriving) {
        let path = arriving.path;
        let header = &tpdu.header;
        if header.mode == Mode::Datagram {
            self.receive_datagram(path, tpdu);
            return;
        }
        let key = Key {
            path,
            local: header.destination.0,
            remote: header.source.0,
        };
        match tpdu.kind() {
            TpduKind::Challenge if self.keys.contains_key(&key) => {
                let id = self.keys.get(&key).copied();
                if let Some(entry) = id.and_then(|id| self.connections.get_mut(&id)) {
                    entry.connection.on_challenge(now);
                }
                if let Some(id) = id {
                    self.settle(now, id);
                }
                return self.answer_challenge(path, header);
            }
            // An address that was shown need not be shown again.
            TpduKind::Challenge | TpduKind::Response => return,
            _ => {}
        }
        let Some(id) = arriving
            .connection
            .or_else(|| self.keys.get(&key).copied())
            .or_else(|| self.accept(now, key, tpdu, arriving.sealed))
        else {
            return;
        };
        let Some(entry) = self.connections.get_mut(&id) else {
            return;
        };
        if entry.connection.mode() != header.mode {
            self.counters.mode_mismatch += 1;
            return;
        }
        let sign = entry
            .connection
            .on_tpdu(now, tpdu, arriving.corrected_symbols, arriving.marked);
        if let Some(schedule) = self.paths.get_mut(&path) {
            if matches!(
                tpdu.kind(),
                TpduKind::Data { .. } | TpduKind::Repair | TpduKind::Window
            ) {
                schedule.on_data(now, tpdu.body.len());
            }
            if schedule.owes_report(now) {
                entry.connection.on_report_owed(tpdu.kind());
            }
            let clock = sign.report.map(|report| report.clock);
            if let Some(clock) = clock.filter(|clock| schedule.sees_queue_of_answers(now, *clock)) {
                entry.connection.tell_of_answers(now, clock);
            }
        }
        let rtt = entry.connection.rtt();
        if let (Some(rtt), Some(known)) = (rtt, self.round_trips.get_mut(&path)) {
            *known = rtt;
        }
        let schedule = self.path(path);
        if !tpdu.fec_words.is_none() {
            schedule.strength_seen = tpdu.fec_words;
        }
        let turned_out_wrong = schedule.on_sign(now, sign, rtt);
        schedule.update_rate(now);
        if turned_out_wrong {
            self.counters.rates_declared_wrong += 1;
        }
        self.settle(now, id);
    }

    /// Opens a connection for whatever arrives first, if it carries something to open it with.
    fn accept(
        &mut self,
        now: Instant,
        key: Key,
        tpdu: &Tpdu<'_>,
        sealed: bool,
    ) -> Option<ConnectionId> {
        if let Some(tombstone) = self.tombstones.get(key) {
            self.answer_for_the_past(key, tombstone, tpdu, sealed);
            return None;
        }
        let opens = matches!(
            tpdu.kind(),
            TpduKind::Asyn | TpduKind::Data { .. } | TpduKind::Repair
        );
        let listener = self.listeners.get(&key.local).copied().filter(|_| opens);
        let Some(listener) = listener else {
            self.counters.strangers += 1;
            if matches!(
                tpdu.kind(),
                TpduKind::Asyn | TpduKind::Data { .. } | TpduKind::Afin
            ) && !self.listeners.contains_key(&key.local)
            {
                self.reset(key.path, tpdu, sealed);
            }
            return None;
        };
        let config = ConnectionConfig {
            mode: tpdu.header.mode,
            ..listener
        };
        let Ok(id) = self.add(now, key, config, false) else {
            self.counters.refused += 1;
            return None;
        };
        let (path, local, mode) = (key.path, Port(key.local), tpdu.header.mode);
        self.events.push_back(Event::Incoming {
            id,
            path,
            local,
            mode,
        });
        if let Some(entry) = self.connections.get_mut(&id) {
            entry.connection.on_accepted();
        }
        Some(id)
    }

    /// Answers for a connection that is over. A finished one received everything, and says so to a
    /// peer whose last acknowledgements were lost. One that the peer forgot is answered by a reset.
    /// Any other says nothing, not even a reset: the peer may still have octets that this side can
    /// no longer confirm.
    fn answer_for_the_past(
        &mut self,
        key: Key,
        tombstone: Tombstone,
        tpdu: &Tpdu<'_>,
        sealed: bool,
    ) {
        let asks = tpdu.header;
        match (tombstone.past, tpdu.kind()) {
            (Past::Finished(end), TpduKind::Afin | TpduKind::Data { .. })
                if asks.seq.distance_from(end) <= 0 =>
            {
                let named = key.named(tombstone.initiator);
                self.push_orphan(key.path, Orphan::Ended { asks, end, named });
            }
            (Past::Forgotten, TpduKind::Asyn | TpduKind::Afin | TpduKind::Data { .. }) => {
                self.reset(key.path, tpdu, sealed);
            }
            _ => {}
        }
    }

    /// Sends a reset. One to a sender for which nobody vouches (`sealed`) takes no more octets than the TPDU it answers.
    pub(super) fn reset(&mut self, path: PathId, stranger: &Tpdu<'_>, sealed: bool) {
        let header = Header {
            source: stranger.header.destination,
            destination: stranger.header.source,
            ecn: EcnField::NONE,
            flags: Flags::RST,
            ..stranger.header
        };
        if sealed || stranger.covered.len() + stranger.parity.len() >= HEADER_BYTES + CRC_BYTES {
            self.push_orphan(path, Orphan::Reset(header));
        }
    }

    pub(super) fn push_orphan(&mut self, path: PathId, orphan: Orphan) {
        if self.orphans.len() < ORPHANS_MAX {
            self.orphans.push_back((path, orphan));
        }
    }

    fn receive_datagram(&mut self, path: PathId, tpdu: &Tpdu<'_>) {
        let header = &tpdu.header;
        if !self.listeners.contains_key(&header.destination.0) {
            self.counters.strangers += 1;
        } else if tpdu.check == BodyCheck::Damaged {
            self.counters.damaged_datagrams += 1;
        } else {
            self.events.push_back(Event::Datagram {
                path,
                source: header.source,
                local: header.destination,
                ordinal: header.seq.0,
                octets: tpdu.body.to_vec(),
            });
        }
    }
}
