//! Parity that follows what the receiver tells of wrong bits, and datagrams beyond repair that are asked for at once.
//!
//! Method: two sessions with AeroTP inside, in virtual time, on a medium that changes bits of real octets and loses as many
//! datagrams as have a wrong bit in UDP's own header. Nobody is told the bit error rate.

use super::session_pair::{
    Medium, PATH, PEER, Pair, Way, connection_config, endpoint_config, noise, octets, speaking,
};
use crate::bit_errors::flip;
use fulmar_net::session::{
    Armour, DamageStatus, SessionConfig, SessionEvent, Wire, damaged, path_acks, unchecked,
};
use fulmar_proto::fec::packet::PacketCode;
use fulmar_proto::rate::RateSharing;
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{ConnectionConfig, Counters, EndpointConfig, RateSource};
use fulmar_proto::units::{Bitrate, Duration, FecStrength, Instant};
use fulmar_proto::wire::Mode;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const DELAY: Duration = Duration::from_millis(5);
/// Bits of UDP's header that are lost with the datagram.
const BARE_BITS: i32 = 48;

/// Octets of an armoured header, and those of them that its parity covers.
const HEADER: usize = 17;
const COVERED: usize = 9;

/// The share of wrong bits, which a test may change.
pub(super) type Rate = Rc<Cell<f64>>;

/// A medium with this share of wrong bits, and a queue of 50 ms in front of a link, if it has a rate.
pub(super) fn noisy(rate: &Rate, link: Option<u64>) -> Medium {
    let rate = Rc::clone(rate);
    let mut rng = Rng::from_seed(20).child("bits");
    let mut free = [Instant::START; 2];
    Box::new(move |way, now, path, octets| {
        let mut octets = octets.to_vec();
        let mut delay = DELAY;
        if let Some(link) = link {
            let free = &mut free[way as usize];
            let queue = free.saturating_since(now);
            if queue > Duration::from_millis(50) {
                return Vec::new();
            }
            let bits = 8 * (octets.len() as u64 + 28);
            *free = (*free).max(now) + Duration::from_nanos(bits * 1_000_000_000 / link);
            delay += free.saturating_since(now);
        }
        let rate = rate.get();
        if rate > 0.0 {
            if rng.chance(1.0 - (1.0 - rate).powi(BARE_BITS)) {
                return Vec::new();
            }
            flip(&mut rng, rate, &mut octets);
        }
        vec![(delay, path, octets)]
    })
}

pub(super) fn ends() -> [SessionConfig; 2] {
    noise().map(|config| {
        let mut config = speaking(config, Wire::Two);
        let further = [unchecked(), damaged(), path_acks()];
        config.capabilities.extend(further);
        config
    })
}

fn pair(rate: &Rate, armour: Armour, inner: EndpointConfig, link: Option<u64>) -> Pair {
    let mut pair = Pair::with_endpoints(ends(), inner, noisy(rate, link));
    for way in [Way::Forward, Way::Back] {
        pair.call(way, |session, _| session.set_armour(PEER, Some(armour)));
    }
    pair.run(Duration::from_millis(300));
    pair
}

pub(super) fn damage(pair: &Pair, way: Way) -> DamageStatus {
    let status = pair.session(way).status(PEER).expect("a peer");
    status.damage.expect("data is armoured")
}

pub(super) fn counters(pair: &Pair) -> Counters {
    let endpoint = pair.session(Way::Forward).inner();
    endpoint.path_counters(PEER.inner_path())
}

#[test]
fn parity_follows_the_rate_of_wrong_bits_and_every_octet_is_right() {
    let rate = Rate::default();
    let mut pair = pair(&rate, Armour::Follows, endpoint_config(), None);
    assert_eq!(
        damage(&pair, Way::Forward).words.words(),
        6,
        "nothing was told"
    );
    let sent = octets(15_000_000);
    pair.send(&sent);
    let mut seen = Vec::new();
    for there in [0.0, 1e-5, 1e-3, 1e-4, 0.0] {
        rate.set(there);
        // A rate that fell is believed more slowly than one that rose.
        pair.run(Duration::from_millis(if seen.len() < 4 {
            1_500
        } else {
            5_000
        }));
        let status = damage(&pair, Way::Forward);
        println!("{there}: {status:?}");
        seen.push(status.words.words());
        if there > 0.0 {
            let told = status.outward_rate.expect("it was told").value();
            assert!(
                (there / 3.0..there * 3.0).contains(&told),
                "{there}: {told}"
            );
        }
    }
    assert_eq!((seen[0], seen[4]), (0, 0), "{seen:?}");
    assert!((1..=9).contains(&seen[1]), "{seen:?}");
    assert!((15..=33).contains(&seen[2]), "{seen:?}");
    assert!((6..=15).contains(&seen[3]), "{seen:?}");
    pair.run_to_end(Duration::from_secs(30));
    assert!(pair.app(Way::Back).received == sent, "at {}", pair.now);
    let (there, here) = (damage(&pair, Way::Back), damage(&pair, Way::Forward));
    assert!(there.inward.mended > 1_000 && there.inward.corrected_symbols > 10_000);
    // What is told is what was counted, up to what was told last.
    assert!(
        here.outward.mended * 10 > there.inward.mended * 9,
        "{here:?}, {there:?}"
    );
    let is_parity = |event: &SessionEvent<()>| matches!(event, SessionEvent::ParityChanged { .. });
    let changes = pair.count(Way::Forward, is_parity);
    assert!((4..300).contains(&changes), "{changes} changes");
}

