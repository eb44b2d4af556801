//! Forgers against LT-TCP: without a connection's numbers they can do nothing, and with them no more
//! than its numbers allow.
//!
//! Method: beside a transfer, segments with right checksums are handed to either end. The test
//! decides what the forger knows of the numbers: those that were sent last, near which it guesses.

use crate::stream_lab::{Faults, Lab, below, content};
use fulmar_baseline::lt_tcp::{LtTcpConfig, LtTcpEndpoint};
use fulmar_baseline::wire::lt_tcp::{
    Extension, LtSegment, LtTcpBlockReport, LtTcpFeedback, UnitHeader, write_segment,
};
use fulmar_baseline::wire::tcp::{AddressPair, SackBlock, TcpFlags, TcpHeader, TcpSeq};
use fulmar_proto::machine::TransmitKind;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration};
use fulmar_proto::wire::Port;
use fulmar_proto::wire::network::NodeAddress;

/// A buffer so narrow that a number drawn from all possible ones is trusted once in 32,000 times.
const BUFFER: ByteCount = ByteCount(64 << 10);
/// Memory for the answers that wait in an endpoint, and for events.
const ENDPOINT_BYTES_MAX: usize = 65_536;

/// The forger's knowledge of the numbers that an end trusts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Knows {
    Nothing,
    Sequence,
    Acknowledgement,
    Both,
}

fn config() -> LtTcpConfig {
    LtTcpConfig {
        data_retries: 100,
        syn_retries: 60,
        receive_buffer: BUFFER,
        send_buffer: BUFFER,
        ..LtTcpConfig::default()
    }
}

fn lab(seed: u64, faults: Faults, len: usize) -> Lab<LtTcpEndpoint> {
    let mut rng = Rng::from_seed(seed).child("content");
    Lab::<LtTcpEndpoint>::new(seed, faults, content(&mut rng, len), &[config(); 2])
}

/// The addresses of a segment from the other end to `to`.
fn addresses(to: usize) -> AddressPair {
    let ends = [NodeAddress(1), NodeAddress(2)];
    AddressPair::nodes(ends[1 - to], ends[to])
}

/// The header and the feedback that the peer of `to` sent last.
fn seen(lab: &Lab<LtTcpEndpoint>, to: usize) -> (TcpHeader, Option<LtTcpFeedback>) {
    let octets = &lab.sides[1 - to].app.last;
    let segment = LtSegment::parse(&addresses(to), octets).expect("it was sent");
    let feedback = match segment.extension {
        Extension::Feedback(feedback) => Some(feedback),
        _ => None,
    };
    (segment.header, feedback)
}

fn written(header: &TcpHeader, extension: &Extension<'_>, to: usize) -> Vec<u8> {
    let mut out = Vec::new();
    write_segment(header, extension, &addresses(to), &mut Vec::new(), &mut out);
    out
}

fn word(rng: &mut Rng) -> u32 {
    u32::try_from(rng.below(1 << 32)).expect("32 bits")
}

fn short(rng: &mut Rng) -> u16 {
    u16::try_from(rng.below(1 << 16)).expect("16 bits")
}

fn octet(rng: &mut Rng) -> u8 {
    u8::try_from(rng.below(256)).expect("8 bits")
}

/// A number up to `behind` before and `ahead` behind the one seen, if that is known.
fn number(rng: &mut Rng, known: Option<TcpSeq>, (behind, ahead): (u32, u32)) -> TcpSeq {
    let Some(seen) = known else {
        return TcpSeq(word(rng));
    };
    let off = u32::try_from(rng.below(u64::from(behind + ahead))).expect("small");
    seen.plus(off).plus(behind.wrapping_neg())
}

fn reports(rng: &mut Rng) -> Vec<LtTcpBlockReport> {
    (0..rng.below(16))
        .map(|_| LtTcpBlockReport {
            block: u16::try_from(rng.below(40)).expect("small"),
            received: octet(rng),
            needed: octet(rng),
            lost: octet(rng),
        })
        .collect()
}

fn runs(rng: &mut Rng, ack: TcpSeq) -> Vec<SackBlock> {
    (0..rng.below(5))
        .map(|_| SackBlock {
            start: number(rng, Some(ack), (5_000, 60_000)),
            end: number(rng, Some(ack), (5_000, 60_000)),
        })
        .collect()
}

