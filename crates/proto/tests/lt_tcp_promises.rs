//! What LT-TCP promises beside delivery: loss never shrinks the window, marks do, no loss takes no
//! parity, and a hostile peer harms nothing.

#[expect(dead_code, reason = "other tests use the rest")]
mod stream_lab;

use fulmar_proto::machine::Kind;
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::lt_tcp::{LtTcpConfig, LtTcpEndpoint};
use fulmar_proto::units::{ByteCount, Duration};
use fulmar_proto::wire::aerotp::Port;
use fulmar_proto::wire::lt_tcp::{BlockReport, Extension, Feedback, UnitHeader, write_segment};
use fulmar_proto::wire::network::NodeAddress;
use fulmar_proto::wire::tcp::{AddressPair, SackBlock, TcpFlags, TcpHeader, TcpSeq};
use stream_lab::{Faults, Lab, below, content};

fn lab(seed: u64, faults: Faults, len: usize) -> Lab<LtTcpEndpoint> {
    let mut rng = Rng::from_seed(seed).child("content");
    let configs = [LtTcpConfig {
        data_retries: 100,
        syn_retries: 60,
        // So that the window, not the buffer, is what a test looks at.
        receive_buffer: ByteCount(16 << 20),
        ..LtTcpConfig::default()
    }; 2];
    Lab::<LtTcpEndpoint>::new(seed, faults, content(&mut rng, len), &configs)
}

fn count(lab: &Lab<LtTcpEndpoint>, kind: Kind) -> u64 {
    let kinds = &lab.sides[0].app.sent_kinds;
    kinds.get(&kind).copied().unwrap_or(0)
}

#[test]
fn without_loss_there_is_no_parity_and_nothing_is_sent_twice() {
    let mut lab = lab(1, Faults::default(), 1_000_000);
    assert_eq!(lab.run(), Ok(()));
    assert_eq!(count(&lab, Kind::Repair), 0);
    assert_eq!(count(&lab, Kind::Retransmission), 0);
    assert_eq!(lab.counters(0).timeouts, 0);
}

#[test]
fn loss_without_marks_never_shrinks_the_window() {
    for (seed, loss) in [(1, 0.05), (2, 0.2), (3, 0.4)] {
        let mut lab = lab(seed, Faults::default(), 8_000_000);
        lab.run_for(Duration::from_millis(100));
        lab.faults.loss = loss;
        let mut window = 0;
        for _ in 0..200 {
            lab.run_for(Duration::from_millis(20));
            let Some(status) = lab.status(0) else { break };
            assert!(
                status.window >= window,
                "seed {seed}: {status:?} after {window}"
            );
            window = status.window;
        }
        assert_eq!(lab.counters(0).marks, 0);
        assert_eq!(lab.run(), Ok(()), "seed {seed}");
    }
}

#[test]
fn a_mark_takes_a_fifth_of_the_window_once_in_a_round_trip() {
    let mut lab = lab(1, Faults::default(), 8_000_000);
    lab.run_for(Duration::from_millis(250));
    lab.faults.mark = 1.0;
    let mut before = 0;
    while lab.counters(0).marks == 0 {
        before = lab.status(0).unwrap().window;
        lab.run_for(Duration::from_micros(1));
    }
    // RFC 8511: 4/5 are kept, of what the window was when the mark came, whatever grew with it.
    let status = lab.status(0).unwrap();
    let kept = |window: u64| window * 4 / 5;
    let grown = before + 2 * 1_500;
    assert!(
        (kept(before)..=kept(grown)).contains(&status.window),
        "{status:?} after {before}"
    );
    assert_eq!(status.threshold, status.window, "{status:?}");
    // What was on its way then is marked too, and answered no more: the last of it left up to half a
    // round trip earlier, waiting for the window.
    lab.run_for(Duration::from_millis(20));
    assert_eq!(lab.counters(0).marks, 1);
    lab.run_for(Duration::from_millis(450));
    let marks = lab.counters(0).marks;
    assert!((5..=13).contains(&marks), "one in each 40 ms: {marks}");
    lab.faults.mark = 0.0;
    assert_eq!(lab.run(), Ok(()));
}

#[test]
fn without_ecn_on_either_side_marks_mean_nothing_and_all_arrives() {
    let mut rng = Rng::from_seed(4);
    let config = LtTcpConfig::default();
    let deaf = LtTcpConfig {
        ecn: false,
        ..config
    };
    for configs in [[config, deaf], [deaf, config]] {
        let faults = Faults {
            mark: 1.0,
            ..Faults::default()
        };
        let mut lab = Lab::<LtTcpEndpoint>::new(4, faults, content(&mut rng, 100_000), &configs);
        assert_eq!(lab.run(), Ok(()));
        assert_eq!(lab.counters(0).marks, 0);
    }
}

#[test]
fn a_silence_is_survived_and_the_window_comes_back_with_the_path() {
    let mut lab = lab(1, Faults::default(), 8_000_000);
    lab.run_for(Duration::from_millis(250));
    let before = lab.status(0).unwrap().window;
    lab.faults.loss = 1.0;
    lab.run_for(Duration::from_secs(30));
    assert!(lab.counters(0).timeouts >= 3);
    // Each timeout lets a few units out, not a window.
    assert!(count(&lab, Kind::Repair) + count(&lab, Kind::Retransmission) < 100);
    lab.faults.loss = 0.0;
    // The longest timeout, and half of it for what leaves then to come back.
    let mut after = 0;
    for _ in 0..1_500 {
        lab.run_for(Duration::from_millis(10));
        after = lab
            .status(0)
            .map_or(after, |status| status.window.max(after));
    }
    assert!(after >= before, "{after} after {before}");
    assert_eq!(lab.run(), Ok(()));
}

