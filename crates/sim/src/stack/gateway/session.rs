//! The session between two gateways over several paths, as far as their splicers can tell.
//!
//! ```text
//! splicer --content--> number, seal --> the path's address          probes, heartbeats, path acks beside it
//! ```
//!
//! A gateway with one path to another needs no session here: its splicer's packets travel as they are. With several, packets
//! are sealed and numbered on each path, the receiver tells what arrived where a rate is found, a further path is bonded
//! when a probe was answered there, and one that is silent is held for down.
//!
//! # Does not
//! - Shake hands, encrypt, look for packet sizes, or keep an idle path alive: between gateways without flows it says nothing.
//! - Look for proofs that what is sent arrives: a path of which one direction dies is not left by both ends.

use super::super::seal::{self, SealLabel};
use crate::scenario::SEAL_BYTES;
use fulmar_proto::liveness::{Due, FirstProbes, Liveness, LivenessConfig, Wants};
use fulmar_proto::machine::{
    AckedWays, Carried, Datagram, Deadline, Ecn, Machine, PathAck, PathFacts, PathId, PathSizes,
    Priority, Sealed, SealedContent, TpduForm, Transmit, TransmitKind,
};
use fulmar_proto::splice::{FlowEvent, Splicer};
use fulmar_proto::told::ToldFacts;
use fulmar_proto::transport::aerotp::RateSource;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use fulmar_proto::wire::network::NETWORK_HEADER_BYTES;
use std::collections::VecDeque;

/// A path of a gateway to another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatewayPath {
    pub(crate) path: PathId,
    pub(crate) cost: u8,
    pub(crate) rate: RateSource,
}

/// The kinds of sealed datagrams.
mod kind {
    pub(super) const DATA: u8 = 1;
    pub(super) const ANSWERS: u8 = 2;
    pub(super) const PROBE: u8 = 3;
    pub(super) const REPLY: u8 = 4;
    pub(super) const HEARTBEAT: u8 = 5;
    pub(super) const PATH_ACK: u8 = 6;
}

/// The rules of silence: those of a real session, but for keep-alives and proofs.
const LIVENESS: LivenessConfig = LivenessConfig {
    keep_alive: None,
    wants_proofs: false,
    ..LivenessConfig::USUAL
};
/// The datagrams after a silence each of which is told of.
const EACH: u32 = 64;
/// The silence after which they are counted anew.
const SILENCE: Duration = Duration::from_secs(1);
/// The time between two path acks while data come, and while answers do.
const EVERY: Duration = Duration::from_millis(10);
const EVERY_FEEDBACK: Duration = Duration::from_millis(100);
/// The octets of a path ack's content.
const ACK_BYTES: usize = 22;
/// Its bits with all headers, and with the place before it.
const ACK_BITS: u64 = 8 * (NETWORK_HEADER_BYTES + SEAL_BYTES + 1 + ACK_BYTES) as u64;
/// Path acks take one part in so many of the way back's rate, or in so few where there would be less than two in a round trip.
const RATE_PART: u64 = 50;
const RATE_PART_MOST: u64 = 4;

/// A splicer, and the sessions to its peers that have several paths.
#[derive(Debug)]
pub(super) struct BondedSplicer {
    splicer: Splicer,
    /// The paths to each peer, the home first.
    peers: Vec<Vec<SessionPath>>,
    homes: Vec<PathId>,
    outbox: VecDeque<(PathId, Vec<u8>)>,
}

#[derive(Debug)]
struct SessionPath {
    told: GatewayPath,
    is_bonded: bool,
    /// The probes until one was answered.
    first_probes: FirstProbes,
    liveness: Liveness,
    /// The number of the next datagram.
    next_number: u64,
    arrivals: Arrivals,
}

/// Arrivals on a path, and the time to tell of them.
#[derive(Debug, Default)]
struct Arrivals {
    newest: Option<(u64, Instant)>,
    octets: u32,
    marks: u16,
    /// Datagrams that are still to be told of one by one.
    each: u32,
    asked_at: Option<Instant>,
    told_at: Option<Instant>,
    /// The time between two path acks.
    every: Duration,
    due: Option<Instant>,
}

impl BondedSplicer {
    pub(super) const fn new(splicer: Splicer) -> Self {
        Self {
            splicer,
            peers: Vec::new(),
            homes: Vec::new(),
            outbox: VecDeque::new(),
        }
    }

