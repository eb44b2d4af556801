//! The cost of the codec for a packet on one core: TPDUs of 1480 octets, the longest MACK, and the
//! work of each simulated hop on the network header.
//!
//! `cargo bench -p fulmar-proto --bench wire`

use core::hint::black_box;
use criterion::{Criterion, criterion_group, criterion_main};
use fulmar_proto::machine::{Ecn, Priority};
use fulmar_proto::wire::TpduSeq;
use fulmar_proto::wire::aerotp::{
    Acks, EcnField, FecStrength, Feedback, Flags, Handshake, Header, LISTED_NUMBERS_MAX, Mack,
    Outgoing, encode, parse, payload_max,
};
use fulmar_proto::wire::network::{NetworkHeader, NetworkProtocol, NodeAddress, count_hop};
use fulmar_proto::wire::{Mode, Port};

const TPDU_BYTES: usize = 1480;

const HEADER: Header = Header {
    source: Port(4000),
    destination: Port(5000),
    seq: TpduSeq(1000),
    timestamp: 100_000,
    mode: Mode::Reliable,
    ecn: EcnField::NONE,
    flags: Flags::NONE,
};

fn data(criterion: &mut Criterion) {
    for (crc, name) in [(true, "with CRC-32"), (false, "without CRC-32")] {
        let body = vec![0x5A; payload_max(TPDU_BYTES, FecStrength::NONE, crc, false)];
        let outgoing = Outgoing {
            header: HEADER,
            crc,
            fec_words: FecStrength::NONE,
            block: None,
            body: &body,
        };
        let mut octets = Vec::with_capacity(TPDU_BYTES);
        criterion.bench_function(&format!("encode 1480 B, {name}"), |bencher| {
            bencher.iter(|| {
                octets.clear();
                encode(black_box(&outgoing), &mut octets);
            });
        });
        criterion.bench_function(&format!("parse 1480 B, {name}"), |bencher| {
            bencher.iter(|| parse(black_box(&octets)).map(|tpdu| tpdu.body.len()));
        });
    }
}

fn mack(criterion: &mut Criterion) {
    let feedback = Feedback {
        source: Port(5000),
        destination: Port(4000),
        mode: Mode::Reliable,
        ecn: EcnField::NONE,
        echo: 100_000,
        crc: true,
        fec_words: FecStrength::NONE,
    };
    let further = (0..LISTED_NUMBERS_MAX).map(|_| TpduSeq(7));
    let mut octets = Vec::new();
    criterion.bench_function("encode a MACK of 366", |bencher| {
        bencher.iter(|| {
            octets.clear();
            feedback.listed(Handshake::None, TpduSeq(6), further.clone(), &mut octets)
        });
    });
    criterion.bench_function("read a MACK of 366", |bencher| {
        bencher.iter(|| {
            let mack = parse(black_box(&octets)).and_then(|tpdu| Mack::of(&tpdu));
            mack.map(|mack| match mack.acks {
                Acks::Listed { further, .. } => further.fold(0, |sum, seq| sum ^ seq.0),
                Acks::Cumulative { .. } => 0,
            })
        });
    });
}

fn hop(criterion: &mut Criterion) {
    let header = NetworkHeader {
        source: NodeAddress(1),
        destination: NodeAddress(2),
        protocol: NetworkProtocol::AEROTP,
        priority: Priority(0),
        ecn: Ecn::Capable,
        hops_left: u8::MAX,
    };
    let mut packet = vec![0; 20 + TPDU_BYTES];
    let head = header.to_octets(TPDU_BYTES).expect("1500 octets fit");
    packet[..20].copy_from_slice(&head);
    criterion.bench_function("count a hop", |bencher| {
        bencher.iter(|| {
            packet[..20].copy_from_slice(&head);
            count_hop(black_box(&mut packet))
        });
    });
    criterion.bench_function("parse a network header", |bencher| {
        bencher.iter(|| NetworkHeader::parse(black_box(&packet)).map(|read| read.payload.len()));
    });
}

criterion_group!(benches, data, mack, hop);
criterion_main!(benches);
