//! A gateway's report to its peer on what became of the peer's datagrams: for UDP nothing else tells
//! the sender.
//!
//! A report has totals since the session began, so that a lost report costs time and no figures.
//! The layer below carries the octets; `docs/protocol/splice.md` specifies them.

use super::class::ClassId;
use super::counters::SplicerCounters;
use super::told_losses::{LOSSES_ROW, ToldLosses};
use crate::machine::PathId;
use crate::transport::aerotp::Counters;
use std::collections::BTreeMap;

const VERSION: u8 = 1;
/// Octets before the classes.
const HEAD_BYTES: usize = 17;
/// Octets of a class.
const ROW_BYTES: usize = 25;
/// Classes in one report, whatever its room: further classes have their turn in the next report.
const ROWS_MAX: usize = 40;

/// Totals of the messages that one side sent, as the other side counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageTotals {
    /// Messages whose numbers have passed, including lost ones.
    pub expected: u64,
    /// Messages delivered to the host.
    pub delivered: u64,
    /// Octets of the delivered messages.
    pub octets: u64,
}

impl MessageTotals {
    /// Adds the increase `more`.
    pub(super) fn add(&mut self, more: Self) {
        self.expected = self.expected.saturating_add(more.expected);
        self.delivered = self.delivered.saturating_add(more.delivered);
        self.octets = self.octets.saturating_add(more.octets);
    }

    /// The increase since `earlier`; 0 for a total that is less than it was.
    fn since(self, earlier: Self) -> Self {
        Self {
            expected: self.expected.saturating_sub(earlier.expected),
            delivered: self.delivered.saturating_sub(earlier.delivered),
            octets: self.octets.saturating_sub(earlier.octets),
        }
    }

    fn most(self, other: Self) -> Self {
        Self {
            expected: self.expected.max(other.expected),
            delivered: self.delivered.max(other.delivered),
            octets: self.octets.max(other.octets),
        }
    }
}

/// TPDUs from here that a peer repaired or gave up, as the peer reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepairTotals {
    /// TPDUs that parity repaired.
    pub recovered_fec: u64,
    /// TPDUs that were given up.
    pub residual: u64,
}

impl RepairTotals {
    fn of(counters: &Counters) -> Self {
        Self {
            recovered_fec: counters
                .recovered_fec_words
                .saturating_add(counters.recovered_fec_block),
            residual: counters
                .residual_lost
                .saturating_add(counters.residual_damaged),
        }
    }

    const fn since(self, earlier: Self) -> Self {
        Self {
            recovered_fec: self.recovered_fec.saturating_sub(earlier.recovered_fec),
            residual: self.residual.saturating_sub(earlier.residual),
        }
    }

    const fn and(self, other: Self) -> Self {
        Self {
            recovered_fec: self.recovered_fec.saturating_add(other.recovered_fec),
            residual: self.residual.saturating_add(other.residual),
        }
    }

    fn most(self, other: Self) -> Self {
        Self {
            recovered_fec: self.recovered_fec.max(other.recovered_fec),
            residual: self.residual.max(other.residual),
        }
    }
}

/// The body of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpliceReport {
    /// The peer's TPDUs.
    pub repair: RepairTotals,
    /// The peer's messages, by class.
    pub classes: BTreeMap<ClassId, MessageTotals>,
    /// The losses of streams to the peer, as this side finds them.
    pub losses: Option<ToldLosses>,
}

impl SpliceReport {
    /// The octets of the report.
    pub fn encode(&self) -> Vec<u8> {
        let rows = self.classes.len() + usize::from(self.losses.is_some());
        let mut out = Vec::with_capacity(HEAD_BYTES + rows * ROW_BYTES);
        out.push(VERSION);
        out.extend_from_slice(&self.repair.recovered_fec.to_be_bytes());
        out.extend_from_slice(&self.repair.residual.to_be_bytes());
        for (class, totals) in &self.classes {
            out.push(class.0);
            for number in [totals.expected, totals.delivered, totals.octets] {
                out.extend_from_slice(&number.to_be_bytes());
            }
        }
        if let Some(losses) = &self.losses {
            losses.encode(&mut out);
        }
        out
    }

