//! The receiver's feedback on units.

use crate::wire::tcp::{SackBlock, TcpSeq};

/// Blocks reported in one feedback, at most: their number has four bits.
pub const REPORTS_MAX: usize = 15;
/// Runs reported in one feedback, at most.
pub const RUNS_MAX: usize = 4;

/// The state of one block that is not wholly below the acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LtTcpBlockReport {
    /// The block, modulo 2^16.
    pub block: u16,
    /// Units received, up to 255.
    pub received: u8,
    /// Units, any of the block's, that are still needed; 0 when the block is complete.
    pub needed: u8,
    /// Units missing below the highest index that arrived, up to 255.
    pub lost: u8,
}

/// The receiver's feedback. Counters are cumulative, so that lost feedback loses nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LtTcpFeedback {
    /// The ordinal behind the newest that arrived, modulo 2^16.
    pub arrived_end: u16,
    /// The number of transmissions that arrived in all, modulo 2^16.
    pub arrivals: u16,
    /// The loss estimate in units of 1/65535.
    pub loss: u16,
    /// Its mean deviation in the same units.
    pub deviation: u16,
    /// Blocks above the acknowledgement of which units arrived, oldest first. If there are fewer
    /// than [`REPORTS_MAX`], no such block is left out.
    pub reports: Vec<LtTcpBlockReport>,
    /// Octets beyond the first hole, lowest first: SACK (RFC 2018) for octets that are sent
    /// uncoded.
    pub runs: Vec<SackBlock>,
}

const FIXED: usize = 9;
const REPORT: usize = 5;
const RUN: usize = 8;

impl LtTcpFeedback {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let reports = self.reports.get(..REPORTS_MAX).unwrap_or(&self.reports);
        let runs = self.runs.get(..RUNS_MAX).unwrap_or(&self.runs);
        // Both are below 16.
        let counts = (reports.len() << 4) | runs.len();
        out.push(u8::try_from(counts).unwrap_or(0));
        for word in [self.arrived_end, self.arrivals, self.loss, self.deviation] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        for report in reports {
            out.extend_from_slice(&report.block.to_be_bytes());
            out.extend_from_slice(&[report.received, report.needed, report.lost]);
        }
        for run in runs {
            out.extend_from_slice(&run.start.0.to_be_bytes());
            out.extend_from_slice(&run.end.0.to_be_bytes());
        }
    }

    /// Reads the octets behind the extension's kind; none may follow.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        let (head, rest) = body.split_first_chunk::<FIXED>()?;
        let [counts, e0, e1, a0, a1, l0, l1, d0, d1] = *head;
        let (reports, runs) = (usize::from(counts >> 4), usize::from(counts & 15));
        if runs > RUNS_MAX || rest.len() != reports * REPORT + runs * RUN {
            return None;
        }
        let (reports, runs) = rest.split_at_checked(reports * REPORT)?;
        let (reports, _) = reports.as_chunks::<REPORT>();
        let (runs, _) = runs.as_chunks::<RUN>();
        Some(Self {
            arrived_end: u16::from_be_bytes([e0, e1]),
            arrivals: u16::from_be_bytes([a0, a1]),
            loss: u16::from_be_bytes([l0, l1]),
            deviation: u16::from_be_bytes([d0, d1]),
            reports: reports.iter().copied().map(report).collect(),
            runs: runs.iter().copied().map(run).collect(),
        })
    }
}

const fn report(octets: [u8; REPORT]) -> LtTcpBlockReport {
    let [high, low, received, needed, lost] = octets;
    LtTcpBlockReport {
        block: u16::from_be_bytes([high, low]),
        received,
        needed,
        lost,
    }
}

const fn run(octets: [u8; RUN]) -> SackBlock {
    let [s0, s1, s2, s3, e0, e1, e2, e3] = octets;
    SackBlock {
        start: TcpSeq(u32::from_be_bytes([s0, s1, s2, s3])),
        end: TcpSeq(u32::from_be_bytes([e0, e1, e2, e3])),
    }
}
