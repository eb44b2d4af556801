//! A test's result for people.

use super::ASSUMPTION;
use super::goal::GoalOutcome;
use fulmar_net::perf::{Interval, Limit, Outcome, PerfReport, Spread, Test, TestDirection};
use fulmar_proto::damage::LossByCause;
use fulmar_proto::units::{Bitrate, ByteCount, format_duration};
use std::fmt::Write as _;

/// The name of all streams together, as iperf3 has it.
const SUM: &str = "[SUM]";

/// The name of a stream; people count from 1.
fn name(place: usize) -> String {
    format!("[{:>3}]", place + 1)
}

/// A line with the stream's label before the columns, if there are several streams.
fn labelled(test: &Test, label: &str, line: &str) -> String {
    if test.streams > 1 {
        format!("{label:>5}  {line}")
    } else {
        line.to_owned()
    }
}

/// The heading over the lines of intervals.
pub(super) fn interval_head(test: &Test) -> String {
    labelled(test, "id", "   from    until         goodput    messages")
}

/// One interval, in the columns of [`interval_head`]: a line for each stream, and one for all.
pub(super) fn interval(test: &Test, interval: &Interval) -> String {
    let line = |label: &str, messages: u64| {
        let columns = format!(
            "{:>7.2}  {:>7.2}  {:>14}  {:>10}",
            interval.from.as_secs_f64(),
            interval.until.as_secs_f64(),
            mbit(interval.goodput(test, messages)),
            messages
        );
        labelled(test, label, &columns)
    };
    let each = interval.messages.iter().enumerate();
    let mut lines: Vec<String> = each
        .filter(|_| test.streams > 1)
        .map(|(place, messages)| line(&name(place), *messages))
        .collect();
    lines.push(line(SUM, interval.total()));
    lines.join("\n")
}

fn mbit(rate: Bitrate) -> String {
    format!("{:.3} Mbit/s", rate.as_bits_per_second() as f64 / 1e6)
}

