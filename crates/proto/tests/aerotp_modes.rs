//! Each mode keeps exactly what it promises on a lossy pipe.
//!
//! Method: two endpoints on a pipe with a random, seeded fate for each datagram; the promise of
//! the mode is checked octet by octet.

use super::FORM;
use super::pair::{Pair, Script, Way, clean, octets};
use core::num::NonZeroU8;
use fulmar_proto::fec::block::BlockPlan;
use fulmar_proto::machine::{TpduForm, TransmitKind};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AckPolicy, AckStyle, CloseReason, ConnectionConfig, EndpointConfig, Event, RateSource,
};
use fulmar_proto::units::{Bitrate, Duration};
use fulmar_proto::wire::Mode;
use fulmar_proto::wire::TpduSeq;
use fulmar_proto::wire::aerotp::FecStrength;

const DELAY: Duration = Duration::from_millis(10);
pub(crate) const LONG: Duration = Duration::from_secs(600);

pub(crate) fn endpoint() -> EndpointConfig {
    EndpointConfig {
        rate: RateSource::Told(Bitrate::from_bits_per_second(10_000_000)),
        ..EndpointConfig::default()
    }
}

pub(crate) fn config(mode: Mode) -> ConnectionConfig {
    // Numbers wrap within every test.
    ConnectionConfig {
        mode,
        first_seq: TpduSeq(u32::MAX - 20),
        ..ConnectionConfig::default()
    }
}

/// A script that loses and damages datagrams both ways.
pub(crate) fn lossy(seed: u64, loss: f64, flip: f64) -> Script {
    let mut rng = Rng::from_seed(seed).child("pipe");
    Box::new(move |_, _, _, octets| {
        if rng.chance(loss) {
            return Vec::new();
        }
        let mut octets = octets.to_vec();
        for octet in &mut octets {
            for bit in 0..8 {
                if rng.chance(flip) {
                    *octet ^= 1 << bit;
                }
            }
        }
        vec![(DELAY, octets)]
    })
}

/// A script that loses datagrams both ways and damages none.
fn lossy_only(seed: u64, loss: f64) -> Script {
    let mut rng = Rng::from_seed(seed).child("pipe");
    Box::new(move |_, _, _, octets| {
        if rng.chance(loss) {
            Vec::new()
        } else {
            vec![(DELAY, octets.to_vec())]
        }
    })
}

fn closed(pair: &Pair, way: Way) -> Option<CloseReason> {
    pair.events(way).iter().find_map(|event| match event {
        Event::Closed { why, .. } => Some(*why),
        _ => None,
    })
}

#[test]
fn every_mode_delivers_everything_on_a_clean_pipe_without_any_redundancy() {
    let sent = octets(300_000);
    for mode in [
        Mode::Unreliable,
        Mode::QuasiReliable,
        Mode::NearReliable,
        Mode::Reliable,
        Mode::HybridNack,
        Mode::HybridNackMack,
    ] {
        let mut pair = Pair::new(endpoint(), config(mode), clean(DELAY));
        pair.send(config(mode), &sent);
        pair.run(LONG);
        assert!(
            pair.received() == sent,
            "{mode}: {} octets",
            pair.received().len()
        );
        let tpdus = match FORM {
            TpduForm::Long => 206,
            TpduForm::Short => 204,
        };
        assert_eq!(pair.sent(TransmitKind::Source), tpdus, "{mode}");
        assert_eq!(
            pair.sent(TransmitKind::Retransmission) + pair.sent(TransmitKind::Repair),
            0,
            "{mode}"
        );
        assert_eq!(
            closed(&pair, Way::Forward),
            Some(CloseReason::Finished),
            "{mode}"
        );
        assert_eq!(
            closed(&pair, Way::Back),
            Some(CloseReason::Finished),
            "{mode}"
        );
        assert_eq!(
            pair.endpoint(Way::Forward).connection_count(),
            0,
            "{mode}: forgotten"
        );
        assert_eq!(
            pair.endpoint(Way::Back).connection_count(),
            0,
            "{mode}: forgotten"
        );
    }
}

#[test]
fn confirming_modes_deliver_everything_through_loss_and_damage() {
    let sent = octets(200_000);
    for mode in [Mode::NearReliable, Mode::Reliable, Mode::HybridNackMack] {
        for (seed, loss, flip) in [
            (1, 0.05, 1e-9),
            (2, 0.3, 1e-5),
            (3, 0.5, 1e-9),
            (4, 0.0, 5e-5),
        ] {
            let mut pair = Pair::new(endpoint(), config(mode), lossy(seed, loss, flip));
            pair.send(config(mode), &sent);
            pair.run(LONG);
            let got = pair.received();
            assert!(
                got == sent,
                "{mode} at loss {loss}, BER {flip}: {} octets",
                got.len()
            );
            let why = closed(&pair, Way::Forward);
            assert_eq!(
                why,
                Some(CloseReason::Finished),
                "{mode} at loss {loss}, BER {flip}"
            );
        }
    }
}

