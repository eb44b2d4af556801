//! Data leaves without checksum where damage is worth mending, and with one elsewhere.
//!
//! Method: two sessions with AeroTP inside, in virtual time. The medium drops a datagram with a checksum if one of its bits
//! is wrong, and delivers one without, but for wrong bits in UDP's own header. Nobody is told what the path does.

use super::session_pair::{Medium, PEER, Pair, Way, endpoint_config, noise, octets, speaking};
use crate::bit_errors::flip;
use fulmar_net::session::{
    Armour, ChecksumReason, SessionConfig, SessionEvent, Wire, damaged, path_acks, reports,
    unchecked,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant};
use std::cell::Cell;
use std::rc::Rc;

const DELAY: Duration = Duration::from_millis(5);
/// Bits of UDP's header that are lost with the datagram.
const BARE_BITS: i32 = 48;

#[derive(Default)]
struct Path {
    /// The share of wrong bits.
    ber: Cell<f64>,
    /// The share of datagrams that are lost for other reasons.
    loss: Cell<f64>,
    /// Whether those without checksum are dropped.
    drops_unchecked: Cell<bool>,
    /// Octets beyond which those without checksum are dropped, if there is a limit.
    unchecked_max: Cell<Option<usize>>,
    /// Datagrams of each form from the caller, with a checksum first.
    seen: [Cell<u32>; 2],
}

fn medium(path: &Rc<Path>) -> Medium {
    let path = Rc::clone(path);
    let mut rng = Rng::from_seed(30).child("medium");
    Box::new(move |way, _now, id, octets| {
        let (is_unchecked, id) = id.split_checksum();
        if way == Way::Forward {
            let seen = &path.seen[usize::from(is_unchecked)];
            seen.set(seen.get() + 1);
        }
        let is_long = path
            .unchecked_max
            .get()
            .is_some_and(|max| octets.len() > max);
        let drops_unchecked = path.drops_unchecked.get() || is_long;
        if rng.chance(path.loss.get()) || (is_unchecked && drops_unchecked) {
            return Vec::new();
        }
        let mut arrived = octets.to_vec();
        let ber = path.ber.get();
        if ber > 0.0 {
            let is_lost = rng.chance(1.0 - (1.0 - ber).powi(BARE_BITS));
            flip(&mut rng, ber, &mut arrived);
            if is_lost || (!is_unchecked && arrived != octets) {
                return Vec::new();
            }
        }
        vec![(DELAY, id, arrived)]
    })
}

fn ends() -> [SessionConfig; 2] {
    noise().map(|config| {
        let mut config = speaking(config, Wire::Two);
        let further = [unchecked(), damaged(), path_acks(), reports()];
        config.capabilities.extend(further);
        config
    })
}

/// Two ends that choice between UDP with and without checksum, or keep to UDP with its checksum.
fn pair(path: &Rc<Path>, searches: bool) -> Pair {
    let mut pair = Pair::with_endpoints(ends(), endpoint_config(), medium(path));
    for way in [Way::Forward, Way::Back] {
        pair.call(way, |session, _| {
            if searches {
                session.set_armour(PEER, Some(Armour::Follows));
                session.choose_checksum(PEER);
            }
        });
    }
    pair
}

#[test]
fn an_end_that_chooses_alone_says_that_the_other_mends_nothing() {
    let path = Rc::new(Path::default());
    let [choosing, mut other] = ends();
    other.capabilities.retain(|one| *one != unchecked());
    let mut pair = Pair::with_endpoints([choosing, other], endpoint_config(), medium(&path));
    pair.call(Way::Forward, |session, _| {
        session.set_armour(PEER, Some(Armour::Follows));
        session.choose_checksum(PEER);
    });
    pair.run(Duration::from_secs(3));
    assert_eq!(chosen(&pair), [(false, ChecksumReason::NotAgreed)]);
}

/// The forms that the caller chose, with their reasons.
fn chosen(pair: &Pair) -> Vec<(bool, ChecksumReason)> {
    let events = pair.app(Way::Forward).events.iter();
    let of = |event: &SessionEvent<()>| match event {
        SessionEvent::CarrierChosen {
            is_unchecked, why, ..
        } => Some((*is_unchecked, *why)),
        _ => None,
    };
    events.filter_map(|(_, event)| of(event)).collect()
}

/// Sends so many octets, which must arrive as they were, and returns the time that it took.
fn carry(pair: &mut Pair, bytes: usize) -> Duration {
    let sent = octets(bytes);
    let began = pair.now;
    pair.begin_again();
    pair.send(&sent);
    pair.run_to_end(Duration::from_secs(600));
    assert!(pair.app(Way::Back).received == sent, "at {}", pair.now);
    pair.now.saturating_since(began)
}

#[test]
fn a_path_that_damages_is_used_without_checksums_and_carries_more() {
    for (ber, gain) in [(1e-5, 1.02), (1e-4, 2.0)] {
        let path = Rc::new(Path::default());
        path.ber.set(ber);
        let [found, checked] = [true, false].map(|searches| {
            let mut pair = pair(&path, searches);
            let took = carry(&mut pair, 8_000_000);
            println!("{ber}: {took:?} {:?}", chosen(&pair));
            if searches {
                let last = chosen(&pair).pop();
                let by_damage = matches!(last, Some((true, ChecksumReason::Damage(_))));
                assert!(by_damage, "{ber}: {:?}", chosen(&pair));
            }
            took
        });
        assert!(
            found.mul_f64(gain) < checked,
            "{ber}: {found:?} {checked:?}"
        );
    }
}

