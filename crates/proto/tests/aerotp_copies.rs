//! Each TPDU is sent n times: delivered once, and asked for again only when all its copies are
//! lost.
//!
//! Method: two endpoints on a pipe. Where a case is about a certain copy, the pipe tells copies by their
//! sequence number and timestamp and drops or damages the one that the case names; elsewhere the fates are
//! random and seeded.

use super::FORM;
use super::pair::{Pair, Script, Way, clean, octets};
use super::sight::tpdu;
use core::num::NonZeroU8;
use fulmar_proto::machine::{PathId, TpduForm, TransmitKind};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AckPolicy, CloseReason, ConnectionConfig, Counters, EndpointConfig, Event, RateSource,
};
use fulmar_proto::units::{Bitrate, Duration, Instant};
use fulmar_proto::wire::Mode;
use fulmar_proto::wire::TpduSeq;
use fulmar_proto::wire::aerotp::{FecStrength, TpduKind};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

pub(crate) const DELAY: Duration = Duration::from_millis(10);
const LONG: Duration = Duration::from_secs(600);
pub(crate) const RATE: Bitrate = Bitrate::from_bits_per_second(10_000_000);
pub(crate) const SLOW: Bitrate = Bitrate::from_bits_per_second(200_000);
/// The TPDUs of 300,000 octets.
pub(crate) const TPDUS: u64 = match FORM {
    TpduForm::Long => 206,
    TpduForm::Short => 204,
};

pub(crate) const CONNECTED: [Mode; 6] = [
    Mode::Unreliable,
    Mode::QuasiReliable,
    Mode::NearReliable,
    Mode::Reliable,
    Mode::HybridNack,
    Mode::HybridNackMack,
];
const COMPLETE: [Mode; 3] = [Mode::NearReliable, Mode::Reliable, Mode::HybridNackMack];

fn endpoint() -> EndpointConfig {
    EndpointConfig {
        rate: RateSource::Told(RATE),
        ..EndpointConfig::default()
    }
}

pub(crate) fn config(mode: Mode, copies: u8) -> ConnectionConfig {
    // Numbers wrap within every test.
    ConnectionConfig {
        mode,
        copies: NonZeroU8::new(copies).expect("at least one"),
        first_seq: TpduSeq(u32::MAX - 20),
        ..ConnectionConfig::default()
    }
}

/// The fate of one transmission of a TPDU with data.
pub(crate) enum Fate {
    Whole,
    Lost,
    Damaged,
}

/// A pipe that decides by the number of times it has seen the TPDU before; everything else passes.
pub(crate) fn by_copy(mut fate: impl FnMut(u64) -> Fate + 'static) -> Script {
    by_copy_of(move |_, count| fate(count))
}

/// A pipe that decides by the number of the TPDU, too.
pub(crate) fn by_copy_of(mut fate: impl FnMut(TpduSeq, u64) -> Fate + 'static) -> Script {
    let mut seen = BTreeMap::<u32, u64>::new();
    Box::new(move |_, _, _, octets| {
        let mut octets = octets.to_vec();
        let passing = tpdu(&octets).expect("nothing is damaged before");
        let (kind, seq) = (passing.kind(), passing.header.seq);
        if matches!(kind, TpduKind::Data { .. }) {
            let count = seen.entry(seq.0).or_default();
            *count += 1;
            match fate(seq, *count - 1) {
                Fate::Whole => {}
                Fate::Lost => return Vec::new(),
                // An octet of the body.
                Fate::Damaged => octets[100] ^= 0x55,
            }
        }
        vec![(DELAY, octets)]
    })
}

/// The settings without precautionary repetitions of the tail.
pub(crate) fn without_tail(config: ConnectionConfig) -> ConnectionConfig {
    ConnectionConfig {
        tail_repeats: 0,
        ..config
    }
}

fn lossy(seed: u64, loss: f64, flip: f64) -> Script {
    let mut rng = Rng::from_seed(seed).child("pipe");
    Box::new(move |_, _, _, octets| {
        if rng.chance(loss) {
            return Vec::new();
        }
        let mut octets = octets.to_vec();
        for octet in &mut octets {
            if rng.chance(flip) {
                *octet ^= 1;
            }
        }
        vec![(DELAY, octets)]
    })
}

pub(crate) fn run(config: ConnectionConfig, script: Script, sent: &[u8]) -> Pair {
    run_at(RATE, config, script, sent)
}

pub(crate) fn run_at(rate: Bitrate, config: ConnectionConfig, script: Script, sent: &[u8]) -> Pair {
    let endpoint = EndpointConfig {
        rate: RateSource::Told(rate),
        ..endpoint()
    };
    let mut pair = Pair::new(endpoint, config, script);
    pair.send(config, sent);
    pair.run(LONG);
    pair
}

pub(crate) fn finished(pair: &Pair) -> bool {
    let finished = |event: &Event| {
        matches!(
            event,
            Event::Closed {
                why: CloseReason::Finished,
                ..
            }
        )
    };
    pair.events(Way::Forward).iter().any(finished) && pair.events(Way::Back).iter().any(finished)
}