#[test]
fn no_datagram_of_any_mode_is_larger_than_the_configured_tpdu() {
    let sent = octets(20_000);
    for mode in [
        Mode::NearReliable,
        Mode::Reliable,
        Mode::HybridNackMack,
        Mode::QuasiReliable,
    ] {
        for style in [AckStyle::Cumulative, AckStyle::Listed] {
            let ack = AckPolicy {
                every: 365,
                style,
                ..AckPolicy::default()
            };
            let k = NonZeroU8::new(20).expect("not zero");
            let small = ConnectionConfig {
                tpdu_bytes_max: 200,
                fec_words: FecStrength::from_words(3).expect("a strength"),
                block: BlockPlan::new(k, 4, Duration::from_millis(100)),
                ack,
                ..config(mode)
            };
            let mut lose = lossy(8, 0.3, 1e-4);
            let script: Script = Box::new(move |way, ordinal, now, octets| {
                assert!(octets.len() <= 200, "{} octets", octets.len());
                lose(way, ordinal, now, octets)
            });
            let mut pair = Pair::new(endpoint(), small, script);
            pair.send(small, &sent);
            pair.run(LONG);
            let complete = mode == Mode::QuasiReliable || pair.received() == sent;
            assert!(complete, "{mode} {style:?}");
        }
    }
}

#[test]
fn repair_symbols_bring_back_what_a_quasi_reliable_block_lost() {
    let sent = octets(600_000);
    let k = NonZeroU8::new(20).expect("not zero");
    let plan = BlockPlan::new(k, 10, Duration::from_millis(100));
    let coded = ConnectionConfig {
        block: plan,
        ..config(Mode::QuasiReliable)
    };
    let mut pair = Pair::new(endpoint(), coded, lossy(9, 0.05, 1e-9));
    pair.send(coded, &sent);
    pair.run(LONG);
    // A block of 20 + 10 fails at 5 % loss with probability 4e-7; there are 21 of them.
    assert_eq!(pair.missing(), 0);
    assert!(pair.received() == sent);
    // TPDUs of 1454 octets. In the short form they have 1457, and 1467 once the peer was heard; it may take a while at
    // 5 % loss.
    let tpdus = pair.sent(TransmitKind::Source);
    match FORM {
        TpduForm::Long => assert_eq!(tpdus, 413),
        TpduForm::Short => assert!((409..=412).contains(&tpdus), "{tpdus}"),
    }
    // 20 full blocks, and ceil(n * 10 / 20) repairs for the n sources of the last.
    let last = (tpdus - 20 * 20).div_ceil(2);
    assert_eq!(pair.sent(TransmitKind::Repair), 20 * 10 + last);
}

/// The residual share of TPDUs under independent loss `p`, from the code alone: a block of `k + r`
/// fails when more than `r` of its symbols are lost, and then loses its lost sources. Summed over
/// `lost`, of which the share `k / (k + r)` are sources.
fn residual_of_code(k: u32, r: u32, p: f64) -> f64 {
    let n = k + r;
    let mut chance = (1.0 - p).powi(i32::try_from(n).expect("small"));
    let mut residual = 0.0;
    for lost in 0..=n {
        if lost > r {
            residual += chance * f64::from(lost) / f64::from(n);
        }
        chance *= f64::from(n - lost) / f64::from(lost + 1) * p / (1.0 - p);
    }
    residual
}

/// A listener knows nothing of the peer's blocks; at 5 mbit one of 32 + 16 takes 115 ms.
#[test]
fn a_listener_waits_for_the_parity_of_a_slow_link_and_loses_what_the_code_loses() {
    let slow = EndpointConfig {
        rate: RateSource::Told(Bitrate::from_bits_per_second(5_000_000)),
        ..EndpointConfig::default()
    };
    let k = NonZeroU8::new(32).expect("not zero");
    let coded = ConnectionConfig {
        block: BlockPlan::new(k, 16, Duration::from_millis(100)),
        ..config(Mode::QuasiReliable)
    };
    let sent = octets(20_000_000);
    let mut pair = Pair::new(slow, config(Mode::QuasiReliable), lossy_only(11, 0.2));
    pair.send(coded, &sent);
    pair.run(LONG);
    let tpdus = pair.sent(TransmitKind::Source) as f64;
    let share = f64::from(pair.missing()) / tpdus;
    let expected = residual_of_code(32, 16, 0.2);
    // Failed blocks are independent: about 430 blocks, each failing with probability q and then
    // losing about 12 of 32; four standard deviations.
    let blocks = tpdus / 32.0;
    let sd = (expected * (12.0 / 32.0) / blocks).sqrt();
    assert!(
        (share - expected).abs() < 4.0 * sd,
        "seed 11: {share} instead of {expected} +- {sd}"
    );
}

#[test]
fn a_slow_reader_stops_the_sender_and_nothing_is_lost() {
    let small = ConnectionConfig {
        window_tpdus: 16,
        ..config(Mode::Reliable)
    };
    let sent = octets(100_000);
    let mut pair = Pair::new(endpoint(), small, lossy(7, 0.2, 1e-9));
    pair.stop_reading();
    pair.send(small, &sent);
    pair.run(Duration::from_secs(20));
    assert_eq!(pair.received().len(), 0);
    let mut got = Vec::new();
    for _ in 0..200 {
        let mut chunks = Vec::new();
        pair.app(Way::Back, |endpoint, now, id| {
            while let Some(chunk) = endpoint.read(now, id) {
                chunks.push(chunk.octets);
            }
        });
        got.extend(chunks.concat());
        pair.run(Duration::from_millis(500));
    }
    assert!(got == sent, "{} of {} octets", got.len(), sent.len());
}
