//! The outcome of a transfer as it is told: a record in JSON, or the last line.

use super::{SendArgs, name};
use crate::commands::connection::WireReport;
use crate::exit::{Exit, Failure};
use crate::output;
use fulmar_net::transfer::{SendReport, SentSoFar};
use fulmar_proto::transport::aerotp::ModeRules;
use fulmar_proto::units::{Bitrate, ByteCount, Duration};
use serde::Serialize;

const SCHEMA: &str = "fulmar.send/1";

#[derive(Serialize)]
struct Sent<'a> {
    schema: &'static str,
    name: &'a str,
    mode: &'static str,
    size_bytes: u64,
    resumed_at_bytes: u64,
    delivered_bytes: u64,
    missing_bytes: u64,
    residual_loss: f64,
    verified: bool,
    elapsed_s: f64,
    goodput_bps: u64,
    link_bps: Option<u64>,
    held_lost: Option<f64>,
    repair_share: f64,
    reconnections: u32,
    wire: WireReport,
    error: Option<String>,
    exit_code: u8,
}

/// A failure of which the receiver sent no report. Only the receiver knows how much it has.
#[derive(Serialize)]
pub(super) struct NotSent {
    schema: &'static str,
    name: Option<String>,
    mode: &'static str,
    size_bytes: Option<u64>,
    resumed_at_bytes: Option<u64>,
    submitted_bytes: Option<u64>,
    confirmed_bytes: Option<u64>,
    delivered_bytes: Option<u64>,
    missing_bytes: Option<u64>,
    residual_loss: Option<f64>,
    verified: bool,
    reconnections: Option<u32>,
    wire: WireReport,
    error: String,
    exit_code: u8,
}

impl NotSent {
    pub(super) fn new(args: &SendArgs, failure: &Failure, so_far: Option<&SentSoFar>) -> Self {
        Self {
            schema: SCHEMA,
            name: name(args).ok(),
            mode: args.mode.name(),
            size_bytes: so_far.and_then(|so_far| so_far.size),
            resumed_at_bytes: so_far.map(|so_far| so_far.resumed_at),
            submitted_bytes: so_far.map(|so_far| so_far.submitted),
            confirmed_bytes: so_far.map(|so_far| so_far.confirmed),
            delivered_bytes: None,
            missing_bytes: None,
            residual_loss: None,
            verified: false,
            reconnections: so_far.map(|so_far| so_far.reconnections),
            wire: WireReport::of_sender(so_far.and_then(|so_far| so_far.counters.as_ref())),
            error: format!("{:#}", failure.cause),
            exit_code: failure.exit.code(),
        }
    }
}

pub(super) fn conclude(args: &SendArgs, name: &str, report: &SendReport) -> Result<Exit, Failure> {
    let moved = ByteCount(report.delivered.saturating_sub(report.present_before));
    let goodput = Bitrate::of(moved, report.elapsed);
    let complaint = if report.intact {
        None
    } else if report.missing > 0 {
        Some(format!(
            "{name}: {} of {} bytes did not arrive ({:.3} %), as mode {} permits",
            report.missing,
            report.size,
            output::share(report.missing, report.size) * 100.0,
            report.mode
        ))
    } else {
        Some(format!(
            "{name}: the receiver's octets have another BLAKE3 digest than ours"
        ))
    };
    let exit = if report.intact {
        Exit::Done
    } else {
        Exit::Failed
    };
    if args.json {
        output::record(&Sent {
            schema: SCHEMA,
            name,
            mode: report.mode.name(),
            size_bytes: report.size,
            resumed_at_bytes: report.resumed_at,
            delivered_bytes: report.delivered,
            missing_bytes: report.missing,
            residual_loss: output::share(report.missing, report.size),
            verified: report.intact,
            elapsed_s: report.elapsed.as_secs_f64(),
            goodput_bps: goodput.as_bits_per_second(),
            link_bps: rate_of_link(report).map(Bitrate::as_bits_per_second),
            held_lost: held_lost(report),
            repair_share: repair_share(report),
            reconnections: report.reconnections,
            wire: WireReport::of_sender(Some(&report.counters)),
            error: complaint.clone(),
            exit_code: exit.code(),
        })?;
    }
    if let Some(complaint) = complaint.filter(|_| !args.json) {
        let cause = anyhow::anyhow!(complaint);
        return Err(Failure { exit, cause });
    }
    if !args.json {
        eprintln!("fulmar: {}", last_line(name, report, goodput));
    }
    Ok(exit)
}

/// The last line about a whole file: its result, and the time and octets that it took.
fn last_line(name: &str, report: &SendReport, goodput: Bitrate) -> String {
    if report.size > 0 && report.present_before == report.size {
        return format!(
            "{name}: all {} bytes were there already, BLAKE3 verified; nothing was sent again",
            report.size
        );
    }
    let mbit = |rate: Bitrate| rate.as_bits_per_second() as f64 / 1e6;
    let used = share_of_link(report, goodput).map(|(share, allowed)| {
        let (percent, rate) = (share * 100.0, mbit(allowed));
        format!(" ({percent:.0} % of the {rate:.3} Mbit/s that the link allows)")
    });
    let lost =
        held_lost(report).map(|lost| format!("; {:.1} % held lost on the way", lost * 100.0));
    format!(
        "{name}: {} in {:.2} s, {:.3} Mbit/s{}, BLAKE3 verified{}; repair took {:.1} % of what was sent",
        output::moved(report.size, report.present_before),
        report.elapsed.as_secs_f64(),
        mbit(goodput),
        used.unwrap_or_default(),
        lost.unwrap_or_default(),
        repair_share(report) * 100.0
    )
}