#[test]
fn a_path_without_loss_is_tried_once_and_its_data_keeps_the_checksum_then() {
    let path = Rc::new(Path::default());
    let mut pair = pair(&path, true);
    carry(&mut pair, 5_000_000);
    is_tried_once(&pair);
    let tried = path.seen[1].get();
    carry(&mut pair, 5_000_000);
    is_tried_once(&pair);
    assert_eq!(path.seen[1].get(), tried, "nothing more without checksum");
}

/// Panics unless data was tried without checksum once, and nothing was damaged.
fn is_tried_once(pair: &Pair) {
    let chosen = chosen(pair);
    let [(false, ChecksumReason::NoDamage(seen))] = chosen[..] else {
        panic!("{chosen:?}");
    };
    assert_eq!(seen.damaged, 0);
}

#[test]
fn a_clean_path_to_a_peer_that_reports_nothing_is_tried_once() {
    let path = Rc::new(Path::default());
    let mut configs = ends();
    configs[1].capabilities.retain(|said| *said != reports());
    let mut pair = Pair::with_endpoints(configs, endpoint_config(), medium(&path));
    pair.call(Way::Forward, |session, _| {
        session.set_armour(PEER, Some(Armour::Follows));
        session.choose_checksum(PEER);
    });
    carry(&mut pair, 15_000_000);
    is_tried_once(&pair);
}

#[test]
fn losses_that_are_no_damage_bring_back_the_checksum() {
    let path = Rc::new(Path::default());
    path.loss.set(0.2);
    let mut pair = pair(&path, true);
    carry(&mut pair, 12_000_000);
    let chosen = chosen(&pair);
    println!("{chosen:?} {:?}", path.seen);
    let none = |one: &(bool, _)| matches!(one, (false, ChecksumReason::NoDamage(_)));
    assert!(!chosen.is_empty() && chosen.iter().all(none), "{chosen:?}");
    let [with, without] = [&path.seen[0], &path.seen[1]].map(Cell::get);
    assert!(without * 8 < with, "{without} of {with}");
}

#[test]
fn a_path_that_drops_what_has_no_checksum_carries_everything_with_one() {
    let path = Rc::new(Path::default());
    path.ber.set(1e-5);
    path.drops_unchecked.set(true);
    let mut pair = pair(&path, true);
    carry(&mut pair, 3_000_000);
    assert_eq!(chosen(&pair), [(false, ChecksumReason::NotCarried)]);
}

#[test]
fn a_path_that_drops_long_ones_without_checksum_is_never_tried_with_data() {
    let path = Rc::new(Path::default());
    path.ber.set(1e-5);
    path.unchecked_max.set(Some(600));
    let mut pair = pair(&path, true);
    carry(&mut pair, 3_000_000);
    assert_eq!(chosen(&pair), [(false, ChecksumReason::NotCarried)]);
    assert_eq!(path.seen[1].get(), 8, "the questions alone");
}

#[test]
fn a_path_that_begins_to_drop_them_in_the_midst_of_a_transfer_loses_nothing() {
    let path = Rc::new(Path::default());
    path.ber.set(1e-4);
    let mut pair = pair(&path, true);
    let sent = octets(10_000_000);
    pair.send(&sent);
    pair.run(Duration::from_secs(6));
    let before = chosen(&pair);
    assert!(
        before.last().is_some_and(|(is_unchecked, _)| *is_unchecked),
        "{before:?}"
    );
    path.drops_unchecked.set(true);
    path.ber.set(0.0);
    pair.run(Duration::from_secs(3));
    let after = chosen(&pair);
    assert!(
        after.last().is_some_and(|(is_unchecked, _)| !is_unchecked),
        "{after:?}"
    );
    pair.run_to_end(Duration::from_secs(600));
    assert!(pair.app(Way::Back).received == sent, "at {}", pair.now);
}

#[test]
fn a_silent_link_that_begins_to_drop_them_is_not_held_for_down() {
    let path = Rc::new(Path::default());
    path.ber.set(1e-4);
    let mut pair = pair(&path, true);
    carry(&mut pair, 5_000_000);
    let before = chosen(&pair);
    let is_unchecked = before.last().is_some_and(|(is_unchecked, _)| *is_unchecked);
    assert!(is_unchecked, "{before:?}");
    path.drops_unchecked.set(true);
    path.ber.set(0.0);
    pair.run(Duration::from_secs(120));
    let is_down = |event: &SessionEvent<()>| matches!(event, SessionEvent::LinkDown { .. });
    let mut events = pair.app(Way::Forward).events.iter();
    assert!(!events.any(|(_, event)| is_down(event)));
    carry(&mut pair, 1_000_000);
}

#[test]
fn ends_meet_where_hardly_any_handshake_with_a_checksum_arrives() {
    let path = Rc::new(Path::default());
    path.ber.set(1e-3);
    let mut pair = pair(&path, true);
    let took = carry(&mut pair, 1_000_000);
    println!("{took:?} {:?}", chosen(&pair));
    let is_up = |event: &SessionEvent<()>| matches!(event, SessionEvent::Up { .. });
    let events = &pair.app(Way::Forward).events;
    let up = events.iter().find(|(_, event)| is_up(event));
    let (up, _) = up.expect("they met");
    let limit = Duration::from_secs(3);
    assert!(up.saturating_since(Instant::START) < limit, "{up:?}");
    let last = chosen(&pair).pop();
    assert!(matches!(last, Some((true, ChecksumReason::Damage(_)))));
}
