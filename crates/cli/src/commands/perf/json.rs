//! A test's result as JSON.

use super::goal::GoalOutcome;
use super::{ASSUMPTION, text};
use crate::exit::{Exit, Failure};
use fulmar_net::perf::{
    ClockOffset, Interval, Limit, Outcome, PerfError, PerfReport, Sent, Spread, Test, TestDirection,
};
use fulmar_proto::damage::{CauseShare, LossByCause};
use fulmar_proto::units::Bitrate;
use serde::Serialize;
use std::collections::BTreeMap;
use std::net::SocketAddr;

const SCHEMA: &str = "fulmar.perf/1";

/// The messages that arrived in an interval, of one stream or of all.
#[derive(Serialize)]
struct ArrivalRecord {
    messages: u64,
    bytes: u64,
    goodput_bps: u64,
}

impl ArrivalRecord {
    fn of(test: &Test, interval: &Interval, messages: u64) -> Self {
        Self {
            messages,
            bytes: test.bytes_of(messages).0,
            goodput_bps: interval.goodput(test, messages).as_bits_per_second(),
        }
    }
}

/// The figures of a stream; streams count from 1.
#[derive(Serialize)]
struct StreamRecord<T> {
    stream: usize,
    #[serde(flatten)]
    figures: T,
}

fn streams<'a, T: 'a, R>(all: &'a [T], record: impl Fn(&'a T) -> R) -> Vec<StreamRecord<R>> {
    let of = |(stream, figures)| StreamRecord {
        stream,
        figures: record(figures),
    };
    (1..).zip(all).map(of).collect()
}

#[derive(Serialize)]
struct IntervalRecord {
    from_s: f64,
    until_s: f64,
    #[serde(flatten)]
    sum: ArrivalRecord,
    streams: Vec<StreamRecord<ArrivalRecord>>,
}

impl IntervalRecord {
    fn of(test: &Test, interval: &Interval) -> Self {
        let arrival = |messages: &u64| ArrivalRecord::of(test, interval, *messages);
        Self {
            from_s: interval.from.as_secs_f64(),
            until_s: interval.until.as_secs_f64(),
            sum: arrival(&interval.total()),
            streams: streams(&interval.messages, arrival),
        }
    }
}

#[derive(Clone, Serialize)]
struct DelayRecord {
    count: u64,
    early: u64,
    min_s: f64,
    mean_s: f64,
    p50_s: f64,
    p90_s: f64,
    p99_s: f64,
    p999_s: f64,
    max_s: f64,
}

impl DelayRecord {
    fn of(spread: &Spread) -> Self {
        let seconds = |nanos: u64| nanos as f64 / 1e9;
        Self {
            count: spread.count,
            early: spread.early,
            min_s: seconds(spread.min),
            mean_s: spread.mean / 1e9,
            p50_s: seconds(spread.p50),
            p90_s: seconds(spread.p90),
            p99_s: seconds(spread.p99),
            p999_s: seconds(spread.p999),
            max_s: seconds(spread.max),
        }
    }
}

/// The losses by cause, as their sender told them apart.
#[derive(Serialize)]
struct LossRecord {
    sent_packets: u64,
    lost_packets: u64,
    causes: BTreeMap<&'static str, CauseRecord>,
}

/// The share of a cause among the losses, and an interval for it.
#[derive(Serialize)]
struct CauseRecord {
    ratio: f64,
    low_ratio: f64,
    high_ratio: f64,
}

impl LossRecord {
    fn of(losses: &LossByCause) -> Self {
        let of_cause = |share: &CauseShare| {
            let record = CauseRecord {
                ratio: share.share,
                low_ratio: share.low,
                high_ratio: share.high,
            };
            (share.cause.name(), record)
        };
        Self {
            sent_packets: losses.sent_packets(),
            lost_packets: losses.lost_packets(),
            causes: losses.shares.iter().map(of_cause).collect(),
        }
    }
}

/// The outcome of a stated goal.
#[derive(Serialize)]
struct GoalRecord {
    deadline_s: f64,
    residual: f64,
    late_low: f64,
    late_high: f64,
    met: Option<bool>,
}

impl GoalRecord {
    fn of(goal: &GoalOutcome) -> Self {
        let (late_low, late_high) = goal.late;
        Self {
            deadline_s: goal.deadline.as_secs_f64(),
            residual: goal.residual,
            late_low,
            late_high,
            met: goal.is_met(),
        }
    }
}

