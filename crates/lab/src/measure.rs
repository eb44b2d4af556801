//! The measures of a run as columns: name, type, unit and meaning of each.
//!
//! The names are those of the records (docs/guide/simulator.md), with dots for the nesting. A test holds the
//! list against a record, so that no measure is without a column.

use arrow_schema::{DataType, Field};
use std::collections::HashMap;

/// One measure of a run.
#[derive(Clone, Copy, Debug)]
pub struct MeasureColumn {
    /// The flat name, as in the records.
    pub name: &'static str,
    /// The type of its values.
    pub kind: MeasureKind,
    /// The unit of its values.
    pub unit: MeasureUnit,
    /// The meaning, in a line.
    pub about: &'static str,
}

/// The type of a measure's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureKind {
    /// True or false.
    Truth,
    /// A count.
    Count,
    /// A difference of counts.
    Difference,
    /// A real number, absent where it has no meaning.
    Real,
}

/// The unit of a measure's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureUnit {
    /// A number of things, or none.
    One,
    /// Seconds.
    Second,
    /// Bits per second.
    BitPerSecond,
    /// Octets.
    Octet,
    /// A share of a whole, 0 to 1 and, of a bound, beyond.
    Share,
}

impl MeasureUnit {
    /// The unit as the metadata of a column have it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "1",
            Self::Second => "s",
            Self::BitPerSecond => "bit/s",
            Self::Octet => "octet",
            Self::Share => "share",
        }
    }
}

use MeasureKind::{Count, Difference, Real, Truth};
use MeasureUnit::{BitPerSecond, Octet, One, Second, Share};

