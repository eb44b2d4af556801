//! Whoever sees armoured datagrams and can put others in front of them changes nothing: no wrong octet, no octet twice, no
//! more work than the genuine datagrams pay for, and memory stays as it is.
//!
//! Method: two sessions in virtual time on a medium that inverts bits. Beside each genuine datagram come datagrams made of those
//! that were seen: flipped, cut, spliced, replayed, with sound headers over garbage, from the peer's address and from
//! others, before and after the genuine one. Genuine datagrams are data, and further parity for data that came damaged beyond
//! repair. `FULMAR_ATTACKED=10000000` sends so many.

mod bit_errors;
mod session_pair;

/// The wire of the data in these tests, unless they say another one.
const WIRE: Wire = Wire::Two;

use bit_errors::flip;
use fulmar_net::session::{
    Armour, DamageStatus, MtuConfig, Wire, damaged, parity_follows, unchecked,
};
use fulmar_proto::fec::packet::PacketCode;
use fulmar_proto::machine::{Machine, PathId};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{ByteCount, Duration, FecStrength, Instant};
use session_pair::by_hand::{ByHand, Place, drain_into, joined, take, the_peer};
use session_pair::{PEER, noise};

/// Datagrams of the attacker, unless the environment says otherwise.
const ATTACKED: u64 = 100_000;
/// Datagrams of the attacker in each session with further parity.
const OF_SESSION: u64 = 10_000;
const FIRST_SEED: u64 = 5;
/// Attacker's datagrams beside each genuine one.
const BESIDE: u64 = 4;
/// Genuine datagrams before the first of the attacker: an end notes anew where its peers are every 100 ms.
const BEFORE: u32 = 1_000;
const CONTENT_BYTES: usize = 600;
const HEADER_BYTES: usize = 17;
const PITCH: Duration = Duration::from_micros(200);
const WRONG_BITS: f64 = 1e-4;
const RECORDED: usize = 64;
/// Far above what a million stored datagrams would take if one in fifty were kept.
const GROWTH_MAX: usize = 16 << 20;

fn count() -> u64 {
    let wanted = std::env::var_os("FULMAR_ATTACKED");
    wanted.map_or(ATTACKED, |wanted| {
        let wanted = wanted.to_str().and_then(|wanted| wanted.parse().ok());
        wanted.expect("FULMAR_ATTACKED is a number of datagrams")
    })
}

/// The octets that the process holds in memory.
fn resident_bytes() -> usize {
    const PAGE: usize = 4_096;
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = statm.split_whitespace().nth(1).expect("resident pages");
    pages.parse::<usize>().expect("a number") * PAGE
}

fn index(rng: &mut Rng, bound: usize) -> usize {
    usize::try_from(rng.below(bound as u64)).expect("in range")
}

/// The content of the genuine datagram with this number.
fn content(number: u32) -> Vec<u8> {
    let mut octets = vec![0x68];
    octets.extend_from_slice(&number.to_be_bytes());
    octets.resize(CONTENT_BYTES, 7);
    octets
}

/// A header with parity that is right: these words, index and counter.
fn header(code: &mut PacketCode, words: u8, index: [u8; 4], counter: u32) -> Vec<u8> {
    let [_, counter @ ..] = counter.to_be_bytes();
    let mut octets = vec![0x38, words];
    octets.extend_from_slice(&index);
    octets.extend_from_slice(&counter);
    code.append_parity(&mut octets, 0, FecStrength::from_words(2).expect("two"));
    assert_eq!(octets.len(), HEADER_BYTES);
    octets
}

struct Attacker {
    rng: Rng,
    code: PacketCode,
    recorded: Vec<Vec<u8>>,
    /// Kinds of datagrams that were made.
    made: [u64; 7],
}

impl Attacker {
    fn pick(&mut self) -> Vec<u8> {
        let place = index(&mut self.rng, self.recorded.len());
        self.recorded[place].clone()
    }

    fn see(&mut self, octets: &[u8]) {
        if self.recorded.len() < RECORDED {
            self.recorded.push(octets.to_vec());
        } else {
            let place = index(&mut self.rng, RECORDED);
            self.recorded[place] = octets.to_vec();
        }
    }

    /// Sends datagrams in front of a genuine one and behind it, from the peer's address and from another.
    fn surround(
        &mut self,
        called: &mut ByHand,
        now: Instant,
        genuine: &[u8],
        arrives: &mut impl FnMut(&mut ByHand),
    ) {
        let elsewhere: Place = (PathId(9_000), ([203, 0, 113, 9], 5_000).into());
        for n in 0..BESIDE {
            let forged = self.forge(genuine);
            let place = if self.rng.chance(0.2) {
                elsewhere
            } else {
                the_peer()
            };
            take(called, now, place, &forged);
            if n == BESIDE / 2 {
                arrives(called);
            }
        }
    }

