//! A rate that nobody told: the endpoint finds it from the reports in acknowledgements.
//!
//! Method: two endpoints and a bottleneck of 10 mbit with 20 ms each way; what the other end sends has no limit of
//! rate. Fractions are of the octets that the bottleneck can carry, the start included.

use super::bottleneck::Medium;
use super::bottleneck::bulk::{Bulk, LINK, MEDIUM, seconds};
use fulmar_proto::machine::TransmitKind;
use fulmar_proto::rate::{RateCause, RateSharing};
use fulmar_proto::transport::aerotp::{RateReason, RateSource};
use fulmar_proto::units::{Bitrate, Duration};
use fulmar_proto::wire::Mode;

fn found(bound: Option<Bitrate>) -> RateSource {
    let sharing = RateSharing::default();
    RateSource::Found {
        bound,
        first: None,
        sharing,
    }
}

#[test]
fn every_mode_with_a_connection_fills_the_link_whatever_is_lost() {
    for mode in [
        Mode::Reliable,
        Mode::NearReliable,
        Mode::HybridNackMack,
        Mode::Unreliable,
    ] {
        for loss in [0.0, 0.3] {
            let medium = Medium { loss, ..MEDIUM };
            let mut run = Bulk::new(found(None), medium, mode);
            let fraction = run.fraction(seconds(10));
            println!("{mode} {loss}: {fraction:.3} {:?}", run.rate());
            // Modes that do not repeat have no more than what arrives at first.
            assert!(fraction > 0.9, "{mode} {loss}: {fraction} {:?}", run.rate());
            let delivered = run.rate().delivered.expect("reports came");
            let expected = LINK.scaled(1.0 - loss);
            assert!(delivered > expected.scaled(0.8), "{delivered}");
            assert!(matches!(run.rate().reason, RateReason::Found(_)));
        }
    }
}

#[test]
fn a_bound_holds() {
    let bound = Bitrate::from_bits_per_second(4_000_000);
    let mut run = Bulk::new(found(Some(bound)), MEDIUM, Mode::Reliable);
    let fraction = run.fraction(seconds(5));
    assert!((0.36..0.401).contains(&fraction), "{fraction}");
    assert_eq!(run.rate().declared, bound);
    assert_eq!(run.rate().reason, RateReason::Found(RateCause::Bound));
}

#[test]
fn a_link_that_becomes_slower_and_faster_again_is_followed_both_ways() {
    let mut run = Bulk::new(
        found(None),
        Medium {
            loss: 0.1,
            ..MEDIUM
        },
        Mode::Reliable,
    );
    run.fraction(seconds(3));
    run.link.medium.rate = Bitrate::from_bits_per_second(3_000_000);
    run.fraction(seconds(3));
    let slow = run.fraction(seconds(5));
    run.link.medium.rate = LINK;
    run.fraction(seconds(4));
    let fast = run.fraction(seconds(5));
    println!("slow {slow:.3} fast {fast:.3} {:?}", run.rate());
    assert!(slow > 0.9, "{slow}");
    assert!(fast > 0.9, "{fast} {:?}", run.rate());
}

#[test]
fn after_an_idle_minute_and_after_an_outage_the_rate_is_as_before() {
    let mut run = Bulk::new(found(None), MEDIUM, Mode::Reliable);
    run.fraction(seconds(3));
    // What is written is sent, and the connection rests.
    run.link.run(seconds(60));
    let after = run.fraction(seconds(2));
    println!("after idleness {after:.3} {:?}", run.rate());
    assert!(after > 0.9, "{after} {:?}", run.rate());
    run.link.medium.down = true;
    run.fraction(seconds(20));
    run.link.medium.down = false;
    let first = run.fraction(seconds(1));
    let after = run.fraction(seconds(5));
    println!("after an outage {first:.3} {after:.3} {:?}", run.rate());
    assert!(first > 0.2, "{first} {:?}", run.rate());
    assert!(after > 0.9, "{after} {:?}", run.rate());
}

#[test]
fn while_nobody_answers_little_is_sent() {
    let mut run = Bulk::new(
        found(None),
        Medium {
            down: true,
            ..MEDIUM
        },
        Mode::Reliable,
    );
    run.link.write(run.id, 4 << 20);
    run.link.run(seconds(10));
    let sent = run.link.sent.len();
    // Ten at first, and three behind each silence of 0.05 to 0.4 s.
    assert!((20..=100).contains(&sent), "{sent}");
}

#[test]
fn small_messages_leave_at_once_and_what_follows_them_is_not_slow() {
    let mut run = Bulk::new(found(None), MEDIUM, Mode::Reliable);
    for _ in 0..50 {
        let from = run.link.sent.len();
        let at = run.link.now;
        run.link.write(run.id, 200);
        run.link.run(Duration::from_millis(100));
        let sent = run.link.sent[from..].iter();
        let first = sent.clone().find(|sent| sent.kind == TransmitKind::Source);
        let waited = first.expect("it left").at.saturating_since(at);
        // A datagram of that length takes longer on the link.
        assert!(waited < Duration::from_micros(150), "{waited:?}");
    }
    let after = run.fraction(seconds(3));
    println!("after messages {after:.3} {:?}", run.rate());
    assert!(after > 0.85, "{after} {:?}", run.rate());
}
