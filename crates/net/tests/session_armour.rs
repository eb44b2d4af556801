//! Damaged datagrams of armoured data: what parity can mend arrives, and no wrong octet ever does.
//!
//! Method: two sessions in virtual time. Every datagram of one direction is damaged at random, at five wrong bits in a thousand, and the
//! test knows where: so it knows which ones the parity of header and content can mend. `FULMAR_DAMAGED=1000000` damages so many.

use crate::session_pair::by_hand::{ByHand, drain_into, joined, take, the_peer};
use crate::session_pair::{noise, preset_pair, speaking};
use fulmar_net::session::{DropReason, SessionConfig, Wire};
use fulmar_proto::machine::Machine;
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, FecStrength, Instant};
use fulmar_proto::wire::checksum::hec;

/// Datagrams before the first damaged one: an end notes anew where its peers are every 100 ms.
const SOUND: u32 = 2_500;
/// Datagrams, unless the environment says otherwise.
const DAMAGED: u32 = 20_000;
const WRONG_BITS: f64 = 5e-3;
const WORDS: u16 = 24;
const CONTENT_BYTES: usize = 300;
const TAG_BYTES: usize = 16;
const HEADER_BYTES: usize = 17;
const PITCH: Duration = Duration::from_micros(50);
/// Wrong octets that the header's parity mends, and that the content's surely does: all in one of its two codewords, which have
/// 48 octets of parity each.
const HEADER_MENDED: usize = 4;
const CONTENT_MENDED: usize = 24;

fn count() -> u32 {
    let wanted = std::env::var_os("FULMAR_DAMAGED");
    wanted.map_or(DAMAGED, |wanted| {
        let wanted = wanted.to_str().and_then(|wanted| wanted.parse().ok());
        wanted.expect("FULMAR_DAMAGED is a number of datagrams")
    })
}

/// Changes each bit with the probability, and returns how many octets of the header and behind it are wrong.
fn damage(rng: &mut Rng, octets: &mut [u8]) -> [usize; 2] {
    let sound = octets.to_vec();
    let bits = octets.len() * 8;
    let mut bit = 0_f64;
    loop {
        // Bit errors at random, drawn by the gaps between them.
        bit += 1.0 + ((1.0 - rng.unit_f64()).ln() / (1.0 - WRONG_BITS).ln()).floor();
        if bit > bits as f64 {
            break;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "in range"
        )]
        let place = bit as usize - 1;
        octets[place / 8] ^= 1 << (place % 8);
    }
    let wrong = |from: usize, to: usize| (from..to).filter(|&at| octets[at] != sound[at]).count();
    [wrong(0, HEADER_BYTES), wrong(HEADER_BYTES, octets.len())]
}

/// The probability that a header has more wrong octets than its parity mends.
fn header_lost() -> f64 {
    let wrong = 1.0 - (1.0 - WRONG_BITS).powi(8);
    let mut ways = 1.0;
    let mut mended = 0.0;
    for count in 0..=HEADER_MENDED {
        let [wrongs, rights] =
            [count, HEADER_BYTES - count].map(|n| i32::try_from(n).expect("few"));
        mended += ways * wrong.powi(wrongs) * (1.0 - wrong).powi(rights);
        ways *= (HEADER_BYTES - count) as f64 / (count + 1) as f64;
    }
    1.0 - mended
}

/// The content of the next datagram that `end` sends.
fn content(number: u32) -> Vec<u8> {
    let mut octets = vec![0x68];
    octets.extend_from_slice(&number.to_be_bytes());
    octets.resize(CONTENT_BYTES, 7);
    octets
}

/// Does all that is due at both ends; the datagrams of the called one arrive.
fn go_on(now: Instant, caller: &mut ByHand, called: &mut ByHand) {
    for end in [&mut *caller, &mut *called] {
        if end.next_deadline().is_some_and(|due| due.at <= now) {
            end.handle_deadline(now);
        }
    }
    let mut back = Vec::new();
    drain_into(called, now, &mut Vec::new(), |_, octets| {
        back.push(octets.to_vec());
    });
    for octets in back {
        take(caller, now, the_peer(), &octets);
    }
}