/// A unit of a possible shape, or now and then of any; its octets are written to `payload`.
fn unit(rng: &mut Rng, payload: &mut Vec<u8>) -> UnitHeader {
    let mut unit = UnitHeader {
        ordinal: short(rng),
        block: short(rng),
        index: octet(rng),
        k: octet(rng),
        n: octet(rng),
        length: 1 + u32::try_from(rng.below(5_000)).expect("small"),
    };
    if rng.chance(0.9) {
        unit.k = 1 + unit.k % 32;
        unit.n = unit.k + unit.n % 32;
        unit.index %= unit.n;
        unit.length = unit.length.max(u32::from(unit.k) * 40);
    }
    payload.resize(unit.payload_len(), 7);
    unit
}

/// A segment to `to` that passes the checksum, with any other content. It acknowledges something
/// and is neither a SYN nor a reset, so that its numbers and its content are tested.
fn forged(rng: &mut Rng, lab: &Lab<LtTcpEndpoint>, to: usize, knows: Knows) -> Vec<u8> {
    let (seen, _) = seen(lab, to);
    let known = |number, by: Knows| (knows == by || knows == Knows::Both).then_some(number);
    let others = TcpFlags::SYN.0 | TcpFlags::RST.0 | TcpFlags::FIN.0;
    let header = TcpHeader {
        seq: number(rng, known(seen.seq, Knows::Sequence), (8_000, 30_000)),
        ack: number(
            rng,
            known(seen.ack, Knows::Acknowledgement),
            (3_000, 10_000),
        ),
        flags: TcpFlags(octet(rng) & !others)
            .with(TcpFlags::ACK, true)
            .with(TcpFlags::FIN, rng.chance(0.03)),
        window: short(rng),
        ..seen
    };
    let mut payload = Vec::new();
    let extension = if rng.chance(0.6) {
        Extension::Unit(unit(rng, &mut payload), &payload)
    } else {
        Extension::Feedback(LtTcpFeedback {
            arrived_end: short(rng),
            arrivals: short(rng),
            loss: short(rng),
            deviation: short(rng),
            reports: reports(rng),
            runs: runs(rng, header.ack),
        })
    };
    written(&header, &extension, to)
}

/// Counts the segments whose numbers were not trusted, or which were dropped before that.
fn dropped(lab: &Lab<LtTcpEndpoint>, side: usize) -> u64 {
    let counters = lab.counters(side);
    counters.unbelieved + counters.malformed + counters.strangers
}

/// Injects `count` segments, a millisecond apart. Returns how many of them had to be judged by
/// their content.
fn attack(
    lab: &mut Lab<LtTcpEndpoint>,
    rng: &mut Rng,
    count: u32,
    mut knows: impl FnMut(&mut Rng) -> Knows,
) -> u32 {
    let mut judged = 0;
    for _ in 0..count {
        let to = below(rng, 2);
        let knows = knows(rng);
        let octets = forged(rng, lab, to, knows);
        let before = dropped(lab, to);
        lab.inject(to, &octets);
        judged += u32::from(dropped(lab, to) == before);
        for side in 0..2 {
            let most = LtTcpEndpoint::connection_memory_max(&config()) + ENDPOINT_BYTES_MAX;
            assert!(lab.memory_bytes(side) <= most);
        }
        lab.run_for(Duration::from_millis(1));
    }
    judged
}

/// The time after which the handshake is over and data are on their way.
const UNDER_WAY: Duration = Duration::from_millis(100);

/// Forgers here do not see the path, or see only one way of it.
#[test]
fn without_both_numbers_nothing_is_believed_whatever_it_carries() {
    let ignorant = [Knows::Nothing, Knows::Sequence, Knows::Acknowledgement];
    for seed in 0..20 {
        let mut lab = lab(seed, Faults::default(), 2_000_000);
        let mut rng = Rng::from_seed(seed).child("forger");
        lab.run_for(UNDER_WAY);
        lab.faults.loss = 0.1;
        let judged = attack(&mut lab, &mut rng, 300, |rng| ignorant[below(rng, 3)]);
        assert_eq!(judged, 0, "seed {seed}");
        let outcome = lab.run();
        assert_eq!(outcome, Ok(()), "seed {seed}");
    }
}

/// Data from such a forger are data, as TCP's are. The test shows that neither end fails, or grows.
#[test]
fn with_both_numbers_neither_end_fails_or_grows_whatever_else_is_forged() {
    let mut judged = 0;
    for seed in 0..40 {
        let mut lab = lab(seed, Faults::default(), 2_000_000);
        let mut rng = Rng::from_seed(seed).child("forger");
        lab.sides[1].app.to_write = content(&mut rng, 500_000);
        lab.run_for(UNDER_WAY);
        lab.faults.loss = 0.1;
        judged += attack(&mut lab, &mut rng, 300, |_| Knows::Both);
    }
    // A forged FIN may end a connection at once, and segments after it are a stranger's.
    assert!(judged > 40 * 300 / 2, "{judged}");
}