/// A segment that passes the checksum, with whatever else.
fn forged(rng: &mut Rng, to: usize) -> Vec<u8> {
    let (from, to) = if to == 0 { (2, 1) } else { (1, 2) };
    let addresses = AddressPair::nodes(NodeAddress(from), NodeAddress(to));
    let ports = if from == 1 { (5, 80) } else { (80, 5) };
    let word = |rng: &mut Rng| u32::try_from(rng.below(1 << 32)).expect("32 bits");
    let octet = |rng: &mut Rng| u8::try_from(rng.below(256)).expect("8 bits");
    let short = |rng: &mut Rng| u16::try_from(rng.below(1 << 16)).expect("16 bits");
    let header = TcpHeader {
        source: Port(ports.0),
        destination: Port(ports.1),
        seq: TcpSeq(word(rng)),
        ack: TcpSeq(word(rng)),
        flags: TcpFlags(octet(rng) & !TcpFlags::RST.0),
        window: short(rng),
        ..TcpHeader::default()
    };
    let mut payload = Vec::new();
    let extension = match rng.below(3) {
        0 => Extension::None,
        1 => {
            let unit = UnitHeader {
                ordinal: short(rng),
                block: short(rng),
                index: octet(rng),
                k: octet(rng),
                n: octet(rng),
                length: 1 + u32::try_from(rng.below(5_000)).expect("small"),
            };
            payload.resize(unit.payload_len(), 7);
            Extension::Unit(unit, &payload)
        }
        _ => Extension::Feedback(Feedback {
            arrived_end: short(rng),
            arrivals: short(rng),
            loss: short(rng),
            deviation: short(rng),
            reports: (0..rng.below(16))
                .map(|_| BlockReport {
                    block: u16::try_from(rng.below(8)).expect("small"),
                    received: octet(rng),
                    needed: octet(rng),
                    lost: octet(rng),
                })
                .collect(),
            runs: (0..rng.below(5))
                .map(|_| SackBlock {
                    start: TcpSeq(word(rng)),
                    end: TcpSeq(word(rng)),
                })
                .collect(),
        }),
    };
    let mut out = Vec::new();
    write_segment(&header, &extension, &addresses, &mut Vec::new(), &mut out);
    out
}

#[test]
fn forged_segments_of_any_content_neither_stop_a_transfer_nor_change_an_octet() {
    for seed in 0..20 {
        let mut lab = lab(seed, Faults::default(), 200_000);
        let mut rng = Rng::from_seed(seed).child("forger");
        lab.faults.loss = 0.1;
        for _ in 0..300 {
            let to = below(&mut rng, 2);
            // Numbers are drawn from all there are: almost none is where it would be believed,
            // as with a forger that does not see the path.
            let octets = forged(&mut rng, to);
            lab.inject(to, &octets);
            lab.run_for(Duration::from_millis(1));
        }
        let outcome = lab.run();
        assert_eq!(outcome, Ok(()), "seed {seed}");
    }
}

/// A SYN of nobody, before the peer's or between the peer's and its acknowledgement, had taken the
/// place of the peer's numbers.
#[test]
fn forged_syns_before_the_handshake_s_end_do_not_keep_the_peer_out() {
    for after in 0..100 {
        let mut lab = lab(1, Faults::default(), 10_000);
        lab.run_for(Duration::from_millis(after));
        for seq in [7, 1 << 31, u32::MAX] {
            let header = TcpHeader {
                source: Port(5),
                destination: Port(80),
                seq: TcpSeq(seq),
                flags: TcpFlags::SYN,
                window: 1,
                ..TcpHeader::default()
            };
            let mut octets = Vec::new();
            let addresses = AddressPair::nodes(NodeAddress(1), NodeAddress(2));
            write_segment(
                &header,
                &Extension::None,
                &addresses,
                &mut Vec::new(),
                &mut octets,
            );
            lab.inject(1, &octets);
        }
        assert_eq!(lab.run(), Ok(()), "after {after} ms");
    }
}

#[test]
fn noise_is_counted_and_answered_with_nothing() {
    let mut lab = lab(1, Faults::default(), 10_000);
    let mut rng = Rng::from_seed(9);
    for _ in 0..400 {
        let len = below(&mut rng, 200);
        let octets = content(&mut rng, len);
        lab.inject(1, &octets);
    }
    let counters = lab.counters(1);
    assert_eq!(counters.strangers, 0);
    assert_eq!(counters.checksum + counters.malformed, 400);
    assert_eq!(lab.run(), Ok(()));
}

#[test]
fn a_stranger_s_segment_is_answered_with_one_reset_and_a_reset_with_none() {
    let mut lab = lab(1, Faults::default(), 1_000);
    let addresses = AddressPair::nodes(NodeAddress(1), NodeAddress(2));
    let mut header = TcpHeader {
        source: Port(77),
        destination: Port(80),
        seq: TcpSeq(1),
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    let mut octets = Vec::new();
    write_segment(
        &header,
        &Extension::None,
        &addresses,
        &mut Vec::new(),
        &mut octets,
    );
    lab.inject(1, &octets);
    assert_eq!(lab.counters(1).strangers, 1);
    header.flags = TcpFlags::RST;
    octets.clear();
    write_segment(
        &header,
        &Extension::None,
        &addresses,
        &mut Vec::new(),
        &mut octets,
    );
    lab.inject(1, &octets);
    assert_eq!(lab.counters(1).strangers, 1);
    assert_eq!(lab.run(), Ok(()));
}