    /// A datagram in front of, or behind, the genuine one `now`.
    fn forge(&mut self, now: &[u8]) -> Vec<u8> {
        let kind = index(&mut self.rng, self.made.len());
        self.made[kind] += 1;
        let mut octets = if self.rng.chance(0.5) {
            now.to_vec()
        } else {
            self.pick()
        };
        match kind {
            0 => {
                for _ in 0..=self.rng.below(64) {
                    let bit = index(&mut self.rng, octets.len() * 8);
                    octets[bit / 8] ^= 1 << (bit % 8);
                }
            }
            1 => octets.truncate(index(&mut self.rng, octets.len() + 1)),
            2 => {
                // The head of one and the tail of another.
                let other = self.pick();
                let cut = index(&mut self.rng, octets.len() + 1).min(other.len());
                octets.truncate(cut);
                octets.extend_from_slice(&other[cut..]);
            }
            3 => octets = self.pick(),
            4 => self.rng.fill(&mut octets[HEADER_BYTES..]),
            5 => {
                // A sound header for the same keys: any words, any counter, nothing genuine behind.
                let words = u8::try_from(self.rng.below(256)).expect("an octet");
                let near = u32::from_be_bytes([0, octets[6], octets[7], octets[8]]);
                let ahead = u32::try_from(self.rng.below(2_000)).expect("few");
                let of = [octets[2], octets[3], octets[4], octets[5]];
                let mut made = header(&mut self.code, words, of, near.wrapping_add(ahead));
                made.resize(octets.len(), 0);
                self.rng.fill(&mut made[HEADER_BYTES..]);
                octets = made;
            }
            _ => {
                // The same datagram with other words, and its header right.
                let words = octets[1].wrapping_add(1);
                let of = [octets[2], octets[3], octets[4], octets[5]];
                let counter = u32::from_be_bytes([0, octets[6], octets[7], octets[8]]);
                let made = header(&mut self.code, words, of, counter);
                octets[..HEADER_BYTES].copy_from_slice(&made);
            }
        }
        octets
    }
}

/// Lets happen what is due at an end; what leaves it for the peer is handed to `each`, and what leaves for elsewhere is lost.
fn turn(end: &mut ByHand, now: Instant, mut each: impl FnMut(&[u8])) {
    if end.next_deadline().is_some_and(|due| due.at <= now) {
        end.handle_deadline(now);
    }
    drain_into(end, now, &mut Vec::new(), |path, octets| {
        if path == the_peer().0 {
            each(octets);
        }
    });
}

fn damage(end: &ByHand) -> DamageStatus {
    let status = end.status(PEER).expect("a peer");
    status.damage.expect("data is armoured")
}

/// Two ends that let damage in and tell of it.
fn ends(armour: Armour) -> (ByHand, ByHand) {
    let mut configs = noise();
    for config in &mut configs {
        let said = [unchecked(), damaged(), parity_follows()];
        config.capabilities.extend(said);
        config.peers[0].mtu = MtuConfig::fixed(ByteCount(1_280));
    }
    let (mut caller, mut called, _) = joined(configs, Instant::START);
    caller.set_armour(PEER, Some(armour));
    called.set_armour(PEER, Some(Armour::Follows));
    (caller, called)
}

/// The corrections that so many genuine datagrams pay for until now, where so many were beyond repair and kept.
fn paid_for(genuine: u64, kept: u64, now: Instant) -> u64 {
    // Each that is kept has further parity twice. Four for each genuine datagram, of headers and of contents, and what can be saved up. Ten a second of each besides,
    // and fifty for strangers.
    2 * kept + 2 * (4 * genuine + 1_024) + 70 * (now.as_nanos() / 1_000_000_000 + 1)
}

/// Compares what was delivered with what left, up to the genuine datagram `number`. Returns how many there are.
fn check(called: &mut ByHand, seen: &mut [bool], number: u32) -> u64 {
    let contents = core::mem::take(&mut called.inner_mut().contents);
    for got in &contents {
        let said = u32::from_be_bytes([got[1], got[2], got[3], got[4]]);
        assert!(*got == content(said), "a wrong octet was delivered");
        // One that was beyond repair may come whole from the attacker, who saw it.
        assert!(said <= number, "it has not left yet");
        let is_new = !core::mem::replace(&mut seen[said as usize], true);
        assert!(is_new, "{said} was delivered twice");
    }
    contents.len() as u64
}

#[test]
fn an_attacker_who_sees_armoured_datagrams_changes_nothing_and_costs_no_more_than_they_pay_for() {
    // The medium damages half of the genuine ones; nearly all are mended.
    let (delivered, _) = attack(Armour::Follows, count(), FIRST_SEED);
    assert!(delivered > 0.97, "{delivered}");
}