    /// Reads a report; `None` if it is of another version, or ends in the middle.
    pub fn decode(octets: &[u8]) -> Option<Self> {
        let (&[version], rest) = octets.split_first_chunk()?;
        if version != VERSION {
            return None;
        }
        let mut rest = rest;
        let repair = RepairTotals {
            recovered_fec: number(&mut rest)?,
            residual: number(&mut rest)?,
        };
        let mut classes = BTreeMap::new();
        let mut losses = None;
        while let Some((&[class], numbers)) = rest.split_first_chunk() {
            rest = numbers;
            if class == LOSSES_ROW {
                losses = Some(ToldLosses::decode(&mut rest)?);
                continue;
            }
            let totals = MessageTotals {
                expected: number(&mut rest)?,
                delivered: number(&mut rest)?,
                octets: number(&mut rest)?,
            };
            classes.insert(ClassId(class), totals);
        }
        Some(Self {
            repair,
            classes,
            losses,
        })
    }
}

fn number(octets: &mut &[u8]) -> Option<u64> {
    let (number, rest) = octets.split_first_chunk()?;
    *octets = rest;
    Some(u64::from_be_bytes(*number))
}

/// The reports to one peer, and from it.
#[derive(Clone, Debug, Default)]
struct WithPeer {
    /// Messages that came from the peer.
    received: BTreeMap<ClassId, MessageTotals>,
    /// The last class of the last report to the peer: the classes behind it have their turn next.
    said: Option<ClassId>,
    /// Repairs before the peer restarted.
    repair_before: RepairTotals,
    /// The peer's last report.
    told: SpliceReport,
    /// Repairs that the peer reported before it restarted.
    told_before: RepairTotals,
    /// The losses to tell.
    losses: Option<ToldLosses>,
}

/// Reports to and from all peers.
#[derive(Clone, Debug, Default)]
pub(super) struct Reports(BTreeMap<PathId, WithPeer>);

impl Reports {
    /// Adds messages of `peer` that came, or were delivered to the host.
    pub(super) fn on_received(&mut self, peer: PathId, class: ClassId, more: MessageTotals) {
        if more != MessageTotals::default() {
            let shared = self.0.entry(peer).or_default();
            shared.received.entry(class).or_default().add(more);
        }
    }

    /// A report to `peer`, for which AeroTP counted `counters`, of at most `room` octets; `None` if the room is too
    /// small for any report. Classes that do not fit have their turn in the next.
    pub(super) fn report(
        &mut self,
        peer: PathId,
        counters: &Counters,
        room: usize,
    ) -> Option<SpliceReport> {
        let rows = room.checked_sub(HEAD_BYTES)? / ROW_BYTES;
        let losses = self.0.get(&peer).and_then(|shared| shared.losses);
        // Classes come first: losses are told again.
        let losses = losses.filter(|_| rows > 1);
        let rows = (rows - usize::from(losses.is_some())).min(ROWS_MAX);
        let totals = RepairTotals::of(counters);
        let Some(shared) = self.0.get_mut(&peer) else {
            return Some(SpliceReport {
                repair: totals,
                ..SpliceReport::default()
            });
        };
        let is_behind = |class: &ClassId| shared.said.is_none_or(|said| *class > said);
        let (behind, before): (Vec<_>, Vec<_>) = shared
            .received
            .iter()
            .partition(|(class, _)| is_behind(class));
        let in_turn = behind.into_iter().chain(before).take(rows);
        let in_turn: Vec<(ClassId, MessageTotals)> =
            in_turn.map(|(class, totals)| (*class, *totals)).collect();
        shared.said = in_turn.last().map(|(class, _)| *class);
        Some(SpliceReport {
            repair: totals.since(shared.repair_before),
            classes: in_turn.into_iter().collect(),
            losses,
        })
    }

