//! A test's result as text and as JSON, from the same figures.

use crate::exit::{Exit, Failure};
use fulmar_net::perf::{
    ClockOffset, Direction, Interval, Limit, PerfError, Report, Sent, Spread, Test,
};
use fulmar_proto::units::{Bitrate, ByteCount, format_duration};
use serde::Serialize;
use std::fmt::Write as _;
use std::net::SocketAddr;

const SCHEMA: &str = "fulmar.perf/1";

const ASSUMPTION: &str = "the fastest question and its answer took equally long each way";

/// Over the lines of intervals.
pub(super) const INTERVAL_HEAD: &str = "   from    until       goodput    messages";

/// One interval, in the columns of [`INTERVAL_HEAD`].
pub(super) fn interval(interval: &Interval) -> String {
    format!(
        "{:>7.2}  {:>7.2}  {:>12}  {:>10}",
        interval.from.as_secs_f64(),
        interval.until.as_secs_f64(),
        mbit(goodput_of(interval)),
        interval.messages
    )
}

fn goodput_of(interval: &Interval) -> Bitrate {
    let span = interval.until.saturating_sub(interval.from);
    Bitrate::of(ByteCount(interval.bytes), span)
}

fn mbit(rate: Bitrate) -> String {
    format!("{:.3} Mbit/s", rate.as_bits_per_second() as f64 / 1e6)
}

/// What a client asks for, in a line.
pub(super) fn asked(test: &Test) -> String {
    let mode = test
        .mode()
        .map_or("?", fulmar_proto::wire::aerotp::Mode::name);
    let way = match test.direction {
        Direction::Up => "from the client",
        Direction::Down => "to the client",
    };
    let rate = match test.rate_bps {
        Some(rate) => Bitrate::from_bits_per_second(rate).to_string(),
        None => "all that goes".to_owned(),
    };
    let limit = match test.limit {
        Limit::Time(span) => format_duration(span),
        Limit::Bytes(bytes) => ByteCount(bytes).to_string(),
    };
    format!("a test of mode {mode} {way}: {rate} for {limit}")
}

fn milliseconds(nanos: f64) -> String {
    format!("{:.3}", nanos / 1e6)
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.4} %", share * 100.0))
}

fn count(count: Option<u64>) -> String {
    count.map_or_else(|| "-".to_owned(), |count| count.to_string())
}

/// What put things right, and what that took.
fn repairs(report: &Report) -> Vec<(&'static str, String)> {
    let received = &report.received;
    let by_parity = format!(
        "{} by parity, {} by blocks",
        received.recovered_fec_words_tpdus, received.recovered_fec_block_tpdus
    );
    let Some(sent) = &report.sent else {
        return vec![("repaired", by_parity)];
    };
    let [first, second, more] = sent.recovered_arq_tpdus;
    let [_, repair, again, control] = sent.wire_bytes.map(ByteCount);
    let all = sent.wire_total();
    vec![
        (
            "repaired",
            format!("{by_parity}; sent once again {first}, twice {second}, more often {more}"),
        ),
        (
            "on the wire",
            format!("{all}; blocks' parity {repair}, sent again {again}, control {control}"),
        ),
    ]
}

/// The figures for a person.
pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    let received = &report.received;
    // Writing to a String cannot fail.
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "{label:<22}{value}");
    };
    let seconds = received.elapsed.as_secs_f64();
    line(
        "goodput",
        format!(
            "{}: {} in {seconds:.3} s",
            mbit(report.goodput()),
            ByteCount(received.bytes)
        ),
    );
    line(
        "loss before repair",
        format!(
            "{} of packets: {} lost, {} damaged",
            percent(report.loss_before_repair()),
            received.wire_lost_tpdus,
            received.wire_damaged_tpdus
        ),
    );
    line(
        "loss after repair",
        format!(
            "{} of messages: {} of {}",
            percent(report.loss_after_repair()),
            count(report.missing_messages()),
            count(report.sent.map(|sent| sent.messages))
        ),
    );
    for (label, value) in repairs(report) {
        line(label, value);
    }
    if let Some(delay) = &received.delay {
        line(
            "one-way delay, ms",
            format!(
                "min {} mean {} p50 {} p90 {} p99 {} p99.9 {} max {}",
                milliseconds(delay.min as f64),
                milliseconds(delay.mean),
                milliseconds(delay.p50 as f64),
                milliseconds(delay.p90 as f64),
                milliseconds(delay.p99 as f64),
                milliseconds(delay.p999 as f64),
                milliseconds(delay.max as f64)
            ),
        );
    }
    if let Some(clocks) = &report.clocks {
        line(
            "clocks",
            format!(
                "compared {} times; delays are exact if {ASSUMPTION}, and wrong by {} ms at most",
                clocks.exchanges,
                milliseconds(clocks.uncertainty().as_nanos() as f64)
            ),
        );
    }
    if report.stopped {
        line("stopped", "before its time".to_owned());
    }
    text.trim_end().to_owned()
}