    pub(super) const fn splicer(&self) -> &Splicer {
        &self.splicer
    }

    pub(super) const fn splicer_mut(&mut self) -> &mut Splicer {
        &mut self.splicer
    }

    /// Takes the paths to a peer, the home first, and the length of the longest packet inside.
    pub(super) fn meet(&mut self, paths: &[GatewayPath], longest: usize) {
        let Some(home) = paths
            .first()
            .filter(|home| !self.homes.contains(&home.path))
        else {
            return;
        };
        let now = Instant::START;
        self.homes.push(home.path);
        (self.splicer.endpoint_mut()).set_rate_source(now, home.path, home.rate);
        if paths.len() == 1 {
            return;
        }
        self.splicer.speak(now, home.path, TpduForm::Short);
        self.splicer.use_windows(now, home.path, true);
        let path = |(place, told): (usize, &GatewayPath)| SessionPath {
            told: *told,
            is_bonded: place == 0,
            first_probes: FirstProbes::begin(now),
            liveness: {
                let mut liveness = Liveness::new(LIVENESS, now);
                liveness.set_one_of_several(true);
                liveness
            },
            next_number: 0,
            arrivals: Arrivals::default(),
        };
        let paths: Vec<SessionPath> = paths.iter().enumerate().map(path).collect();
        let sizes = PathSizes {
            tpdu_bytes_max: longest,
            lower_overhead: ByteCount::from_usize(NETWORK_HEADER_BYTES + SEAL_BYTES),
        };
        for path in &paths {
            let id = path.told.path;
            self.splicer.number_path(now, id, path.ways());
            let set = self.splicer.set_path_sizes(now, id, sizes);
            debug_assert_eq!(set, Ok(()), "there are no connections yet");
        }
        self.peers.push(paths);
    }

    /// Takes what the radios on a path tell of it. The only path to a peer is held while one of them passes nothing.
    pub(super) fn take_told(&mut self, now: Instant, path: PathId, told: ToldFacts) {
        self.splicer.take_told(now, path, told);
        if self.place_of(path).is_none() {
            self.splicer.hold(now, path, told.is_up == Some(false));
        }
    }

    fn place_of(&self, path: PathId) -> Option<(usize, usize)> {
        self.peers.iter().enumerate().find_map(|(peer, paths)| {
            let place = paths.iter().position(|one| one.told.path == path)?;
            Some((peer, place))
        })
    }

    fn is_in_use(&self) -> bool {
        self.splicer.flows().next().is_some()
    }

    /// The time at which something is due on a path, while there are flows.
    fn own_deadline(&self) -> Option<Deadline> {
        let deadline = |at, why| Deadline { at, why };
        self.peers.iter().flatten().fold(None, |first, path| {
            let probe = (path.first_probes.next_at()).map(|at| deadline(at, "probe of a path"));
            let silence = path.liveness.next_deadline().filter(|_| path.is_bonded);
            let ack = (path.arrivals.due).map(|at| deadline(at, "path ack"));
            [probe, silence, ack]
                .into_iter()
                .fold(first, Deadline::earlier)
        })
    }

    /// Does what is due on every path. Without flows nothing is.
    fn run_timers(&mut self, now: Instant) {
        if self.peers.is_empty() {
            return;
        }
        if !self.is_in_use() {
            for path in self.peers.iter_mut().flatten() {
                path.liveness.rest();
                path.arrivals.due = None;
            }
            return;
        }
        let is_due = self.own_deadline().is_some_and(|own| own.at <= now);
        if !is_due {
            return;
        }
        for peer in 0..self.peers.len() {
            for place in 0..self.peers[peer].len() {
                self.run_path(now, (peer, place));
            }
        }
    }

    fn run_path(&mut self, now: Instant, at: (usize, usize)) {
        let path = &mut self.peers[at.0][at.1];
        let id = path.told.path;
        if path.first_probes.take_due(now) {
            self.probe(now, at);
        }
        while let Some(due) = self.due(now, at) {
            match due {
                Due::Heartbeat => self.say(now, at, kind::HEARTBEAT, &[], Wants::Nothing),
                Due::Doubt => self.splicer.doubt(now, id, true),
                Due::Probe => self.probe(now, at),
                Due::Down(_) | Due::Unproved(_) => {
                    self.splicer.hold(now, id, true);
                    self.back_paths(at.0);
                }
            }
        }
        if self.peers[at.0][at.1].arrivals.is_due(now) {
            self.send_path_ack(now, at);
        }
    }