#[test]
fn what_is_beyond_repair_is_sent_again_at_once_and_counted_as_damage() {
    let rate = Rate::default();
    let three = FecStrength::from_words(3).expect("a strength");
    let mut pair = pair(&rate, Armour::Fixed(three), endpoint_config(), None);
    // Of full datagrams one in seven is beyond three words of parity at this rate.
    rate.set(1e-4);
    let sent = octets(3_000_000);
    pair.send(&sent);
    pair.run_to_end(Duration::from_secs(30));
    assert!(pair.app(Way::Back).received == sent, "at {}", pair.now);
    let counters = counters(&pair);
    let beyond = damage(&pair, Way::Back).inward.beyond_repair;
    println!("{beyond} beyond repair: {counters:?}");
    assert!(beyond > 150, "{beyond}");
    // Of the others a MACK, which leaves after every eight TPDUs here, said so within the 10 ms between two reports.
    assert!(counters.held_lost_damaged * 3 > beyond, "{counters:?}");
    assert!(counters.held_lost_damaged <= beyond);
    // Each is sent again once, and hardly anything that had arrived.
    let [_, _, again, _] = counters.sent_tpdus;
    assert!(again < counters.held_lost() + beyond / 4, "{counters:?}");
}

#[test]
fn claims_hold_although_a_later_report_came_first() {
    let rate = Rate::default();
    let none = Armour::Fixed(FecStrength::NONE);
    let mut pair = pair(&rate, none, endpoint_config(), None);
    rate.set(2e-5);
    // Of what comes back every second datagram is 25 ms late, and reports are 10 ms apart. Other answers are lost.
    let mut there = noisy(&rate, None);
    let mut count = 0;
    pair.medium = Box::new(move |way, now, path, octets| {
        let copies = there(way, now, path, octets);
        if way == Way::Forward {
            return copies;
        }
        count += 1;
        let late = Duration::from_millis(25 * (count % 2));
        let delayed = copies
            .into_iter()
            .map(|(delay, path, octets)| (delay + late, path, octets));
        delayed.collect()
    });
    let sent = octets(3_000_000);
    pair.send(&sent);
    pair.run_to_end(Duration::from_secs(60));
    assert!(pair.app(Way::Back).received == sent, "at {}", pair.now);
    let counters = counters(&pair);
    let beyond = damage(&pair, Way::Back).inward.beyond_repair;
    println!("{beyond} beyond repair: {counters:?}");
    assert!(beyond > 100, "{beyond}");
    assert!(counters.held_lost_damaged * 5 > beyond, "{counters:?}");
}

#[test]
fn a_datagram_of_another_place_is_no_damaged_one_of_ours() {
    let rate = Rate::default();
    let three = FecStrength::from_words(3).expect("a strength");
    let mut pair = pair(&rate, Armour::Fixed(three), endpoint_config(), None);
    let last = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&last);
    let mut there = noisy(&rate, None);
    pair.medium = Box::new(move |way, now, path, octets| {
        if way == Way::Forward && octets.first().is_some_and(|first| first & 0xF8 == 0x38) {
            *seen.borrow_mut() = octets.to_vec();
            return Vec::new();
        }
        there(way, now, path, octets)
    });
    pair.send(b"never there");
    // The same datagram as of another place, and then as it was but for an octet of each codeword too many.
    let kept = last.borrow().clone();
    let before = damage(&pair, Way::Back).inward;
    for (place, is_claimed) in [(1, false), (0, true)] {
        let mut copy = kept.clone();
        let content = copy.split_off(HEADER);
        let mut header = vec![copy[0] | place];
        header.extend_from_slice(&copy[1..COVERED]);
        PacketCode::new().append_parity(&mut header, 0, FecStrength::from_words(2).expect("few"));
        header.extend(content.iter().map(|octet| octet ^ 0x55));
        pair.inject(Way::Back as usize, PATH, &header);
        let claimed = damage(&pair, Way::Back).inward.beyond_repair - before.beyond_repair;
        assert_eq!(claimed > 0, is_claimed, "place {place}");
    }
}