/// The test that a client asks for, in a line.
pub(super) fn asked(test: &Test) -> String {
    let mode = test.mode().map_or("?", fulmar_proto::wire::Mode::name);
    let way = match test.direction {
        TestDirection::Up => "from the client",
        TestDirection::Down => "to the client",
    };
    let rate = match test.rate_bps {
        Some(rate) => Bitrate::from_bits_per_second(rate).to_string(),
        None => "all that goes".to_owned(),
    };
    let limit = match test.limit {
        Limit::Time(span) => format_duration(span),
        Limit::Bytes(bytes) => ByteCount(bytes).to_string(),
    };
    let streams = match test.streams {
        1 => String::new(),
        streams => format!(" in {streams} streams"),
    };
    format!("a test of mode {mode} {way}: {rate} for {limit}{streams}")
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

/// The losses from which on causes are named, and the width of an interval from which on a cause has a question mark.
const LEAST_LOST: u64 = 30;
const UNCLEAR: f64 = 0.5;

/// The causes of loss, the largest first, each with the interval of its share. Those of less than one in a hundred are left out.
fn causes(losses: &LossByCause) -> String {
    if losses.lost_packets() < LEAST_LOST {
        return format!("{} lost, too few to tell why", losses.lost_packets());
    }
    let mut shares = losses.shares.to_vec();
    shares.retain(|share| share.share >= 0.01);
    shares.sort_by(|one, other| other.share.total_cmp(&one.share));
    let parts = shares.iter().map(|share| {
        let [likeliest, low, high] =
            [share.share, share.low, share.high].map(|share| format!("{:.0}", 100.0 * share));
        let is_unclear = share.high - share.low >= UNCLEAR;
        let doubt = if is_unclear { "?" } else { "" };
        format!(
            "{}{doubt} {likeliest} % ({low} to {high})",
            share.cause.name()
        )
    });
    let parts: Vec<String> = parts.collect();
    parts.join(", ")
}

/// The repairs by their means, and the octets that they took.
fn repairs(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let received = &outcome.received;
    let by_parity = format!(
        "{} by parity, {} by blocks",
        received.recovered_fec_words_tpdus, received.recovered_fec_block_tpdus
    );
    let Some(sent) = &outcome.sent else {
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

/// A line for each stream and one for all, if there are several.
fn table(report: &PerfReport) -> String {
    let mut table = String::new();
    if report.streams.len() < 2 {
        return table;
    }
    let mut line = |label: &str, columns: [&str; 6]| {
        let [goodput, received, before, after, median, p99] = columns;
        // Writing to a String cannot fail.
        let _ = writeln!(
            table,
            "{label:>5}  {goodput:>14}  {received:>10}  {before:>11}  {after:>11}  {median:>11}  {p99:>11}"
        );
    };
    line(
        "id",
        [
            "goodput",
            "messages",
            "loss before",
            "after",
            "p50, ms",
            "p99, ms",
        ],
    );
    let mut row = |label: &str, outcome: &Outcome| {
        let delay = outcome.received.delay.as_ref();
        let delay = |of: fn(&Spread) -> u64| {
            delay.map_or_else(|| "-".to_owned(), |delay| milliseconds(of(delay) as f64))
        };
        line(
            label,
            [
                &mbit(outcome.goodput()),
                &outcome.received.messages.to_string(),
                &percent(outcome.loss_before_repair()),
                &percent(outcome.loss_after_repair()),
                &delay(|delay| delay.p50),
                &delay(|delay| delay.p99),
            ],
        );
    };
    for (place, stream) in report.streams.iter().enumerate() {
        row(&name(place), stream);
    }
    row(SUM, &report.sum);
    table.push('\n');
    table
}

/// Whether a stated goal was met, in a line.
fn goal_in_words(goal: &GoalOutcome) -> String {
    let short = |share: f64| format!("{:.2} %", 100.0 * share);
    let (least, most) = goal.late;
    let late = if least == 0.0 && most == 0.0 {
        "none".to_owned()
    } else if least == 0.0 {
        format!("{} at most", short(most))
    } else if (most - least).abs() < 1e-9 {
        short(least)
    } else {
        format!("{} to {}", short(least), short(most))
    };
    let verdict = match goal.is_met() {
        Some(true) => "met",
        Some(false) => "MISSED",
        None => "not decided by these percentiles",
    };
    format!(
        "{verdict}: of the messages {late} took longer than {}, {} may",
        format_duration(goal.deadline),
        short(goal.residual)
    )
}

/// The rate at which messages were taken beside the one that was asked for, if that was not reached.
fn rate_not_reached(report: &PerfReport) -> Option<String> {
    let (taken, asked) = (report.rate_fallen_short()?, report.test.rate_bps?);
    let asked = Bitrate::from_bits_per_second(asked);
    let (taken, asked) = (mbit(taken), mbit(asked));
    Some(format!(
        "{taken} at most were taken of {asked}: no more passes, or --rate says so"
    ))
}

/// The line of the one-way delays.
fn delays(delay: &Spread) -> String {
    format!(
        "min {} mean {} p50 {} p90 {} p99 {} p99.9 {} max {}",
        milliseconds(delay.min as f64),
        milliseconds(delay.mean),
        milliseconds(delay.p50 as f64),
        milliseconds(delay.p90 as f64),
        milliseconds(delay.p99 as f64),
        milliseconds(delay.p999 as f64),
        milliseconds(delay.max as f64)
    )
}

/// The figures for a person.
pub(super) fn report(report: &PerfReport, goal: Option<&GoalOutcome>) -> String {
    let mut text = table(report);
    let outcome = &report.sum;
    let received = &outcome.received;
    // Writing to a String cannot fail.
    let mut line = |label: &str, value: String| {
        let _ = writeln!(text, "{label:<22}{value}");
    };
    let seconds = received.elapsed.as_secs_f64();
    line(
        "goodput",
        format!(
            "{}: {} in {seconds:.3} s",
            mbit(outcome.goodput()),
            ByteCount(received.bytes)
        ),
    );
    if let Some(short) = rate_not_reached(report) {
        line("rate not reached", short);
    }
    line(
        "loss before repair",
        format!(
            "{} of packets: {} lost, {} damaged",
            percent(outcome.loss_before_repair()),
            received.wire_lost_tpdus,
            received.wire_damaged_tpdus
        ),
    );
    line(
        "loss after repair",
        format!(
            "{} of messages: {} of {}",
            percent(outcome.loss_after_repair()),
            count(outcome.missing_messages()),
            count(outcome.sent.map(|sent| sent.messages))
        ),
    );
    if let Some(losses) = &report.losses {
        line("losses by cause", causes(losses));
    }
    for (label, value) in repairs(outcome) {
        line(label, value);
    }
    if let Some(delay) = &received.delay {
        line("one-way delay, ms", delays(delay));
    }
    if let Some(goal) = goal {
        line("goal", goal_in_words(goal));
    }
    if let Some(index) = report.fairness().filter(|_| report.streams.len() > 1) {
        let streams = report.streams.len();
        line(
            "fairness",
            format!("{index:.4}, Jain's index over the octets of {streams} streams"),
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