    fn send_path_ack(&mut self, now: Instant, at: (usize, usize)) {
        let way = self.own_way(at.0);
        let back = &self.peers[at.0][way];
        let (rate, round_trip) = (self.splicer.rate_of(back.told.path), back.liveness.rtt());
        let arrivals = &mut self.peers[at.0][at.1].arrivals;
        arrivals.every = pause(rate, round_trip);
        if let Some(ack) = arrivals.take(now) {
            let mut words = [0; 1 + ACK_BYTES];
            // Places are the same at both ends.
            words[0] = u8::try_from(at.1).unwrap_or_default();
            words[1..].copy_from_slice(&ack);
            self.say(now, (at.0, way), kind::PATH_ACK, &words, Wants::Nothing);
        }
    }

    fn due(&mut self, now: Instant, (peer, place): (usize, usize)) -> Option<Due> {
        let path = &mut self.peers[peer][place];
        if path.is_bonded {
            path.liveness.due(now)
        } else {
            None
        }
    }

    fn probe(&mut self, now: Instant, at: (usize, usize)) {
        let sent = now.as_nanos().to_be_bytes();
        self.say(now, at, kind::PROBE, &sent, Wants::Answer);
    }

    /// Seals words of the session's own, which leave before all else.
    fn say(
        &mut self,
        now: Instant,
        (peer, place): (usize, usize),
        kind: u8,
        words: &[u8],
        wants: Wants,
    ) {
        let path = &mut self.peers[peer][place];
        let mut octets = words.to_vec();
        let number = path.number();
        seal::seal(0, &mut octets, SealLabel { kind, number });
        path.liveness.on_sent(now, wants);
        let (id, is_told_of) = (path.told.path, path.ways().out);
        if is_told_of {
            let content = SealedContent::Own;
            self.count(now, id, Sealed { number, content }, octets.len());
        }
        self.outbox.push_back((id, octets));
    }

    /// Tells the splicer of a datagram that leaves, of which the receiver tells.
    fn count(&mut self, now: Instant, path: PathId, sealed: Sealed, len: usize) {
        let wire = ByteCount::from_usize(NETWORK_HEADER_BYTES + len);
        self.splicer.on_sealed(now, path, sealed, wire);
    }

    /// The path for the session's own words: the home while it is up, or the quickest of the others.
    fn own_way(&self, peer: usize) -> usize {
        let paths = &self.peers[peer];
        let up = |(_, path): &(usize, &SessionPath)| path.is_up();
        let further = paths.iter().enumerate().skip(1).filter(up);
        let quickest = further.min_by_key(|(_, path)| path.liveness.rtt());
        match quickest {
            Some((place, _)) if paths[0].liveness.is_down() => place,
            _ => 0,
        }
    }

    /// Notes for each path to a peer whether others carry on.
    fn back_paths(&mut self, peer: usize) {
        let paths = &mut self.peers[peer];
        let up = paths.iter().filter(|path| path.is_up()).count();
        for path in paths {
            let others = up - usize::from(path.is_up());
            path.liveness.set_backed(others > 0, Duration::ZERO);
        }
    }

    /// Something arrived on a path.
    fn hear(&mut self, now: Instant, (peer, place): (usize, usize), wants: Wants) {
        let path = &mut self.peers[peer][place];
        let id = path.told.path;
        path.first_probes.on_heard(now);
        let heard = path.liveness.on_heard(now, wants);
        if heard.ends_doubt {
            self.splicer.doubt(now, id, false);
        }
        if heard.outage.is_some() {
            self.back_paths(peer);
            self.splicer.hold(now, id, false);
        }
    }