/// Feedback that repeats an acknowledgement and lies about everything else costs nothing but time: the
/// receiver's next feedback tells what it truly has.
#[test]
fn feedback_that_lies_about_units_loses_none() {
    let mut lies = 0;
    for seed in 0..20 {
        let mut lab = lab(seed, Faults::default(), 2_000_000);
        let mut rng = Rng::from_seed(seed).child("forger");
        lab.run_for(UNDER_WAY);
        lab.faults.loss = 0.1;
        for _ in 0..300 {
            lab.run_for(Duration::from_millis(1));
            let (header, Some(feedback)) = seen(&lab, 0) else {
                continue;
            };
            let near = |rng: &mut Rng, number: u16| number.wrapping_add(short(rng) % 64);
            let lie = LtTcpFeedback {
                arrived_end: near(&mut rng, feedback.arrived_end),
                arrivals: near(&mut rng, feedback.arrivals),
                loss: short(&mut rng),
                deviation: short(&mut rng),
                reports: feedback
                    .reports
                    .iter()
                    .map(|report| LtTcpBlockReport {
                        block: report.block,
                        received: octet(&mut rng),
                        needed: octet(&mut rng) % 4,
                        lost: octet(&mut rng),
                    })
                    .collect(),
                runs: runs(&mut rng, header.ack),
            };
            let octets = written(&header, &Extension::Feedback(lie), 0);
            let before = dropped(&lab, 0);
            lab.inject(0, &octets);
            lies += u32::from(dropped(&lab, 0) == before);
        }
        let outcome = lab.run();
        assert_eq!(outcome, Ok(()), "seed {seed}");
    }
    assert!(lies > 20 * 300 / 2, "{lies}");
}

/// Tests the limit of RFC 5961, section 7.
#[test]
fn what_is_not_believed_is_answered_ten_times_in_a_second_at_most() {
    let mut lab = lab(1, Faults::default(), 20_000_000);
    lab.run_for(UNDER_WAY);
    let (seen, _) = seen(&lab, 1);
    let far = TcpHeader {
        seq: seen.seq.plus(1 << 30),
        ..seen
    };
    let with = |flags| TcpHeader { flags, ..far };
    let unit = Extension::Unit(UnitHeader::default(), &[]);
    let control = |lab: &Lab<LtTcpEndpoint>| lab.sides[1].app.sent_kinds[&TransmitKind::Control];
    for (header, extension) in [
        (with(TcpFlags::SYN), Extension::None),
        (with(TcpFlags::RST), Extension::None),
        (far, unit),
    ] {
        lab.run_for(Duration::from_secs(1));
        lab.drain();
        let before = (control(&lab), lab.counters(1).unbelieved);
        let octets = written(&header, &extension, 1);
        for _ in 0..300 {
            lab.inject(1, &octets);
        }
        let after = (control(&lab), lab.counters(1).unbelieved);
        assert_eq!((after.0 - before.0, after.1 - before.1), (10, 300));
    }
    assert_eq!(lab.run(), Ok(()));
}

/// Two ends that answered feedback that they do not trust would never fall silent.
#[test]
fn feedback_that_is_not_believed_is_not_answered() {
    let mut lab = lab(1, Faults::default(), 20_000_000);
    lab.run_for(UNDER_WAY);
    let (seen, _) = seen(&lab, 1);
    let far = TcpHeader {
        seq: seen.seq.plus(1 << 30),
        ..seen
    };
    lab.drain();
    let before = lab.sides[1].app.sent_kinds.clone();
    let octets = written(&far, &Extension::Feedback(LtTcpFeedback::default()), 1);
    for _ in 0..100 {
        lab.inject(1, &octets);
    }
    assert_eq!(lab.sides[1].app.sent_kinds, before);
    assert_eq!(lab.counters(1).unbelieved, 100);
    assert_eq!(lab.run(), Ok(()));
}

/// A stranger's SYN, before the peer's or between the peer's and its acknowledgement, must not
/// replace the peer's numbers.
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
            lab.inject(1, &written(&header, &Extension::None, 1));
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
    let mut header = TcpHeader {
        source: Port(77),
        destination: Port(80),
        seq: TcpSeq(1),
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    lab.inject(1, &written(&header, &Extension::None, 1));
    assert_eq!(lab.counters(1).strangers, 1);
    header.flags = TcpFlags::RST;
    lab.inject(1, &written(&header, &Extension::None, 1));
    assert_eq!(lab.counters(1).strangers, 1);
    assert_eq!(lab.run(), Ok(()));
}
