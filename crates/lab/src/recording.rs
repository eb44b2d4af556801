//! The single events of a run as Arrow tables: packets, pieces and decisions, each column with unit and meaning.

mod packet_rows;
mod rates;

use arrow_array::builder::{Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use fulmar_proto::machine::TransmitKind;
use fulmar_proto::repair::RepairPlan;
use fulmar_proto::trace::{LossSign, RepairDecision, TraceRecord};
use fulmar_proto::units::Instant;
use fulmar_sim::RunRecording;
use fulmar_sim::measure::wire::WireLoss;
use fulmar_sim::recording::RecordedDecision;
use fulmar_sim::scenario::AppDirection;
pub(crate) use packet_rows::packet_rows;
use std::collections::HashMap;
use std::sync::Arc;

/// The three tables of a recording.
#[derive(Clone, Debug)]
pub struct RecordingTables {
    /// A row for each packet on a measured hop.
    pub packets: RecordBatch,
    /// A row for each piece that was delivered.
    pub pieces: RecordBatch,
    /// A row for each decision of a sender.
    pub decisions: RecordBatch,
}

impl RecordingTables {
    /// The tables of a recording.
    ///
    /// # Errors
    /// Arrow refuses a column; none of ours is refused.
    pub fn of(recording: &RunRecording) -> Result<Self, ArrowError> {
        Ok(Self {
            packets: packets(recording)?,
            pieces: pieces(recording)?,
            decisions: decisions(recording)?,
        })
    }
}

/// The columns of a table, in their order.
#[derive(Default)]
struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    fn add(&mut self, name: &str, unit: &str, about: &str, array: ArrayRef) {
        let metadata = [("unit", unit), ("about", about)];
        let metadata = metadata.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let field = Field::new(name, array.data_type().clone(), true);
        self.fields
            .push(field.with_metadata(HashMap::from(metadata)));
        self.arrays.push(array);
    }

    fn counts(
        &mut self,
        (name, unit, about): (&str, &str, &str),
        values: impl Iterator<Item = Option<u64>>,
    ) {
        let mut counts = UInt64Builder::new();
        values.for_each(|value| counts.append_option(value));
        self.add(name, unit, about, Arc::new(counts.finish()));
    }

    fn reals(
        &mut self,
        (name, unit, about): (&str, &str, &str),
        values: impl Iterator<Item = Option<f64>>,
    ) {
        let mut reals = Float64Builder::new();
        values.for_each(|value| reals.append_option(value));
        self.add(name, unit, about, Arc::new(reals.finish()));
    }

    fn texts<'a>(
        &mut self,
        (name, about): (&str, &str),
        values: impl Iterator<Item = Option<&'a str>>,
    ) {
        let mut texts = StringBuilder::new();
        values.for_each(|value| texts.append_option(value));
        self.add(name, "text", about, Arc::new(texts.finish()));
    }

    fn batch(self) -> Result<RecordBatch, ArrowError> {
        let schema: SchemaRef = Arc::new(Schema::new(self.fields));
        RecordBatch::try_new(schema, self.arrays)
    }
}

fn seconds(at: Instant) -> f64 {
    at.saturating_since(Instant::START).as_secs_f64()
}

const fn kind_name(kind: TransmitKind) -> &'static str {
    match kind {
        TransmitKind::Source => "source",
        TransmitKind::Repair => "repair",
        TransmitKind::Retransmission => "retransmission",
        TransmitKind::Control => "control",
    }
}

pub(crate) const fn direction_name(direction: AppDirection) -> &'static str {
    match direction {
        AppDirection::Forward => "forward",
        AppDirection::Reverse => "reverse",
    }
}

fn packets(recording: &RunRecording) -> Result<RecordBatch, ArrowError> {
    let rows = || recording.packets.iter();
    let mut columns = Columns::default();
    let sent = "the time at which the link took or refused it";
    columns.reals(
        ("sent_s", "s", sent),
        rows().map(|p| Some(seconds(p.sent_at))),
    );
    let arrived = "the arrival of its last octet; none if it was lost";
    let at = rows().map(|p| p.arrived_at.map(seconds));
    columns.reals(("arrived_s", "s", arrived), at);
    columns.counts(
        ("hop", "1", "the hop, from 0"),
        rows().map(|p| Some(p.hop as u64)),
    );
    let ways = rows().map(|p| Some(direction_name(p.direction)));
    columns.texts(("direction", "forward is away from the source"), ways);
    let lengths = rows().map(|p| Some(p.len.0));
    columns.counts(
        ("bytes", "octet", "its length, with the link's framing"),
        lengths,
    );
    let kinds = rows().map(|p| Some(kind_name(p.kind)));
    columns.texts(("kind", "source, repair, retransmission or control"), kinds);
    let causes = rows().map(|p| p.lost.map(WireLoss::name));
    columns.texts(
        (
            "lost",
            "the cause of its loss on this hop; none if it arrived",
        ),
        causes,
    );
    let bits = rows().map(|p| Some(p.inverted_bits as u64));
    columns.counts(("inverted_bits", "1", "bits that the link inverted"), bits);
    let waiting = rows().map(|p| Some(p.queue_packets as u64));
    let about = "packets in the link's queue, with this one if it waits";
    columns.counts(("queue_packets", "1", about), waiting);
    let waiting = rows().map(|p| Some(p.queue_bytes.0));
    columns.counts(
        ("queue_bytes", "octet", "octets in the link's queue"),
        waiting,
    );
    columns.batch()
}