/// Two ends with parity that have agreed on wire 2.
fn armoured(configs: [SessionConfig; 2]) -> (ByHand, ByHand) {
    let configs = configs.map(|config| SessionConfig {
        fec_words: FecStrength::from_words(WORDS).expect("a strength"),
        ..speaking(config, Wire::Two)
    });
    let (caller, called, _) = joined(configs, Instant::START);
    (caller, called)
}

/// The datagrams that `caller` sends now, one with content among them.
fn datagrams(caller: &mut ByHand, now: Instant) -> Vec<Vec<u8>> {
    let source = caller.inner_mut();
    (source.left, source.octets) = (1, CONTENT_BYTES);
    let mut left = Vec::new();
    drain_into(caller, now, &mut Vec::new(), |_, octets| {
        left.push(octets.to_vec());
    });
    left
}

fn runs(configs: [SessionConfig; 2]) {
    let (mut caller, mut called) = armoured(configs);
    let mut rng = Rng::from_seed(29).child("bits");
    let (mut lost, mut mended, mut number) = (0_u32, 0_u32, 0);
    let count = count();
    let mut now = Instant::START;
    for _ in 0..SOUND + count {
        now += PITCH;
        go_on(now, &mut caller, &mut called);
        for mut octets in datagrams(&mut caller, now) {
            let whole = HEADER_BYTES + CONTENT_BYTES + TAG_BYTES + 4 * usize::from(WORDS);
            if octets.len() != whole {
                // A probe, a heartbeat.
                take(&mut called, now, the_peer(), &octets);
                continue;
            }
            // Each genuine datagram pays for a few corrections.
            let [in_header, behind] = if number < SOUND {
                [0, 0]
            } else {
                damage(&mut rng, &mut octets)
            };
            take(&mut called, now, the_peer(), &octets);
            let arrived = called.inner_mut().contents.pop();
            lost += u32::from(in_header > HEADER_MENDED);
            if in_header <= HEADER_MENDED && behind <= CONTENT_MENDED {
                mended += 1;
                let header = &octets[..HEADER_BYTES];
                assert!(
                    arrived.is_some(),
                    "{in_header} and {behind} wrong octets in {number}: {header:02x?}, {:?}",
                    called.counters()
                );
            }
            if let Some(arrived) = arrived {
                assert_eq!(arrived, content(number), "a wrong octet was delivered");
            }
            number += 1;
        }
    }
    let share = header_lost();
    let (expected, spread) = (share * f64::from(count), (share * f64::from(count)).sqrt());
    let off = (f64::from(lost) - expected).abs();
    assert!(
        off <= 5.0 * spread + 1.0,
        "{lost} headers lost, {expected:.1} expected"
    );
    assert!(
        mended > SOUND + count / 10 * 9,
        "{mended} of {count} could be mended"
    );
    let counters = called.counters();
    assert_eq!(counters.dropped(DropReason::Replayed), 0, "{counters:?}");
}

#[test]
fn a_damaged_header_that_checks_by_chance_as_one_of_another_version_is_mended_as_well() {
    let (mut caller, mut called) = armoured(noise());
    let mut now = Instant::START;
    for number in 0..SOUND {
        now += PITCH;
        go_on(now, &mut caller, &mut called);
        for mut octets in datagrams(&mut caller, now) {
            if number + 1 == SOUND {
                // Of the 65,536 values of two octets of the parity, one makes the HEC right.
                let fits = (0..=u16::MAX).map(u16::to_be_bytes).find(|two| {
                    octets[10..12].copy_from_slice(two);
                    hec(&octets[..2], &octets[4..12]).to_be_bytes() == octets[2..4]
                });
                assert!(fits.is_some());
            }
            take(&mut called, now, the_peer(), &octets);
        }
    }
    let inner = called.inner();
    assert_eq!(inner.frames, u64::from(SOUND), "{:?}", called.counters());
}

#[test]
fn what_parity_can_mend_arrives_and_no_wrong_octet_ever_does() {
    for configs in [noise(), preset_pair()] {
        runs(configs);
    }
}