    /// Takes a report of `peer` and adds the increases to `counters`. An older report, which comes
    /// out of order, brings none. Classes of which we never had a flow are left out.
    pub(super) fn on_report(
        &mut self,
        peer: PathId,
        report: &SpliceReport,
        counters: &mut SplicerCounters,
    ) {
        let shared = self.0.entry(peer).or_default();
        shared.told.repair = shared.told.repair.most(report.repair);
        let known = shared.told.losses.map_or(0, |losses| losses.sent);
        if let Some(losses) = report.losses.filter(|losses| losses.sent >= known) {
            shared.told.losses = Some(losses);
        }
        for (class, totals) in &report.classes {
            let Some(counted) = counters.classes.get_mut(class) else {
                continue;
            };
            let told = shared.told.classes.entry(*class).or_default();
            let more = totals.since(*told);
            *told = told.most(*totals);
            counted.messages_expected = counted.messages_expected.saturating_add(more.expected);
            counted.messages_delivered = counted.messages_delivered.saturating_add(more.delivered);
            counted.octets_delivered = counted.octets_delivered.saturating_add(more.octets);
        }
    }

    /// TPDUs from here that `peer` repaired or gave up, as it reports them.
    pub(super) fn told(&self, peer: PathId) -> RepairTotals {
        let shared = self.0.get(&peer);
        shared.map_or_else(RepairTotals::default, |shared| {
            shared.told_before.and(shared.told.repair)
        })
    }

    /// Tells `peer` of these losses from now on.
    pub(super) fn tell_losses(&mut self, peer: PathId, losses: ToldLosses) {
        self.0.entry(peer).or_default().losses = Some(losses);
    }

    /// The losses of streams from `peer`, as it reports them.
    pub(super) fn told_losses(&self, peer: PathId) -> Option<ToldLosses> {
        self.0.get(&peer)?.told.losses
    }