#[test]
fn nor_does_he_where_further_parity_mends_what_is_beyond_repair() {
    // The first parity mends nothing here. Nothing is sent again; the attacker's copy is kept of some, and the genuine one is not.
    // He soon makes bits seem so wrong that contents are better sent again, so this begins anew with other ends.
    let sessions = (count() / 10 / OF_SESSION).max(1);
    let armour = Armour::Fixed(FecStrength::NONE);
    let shares: Vec<_> = (0..sessions)
        .map(|session| attack(armour, OF_SESSION, FIRST_SEED + session))
        .collect();
    let mean = |of: fn(&(f64, f64)) -> f64| shares.iter().map(of).sum::<f64>() / sessions as f64;
    let [delivered, mended_later] = [mean(|one| one.0), mean(|one| one.1)];
    println!("{sessions} sessions: {delivered:.3} delivered, {mended_later:.4} mended later");
    assert!(
        delivered > 0.5 && mended_later > 0.02,
        "{delivered} {mended_later}"
    );
}

/// Attacks with so many datagrams. Returns the share of the genuine datagrams that was delivered, and the share of those under
/// attack that was mended by further parity.
fn attack(armour: Armour, total: u64, seed: u64) -> (f64, f64) {
    let (mut caller, mut called) = ends(armour);
    let mut rng = Rng::from_seed(seed).child("medium");
    let mut attacker = Attacker {
        rng: Rng::from_seed(seed).child("attacker"),
        code: PacketCode::new(),
        recorded: Vec::new(),
        made: [0; 7],
    };
    let (mut attacked, mut number, mut genuine) = (0_u64, 0_u32, 0_u64);
    let (mut delivered, mut memory) = (0_u64, 0);
    let rounds = u64::from(BEFORE) + total / BESIDE + RECORDED as u64;
    let mut seen = vec![false; usize::try_from(rounds).expect("they fit")];
    let mut now = Instant::START;
    // Genuine datagrams without data.
    let mut short = 0_u64;
    let mut decodes = 0;
    while attacked < total {
        now += PITCH;
        let inner = caller.inner_mut();
        (inner.left, inner.octets) = (1, CONTENT_BYTES);
        inner.content = Some(content(number));
        let mut left = Vec::new();
        turn(&mut caller, now, |octets| left.push(octets.to_vec()));
        for octets in &left {
            let is_armoured = octets.len() > HEADER_BYTES && octets[0] == 0x38;
            let attacks = is_armoured && number >= BEFORE;
            short += u64::from(attacks && octets.len() < HEADER_BYTES + CONTENT_BYTES);
            if attacks {
                let mut arrives = |called: &mut ByHand| arrive(called, &mut rng, now, octets);
                attacker.surround(&mut called, now, octets, &mut arrives);
                attacked += BESIDE;
                genuine += 1;
            } else {
                arrive(&mut called, &mut rng, now, octets);
            }
            if is_armoured {
                attacker.see(octets);
            }
        }
        delivered += check(&mut called, &mut seen, number);
        let mut back = Vec::new();
        turn(&mut called, now, |octets| back.push(octets.to_vec()));
        for octets in back {
            take(&mut caller, now, the_peer(), &octets);
        }
        if number == BEFORE {
            decodes = called.work().decodes;
        }
        if attacked < total / 10 {
            memory = resident_bytes();
        }
        number += 1;
    }
    let DamageStatus {
        words,
        inward,
        mended_later,
        ..
    } = damage(&called);
    let spent = called.work().decodes - decodes;
    println!(
        "{attacked} attacks {:?} beside {genuine} genuine datagrams, of which {delivered} with those before were delivered: {inward:?}, {mended_later} mended later, {short} without data, {spent} decodes, {} words out, {} back",
        attacker.made,
        caller.parity_to(PEER).words(),
        words.words(),
    );
    assert_eq!(called.counters().moves, 0, "a forged source moved the peer");
    assert!(
        spent <= paid_for(genuine, inward.beyond_repair, now),
        "{spent} decodes for {genuine} datagrams"
    );
    let grown = resident_bytes().saturating_sub(memory);
    assert!(grown < GROWTH_MAX, "{grown} octets more");
    let share = |part: u64, of: u64| part as f64 / of as f64;
    (
        share(delivered, number.into()),
        share(mended_later, genuine),
    )
}

/// Lets a genuine datagram arrive over the medium.
fn arrive(called: &mut ByHand, rng: &mut Rng, now: Instant, octets: &[u8]) {
    let mut octets = octets.to_vec();
    flip(rng, WRONG_BITS, &mut octets);
    take(called, now, the_peer(), &octets);
}