fn pieces(recording: &RunRecording) -> Result<RecordBatch, ArrowError> {
    let rows = || recording.pieces.iter();
    let mut columns = Columns::default();
    let at = rows().map(|piece| Some(seconds(piece.delivered_at)));
    columns.reals(("delivered_s", "s", "the delivery of its last octet"), at);
    columns.counts(
        ("flow", "1", "the flow, from 0"),
        rows().map(|piece| Some(piece.flow as u64)),
    );
    let delays = rows().map(|piece| Some(piece.delay.as_secs_f64()));
    columns.reals(("delay_s", "s", "from submission to delivery"), delays);
    columns.batch()
}

fn decisions(recording: &RunRecording) -> Result<RecordBatch, ArrowError> {
    let rows = || recording.decisions.iter();
    let mut columns = Columns::default();
    columns.reals(
        ("at_s", "s", "its time"),
        rows().map(|row| Some(seconds(row.at))),
    );
    columns.counts(
        ("flow", "1", "the flow, from 0"),
        rows().map(|row| Some(row.flow as u64)),
    );
    let names = rows().map(|row| Some(name(&row.decision)));
    columns.texts(("decision", "its name, as in traces"), names);
    let signs = rows().map(|row| match row.decision {
        TraceRecord::HeldLost { sign, .. } => Some(sign_name(sign)),
        _ => None,
    });
    columns.texts(
        ("sign", "the sign by which a packet is held for lost"),
        signs,
    );
    let adapted = |pick: fn(u32, u16, u8) -> f64| {
        rows().map(move |row| match row.decision {
            TraceRecord::Adapted {
                payload,
                words,
                rate_octaves,
            } => Some(pick(payload, words, rate_octaves)),
            _ => None,
        })
    };
    let payloads = adapted(|payload, _, _| f64::from(payload));
    columns.reals(
        ("payload_bytes", "octet", "payload of a packet from now on"),
        payloads,
    );
    let words = adapted(|_, words, _| f64::from(words));
    columns.reals(
        ("fec_words", "1", "parity words of a packet from now on"),
        words,
    );
    plans(&mut columns, &recording.decisions);
    columns.batch()
}

/// A figure of a plan of repair, with the column that it has.
type PlanColumn = (
    &'static str,
    &'static str,
    &'static str,
    fn(&RepairDecision) -> f64,
);

const PLAN_COLUMNS: [PlanColumn; 9] = [
    ("loss", "share", "losses seen", |plan| share(plan.loss)),
    (
        "loss_error",
        "share",
        "the standard error of the losses seen",
        |plan| share(plan.loss_error),
    ),
    (
        "behind_a_loss",
        "share",
        "losses right behind a loss",
        |plan| share(plan.behind_a_loss),
    ),
    (
        "will_miss",
        "share",
        "messages that the plan is predicted to miss",
        |plan| share(plan.will_miss),
    ),
    (
        "packets",
        "1",
        "packets for each message that the plan is predicted to take",
        |plan| share(plan.packets),
    ),
    (
        "ahead",
        "1",
        "repair symbols ahead for each message",
        |plan| f64::from(plan.ahead_eighths) / f64::from(RepairPlan::AHEAD_UNIT),
    ),
    (
        "times_first",
        "1",
        "transmissions in the first round of repetition",
        |plan| f64::from(plan.times[0]),
    ),
    (
        "times_second",
        "1",
        "transmissions in the second round",
        |plan| f64::from(plan.times[1]),
    ),
    (
        "times_later",
        "1",
        "transmissions in each later round",
        |plan| f64::from(plan.times[2]),
    ),
];

fn share(millionths: u32) -> f64 {
    f64::from(millionths) / 1e6
}

/// The columns of chosen plans of repair.
fn plans(columns: &mut Columns, decisions: &[RecordedDecision]) {
    for (name, unit, about, pick) in PLAN_COLUMNS {
        let values = decisions.iter().map(|row| match &row.decision {
            TraceRecord::RepairPlanned(plan) => Some(pick(plan)),
            _ => None,
        });
        columns.reals((name, unit, about), values);
    }
}

const fn name(decision: &TraceRecord) -> &'static str {
    match decision {
        TraceRecord::HeldLost { .. } => "held_lost",
        TraceRecord::Adapted { .. } => "adapted",
        TraceRecord::RepairPlanned(_) => "repair_planned",
        TraceRecord::Stalled => "stalled",
        TraceRecord::Resumed => "resumed",
        // Recordings keep decisions alone.
        _ => "other",
    }
}

const fn sign_name(sign: LossSign) -> &'static str {
    match sign {
        LossSign::Overtaken => "overtaken",
        LossSign::Nack => "nack",
        LossSign::Timeout => "timeout",
        LossSign::Damaged => "damaged",
    }
}
