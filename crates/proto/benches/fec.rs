//! The cost of the codes on one core: the field's dot product, block and window encoding and decoding, and the
//! packet code at three strengths and three bit error rates.
//!
//! `cargo bench -p fulmar-proto --bench fec`; targets in docs/models/fec.md. Throughput counts source
//! octets (blocks) or octets of the 1500-octet region (packets).
#![expect(clippy::cast_possible_truncation, reason = "counts below 65536")]

use core::hint::black_box;
use core::num::NonZeroU8;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use fec::reed_solomon;
use fulmar_proto::fec::block::{BlockDecoder, encode_repair};
use fulmar_proto::fec::gf256::Kernel;
use fulmar_proto::fec::packet::PacketCode;
use fulmar_proto::fec::window::{Density, RepairSpan, WindowDecoder, WindowEncoder, WindowLimits};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::FecStrength;

const SEED: u64 = 5;
const REGION: usize = 1500;

fn random(stream: &mut Rng, len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    stream.fill(&mut octets);
    octets
}

fn dot(criterion: &mut Criterion) {
    const WINDOW: usize = 64;
    const OCTETS: usize = 1400;
    let mut stream = Rng::from_seed(SEED).child("dot");
    let sources: Vec<_> = (0..WINDOW).map(|_| random(&mut stream, OCTETS)).collect();
    let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    let coefficients = random(&mut stream, WINDOW);
    let mut group = criterion.benchmark_group("gf256 dot, window 64 of 1400 B");
    group.throughput(Throughput::Bytes((WINDOW * OCTETS) as u64));
    for kernel in Kernel::available() {
        let mut sum = vec![0; OCTETS];
        group.bench_function(kernel.name(), |bencher| {
            bencher.iter(|| kernel.dot(&mut sum, black_box(&sources), black_box(&coefficients)));
        });
    }
    group.finish();
}

fn block(criterion: &mut Criterion) {
    const OCTETS: usize = 1280;
    let mut group = criterion.benchmark_group("block of 1280 B sources");
    for (k, repairs) in [(8, 2), (32, 8), (64, 16), (223, 32)] {
        let mut stream = Rng::from_seed(SEED).child("block");
        let sources: Vec<_> = (0..k).map(|_| random(&mut stream, OCTETS)).collect();
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let label = format!("{k}+{repairs}");
        group.throughput(Throughput::Bytes((k * OCTETS) as u64));
        let mut symbol = Vec::new();
        group.bench_function(BenchmarkId::new("one repair", &label), |bencher| {
            bencher.iter(|| {
                symbol.clear();
                encode_repair(black_box(&sources), 1, &mut symbol)
            });
        });
        group.bench_function(BenchmarkId::new("encode all repairs", &label), |bencher| {
            bencher.iter(|| {
                symbol.clear();
                for index in 0..repairs {
                    let made = encode_repair(black_box(&sources), index as u8, &mut symbol);
                    made.expect("the plan fits the field");
                }
            });
        });
        let full = decoder_with_losses(&mut stream, &sources, repairs);
        group.bench_function(
            BenchmarkId::new("decode, all repairs used", &label),
            |bencher| {
                bencher.iter_batched_ref(
                    || full.clone(),
                    |decoder| black_box(decoder.decode()),
                    criterion::BatchSize::SmallInput,
                );
            },
        );
    }
    group.finish();
}

/// A decoder that lacks as many random sources as there are repair symbols.
fn decoder_with_losses(stream: &mut Rng, sources: &[&[u8]], repairs: usize) -> BlockDecoder {
    let k = NonZeroU8::new(sources.len() as u8).expect("a block has sources");
    let mut decoder = BlockDecoder::new(k);
    let mut order: Vec<usize> = (0..sources.len()).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, stream.below(last as u64 + 1) as usize);
    }
    for &index in &order[repairs..] {
        let taken = decoder.add_source(index as u8, sources[index]);
        taken.expect("each source once");
    }
    for index in 0..repairs {
        let mut symbol = Vec::new();
        encode_repair(sources, index as u8, &mut symbol).expect("the plan fits the field");
        let taken = decoder.add_repair(index as u8, &symbol);
        taken.expect("each repair symbol once");
    }
    decoder
}