#[derive(Serialize)]
struct ClockRecord {
    assumption: &'static str,
    exchanges: u32,
    server_ahead_s: f64,
    round_trip_s: f64,
    uncertainty_s: f64,
}

impl ClockRecord {
    fn of(clocks: &ClockOffset) -> Self {
        Self {
            assumption: ASSUMPTION,
            exchanges: clocks.exchanges,
            server_ahead_s: clocks.ahead as f64 / 1e9,
            round_trip_s: clocks.round_trip.as_secs_f64(),
            uncertainty_s: clocks.uncertainty().as_secs_f64(),
        }
    }
}

/// The first line of a server.
#[derive(Serialize)]
pub(super) struct Listening {
    schema: &'static str,
    kind: &'static str,
    #[serde(rename = "listening")]
    address: SocketAddr,
}

impl Listening {
    pub(super) const fn at(address: SocketAddr) -> Self {
        Self {
            schema: SCHEMA,
            kind: "listening",
            address,
        }
    }
}

/// A server's line when a test begins.
#[derive(Serialize)]
pub(super) struct Began {
    schema: &'static str,
    kind: &'static str,
    parallel: u8,
    test: String,
}

impl Began {
    pub(super) fn of(test: &Test) -> Self {
        Self {
            schema: SCHEMA,
            kind: "began",
            parallel: test.streams,
            test: text::asked(test),
        }
    }
}

/// The outcome of the messages of one stream, or of all together.
#[derive(Clone, Serialize)]
struct OutcomeRecord {
    elapsed_s: f64,
    goodput_bps: u64,
    sent_messages: Option<u64>,
    sent_bytes: Option<u64>,
    received_messages: u64,
    received_bytes: u64,
    reordered_messages: u64,
    loss_before_repair: Option<f64>,
    loss_after_repair: Option<f64>,
    overhead: Option<f64>,
    accepted_tpdus: u64,
    wire_lost_tpdus: u64,
    wire_damaged_tpdus: u64,
    recovered_fec_words_tpdus: u64,
    recovered_fec_block_tpdus: u64,
    recovered_arq_tpdus: Option<[u64; 3]>,
    residual_tpdus: u64,
    wire_source_bytes: Option<u64>,
    wire_repair_bytes: Option<u64>,
    wire_retransmission_bytes: Option<u64>,
    wire_control_bytes: Option<u64>,
    delay: Option<DelayRecord>,
}

impl OutcomeRecord {
    fn of(outcome: &Outcome) -> Self {
        let Outcome { sent, received } = outcome;
        let [source, repair, retransmission, control] =
            sent.map_or([None; 4], |sent| sent.wire_bytes.map(Some));
        Self {
            elapsed_s: received.elapsed.as_secs_f64(),
            goodput_bps: outcome.goodput().as_bits_per_second(),
            sent_messages: sent.map(|sent| sent.messages),
            sent_bytes: sent.map(|sent| sent.bytes),
            received_messages: received.messages,
            received_bytes: received.bytes,
            reordered_messages: received.reordered,
            loss_before_repair: outcome.loss_before_repair(),
            loss_after_repair: outcome.loss_after_repair(),
            overhead: outcome.overhead(),
            accepted_tpdus: received.accepted_tpdus,
            wire_lost_tpdus: received.wire_lost_tpdus,
            wire_damaged_tpdus: received.wire_damaged_tpdus,
            recovered_fec_words_tpdus: received.recovered_fec_words_tpdus,
            recovered_fec_block_tpdus: received.recovered_fec_block_tpdus,
            recovered_arq_tpdus: sent.map(|sent| sent.recovered_arq_tpdus),
            residual_tpdus: received.residual_tpdus,
            wire_source_bytes: source,
            wire_repair_bytes: repair,
            wire_retransmission_bytes: retransmission,
            wire_control_bytes: control,
            delay: received.delay.as_ref().map(DelayRecord::of),
        }
    }
}

