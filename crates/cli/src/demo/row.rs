//! One line of the result.

use super::plan::{Condition, DemoCarrier, SEED};
use super::timeline::Timeline;
use crate::output;
use crate::table::{HEAVIEST, Listing};
use anyhow::{Context, Result};
use fulmar_net::emulator::{DirectionReport, EmulatorReport};
use fulmar_net::transfer::Coverage;
use fulmar_proto::units::{Bitrate, ByteCount};
use serde::Serialize;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The result of one carrier on one link. Delays are `null` if nothing arrived.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) mode: &'static str,
    pub(crate) link: &'static str,
    pub(crate) goodput_bps: u64,
    pub(crate) efficiency: f64,
    pub(crate) delay_mean_s: Option<f64>,
    pub(crate) delay_p99_s: Option<f64>,
    pub(crate) overhead_bytes: u64,
    pub(crate) residual_loss: f64,
    pub(crate) verified: bool,
    pub(crate) complete_expected: bool,
    /// Whether the transfer was ended before it was complete, since it took too long.
    pub(crate) cut_off: bool,
    pub(crate) parity: String,
    pub(crate) size_bytes: u64,
    pub(crate) delivered_bytes: u64,
    pub(crate) wire_bytes: u64,
    pub(crate) wire_lost_packets: u64,
    pub(crate) wire_damaged_packets: u64,
    pub(crate) span_s: f64,
    pub(crate) capacity_bps: u64,
    pub(crate) seed: u64,
    pub(crate) version: &'static str,
    pub(crate) error: Option<String>,
}

/// The results that a carrier leaves when it is done.
#[derive(Debug)]
pub(crate) struct Moved {
    /// The link's counters.
    pub(crate) link: EmulatorReport,
    /// The received file, if anything was received.
    pub(crate) copy: Option<PathBuf>,
    /// Whether time was up before the transfer was complete.
    pub(crate) is_cut_off: bool,
    /// The reason why the transfer ended early.
    pub(crate) error: Option<String>,
}

impl Row {
    /// Compares the copy with `file`, and puts the figures together.
    ///
    /// # Errors
    /// A file cannot be read.
    pub(crate) fn new(
        carrier: DemoCarrier,
        condition: Condition,
        file: &Path,
        size: u64,
        timeline: &Timeline,
        moved: Moved,
    ) -> Result<Self> {
        let Moved {
            link,
            copy,
            is_cut_off,
            error,
        } = moved;
        let verified = match copy {
            Some(copy) => agrees(file, &copy, &timeline.coverage())?,
            None => false,
        };
        let times = timeline.times();
        let delivered = timeline.coverage().covered();
        let capacity = condition.capacity().as_bits_per_second();
        let goodput = Bitrate::of(ByteCount(delivered), times.span).as_bits_per_second();
        let wire = link.up.transmitted_bytes + link.down.transmitted_bytes;
        let both = |count: fn(&DirectionReport) -> u64| count(&link.up) + count(&link.down);
        Ok(Self {
            mode: carrier.name(),
            link: condition.name(),
            goodput_bps: goodput,
            efficiency: output::share(goodput, capacity),
            delay_mean_s: times.delay_mean.map(|delay| delay.as_secs_f64()),
            delay_p99_s: times.delay_p99.map(|delay| delay.as_secs_f64()),
            overhead_bytes: wire.saturating_sub(delivered),
            residual_loss: output::share(size.saturating_sub(delivered), size),
            verified,
            complete_expected: carrier.is_complete(),
            cut_off: is_cut_off,
            parity: carrier.parity(),
            size_bytes: size,
            delivered_bytes: delivered,
            wire_bytes: wire,
            wire_lost_packets: both(|way| way.dropped_packets.loss + way.dropped_packets.queue),
            wire_damaged_packets: both(|way| {
                let dropped = way.dropped_packets;
                way.damaged_packets + dropped.header_damage + dropped.payload_damage
            }),
            span_s: times.span.as_secs_f64(),
            capacity_bps: capacity,
            seed: SEED,
            version: env!("CARGO_PKG_VERSION"),
            error,
        })
    }

    /// Whether the carrier kept its promise.
    pub(crate) fn is_good(&self) -> bool {
        let may_lack = !self.complete_expected || self.cut_off;
        self.verified && (may_lack || self.delivered_bytes == self.size_bytes)
    }
}

/// Whether the octets of `copy` in `coverage` are those of `original`.
fn agrees(original: &Path, copy: &Path, coverage: &Coverage) -> Result<bool> {
    let open = |path: &Path| {
        File::open(path)
            .with_context(|| format!("reading {}", path.display()))
            .map(BufReader::new)
    };
    let (mut left, mut right) = (open(original)?, open(copy)?);
    let (mut wanted, mut got) = (Vec::new(), Vec::new());
    for range in coverage.ranges() {
        for (file, octets) in [(&mut left, &mut wanted), (&mut right, &mut got)] {
            octets.clear();
            file.seek(SeekFrom::Start(range.start))?;
            file.take(range.end - range.start).read_to_end(octets)?;
        }
        if wanted != got || wanted.len() as u64 != range.end - range.start {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The table for people.
pub(crate) fn table(rows: &[Row]) -> Listing {
    // The columns that say whether everything came, and how fast, are left out last.
    const WEIGHTS: [u8; 10] = [HEAVIEST, HEAVIEST, 30, 100, 90, 70, 60, 50, 95, HEAVIEST];
    let headings = [
        "link",
        "mode",
        "parity",
        "goodput Mbit/s",
        "of capacity",
        "delay mean ms",
        "delay p99 ms",
        "overhead bytes",
        "residual loss",
        "verified",
    ];
    let mut table = Listing::new(headings, 3).plain().weigh(WEIGHTS);
    let millis = |seconds: Option<f64>| {
        seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{:.1}", seconds * 1e3))
    };
    for row in rows {
        table.row([
            row.link.to_owned(),
            row.mode.to_owned(),
            row.parity.clone(),
            format!("{:.3}", row.goodput_bps as f64 / 1e6),
            format!("{:.3}", row.efficiency),
            millis(row.delay_mean_s),
            millis(row.delay_p99_s),
            row.overhead_bytes.to_string(),
            format!("{:.3} %", row.residual_loss * 100.0),
            match (row.verified, row.delivered_bytes == row.size_bytes) {
                (true, true) => "yes",
                (true, false) if row.cut_off => "cut off",
                (true, false) => "rest intact",
                (false, _) => "NO",
            }
            .to_owned(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighty_columns_have_room_for_what_the_help_explains() {
        let row = Row {
            mode: "quasi-reliable",
            link: "lossy",
            goodput_bps: 4_123_000,
            efficiency: 0.941,
            delay_mean_s: Some(0.123_4),
            delay_p99_s: Some(0.567_8),
            overhead_bytes: 1_234_567,
            residual_loss: 0.134_56,
            verified: true,
            complete_expected: false,
            cut_off: false,
            parity: "16 words".to_owned(),
            size_bytes: 4_000_000,
            delivered_bytes: 3_400_000,
            wire_bytes: 5_000_000,
            wire_lost_packets: 60,
            wire_damaged_packets: 300,
            span_s: 7.5,
            capacity_bps: 4_380_000,
            seed: SEED,
            version: env!("CARGO_PKG_VERSION"),
            error: None,
        };
        let text = table(&[row]).fitted(Some(80));
        for said in [
            "goodput", "residual", "13.456 %", "verified", "intact", "of", "0.941",
        ] {
            assert!(text.contains(said), "{said}:\n{text}");
        }
    }
}