/// One unit of a window, as its decoder is fed with it.
enum Unit {
    Source(u64),
    Repair(RepairSpan, Vec<u8>),
}

/// The units that arrive: `sources`, and behind each `every` of them a repair symbol over the last `window`.
fn flow_with_losses(
    stream: &mut Rng,
    sources: &[&[u8]],
    loss: f64,
    every: usize,
    window: usize,
) -> Vec<Unit> {
    let mut encoder = WindowEncoder::new();
    let mut units = Vec::new();
    for place in 0..sources.len() {
        if !stream.chance(loss) {
            units.push(Unit::Source(place as u64));
        }
        let end = place + 1;
        if end % every == 0 && !stream.chance(loss) {
            let count = window.min(end);
            let span = RepairSpan {
                first: (end - count) as u64,
                count: count as u16,
                key: place as u16,
                density: Density::FULL,
            };
            let mut symbol = Vec::new();
            let spanned = &sources[end - count..end];
            let made = encoder.encode_repair(spanned, span.key, span.density, &mut symbol);
            made.expect("the window fits a span");
            units.push(Unit::Repair(span, symbol));
        }
    }
    units
}

fn window(criterion: &mut Criterion) {
    const OCTETS: usize = 1400;
    const FLOW: usize = 2000;
    let mut group = criterion.benchmark_group("window of 1400 B sources");
    for (loss, every, window) in [(0.05, 10, 64), (0.1, 5, 64), (0.1, 5, 128), (0.3, 1, 64)] {
        let label = format!("{window}, {}% loss, 1 in {every}", loss * 100.0);
        let mut stream = Rng::from_seed(SEED).child("window");
        let sources: Vec<_> = (0..FLOW).map(|_| random(&mut stream, OCTETS)).collect();
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let mut encoder = WindowEncoder::new();
        let mut symbol = Vec::new();
        group.throughput(Throughput::Bytes((window * OCTETS) as u64));
        group.bench_function(BenchmarkId::new("one repair", &label), |bencher| {
            bencher.iter(|| {
                symbol.clear();
                encoder.encode_repair(black_box(&sources[..window]), 7, Density::FULL, &mut symbol)
            });
        });
        let units = flow_with_losses(&mut stream, &sources, loss, every, window);
        let limits = WindowLimits {
            sources: 2 * window,
            equations: window,
            memory_bytes: 4 * window * OCTETS,
        };
        group.throughput(Throughput::Bytes((FLOW * OCTETS) as u64));
        group.bench_function(BenchmarkId::new("decode a flow", &label), |bencher| {
            bencher.iter_batched_ref(
                || WindowDecoder::new(0, limits),
                |decoder| {
                    for unit in &units {
                        // A symbol that is of no use costs its price, too.
                        let _ = black_box(match unit {
                            Unit::Source(ordinal) => {
                                decoder.add_source(*ordinal, sources[*ordinal as usize])
                            }
                            Unit::Repair(span, symbol) => decoder.add_repair(*span, symbol),
                        });
                    }
                },
                criterion::BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

fn packet(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("packet of 1500 B");
    group.throughput(Throughput::Bytes(REGION as u64));
    let mut code = PacketCode::new();
    for words in [6, 24, 96] {
        let strength = FecStrength::from_words(words).expect("below 257");
        let mut stream = Rng::from_seed(SEED).child("packet");
        let message = random(&mut stream, REGION - strength.parity_bytes());
        let mut region = Vec::with_capacity(REGION);
        group.bench_function(BenchmarkId::new("encode", words), |bencher| {
            bencher.iter(|| {
                region.clear();
                region.extend_from_slice(black_box(&message));
                code.append_parity(&mut region, 0, strength);
            });
        });
        for wrong in [1, 12] {
            let mut received = region.clone();
            // Neighbouring octets belong to different codewords: two in each of the six.
            for octet in received.iter_mut().take(wrong) {
                *octet ^= 0x40;
            }
            let mut octets = region.clone();
            let label = format!("{words} words, {wrong} wrong octets");
            group.bench_function(BenchmarkId::new("decode", label), |bencher| {
                bencher.iter(|| {
                    octets.copy_from_slice(&received);
                    let corrected = code.correct(&mut octets, strength);
                    corrected.expect("within the strength")
                });
            });
        }
        for ber in [1e-5, 1e-4, 1e-3] {
            let packets: Vec<_> = (0..500)
                .map(|_| flipped(&mut stream, &region, ber))
                .collect();
            let label = format!("{words} words, BER {ber:e}");
            let (mut next, mut octets) = (0, vec![0; REGION]);
            group.bench_function(
                BenchmarkId::new("average with CRC skip", &label),
                |bencher| {
                    bencher.iter(|| {
                        octets.copy_from_slice(&packets[next % packets.len()]);
                        next += 1;
                        // Stands for the CRC: its cost is paid, and its verdict is "damaged".
                        let sum = crc32fast::hash(&octets);
                        (octets != region)
                            .then(|| (sum, code.correct(&mut octets, strength).is_ok()))
                    });
                },
            );
            let damaged: Vec<_> = packets.iter().filter(|octets| **octets != region).collect();
            group.bench_function(BenchmarkId::new("decode damaged", &label), |bencher| {
                bencher.iter(|| {
                    octets.copy_from_slice(damaged[next % damaged.len()]);
                    next += 1;
                    code.correct(&mut octets, strength).is_ok()
                });
            });
        }
    }
    group.finish();
}

fn flipped(stream: &mut Rng, region: &[u8], ber: f64) -> Vec<u8> {
    let mut octets = region.to_vec();
    for octet in &mut octets {
        for bit in 0..8 {
            *octet ^= u8::from(stream.chance(ber)) << bit;
        }
    }
    octets
}

/// The yardstick: the `fec` crate on six codewords of 250 octets, which is the same work.
fn packet_by_the_fec_crate(criterion: &mut Criterion) {
    const CODEWORDS: usize = 6;
    const FIELD: u16 = reed_solomon::PRIMITIVE_POLYNOMIAL_8_4_3_2_0;
    let mut group = criterion.benchmark_group("packet of 1500 B, fec crate");
    group.throughput(Throughput::Bytes(REGION as u64));
    for words in [6, 24, 96] {
        let parity = words * 4 / CODEWORDS;
        let mut encoder = reed_solomon::Encoder::new(FIELD, 1, 1, parity);
        let mut decoder = reed_solomon::Decoder::new(FIELD, 1, 1, parity);
        let mut stream = Rng::from_seed(SEED).child("yardstick");
        let message = random(&mut stream, REGION / CODEWORDS - parity);
        let mut codeword = [0; 255];
        group.bench_function(BenchmarkId::new("encode", words), |bencher| {
            bencher.iter(|| {
                for _ in 0..CODEWORDS {
                    let encoded = encoder.encode(black_box(&message), &mut codeword);
                    encoded.expect("shorter than a codeword");
                }
            });
        });
        let intact = codeword[..REGION / CODEWORDS].to_vec();
        for wrong in [1, 12] {
            // Spread as evenly as they go: one codeword, or two octets in each.
            let damaged = wrong.min(CODEWORDS);
            let mut received = intact.clone();
            for octet in received.iter_mut().take(wrong / damaged) {
                *octet ^= 0x40;
            }
            let mut out = [0; 255];
            let label = format!("{words} words, {wrong} wrong octets");
            group.bench_function(BenchmarkId::new("decode", label), |bencher| {
                bencher.iter(|| {
                    for codeword in 0..CODEWORDS {
                        let input = if codeword < damaged {
                            &received
                        } else {
                            &intact
                        };
                        let decoded = decoder.decode(black_box(input), &mut out);
                        decoded.expect("within the strength");
                    }
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, dot, block, window, packet, packet_by_the_fec_crate);
criterion_main!(benches);
