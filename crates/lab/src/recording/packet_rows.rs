//! The packets of a recording's table, row by row.

use super::RecordingTables;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use core::time::Duration;
use fulmar_proto::units::{ByteCount, Instant};

/// A row of the table of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketRow<'a> {
    pub(crate) sent_at: Instant,
    pub(crate) arrived_at: Option<Instant>,
    pub(crate) hop: u64,
    pub(crate) direction: &'a str,
    pub(crate) len: ByteCount,
    pub(crate) kind: &'a str,
    /// The cause of its loss on the hop, if it was lost.
    pub(crate) lost: Option<&'a str>,
    pub(crate) inverted_bits: u64,
    pub(crate) queue_packets: u64,
}

fn instant(seconds: f64) -> Option<Instant> {
    let since = Duration::try_from_secs_f64(seconds).ok()?;
    Some(Instant::START + since)
}

/// The rows of the table of packets; none if it is another table.
pub(crate) fn packet_rows(
    tables: &RecordingTables,
) -> Option<impl Iterator<Item = PacketRow<'_>> + '_> {
    let column = |name| tables.packets.column_by_name(name);
    let reals = |name| Some(column(name)?.as_primitive_opt::<Float64Type>()?.iter());
    let counts = |name| Some(column(name)?.as_primitive_opt::<UInt64Type>()?.iter());
    let texts = |name| Some(column(name)?.as_string_opt::<i32>()?.iter());
    let times = reals("sent_s")?.zip(reals("arrived_s")?);
    let places = counts("hop")?.zip(texts("direction")?);
    let packets = counts("bytes")?.zip(texts("kind")?.zip(texts("lost")?));
    let marks = counts("inverted_bits")?.zip(counts("queue_packets")?);
    let rows = times.zip(places).zip(packets).zip(marks);
    Some(rows.filter_map(
        |((((sent, arrived), (hop, direction)), (len, (kind, lost))), (bits, queue))| {
            Some(PacketRow {
                sent_at: instant(sent?)?,
                arrived_at: arrived.and_then(instant),
                hop: hop?,
                direction: direction?,
                len: ByteCount(len?),
                kind: kind?,
                lost,
                inverted_bits: bits?,
                queue_packets: queue?,
            })
        },
    ))
}
