//! The rate: the declared rate is used in full whatever is lost, and a link that carries less is
//! found and followed.
//!
//! Method: two endpoints and a bottleneck of 10 mbit with 20 ms each way. Fractions are of the
//! octets that the bottleneck can carry: its rate, less the loss, times the payload's share of a
//! packet.

use super::bottleneck::Medium;
use super::bottleneck::bulk::{Bulk, LINK, MEDIUM, seconds};
use fulmar_proto::transport::aerotp::{RateReason, RateSource};
use fulmar_proto::units::{Bitrate, Duration};
use fulmar_proto::wire::Mode;

const FIVE_TIMES: Bitrate = Bitrate::from_bits_per_second(50_000_000);

/// The longest and the mean wait for the transmitter since packet number `from`.
fn queue(run: &Bulk, from: usize) -> (Duration, Duration) {
    let waits = run.link.sent[from..].iter().map(|sent| sent.queued);
    let waits: Vec<Duration> = waits.filter(|wait| *wait < Duration::MAX).collect();
    let total: Duration = waits.iter().sum();
    let count = u32::try_from(waits.len()).expect("few");
    (waits.into_iter().max().unwrap_or_default(), total / count)
}

fn told(rate: Bitrate, medium: Medium, mode: Mode) -> Bulk {
    Bulk::new(RateSource::Told(rate), medium, mode)
}

#[test]
fn loss_alone_never_lowers_a_right_rate_and_the_queue_stays_empty() {
    for loss in [0.0, 0.1, 0.3, 0.5] {
        let mut run = told(LINK, Medium { loss, ..MEDIUM }, Mode::Reliable);
        let fraction = run.fraction(seconds(20));
        assert!(fraction > 0.93, "loss {loss}: {fraction} {:?}", run.rate());
        assert_eq!(run.rate().reason, RateReason::Declared, "loss {loss}");
        assert_eq!(run.rate().queues_tried, 0, "loss {loss}");
        let (longest, _) = queue(&run, 0);
        let two_packets = LINK.time_to_send(fulmar_proto::units::ByteCount(3000));
        assert!(longest <= two_packets, "loss {loss}: {longest:?}");
    }
}

#[test]
fn a_rate_declared_five_times_too_high_is_found_and_followed() {
    for (loss, queue_packets) in [
        (0.0, 50),
        (0.0, 100),
        (0.1, 100),
        (0.3, 50),
        (0.3, 100),
        (0.5, 50),
    ] {
        let medium = Medium {
            queue_packets,
            loss,
            ..MEDIUM
        };
        let case = format!("loss {loss}, queue {queue_packets}");
        let mut run = told(FIVE_TIMES, medium, Mode::Reliable);
        let first = run.fraction(seconds(3));
        let from = run.link.sent.len();
        let fraction = run.fraction(seconds(30));
        let (longest, mean) = queue(&run, from);
        println!(
            "{case}: first {first:.3}, then {fraction:.3}, queue {longest:?} {mean:?}, {:?}",
            run.rate()
        );
        assert!(fraction > 0.85, "{case}: {fraction}");
        assert!(mean < Duration::from_millis(15), "{case}: {mean:?}");
        assert!(run.rate().declared_wrong, "{case}");
        assert_eq!(run.link.end(0).endpoint_counters().rates_declared_wrong, 1);
    }
}

#[test]
fn modes_without_acknowledgements_follow_too() {
    let mut run = told(FIVE_TIMES, MEDIUM, Mode::Unreliable);
    run.fraction(seconds(3));
    let fraction = run.fraction(seconds(20));
    println!("{fraction} {:?}", run.rate());
    assert!(fraction > 0.85, "{fraction}");
    assert!(run.rate().declared_wrong);
}

#[test]
fn jitter_does_not_lower_the_rate() {
    for loss in [0.0, 0.3] {
        let medium = Medium {
            jitter: Duration::from_millis(20),
            loss,
            ..MEDIUM
        };
        let mut run = told(LINK, medium, Mode::Reliable);
        let fraction = run.fraction(seconds(30));
        println!("loss {loss}: {fraction} {:?}", run.rate());
        assert!(fraction > 0.93, "{fraction} {:?}", run.rate());
    }
}

#[test]
fn a_path_that_becomes_longer_costs_a_moment_not_the_rate() {
    let mut run = told(LINK, MEDIUM, Mode::Reliable);
    run.fraction(seconds(2));
    run.link.medium.delay = Duration::from_millis(120);
    let moment = run.fraction(seconds(5));
    let after = run.fraction(seconds(10));
    println!("{moment} {after} {:?}", run.rate());
    assert!(moment > 0.7, "{moment}");
    assert!(after > 0.97, "{after} {:?}", run.rate());
    assert_eq!(run.rate().reason, RateReason::Declared);
}

#[test]
fn an_outage_does_not_lower_the_rate() {
    let mut run = told(
        LINK,
        Medium {
            loss: 0.1,
            ..MEDIUM
        },
        Mode::Reliable,
    );
    for round in 0..5 {
        run.fraction(seconds(3));
        run.link.medium.down = true;
        run.fraction(seconds(20));
        run.link.medium.down = false;
        let first = run.fraction(seconds(1));
        let after = run.fraction(seconds(5));
        println!("{round}: {first} {after} {:?}", run.rate());
        // Half a second passes until a probe, and TPDUs sent into the outage are retransmitted.
        assert!(first > 0.2, "round {round}: {first} {:?}", run.rate());
        assert!(after > 0.93, "round {round}: {after} {:?}", run.rate());
    }
}

#[test]
fn a_link_that_becomes_slower_and_faster_again_is_followed_both_ways() {
    let mut run = told(
        LINK,
        Medium {
            loss: 0.1,
            ..MEDIUM
        },
        Mode::Reliable,
    );
    run.fraction(seconds(3));
    run.link.medium.rate = Bitrate::from_bits_per_second(3_000_000);
    run.fraction(seconds(3));
    let slow = run.fraction(seconds(15));
    println!("slow {slow} {:?}", run.rate());
    run.link.medium.rate = LINK;
    let rising = run.fraction(seconds(20));
    let fast = run.fraction(seconds(10));
    println!("rising {rising} fast {fast} {:?}", run.rate());
    assert!(slow > 0.85, "{slow}");
    assert!(fast > 0.93, "{fast} {:?}", run.rate());
    assert!(!run.rate().declared_wrong);
}