#[test]
fn an_end_that_does_not_say_that_it_tells_of_damage_gets_what_was_set_at_first() {
    let rate = Rate::default();
    let mut configs = ends();
    configs[1].capabilities.retain(|said| *said != damaged());
    let mut pair = Pair::with_endpoints(configs, endpoint_config(), noisy(&rate, None));
    pair.call(Way::Forward, |session, _| {
        session.set_armour(PEER, Some(Armour::Follows));
    });
    pair.run(Duration::from_millis(300));
    rate.set(1e-5);
    let sent = octets(2_000_000);
    pair.send(&sent);
    pair.run_to_end(Duration::from_secs(10));
    assert!(pair.app(Way::Back).received == sent, "at {}", pair.now);
    let status = damage(&pair, Way::Forward);
    assert_eq!((status.words.words(), status.outward_rate), (6, None));
    assert_eq!(counters(&pair).held_lost_damaged, 0);
}

/// The rate that is found on a link of 5 mbit, with these wrong bits.
fn found(there: f64) -> f64 {
    let rate = Rate::default();
    let inner = EndpointConfig {
        rate: RateSource::Found {
            bound: None,
            first: None,
            sharing: RateSharing::Own,
        },
        ..endpoint_config()
    };
    // Without parity every third full datagram is beyond repair at 3e-5.
    let none = Armour::Fixed(FecStrength::NONE);
    let mut pair = pair(&rate, none, inner, Some(5_000_000));
    rate.set(there);
    pair.send(&octets(4_000_000));
    pair.run(Duration::from_secs(4));
    let endpoint = pair.session(Way::Forward).inner();
    let rate = endpoint
        .path_rate(PEER.inner_path())
        .expect("it has connections");
    let beyond = damage(&pair, Way::Back).inward.beyond_repair;
    println!("{there}: {rate:?}, {beyond} beyond repair");
    assert_eq!(there > 0.0, beyond > 100);
    let link = rate.link.map(Bitrate::as_bits_per_second);
    link.expect("it was found") as f64
}

#[test]
fn damage_is_not_held_against_the_rate_that_is_found() {
    let (clean, damaged) = (found(0.0), found(3e-5));
    assert!(damaged > 0.9 * clean, "{damaged} beside {clean}");
    assert!((4.0e6..5.5e6).contains(&damaged), "{damaged}");
}

/// Sends 2 MB in mode `nack` over a link with this share of wrong bits that loses this share of datagrams; returns the datagrams
/// beyond repair, and the TPDUs sent again.
fn sent_again_in_nack(bits: f64, loss: f64, configs: [SessionConfig; 2]) -> (u64, u64) {
    let rate = Rate::default();
    let connection = ConnectionConfig {
        mode: Mode::HybridNack,
        ..connection_config()
    };
    let mut link = noisy(&rate, None);
    let mut drops = Rng::from_seed(22).child("loss");
    let medium: Medium = Box::new(move |way, now, path, octets| {
        if octets.len() > 1_000 && drops.chance(loss) {
            return Vec::new();
        }
        link(way, now, path, octets)
    });
    let mut pair = Pair::with_connections(configs, (endpoint_config(), connection), medium);
    let none = Armour::Fixed(FecStrength::NONE);
    for way in [Way::Forward, Way::Back] {
        pair.call(way, |session, _| session.set_armour(PEER, Some(none)));
    }
    pair.run(Duration::from_millis(300));
    pair.send(&octets(2_000_000));
    pair.run(Duration::from_millis(50));
    rate.set(bits);
    pair.run(Duration::from_secs(5));
    let status = pair.session(Way::Back).status(PEER).expect("a peer");
    let beyond = status
        .damage
        .map_or(0, |damage| damage.inward.beyond_repair);
    let [_, _, again, _] = counters(&pair).sent_tpdus;
    println!("{bits} {loss}: {beyond} beyond repair, {again} sent again");
    (beyond, again)
}

#[test]
fn mode_nack_sends_again_what_was_damaged_and_not_what_was_lost() {
    let (beyond, again) = sent_again_in_nack(2e-5, 0.0, ends());
    assert!(beyond > 100, "{beyond}");
    assert!(again * 10 > beyond * 9, "{again} for {beyond}");
    let (beyond, again) = sent_again_in_nack(0.0, 0.1, ends());
    assert_eq!((beyond, again), (0, 0));
}

#[test]
fn in_mode_nack_a_checked_carrier_has_nothing_sent_again() {
    let checked = noise().map(|config| speaking(config, Wire::Two));
    let (_, again) = sent_again_in_nack(2e-5, 0.0, checked);
    assert_eq!(again, 0);
}