    /// A probe was answered: the path carries packets both ways, and this is its round trip.
    fn on_reply(&mut self, now: Instant, (peer, place): (usize, usize), round_trip: Duration) {
        let first = &self.peers[peer][0];
        let (home, home_round_trip) = (first.told.path, first.liveness.rtt());
        let path = &mut self.peers[peer][place];
        path.first_probes.end();
        path.liveness.on_rtt_sample(round_trip);
        if let (0, Some(mean)) = (place, path.liveness.rtt()) {
            self.splicer.on_round_trip(now, home, mean);
        }
        if path.is_bonded {
            return;
        }
        let facts = PathFacts {
            round_trip,
            home_round_trip,
            rate: match path.told.rate {
                RateSource::Told(rate) => Some(rate),
                RateSource::Found { .. } => None,
            },
            cost: path.told.cost,
        };
        let id = path.told.path;
        path.is_bonded = self.splicer.bond(now, home, id, facts);
        self.back_paths(peer);
    }

    fn on_path_ack(&mut self, now: Instant, peer: usize, words: &[u8]) {
        let Some((&place, words)) = words.split_first() else {
            return;
        };
        let path = self.peers[peer].get(usize::from(place));
        let path = path
            .filter(|path| path.ways().out)
            .map(|path| path.told.path);
        if let (Some(path), Some(ack)) = (path, read_ack(words)) {
            self.splicer.on_path_ack(now, path, ack);
        }
    }
}

impl SessionPath {
    const fn is_up(&self) -> bool {
        self.is_bonded && !self.liveness.is_down()
    }

    /// Both ends tell what arrives where the rate is found.
    const fn ways(&self) -> AckedWays {
        let is_found = matches!(self.told.rate, RateSource::Found { .. });
        AckedWays {
            out: is_found,
            back: is_found,
            damaged: false,
            mapped: false,
        }
    }

    const fn number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }

    /// Counts a datagram that arrived.
    fn on_arrived(&mut self, now: Instant, datagram: &Datagram<'_>, label: SealLabel) {
        let arrivals = &mut self.arrivals;
        let octets = NETWORK_HEADER_BYTES + datagram.octets.len();
        arrivals.octets = arrivals
            .octets
            .wrapping_add(u32::try_from(octets).unwrap_or_default());
        arrivals.marks = arrivals
            .marks
            .wrapping_add(u16::from(datagram.ecn == Ecn::Congested));
        if arrivals
            .newest
            .is_none_or(|(newest, _)| label.number > newest)
        {
            arrivals.newest = Some((label.number, now));
        }
        if self.ways().back {
            self.arrivals.ask(now, label.kind);
        }
    }
}

impl Arrivals {
    /// Plans the next path ack, now that a datagram of this kind came.
    fn ask(&mut self, now: Instant, kind: u8) {
        let own = self.every.max(EVERY);
        let after = |every| self.told_at.map_or(now, |at| now.max(at + every));
        let due = match kind {
            kind::DATA => {
                let silent = |at: Instant| now.saturating_since(at) > SILENCE;
                self.each = if self.asked_at.is_none_or(silent) {
                    EACH
                } else {
                    self.each.saturating_sub(1)
                };
                self.asked_at = Some(now);
                if self.each > 0 { now } else { after(own) }
            }
            kind::ANSWERS => after(own.max(EVERY_FEEDBACK)),
            _ => return,
        };
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
    }

    fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|at| at <= now)
    }

    /// The content of a path ack, if there is something to tell.
    fn take(&mut self, now: Instant) -> Option<[u8; ACK_BYTES]> {
        self.due = None;
        let (newest, at) = self.newest?;
        self.told_at = Some(now);
        let hold = u32::try_from(now.saturating_since(at).as_micros()).unwrap_or(u32::MAX);
        let mut octets = [0; ACK_BYTES];
        octets[..8].copy_from_slice(&newest.to_be_bytes());
        octets[8..12].copy_from_slice(&hold.to_be_bytes());
        octets[12..16].copy_from_slice(&now.as_wrapping_micros().to_be_bytes());
        octets[16..20].copy_from_slice(&self.octets.to_be_bytes());
        octets[20..].copy_from_slice(&self.marks.to_be_bytes());
        Some(octets)
    }
}

/// Whether a datagram of this kind wants an answer.
const fn wants_of(kind: u8) -> Wants {
    match kind {
        kind::DATA => Wants::Answer,
        _ => Wants::Nothing,
    }
}

