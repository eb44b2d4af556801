//! The rates of a recorded run over time.

use super::packet_rows::{PacketRow, packet_rows};
use super::{Columns, RecordingTables, direction_name, kind_name};
use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use core::time::Duration;
use fulmar_proto::machine::TransmitKind;
use fulmar_proto::units::Instant;
use fulmar_sim::measure::wire::WireLoss;
use fulmar_sim::scenario::AppDirection;
use std::collections::{BTreeMap, BTreeSet};

/// The most rows of a table.
const ROWS_MAX: u64 = 1_000_000;

/// What was sent in an interval is told apart by these.
const KINDS: [(TransmitKind, &str, &str); 4] = [
    (
        TransmitKind::Source,
        "source_bps",
        "data sent for the first time",
    ),
    (
        TransmitKind::Repair,
        "repair_bps",
        "parity and repair symbols",
    ),
    (
        TransmitKind::Retransmission,
        "retransmission_bps",
        "data sent again",
    ),
    (
        TransmitKind::Control,
        "control_bps",
        "acknowledgements and other control",
    ),
];

/// Octets of one interval on one direction of a hop.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    sent: [u64; KINDS.len()],
    arrived: u64,
    queue_packets: u64,
}

/// A direction of a hop: the hop, and whether it is the reverse direction.
type WayKey = (u64, bool);

fn way_of(row: &PacketRow<'_>) -> WayKey {
    let is_reverse = row.direction == direction_name(AppDirection::Reverse);
    (row.hop, is_reverse)
}

impl RecordingTables {
    /// The rates on each direction of each hop over time, a row for each interval of `every`: what the link took of each kind,
    /// with its framing, what arrived, and the longest queue that a packet met. Intervals count from the start of the run;
    /// those in which nothing happened have rows, too, up to the last packet.
    ///
    /// # Errors
    /// An interval is nothing, or there would be more than a million of them.
    pub fn rates(&self, every: Duration) -> Result<RecordBatch, ArrowError> {
        let nanos = every.as_nanos();
        let place = |at: Instant| {
            let since = at.saturating_since(Instant::START);
            u64::try_from(since.as_nanos() / nanos.max(1)).unwrap_or(u64::MAX)
        };
        let rows = || packet_rows(self).into_iter().flatten();
        let times = rows()
            .flat_map(|row| [Some(row.sent_at), row.arrived_at])
            .flatten();
        let last = times.max().map_or(0, place);
        let ways: BTreeSet<WayKey> = rows().map(|row| way_of(&row)).collect();
        let count = last.saturating_add(1).saturating_mul(ways.len() as u64);
        if nanos == 0 || count > ROWS_MAX {
            let problem = format!(
                "an interval of {every:?} makes more than {ROWS_MAX} rows; give a longer one"
            );
            return Err(ArrowError::InvalidArgumentError(problem));
        }
        let mut ways: BTreeMap<WayKey, BTreeMap<u64, Interval>> = BTreeMap::new();
        for row in rows() {
            let way = ways.entry(way_of(&row)).or_default();
            let sent = way.entry(place(row.sent_at)).or_default();
            let kind = KINDS
                .iter()
                .position(|(kind, ..)| kind_name(*kind) == row.kind);
            // A packet that the queue refused was never on the link.
            let kind = kind.filter(|_| row.lost != Some(WireLoss::Queue.name()));
            if let Some(octets) = kind.and_then(|kind| sent.sent.get_mut(kind)) {
                *octets += row.len.0;
            }
            sent.queue_packets = sent.queue_packets.max(row.queue_packets);
            if let Some(at) = row.arrived_at {
                way.entry(place(at)).or_default().arrived += row.len.0;
            }
        }
        let rows: Vec<(WayKey, u64, Interval)> = ways
            .iter()
            .flat_map(|(way, seen)| {
                let found = |place| seen.get(&place).copied().unwrap_or_default();
                (0..=last).map(move |place| (*way, place, found(place)))
            })
            .collect();
        table(&rows, every)
    }
}

fn table(rows: &[(WayKey, u64, Interval)], every: Duration) -> Result<RecordBatch, ArrowError> {
    let every_s = every.as_secs_f64();
    let rate = |octets: u64| Some(octets as f64 * 8.0 / every_s);
    let mut columns = Columns::default();
    let starts = rows
        .iter()
        .map(|(_, place, _)| Some(*place as f64 * every_s));
    columns.reals(("at_s", "s", "the start of the interval"), starts);
    let hops = rows.iter().map(|((hop, _), ..)| Some(*hop));
    columns.counts(("hop", "1", "the hop, from 0"), hops);
    let directions = rows.iter().map(|((_, is_reverse), ..)| {
        let direction = if *is_reverse {
            AppDirection::Reverse
        } else {
            AppDirection::Forward
        };
        Some(direction_name(direction))
    });
    columns.texts(("direction", "forward is away from the source"), directions);
    for (kind, (_, name, about)) in KINDS.iter().enumerate() {
        let sent = rows.iter().map(|(.., interval)| rate(interval.sent[kind]));
        columns.reals((name, "bit/s", about), sent);
    }
    let arrived = rows.iter().map(|(.., interval)| rate(interval.arrived));
    columns.reals(
        ("arrived_bps", "bit/s", "what arrived, damaged or not"),
        arrived,
    );
    let queues = rows
        .iter()
        .map(|(.., interval)| Some(interval.queue_packets));
    let about = "the most packets in the link's queue that one met";
    columns.counts(("queue_packets", "1", about), queues);
    columns.batch()
}