pub(crate) fn counters(pair: &Pair, way: Way) -> Counters {
    pair.endpoint(way).path_counters(PathId(0))
}

pub(crate) fn held_lost(sender: &Counters) -> u64 {
    sender.held_lost_overtaken + sender.held_lost_nack + sender.held_lost_timeout
}

#[test]
fn on_a_clean_pipe_every_tpdu_leaves_n_times_and_is_delivered_once_in_every_mode() {
    let sent = octets(300_000);
    for mode in CONNECTED {
        for copies in 1..=3_u8 {
            let pair = run(config(mode, copies), clean(DELAY), &sent);
            let extra = u64::from(copies - 1);
            assert!(finished(&pair), "{mode}, {copies}");
            assert!(pair.received() == sent, "{mode}, {copies}");
            assert_eq!(pair.sent(TransmitKind::Source), TPDUS, "{mode}, {copies}");
            assert_eq!(
                pair.sent(TransmitKind::Retransmission),
                extra * TPDUS,
                "{mode}, {copies}"
            );
            let (sender, receiver) = (counters(&pair, Way::Forward), counters(&pair, Way::Back));
            assert_eq!(sender.copied_tpdus, extra * TPDUS, "{mode}, {copies}");
            assert_eq!(held_lost(&sender), 0, "{mode}, {copies}");
            assert_eq!(sender.recovered_arq, [0; 3], "{mode}, {copies}");
            assert_eq!(receiver.accepted_tpdus, TPDUS, "{mode}, {copies}");
            assert_eq!(receiver.duplicates, extra * TPDUS, "{mode}, {copies}");
            assert_eq!(receiver.wire_lost, 0, "{mode}, {copies}");
        }
    }
}

#[test]
fn copies_take_their_time_from_the_one_budget() {
    let busy = Rc::new(Cell::new((Instant::START, 0_u64)));
    let seen = busy.clone();
    let script: Script = Box::new(move |way, _, now, octets| {
        if way == Way::Forward {
            let (_, wire) = seen.get();
            // 20 octets of headers below.
            seen.set((now, wire + octets.len() as u64 + 20));
        }
        vec![(DELAY, octets.to_vec())]
    });
    let pair = run(config(Mode::Unreliable, 3), script, &octets(300_000));
    assert!(pair.received().len() == 300_000);
    let (last, wire) = busy.get();
    let least = RATE.time_to_send(fulmar_proto::units::ByteCount(wire));
    // Control may run two packets ahead.
    let lead = RATE.time_to_send(fulmar_proto::units::ByteCount(2 * 1500));
    let took = last.saturating_since(Instant::START);
    assert!(took + lead >= least, "{wire} octets in {took:?}");
}

#[test]
fn while_one_copy_of_each_comes_through_nothing_is_asked_for_again() {
    let sent = octets(300_000);
    for mode in CONNECTED {
        for (copies, kept) in [(2, 0), (2, 1), (3, 1), (3, 2)] {
            let lose = by_copy(move |count| {
                if count == kept {
                    Fate::Whole
                } else {
                    Fate::Lost
                }
            });
            let pair = run(config(mode, copies), lose, &sent);
            let name = format!("{mode}, copy {kept} of {copies}");
            assert!(finished(&pair) && pair.received() == sent, "{name}");
            let sender = counters(&pair, Way::Forward);
            assert_eq!(held_lost(&sender), 0, "{name}");
            let all = u64::from(copies - 1) * TPDUS;
            assert_eq!(pair.sent(TransmitKind::Retransmission), all, "{name}");
            let receiver = counters(&pair, Way::Back);
            assert_eq!(
                (receiver.wire_lost, receiver.residual_lost),
                (0, 0),
                "{name}"
            );
        }
    }
}

#[test]
fn retransmissions_are_counted_by_attempts_and_not_by_copies() {
    let sent = octets(300_000);
    for mode in COMPLETE {
        // Both copies of the first attempt are lost, so that the first retransmission recovers each.
        let lose = by_copy(|count| if count < 2 { Fate::Lost } else { Fate::Whole });
        let pair = run(without_tail(config(mode, 2)), lose, &sent);
        assert!(finished(&pair) && pair.received() == sent, "{mode}");
        let sender = counters(&pair, Way::Forward);
        let tpdus = pair.sent(TransmitKind::Source);
        assert_eq!(sender.recovered_arq, [tpdus, 0, 0], "{mode}");
    }
}

#[test]
fn a_tail_repeated_as_a_precaution_does_not_count_as_recovered() {
    let sent = octets(300_000);
    let first = config(Mode::Reliable, 1).first_seq;
    for mode in COMPLETE {
        // Of each fourth TPDU of the first hundred the first transmission is lost: that losses were seen has the tail repeated, of
        // which nothing is lost.
        let lose = by_copy_of(move |seq, count| {
            let place = seq.offset_from(first);
            if place < 100 && place.is_multiple_of(4) && count == 0 {
                Fate::Lost
            } else {
                Fate::Whole
            }
        });
        let pair = run(config(mode, 1), lose, &sent);
        assert!(finished(&pair) && pair.received() == sent, "{mode}");
        assert!(pair.sent(TransmitKind::Retransmission) > 25, "{mode}");
        let sender = counters(&pair, Way::Forward);
        assert_eq!(sender.recovered_arq, [25, 0, 0], "{mode}");
    }
}