/// The time between two path acks over a way back of this rate and round trip.
fn pause(rate: Option<Bitrate>, round_trip: Option<Duration>) -> Duration {
    let part = |of: u64| {
        let rate = rate.map(Bitrate::as_bits_per_second);
        let micros = rate.and_then(|rate| (ACK_BITS * of * 1_000_000).checked_div(rate));
        Duration::from_micros(micros.unwrap_or_default())
    };
    let twice_in_a_round_trip = round_trip.unwrap_or_default() / 2;
    EVERY
        .max(part(RATE_PART).min(twice_in_a_round_trip))
        .max(part(RATE_PART_MOST).min(SILENCE))
}

fn read_ack(words: &[u8]) -> Option<PathAck> {
    let (newest, rest) = words.split_first_chunk()?;
    let (hold, rest) = rest.split_first_chunk()?;
    let (clock, rest) = rest.split_first_chunk()?;
    let (octets, rest) = rest.split_first_chunk()?;
    Some(PathAck {
        newest: u64::from_be_bytes(*newest),
        hold: Duration::from_micros(u32::from_be_bytes(*hold).into()),
        clock: u32::from_be_bytes(*clock),
        octets: u32::from_be_bytes(*octets),
        marks: u16::from_be_bytes(*rest.first_chunk()?),
    })
}

impl Machine for BondedSplicer {
    type Event = FlowEvent;

    fn handle_datagram(&mut self, now: Instant, datagram: Datagram<'_>) {
        let Some(at) = self.place_of(datagram.path) else {
            self.splicer.handle_datagram(now, datagram);
            return;
        };
        let Some((octets, label)) = seal::open(datagram.octets) else {
            return;
        };
        let path = &mut self.peers[at.0][at.1];
        path.on_arrived(now, &datagram, label);
        let is_bonded = path.is_bonded;
        let wants = wants_of(label.kind);
        self.hear(now, at, wants);
        match label.kind {
            kind::DATA | kind::ANSWERS => {
                // What comes on a further path before this end has it is taken for the home's.
                let path = if is_bonded {
                    datagram.path
                } else {
                    self.peers[at.0][0].told.path
                };
                let content = Datagram {
                    path,
                    octets,
                    ..datagram
                };
                self.splicer.handle_frames(now, content);
            }
            kind::PROBE => self.say(now, at, kind::REPLY, octets, Wants::Nothing),
            kind::REPLY => {
                if let Some(sent) = octets.first_chunk() {
                    let sent = Instant::from_nanos(u64::from_be_bytes(*sent));
                    self.on_reply(now, at, now.saturating_since(sent));
                }
            }
            kind::PATH_ACK => self.on_path_ack(now, at.0, octets),
            _ => {}
        }
    }

    fn handle_deadline(&mut self, now: Instant) {
        self.run_timers(now);
        if self.splicer.next_deadline().is_some_and(|d| d.at <= now) {
            self.splicer.handle_deadline(now);
        }
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.run_timers(now);
        if let Some((path, octets)) = self.outbox.pop_front() {
            out.extend_from_slice(&octets);
            return Some(Transmit {
                path,
                len: octets.len(),
                kind: TransmitKind::Control,
                priority: Priority::default(),
                ecn: Ecn::NotCapable,
            });
        }
        let from = out.len();
        let transmit = self.splicer.poll_transmit(now, out)?;
        let Some((peer, place)) = self.place_of(transmit.path) else {
            return Some(transmit);
        };
        let (content, kind) = match transmit.kind {
            TransmitKind::Control => (SealedContent::Answers, kind::ANSWERS),
            TransmitKind::Source | TransmitKind::Repair | TransmitKind::Retransmission => {
                (SealedContent::Data, kind::DATA)
            }
        };
        let path = &mut self.peers[peer][place];
        let number = path.number();
        path.liveness.on_sent(now, wants_of(kind));
        let is_told_of = path.ways().out;
        seal::seal(from, out, SealLabel { kind, number });
        let len = transmit.len + SEAL_BYTES;
        if is_told_of {
            self.count(now, transmit.path, Sealed { number, content }, len);
        }
        Some(Transmit { len, ..transmit })
    }

    fn poll_event(&mut self) -> Option<FlowEvent> {
        self.splicer.poll_event()
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let own = self.own_deadline().filter(|_| self.is_in_use());
        Deadline::earlier(self.splicer.next_deadline(), own)
    }
}

#[cfg(test)]
mod tests;
