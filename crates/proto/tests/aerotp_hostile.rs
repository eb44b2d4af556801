//! Whatever arrives beside a transfer, the transfer arrives whole and memory does not grow.
//!
//! Method: beside every true datagram the pipe delivers forged ones: random octets, truncations,
//! replays of any earlier datagram and copies with inverted bits. A million in all. In the short form they come from a
//! peer that has the keys: it may spoil the transfer and nothing else. Replays, which a seal would refuse, spoil nothing either.

use super::FORM;
use super::pair::{Fate, Pair, Script, Way, octets};
use fulmar_proto::machine::TpduForm;
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    CloseReason, ConnectionConfig, EndpointConfig, Event, RateSource,
};
use fulmar_proto::units::{Bitrate, Duration};
use fulmar_proto::wire::Mode;
use fulmar_proto::wire::aerotp::FecStrength;

const DELAY: Duration = Duration::from_millis(2);
const FORGED: u64 = 1_000_000;
const FORGED_PER_DATAGRAM: u64 = 180;
/// The kinds of forgery, of which replays are the first.
const KINDS: u64 = 4;
const REPLAYS: u64 = 1;

/// A forgery of one of the first `kinds`.
fn forged(rng: &mut Rng, recorded: &[Vec<u8>], kinds: u64) -> Vec<u8> {
    let pick = |rng: &mut Rng| {
        let index = rng.below(recorded.len() as u64);
        recorded[usize::try_from(index).expect("in range")].clone()
    };
    match rng.below(kinds) {
        0 => pick(rng),
        1 => {
            let mut noise = vec![0; usize::try_from(rng.below(1_500)).expect("in range")];
            rng.fill(&mut noise);
            noise
        }
        2 => {
            let mut cut = pick(rng);
            cut.truncate(usize::try_from(rng.below(cut.len() as u64 + 1)).expect("in range"));
            cut
        }
        _ => {
            let mut flipped = pick(rng);
            for _ in 0..=rng.below(4) {
                let bit = usize::try_from(rng.below(flipped.len() as u64 * 8)).expect("in range");
                flipped[bit / 8] ^= 1 << (bit % 8);
            }
            flipped
        }
    }
}

fn attacked(seed: u64, limit: u64, kinds: u64) -> Script {
    let mut rng = Rng::from_seed(seed).child("attacker");
    let mut recorded: [Vec<Vec<u8>>; 2] = [Vec::new(), Vec::new()];
    let mut made = 0;
    Box::new(move |way, _, _, octets| {
        let seen = &mut recorded[way as usize];
        if seen.len() < 500 {
            seen.push(octets.to_vec());
        }
        let mut fate: Fate = vec![(DELAY, octets.to_vec())];
        for _ in 0..FORGED_PER_DATAGRAM {
            if made < limit {
                made += 1;
                fate.push((DELAY, forged(&mut rng, seen, kinds)));
            }
        }
        fate
    })
}

fn survive(mode: Mode, words: u16, forged: u64, len: usize) {
    let config = ConnectionConfig {
        mode,
        fec_words: FecStrength::from_words(words).expect("in range"),
        ..ConnectionConfig::default()
    };
    let endpoint = EndpointConfig {
        rate: RateSource::Told(Bitrate::from_bits_per_second(50_000_000)),
        connections_max: 64,
        ..EndpointConfig::default()
    };
    let kinds = match FORM {
        TpduForm::Long => KINDS,
        TpduForm::Short => REPLAYS,
    };
    let script = attacked(u64::from(words) + 1, forged, kinds);
    let mut pair = Pair::new(endpoint, config, script);
    pair.breaks_seal = true;
    let sent = octets(len);
    pair.send(config, &sent);
    pair.run(Duration::from_secs(60));
    assert!(
        pair.received() == sent,
        "{mode}: {} of {len} octets",
        pair.received().len()
    );
    let finished = |e: &Event| {
        matches!(
            e,
            Event::Closed {
                why: CloseReason::Finished,
                ..
            }
        )
    };
    assert!(pair.events(Way::Forward).iter().any(finished), "{mode}");
    assert!(
        pair.endpoint(Way::Back).connection_count() <= 64,
        "{mode}: bounded"
    );
}

#[test]
fn a_million_forged_datagrams_do_not_touch_a_reliable_transfer() {
    survive(Mode::Reliable, 0, FORGED, 7_000_000);
}

#[test]
fn forged_datagrams_do_not_touch_a_hybrid_transfer_with_parity() {
    survive(Mode::HybridNackMack, 9, 50_000, 400_000);
}

#[test]
fn whoever_may_forge_anything_spoils_a_transfer_at_most_and_memory_is_bounded() {
    let config = ConnectionConfig::default();
    let endpoint = EndpointConfig {
        connections_max: 64,
        ..EndpointConfig::default()
    };
    for seed in 1..=10 {
        let mut pair = Pair::new(endpoint, config, attacked(seed, 10_000, KINDS));
        pair.breaks_seal = true;
        pair.send(config, &octets(200_000));
        pair.run(Duration::from_secs(600));
        for way in [Way::Forward, Way::Back] {
            let end = pair.endpoint(way);
            assert!(end.connection_count() <= 64, "seed {seed}");
            assert!(end.memory_bytes().0 <= 1 << 20, "seed {seed}");
        }
    }
}