    /// Begins again for `peer`, which has restarted: both ends count from 0.
    pub(super) fn begin_again(&mut self, peer: PathId, counters: &Counters) {
        let told_before = self.told(peer);
        let fresh = WithPeer {
            repair_before: RepairTotals::of(counters),
            told_before,
            ..WithPeer::default()
        };
        self.0.insert(peer, fresh);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const PEER: PathId = PathId(3);
    const CLASS: ClassId = ClassId(2);
    /// The room in a packet without parity.
    const ROOM: usize = 1_100;

    const fn totals(expected: u64, delivered: u64, octets: u64) -> MessageTotals {
        MessageTotals {
            expected,
            delivered,
            octets,
        }
    }

    fn counters() -> SplicerCounters {
        let mut counters = SplicerCounters::default();
        counters.classes.entry(CLASS).or_default().messages_accepted = 10;
        counters
    }

    #[test]
    fn a_report_is_these_octets_and_reads_back() {
        let report = SpliceReport {
            repair: RepairTotals {
                recovered_fec: 7,
                residual: 1,
            },
            classes: BTreeMap::from([(CLASS, totals(258, 256, 1_000))]),
            losses: Some(ToldLosses {
                sent: 5,
                lost: 1,
                ..ToldLosses::default()
            }),
        };
        let golden = [
            &[1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 1][..],
            &[2, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 1, 0],
            &[0, 0, 0, 0, 0, 0, 3, 232],
            &[255, 0, 0, 0, 5, 0, 0, 0, 1],
            &[0; 16],
        ]
        .concat();
        assert_eq!(report.encode(), golden);
        assert_eq!(SpliceReport::decode(&golden), Some(report));
        for len in (0..golden.len())
            .filter(|len| (len - HEAD_BYTES.min(*len)) % ROW_BYTES != 0 || *len < HEAD_BYTES)
        {
            assert_eq!(SpliceReport::decode(&golden[..len]), None, "{len}");
        }
        let other = [&[2], &golden[1..]].concat();
        assert_eq!(SpliceReport::decode(&other), None, "another version");
    }

    proptest! {
        #[test]
        fn no_report_is_longer_than_its_room_and_every_class_has_its_turn(
            ids in proptest::collection::btree_set(0..LOSSES_ROW, 0..=255),
            room in 0_usize..1_300,
        ) {
            let mut reports = Reports::default();
            for id in &ids {
                reports.on_received(PEER, ClassId(*id), totals(1, 1, 1));
            }
            reports.tell_losses(PEER, ToldLosses::default());
            let rows = room.saturating_sub(HEAD_BYTES) / ROW_BYTES;
            let rows = if rows > 1 { rows - 1 } else { rows };
            let turns = if rows == 0 { 1 } else { ids.len().div_ceil(rows.min(ROWS_MAX)) };
            let mut told = BTreeSet::new();
            for _ in 0..turns {
                let Some(report) = reports.report(PEER, &Counters::default(), room) else {
                    prop_assert!(room < HEAD_BYTES);
                    continue;
                };
                let octets = report.encode();
                prop_assert!(octets.len() <= room);
                let read = SpliceReport::decode(&octets);
                prop_assert_eq!(read.as_ref(), Some(&report));
                told.extend(report.classes.keys().map(|class| class.0));
            }
            prop_assert!(rows == 0 || told == ids);
        }
    }

    #[test]
    fn what_a_peer_received_is_counted_once_here_whatever_is_lost_repeated_or_late() {
        let (mut ours, mut theirs) = (Reports::default(), Reports::default());
        let mut counters = counters();
        let mut sent = Vec::new();
        for _ in 0..10 {
            theirs.on_received(PEER, CLASS, totals(10, 8, 800));
            sent.push(theirs.report(PEER, &Counters::default(), ROOM).unwrap());
        }
        for n in [0, 3, 3, 2, 8, 5] {
            ours.on_report(PEER, &sent[n], &mut counters);
        }
        let class = counters.classes[&CLASS];
        assert_eq!(class.messages_expected, 90);
        assert_eq!(class.messages_delivered, 72);
        assert_eq!(class.octets_delivered, 7_200);
    }

    #[test]
    fn losses_are_told_and_an_older_report_takes_nothing_back() {
        let (mut ours, mut theirs) = (Reports::default(), Reports::default());
        let mut counters = counters();
        let mut sent = Vec::new();
        for packets in [100, 200] {
            let losses = ToldLosses {
                sent: packets,
                lost: packets / 10,
                ..ToldLosses::default()
            };
            theirs.tell_losses(PEER, losses);
            sent.push(theirs.report(PEER, &Counters::default(), ROOM).unwrap());
        }
        assert_eq!(ours.told_losses(PEER), None);
        for (n, lost) in [(0, 10), (1, 20), (0, 20)] {
            ours.on_report(PEER, &sent[n], &mut counters);
            assert_eq!(ours.told_losses(PEER).map(|losses| losses.lost), Some(lost));
        }
        ours.begin_again(PEER, &Counters::default());
        assert_eq!(ours.told_losses(PEER), None);
    }

    #[test]
    fn a_peer_that_started_again_counts_from_nothing_and_sums_go_on() {
        let mut ours = Reports::default();
        let mut counters = counters();
        let report = |octets, residual| SpliceReport {
            repair: RepairTotals {
                recovered_fec: 0,
                residual,
            },
            classes: BTreeMap::from([(CLASS, totals(1, 1, octets))]),
            losses: None,
        };
        ours.on_report(PEER, &report(1_000, 4), &mut counters);
        let before = Counters {
            residual_lost: 9,
            ..Counters::default()
        };
        ours.on_received(PEER, CLASS, totals(5, 5, 5));
        ours.begin_again(PEER, &before);
        let told = ours.report(PEER, &before, ROOM).unwrap();
        assert_eq!(told, SpliceReport::default(), "nothing is known of it yet");
        ours.on_report(PEER, &report(10, 1), &mut counters);
        assert_eq!(counters.classes[&CLASS].octets_delivered, 1_010);
        assert_eq!(ours.told(PEER).residual, 5);
    }

    #[test]
    fn classes_that_we_never_used_are_not_made_by_a_report() {
        let mut counters = counters();
        let report = SpliceReport {
            classes: BTreeMap::from([(ClassId(9), totals(1, 1, 1))]),
            ..SpliceReport::default()
        };
        Reports::default().on_report(PEER, &report, &mut counters);
        assert_eq!(counters.classes.len(), 1);
    }
}