#[test]
fn copies_neither_shorten_the_round_trip_nor_pass_for_reordering() {
    for mode in COMPLETE {
        let rtt = |copies| {
            let config = config(mode, copies);
            let mut pair = Pair::new(endpoint(), config, clean(DELAY));
            let id = pair.send(config, &octets(3_000_000));
            pair.run_until(Instant::START + Duration::from_secs(2));
            let rtt = pair.endpoint(Way::Forward).rtt(id);
            rtt.expect("it has been measured")
        };
        let (once, often) = (rtt(1), rtt(5));
        let apart = once.saturating_sub(often).max(often.saturating_sub(once));
        // Timestamps count microseconds, holds are coded.
        assert!(
            apart < DELAY / 20,
            "{mode}: {once:?} once, {often:?} five times"
        );
    }
}

#[test]
fn copies_do_not_multiply_acknowledgements() {
    for mode in COMPLETE {
        let answers = |copies| {
            // The number of TPDUs decides when to answer, not the time that they take.
            let ack = AckPolicy {
                flush: Duration::from_secs(1),
                ..AckPolicy::default()
            };
            let config = ConnectionConfig {
                ack,
                ..config(mode, copies)
            };
            let pair = run(config, clean(DELAY), &octets(3_000_000));
            let control = counters(&pair, Way::Back).sent_tpdus[3];
            control as f64
        };
        let (once, twice) = (answers(1), answers(2));
        // TPDUs of set-up and close come on top, and a MACK between two copies hears of the second
        // again.
        assert!(twice <= 1.2 * once, "{mode}: {once} once, {twice} twice");
    }
}

#[test]
fn through_random_loss_and_damage_everything_is_delivered_once() {
    let sent = octets(100_000);
    for mode in COMPLETE {
        for seed in 0..40_u64 {
            let copies = 2 + u8::try_from(seed % 3).expect("small");
            let (loss, flip) = (
                [0.05, 0.3, 0.6][usize::try_from(seed % 3).expect("small")],
                1e-4,
            );
            let words = FecStrength::from_words(if seed % 2 == 0 { 4 } else { 0 });
            let config = ConnectionConfig {
                fec_words: words.expect("a strength"),
                ..config(mode, copies)
            };
            let pair = run(config, lossy(seed, loss, flip), &sent);
            assert!(pair.received() == sent, "{mode}, seed {seed}");
            assert!(finished(&pair), "{mode}, seed {seed}");
        }
    }
}

#[test]
fn without_retransmissions_what_is_missing_falls_with_the_power_of_the_copies() {
    let sent = octets(3_000_000);
    for mode in [Mode::Unreliable, Mode::QuasiReliable, Mode::HybridNack] {
        for (copies, seed) in [(1, 21), (2, 22), (3, 23)] {
            let loss = 0.3_f64;
            let pair = run(config(mode, copies), lossy(seed, loss, 0.0), &sent);
            let tpdus = pair.sent(TransmitKind::Source) as f64;
            let expected = loss.powi(i32::from(copies));
            // Four standard deviations of independent losses.
            let allowed = 4.0 * (expected * (1.0 - expected) / tpdus).sqrt();
            let share = f64::from(pair.missing()) / tpdus;
            assert!(
                (share - expected).abs() < allowed,
                "{mode}, {copies} copies, seed {seed}: {share} instead of {expected} +- {allowed}"
            );
        }
    }
}

#[test]
fn what_copies_cannot_go_with_is_named_with_the_way_out() {
    let two = config(Mode::QuasiReliable, 2);
    let k = NonZeroU8::new(20).expect("not zero");
    let block = fulmar_proto::fec::block::BlockPlan::new(k, 4, DELAY);
    let no_connection = config(Mode::Datagram, 2).payload_bytes();
    let text = no_connection.expect_err("refused").to_string();
    assert!(
        text.starts_with("`copies` ") && text.contains("unreliable"),
        "{text}"
    );
    for (config, other) in [
        (ConnectionConfig { block, ..two }, "`block`"),
        (
            ConnectionConfig {
                adapt: Some(DELAY),
                mode: Mode::Reliable,
                ..two
            },
            "adapt",
        ),
        (
            ConnectionConfig {
                deliver_damaged: true,
                ..two
            },
            "deliver_damaged",
        ),
    ] {
        let error = config.payload_bytes().expect_err("refused");
        assert_eq!(error.field, "copies");
        let text = error.to_string();
        assert!(
            text.contains(other) && text.contains("leave one of them out"),
            "{text}"
        );
        let once = ConnectionConfig {
            copies: NonZeroU8::MIN,
            ..config
        };
        assert!(once.payload_bytes().is_ok(), "{other} alone");
    }
}