#[derive(Serialize)]
struct IntervalRecord {
    from_s: f64,
    until_s: f64,
    messages: u64,
    bytes: u64,
    goodput_bps: u64,
}

#[derive(Serialize)]
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

/// The first line of a server's.
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
    test: String,
}

impl Began {
    pub(super) fn of(test: &Test) -> Self {
        Self {
            schema: SCHEMA,
            kind: "began",
            test: asked(test),
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
    link_bps: u64,
    fec_words: u16,
    limit_s: Option<f64>,
    limit_bytes: Option<u64>,
    stopped: bool,
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
    clocks: Option<ClockRecord>,
    intervals: Vec<IntervalRecord>,
    error: Option<String>,
    exit_code: u8,
}

impl Record {
    /// `server` is known to the client alone.
    pub(super) fn of(server: Option<SocketAddr>, report: &Report, exit: Exit) -> Self {
        let (test, sent, received) = (&report.test, report.sent, &report.received);
        let [source, repair, retransmission, control] =
            sent.map_or([None; 4], |sent| sent.wire_bytes.map(Some));
        let (limit_s, limit_bytes) = match test.limit {
            Limit::Time(span) => (Some(span.as_secs_f64()), None),
            Limit::Bytes(bytes) => (None, Some(bytes)),
        };
        let intervals = report.intervals.iter().map(|interval| IntervalRecord {
            from_s: interval.from.as_secs_f64(),
            until_s: interval.until.as_secs_f64(),
            messages: interval.messages,
            bytes: interval.bytes,
            goodput_bps: goodput_of(interval).as_bits_per_second(),
        });
        Self {
            schema: SCHEMA,
            kind: "test",
            server,
            mode: test
                .mode()
                .map_or("", fulmar_proto::wire::aerotp::Mode::name),
            direction: match test.direction {
                Direction::Up => "to-server",
                Direction::Down => "to-client",
            },
            message_bytes: test.message_bytes,
            rate_bps: test.rate_bps,
            link_bps: test.link_bps,
            fec_words: test.fec_words,
            limit_s,
            limit_bytes,
            stopped: report.stopped,
            elapsed_s: received.elapsed.as_secs_f64(),
            goodput_bps: report.goodput().as_bits_per_second(),
            sent_messages: sent.map(|sent| sent.messages),
            sent_bytes: sent.map(|sent| sent.bytes),
            received_messages: received.messages,
            received_bytes: received.bytes,
            reordered_messages: received.reordered,
            loss_before_repair: report.loss_before_repair(),
            loss_after_repair: report.loss_after_repair(),
            overhead: report.overhead(),
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
            clocks: report.clocks.as_ref().map(ClockRecord::of),
            intervals: intervals.collect(),
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

/// A server's line at the end of a test that it sent the messages of.
#[derive(Serialize)]
pub(super) struct SentOnly {
    schema: &'static str,
    kind: &'static str,
    sent_messages: u64,
    sent_bytes: u64,
    wire_bytes: u64,
}

impl SentOnly {
    pub(super) fn of(sent: &Sent) -> Self {
        Self {
            schema: SCHEMA,
            kind: "sent",
            sent_messages: sent.messages,
            sent_bytes: sent.bytes,
            wire_bytes: sent.wire_total().0,
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