/// The shortest transfer whose goodput is compared with the link's rate: round trips make up most of a shorter one, and
/// its first packets leave without waiting for the rate.
const COMPARED_FROM: Duration = Duration::from_secs(1);

/// The goodput as a share of what the link allows, and that: what is left of its rate after losses, as `fulmar status` has it.
/// The rate that was found is the last one: if more than that went over the link, it was not the rate of the whole time, and
/// nothing is compared.
fn share_of_link(report: &SendReport, goodput: Bitrate) -> Option<(f64, Bitrate)> {
    let arrives = 1.0 - held_lost(report).unwrap_or(0.0);
    let allowed = rate_of_link(report)?.scaled(arrives);
    let allowed = Some(allowed).filter(|allowed| goodput <= *allowed)?;
    let share = output::share(goodput.as_bits_per_second(), allowed.as_bits_per_second());
    (report.elapsed >= COMPARED_FROM).then_some((share, allowed))
}

/// The rate that the link was found to have, or the configured one if that is lower.
fn rate_of_link(report: &SendReport) -> Option<Bitrate> {
    let rate = report.path_rate?;
    Some(rate.link.unwrap_or(rate.declared).min(rate.declared))
}

/// The share of the file's TPDUs, repeated ones included, that the sender held for lost; in modes that
/// confirm nothing it cannot know.
fn held_lost(report: &SendReport) -> Option<f64> {
    if !ModeRules::of(report.mode).confirms() {
        return None;
    }
    let counters = &report.counters;
    let [source, repair, again, _] = counters.sent_tpdus;
    Some(output::share(counters.held_lost(), source + repair + again))
}

/// The share of parity and repetitions in all octets sent.
fn repair_share(report: &SendReport) -> f64 {
    let [_, repair, again, _] = report.counters.sent_bytes;
    let all = report.counters.sent_bytes.iter().sum();
    output::share(repair + again, all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::transport::aerotp::{Counters, PathRate, RateReason};
    use fulmar_proto::wire::Mode;

    const LINK: Bitrate = Bitrate::from_bits_per_second(5_000_000);

    fn report(size: u64, present_before: u64, elapsed: Duration, link: Bitrate) -> SendReport {
        SendReport {
            mode: Mode::Reliable,
            size,
            resumed_at: size,
            present_before,
            delivered: size,
            missing: 0,
            intact: true,
            elapsed,
            counters: Counters::default(),
            path_rate: Some(PathRate {
                declared: LINK,
                marked: LINK,
                link: Some(link),
                delivered: None,
                current: LINK,
                reason: RateReason::Declared,
                queues_tried: 0,
                declared_wrong: false,
                belief: None,
            }),
            reconnections: 0,
        }
    }

    fn line(report: &SendReport) -> String {
        let moved = ByteCount(report.delivered - report.present_before);
        last_line("file", report, Bitrate::of(moved, report.elapsed))
    }

    #[test]
    fn a_share_of_the_link_is_told_where_it_means_something_and_never_above_all_of_it() {
        let told = line(&report(1_000_000, 0, Duration::from_secs(2), LINK));
        assert!(told.contains("(80 % of the 5.000 Mbit/s"), "{told}");
        // A file of one burst, and a link that was found to be slower only at the end.
        for report in [
            report(5_770, 0, Duration::from_millis(8), LINK),
            report(1_000, 0, Duration::from_millis(8), LINK),
            report(1_000_000, 0, Duration::from_secs(2), LINK.scaled(0.5)),
        ] {
            let told = line(&report);
            assert!(!told.contains("that the link allows"), "{told}");
            assert!(told.contains("Mbit/s, BLAKE3 verified"), "{told}");
        }
    }

    #[test]
    fn a_lossy_link_allows_only_what_it_does_not_lose() {
        let mut lossy = report(1_000_000, 0, Duration::from_secs(2), LINK);
        lossy.path_rate = lossy.path_rate.map(|rate| PathRate {
            declared: LINK.scaled(2.0),
            link: Some(LINK.scaled(1.25)),
            ..rate
        });
        // A fifth of 6.25 Mbit/s is lost.
        lossy.counters.sent_tpdus = [800, 0, 200, 0];
        lossy.counters.held_lost_nack = 200;
        let told = line(&lossy);
        assert!(
            told.contains("(80 % of the 5.000 Mbit/s that the link allows)"),
            "{told}"
        );
        assert!(told.contains("20.0 % held lost"), "{told}");
    }

    #[test]
    fn a_continued_transfers_rate_is_of_the_octets_that_the_line_names() {
        let whole = line(&report(1_000_000, 0, Duration::from_secs(2), LINK));
        assert!(
            whole.contains(" 1000000 bytes in 2.00 s, 4.000 Mbit/s"),
            "{whole}"
        );
        let rest = line(&report(1_000_000, 750_000, Duration::from_secs(2), LINK));
        let said = "the last 250000 of 1000000 bytes in 2.00 s, 1.000 Mbit/s";
        assert!(rest.contains(said), "{rest}");
    }
}