/// Every measure, in the order of the records.
pub const MEASURES: [MeasureColumn; 71] = [
    of(
        "completed",
        Truth,
        One,
        "every octet of every flow was delivered unaltered",
    ),
    of(
        "duration_s",
        Real,
        Second,
        "the time at which the run ended",
    ),
    of(
        "elapsed_s",
        Real,
        Second,
        "from the start of the first measured flow to the last octet delivered",
    ),
    of(
        "offered_bytes",
        Count,
        Octet,
        "what the measured flows set out to send",
    ),
    of("delivered_bytes", Count, Octet, "delivered unaltered"),
    of("corrupt_bytes", Count, Octet, "delivered and wrong"),
    of(
        "goodput_bps",
        Real,
        BitPerSecond,
        "8 x delivered / (last delivery - first submission)",
    ),
    of("delay_mean_s", Real, Second, "mean delay of pieces"),
    of("delay_p50_s", Real, Second, "median delay of pieces"),
    of(
        "delay_p99_s",
        Real,
        Second,
        "99th percentile of the delay of pieces",
    ),
    of(
        "first_arrival_s",
        Real,
        Second,
        "set-up delay: from the start of a flow to its first data at the receiver",
    ),
    of(
        "first_delivery_s",
        Real,
        Second,
        "from the start of a flow to its first delivery",
    ),
    of(
        "last_delivery_s",
        Real,
        Second,
        "from the start of a flow to its last delivery",
    ),
    of(
        "repeated_pieces",
        Count,
        One,
        "datagrams delivered a second time",
    ),
    of("in_time", Real, Share, "pieces that came by their deadline"),
    of("late", Real, Share, "pieces that came after their deadline"),
    of(
        "lost",
        Real,
        Share,
        "pieces with a deadline that did not come",
    ),
    of(
        "overhead_bytes",
        Difference,
        Octet,
        "on the wire, minus delivered octets times hops",
    ),
    of(
        "sent_per_byte",
        Real,
        One,
        "octets on the wire for each octet that was written",
    ),
    of(
        "wire_bytes.source",
        Count,
        Octet,
        "on the wire: first transmissions",
    ),
    of(
        "wire_bytes.repair",
        Count,
        Octet,
        "on the wire: repair symbols and parity",
    ),
    of(
        "wire_bytes.retransmission",
        Count,
        Octet,
        "on the wire: sent again",
    ),
    of(
        "wire_bytes.control",
        Count,
        Octet,
        "on the wire: acknowledgements and other control",
    ),
    of("wire_packets", Count, One, "packets on the wire"),
    of(
        "wire_loss.loss",
        Count,
        One,
        "packets lost by the channel's loss",
    ),
    of("wire_loss.outage", Count, One, "packets lost in outages"),
    of(
        "wire_loss.queue",
        Count,
        One,
        "packets that a queue dropped",
    ),
    of(
        "wire_loss.frame_check",
        Count,
        One,
        "packets dropped by a frame check",
    ),
    of(
        "wire_loss.network_header",
        Count,
        One,
        "packets dropped for a damaged network header",
    ),
    of(
        "wire_loss.address",
        Count,
        One,
        "packets dropped for a damaged address",
    ),
    of(
        "wire_damaged",
        Count,
        One,
        "packets that went on with inverted bits",
    ),
    of(
        "recovered.fec_words",
        Count,
        One,
        "TPDUs put right by parity words",
    ),
    of(
        "recovered.fec_block",
        Count,
        One,
        "TPDUs put right by repair symbols",
    ),
    of(
        "recovered.arq_first",
        Count,
        One,
        "TPDUs put right by the first repetition",
    ),
    of(
        "recovered.arq_second",
        Count,
        One,
        "TPDUs put right by the second repetition",
    ),
    of(
        "recovered.arq_later",
        Count,
        One,
        "TPDUs put right by a later repetition",
    ),
    of(
        "adaptation.switched",
        Count,
        One,
        "choices of another length or strength",
    ),
    of(
        "adaptation.payload_mean_bytes",
        Real,
        Octet,
        "mean payload of a TPDU sent for the first time",
    ),
    of(
        "adaptation.fec_words_mean",
        Real,
        One,
        "mean parity words of a TPDU sent for the first time",
    ),
    of(
        "adaptation.expected_ber",
        Real,
        Share,
        "the bit error rate that TPDUs were expected to meet",
    ),
    of("timeouts", Count, One, "retransmission timeouts"),
    of(
        "timeout_repairs",
        Count,
        One,
        "retransmission timeouts that began a repair",
    ),
    of("gave_up", Truth, One, "a transport gave up a flow"),
    of(
        "residual_loss.lost",
        Count,
        One,
        "pieces of which nothing arrived",
    ),
    of(
        "residual_loss.damaged",
        Count,
        One,
        "pieces that arrived damaged beyond use",
    ),
    of(
        "residual_loss.unfinished",
        Count,
        One,
        "pieces still missing when the run ended",
    ),
    of(
        "shares.jain",
        Real,
        Share,
        "Jain's index of the flows' goodputs",
    ),
    of("efficiency", Real, Share, "goodput over capacity"),
    of(
        "efficiency_arq",
        Real,
        Share,
        "goodput over the bound of schemes that drop damaged packets",
    ),
    of(
        "capacity_bps",
        Real,
        BitPerSecond,
        "the capacity of the way",
    ),
    of(
        "arq_bound_bps",
        Real,
        BitPerSecond,
        "the bound of schemes that drop damaged packets",
    ),
    of(
        "link.latency_mean_s",
        Real,
        Second,
        "link layers: mean time to the far end",
    ),
    of(
        "link.latency_p99_s",
        Real,
        Second,
        "link layers: 99th percentile of that time",
    ),
    of(
        "link.latency_max_s",
        Real,
        Second,
        "link layers: longest of those times",
    ),
    of(
        "link.wait_mean_s",
        Real,
        Second,
        "link layers: mean time in the queue above",
    ),
    of(
        "link.round_trip_s",
        Real,
        Second,
        "link layers: both times over all hops, there and back",
    ),
    of(
        "link.goodput_bps",
        Real,
        BitPerSecond,
        "link layers: rate handed up",
    ),
    of(
        "link.residual_loss",
        Real,
        Share,
        "link layers: packets offered that were not handed up",
    ),
    of(
        "link.offered_packets",
        Count,
        One,
        "link layers: packets offered",
    ),
    of(
        "link.released_packets",
        Count,
        One,
        "link layers: packets handed up",
    ),
    of(
        "link.lost_packets",
        Count,
        One,
        "link layers: packets given up",
    ),
    of(
        "link.recovered_by_parity",
        Count,
        One,
        "link layers: packets put right by parity",
    ),
    of(
        "link.recovered_by_arq",
        Count,
        One,
        "link layers: packets put right by repetition",
    ),
    of(
        "link.frames_data",
        Count,
        One,
        "link layers: frames of data",
    ),
    of(
        "link.frames_again",
        Count,
        One,
        "link layers: frames sent again",
    ),
    of(
        "link.frames_parity",
        Count,
        One,
        "link layers: frames of parity",
    ),
    of(
        "link.frames_control",
        Count,
        One,
        "link layers: frames of control",
    ),
    of(
        "link.frames_rejected",
        Count,
        One,
        "link layers: frames that arrived damaged",
    ),
    of(
        "link.queue_full",
        Count,
        One,
        "link layers: packets that a full queue dropped",
    ),
    of(
        "link.queue_early",
        Count,
        One,
        "link layers: packets dropped before the queue was full",
    ),
    of("link.marked", Count, One, "link layers: packets marked"),
];

const fn of(
    name: &'static str,
    kind: MeasureKind,
    unit: MeasureUnit,
    about: &'static str,
) -> MeasureColumn {
    MeasureColumn {
        name,
        kind,
        unit,
        about,
    }
}

impl MeasureColumn {
    /// The column of single runs.
    pub(crate) fn field(&self) -> Field {
        let data_type = match self.kind {
            Truth => DataType::Boolean,
            Count => DataType::UInt64,
            Difference => DataType::Int64,
            Real => DataType::Float64,
        };
        self.with_metadata(Field::new(self.name, data_type, true))
    }

    fn with_metadata(&self, field: Field) -> Field {
        let unit = match self.kind {
            Truth => "truth",
            Count | Difference | Real => self.unit.name(),
        };
        let metadata = [("unit", unit), ("about", self.about)];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
        field.with_metadata(HashMap::from(metadata))
    }
}

/// The columns of points for a measure's column of runs: the mean, and half the width of its 95 % interval.
pub(crate) fn summary_fields(of: &Field) -> [Field; 2] {
    let real = |name: String| {
        Field::new(name, DataType::Float64, true).with_metadata(of.metadata().clone())
    };
    [real(of.name().clone()), real(format!("{}_ci95", of.name()))]
}
