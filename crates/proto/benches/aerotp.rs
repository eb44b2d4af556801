//! The cost of the AeroTP machine on one core: reading a TPDU, and one drain for each datagram of a
//! bulk transfer.
//!
//! `cargo bench -p fulmar-proto --bench aerotp`.

use core::hint::black_box;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fulmar_proto::machine::{
    Datagram, Ecn, Machine, MachineDriver, PathId, TpduForm, Transmit, drain,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, ConnectionConfig, EndpointConfig, Event, RateSource,
};
use fulmar_proto::units::{Bitrate, Duration, Instant};
use fulmar_proto::wire::TpduSeq;
use fulmar_proto::wire::aerotp::{EcnField, FecStrength, Flags, Header, Outgoing, encode, parse};
use fulmar_proto::wire::{Mode, Port};

fn decode(criterion: &mut Criterion) {
    let header = Header {
        source: Port(1),
        destination: Port(2),
        seq: TpduSeq(3),
        timestamp: 4,
        mode: Mode::Reliable,
        ecn: EcnField::NONE,
        flags: Flags::NONE,
    };
    let body = [7; 1460];
    let fec_words = FecStrength::NONE;
    let outgoing = Outgoing {
        header,
        crc: true,
        fec_words,
        block: None,
        body: &body,
    };
    let mut tpdu = Vec::new();
    encode(&outgoing, &mut tpdu);
    let mut group = criterion.benchmark_group("TPDU of 1480 B");
    group.throughput(Throughput::Bytes(tpdu.len() as u64));
    group.bench_function("parse and check", |b| {
        b.iter(|| black_box(parse(black_box(&tpdu)).is_ok()));
    });
    let mut out = Vec::with_capacity(2_000);
    group.bench_function("encode", |b| {
        b.iter(|| {
            out.clear();
            encode(black_box(&outgoing), &mut out);
        });
    });
    group.finish();
}

#[derive(Default)]
struct Wire {
    buffer: Vec<u8>,
    sent: Vec<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    writes: bool,
}

static CHUNK: [u8; 65_536] = [9; 65_536];

impl MachineDriver<AerotpEndpoint> for Wire {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        &mut self.buffer
    }
    fn send(&mut self, _now: Instant, _transmit: Transmit) {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(&self.buffer);
        self.sent.push(copy);
    }
    fn deliver(&mut self, now: Instant, endpoint: &mut AerotpEndpoint, event: Event) {
        match event {
            Event::Readable(id) => {
                while let Some(chunk) = endpoint.read(now, id) {
                    endpoint.recycle(id, chunk.octets);
                }
            }
            Event::Writable(id) if self.writes => {
                while endpoint.write(now, id, &CHUNK).is_ok_and(|taken| taken > 0) {}
            }
            _ => {}
        }
    }
}

/// Bulk between two endpoints without a medium: every datagram is sent, taken and drained.
fn transfer(criterion: &mut Criterion) {
    const DATAGRAMS: u64 = 10_000;
    let config = ConnectionConfig {
        send_buffer_bytes: 1 << 20,
        ..ConnectionConfig::default()
    };
    let rate = Bitrate::from_bits_per_second(10_000_000_000);
    let settings = EndpointConfig {
        rate: RateSource::Told(rate),
        ..EndpointConfig::default()
    };
    let mut group = criterion.benchmark_group("bulk, reliable, 1480 B TPDUs");
    group.sample_size(10);
    group.throughput(Throughput::Elements(DATAGRAMS));
    let forms = [
        ("send, take, drain, acknowledge", TpduForm::Long),
        ("the same in the short form", TpduForm::Short),
    ];
    for (name, form) in forms {
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut ends =
                    [1, 2].map(|seed| AerotpEndpoint::new(settings, Rng::from_seed(seed)));
                for end in &mut ends {
                    end.speak(Instant::START, PathId(0), form);
                }
                let mut wires = [
                    Wire {
                        writes: true,
                        ..Wire::default()
                    },
                    Wire::default(),
                ];
                let mut now = Instant::START;
                ends[1].listen(Port(1), config).expect("sound");
                let id = ends[0]
                    .connect(now, PathId(0), Port(1), config)
                    .expect("sound");
                while ends[0].write(now, id, &CHUNK).is_ok_and(|taken| taken > 0) {}
                let mut moved = 0;
                while moved < DATAGRAMS {
                    now += Duration::from_nanos(1_300);
                    for side in 0..2 {
                        if ends[side].next_deadline().is_some_and(|d| d.at <= now) {
                            ends[side].handle_deadline(now);
                        }
                        drain(&mut ends[side], now, &mut wires[side]);
                        let sent = core::mem::take(&mut wires[side].sent);
                        for octets in sent {
                            moved += u64::from(side == 0);
                            let (path, ecn) = (PathId(0), Ecn::NotCapable);
                            let datagram = Datagram {
                                path,
                                octets: &octets,
                                ecn,
                            };
                            match form {
                                TpduForm::Long => ends[1 - side].handle_datagram(now, datagram),
                                TpduForm::Short => ends[1 - side].handle_frames(now, datagram),
                            }
                            drain(&mut ends[1 - side], now, &mut wires[1 - side]);
                            wires[side].spare.push(octets);
                        }
                    }
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, decode, transfer);
criterion_main!(benches);