/// The object of `--json`.
#[derive(Serialize)]
pub(super) struct Record {
    schema: &'static str,
    kind: &'static str,
    server: Option<SocketAddr>,
    mode: &'static str,
    direction: &'static str,
    message_bytes: u32,
    rate_bps: Option<u64>,
    link_bps: Option<u64>,
    fec_words: u16,
    limit_s: Option<f64>,
    limit_bytes: Option<u64>,
    parallel: u8,
    stopped: bool,
    /// The figures of the whole test, as in `sum`.
    #[serde(flatten)]
    whole: OutcomeRecord,
    /// The rate at which messages were taken, if that stayed below `rate_bps`.
    taken_bps: Option<u64>,
    goal: Option<GoalRecord>,
    fairness: Option<f64>,
    losses: Option<LossRecord>,
    clocks: Option<ClockRecord>,
    intervals: Vec<IntervalRecord>,
    streams: Vec<StreamRecord<OutcomeRecord>>,
    sum: OutcomeRecord,
    error: Option<String>,
    exit_code: u8,
}

impl Record {
    /// The record of a test; only the client knows `server`.
    pub(super) fn of(
        server: Option<SocketAddr>,
        report: &PerfReport,
        (goal, exit): (Option<GoalOutcome>, Exit),
    ) -> Self {
        let test = &report.test;
        let (limit_s, limit_bytes) = match test.limit {
            Limit::Time(span) => (Some(span.as_secs_f64()), None),
            Limit::Bytes(bytes) => (None, Some(bytes)),
        };
        let intervals = report.intervals.iter();
        let sum = OutcomeRecord::of(&report.sum);
        Self {
            schema: SCHEMA,
            kind: "test",
            server,
            mode: test.mode().map_or("", fulmar_proto::wire::Mode::name),
            direction: match test.direction {
                TestDirection::Up => "to-server",
                TestDirection::Down => "to-client",
            },
            message_bytes: test.message_bytes,
            rate_bps: test.rate_bps,
            link_bps: test
                .link_rate()
                .or(report.link)
                .map(Bitrate::as_bits_per_second),
            fec_words: test.fec_words,
            limit_s,
            limit_bytes,
            parallel: test.streams,
            stopped: report.stopped,
            whole: sum.clone(),
            taken_bps: report.rate_fallen_short().map(Bitrate::as_bits_per_second),
            goal: goal.as_ref().map(GoalRecord::of),
            fairness: report.fairness(),
            losses: report.losses.as_ref().map(LossRecord::of),
            clocks: report.clocks.as_ref().map(ClockRecord::of),
            intervals: intervals.map(|one| IntervalRecord::of(test, one)).collect(),
            streams: streams(&report.streams, OutcomeRecord::of),
            sum,
            error: None,
            exit_code: exit.code(),
        }
    }
}

/// The object of `--json` where there are no figures.
#[derive(Serialize)]
pub(super) struct Failed<'a> {
    schema: &'static str,
    kind: &'static str,
    server: &'a str,
    error: String,
    exit_code: u8,
}

impl<'a> Failed<'a> {
    pub(super) fn of(server: &'a str, failure: &Failure) -> Self {
        Self {
            schema: SCHEMA,
            kind: "test",
            server,
            error: failure.line(),
            exit_code: failure.exit.code(),
        }
    }
}

/// The messages and octets that were sent of a stream, or of all.
#[derive(Serialize)]
struct SentRecord {
    sent_messages: u64,
    sent_bytes: u64,
    wire_bytes: u64,
}

impl SentRecord {
    fn of(sent: &Sent) -> Self {
        Self {
            sent_messages: sent.messages,
            sent_bytes: sent.bytes,
            wire_bytes: sent.wire_total().0,
        }
    }
}

/// A server's line at the end of a test whose messages it sent.
#[derive(Serialize)]
pub(super) struct SentOnly {
    schema: &'static str,
    kind: &'static str,
    #[serde(flatten)]
    sum: SentRecord,
    streams: Vec<StreamRecord<SentRecord>>,
}

impl SentOnly {
    pub(super) fn of(each: &[Sent]) -> Self {
        Self {
            schema: SCHEMA,
            kind: "sent",
            sum: SentRecord::of(&Sent::sum(each)),
            streams: streams(each, SentRecord::of),
        }
    }
}

/// A server's line of a test that was cut off.
#[derive(Serialize)]
pub(super) struct Cut {
    schema: &'static str,
    kind: &'static str,
    error: String,
}

impl Cut {
    pub(super) fn of(error: &PerfError) -> Self {
        Self {
            schema: SCHEMA,
            kind: "test",
            error: error.to_string(),
        }
    }
}
