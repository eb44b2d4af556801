//! Datagrams beyond repair that the receiver keeps, and that further parity mends.
//!
//! Method: two sessions with AeroTP inside, in virtual time, on a medium that changes bits of real octets, or that the test
//! scripts. Parity is fixed at none, so that every damaged datagram is beyond repair.

use super::session_pair::{Medium, PEER, Pair, Way, endpoint_config, octets};
use super::session_strength::{Rate, counters, damage, ends, noisy};
use fulmar_net::session::{Armour, SessionConfig, parity_follows};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, FecStrength};

/// The largest datagram that is no data of a full one.
const SMALL: usize = 600;
const DELAY: Duration = Duration::from_millis(5);
/// Octets of an armoured header.
const HEADER: usize = 17;

fn ends_that_mend_later() -> [SessionConfig; 2] {
    ends().map(|mut config| {
        config.capabilities.push(parity_follows());
        config
    })
}

fn pair(configs: [SessionConfig; 2], medium: Medium) -> Pair {
    let mut pair = Pair::with_endpoints(configs, endpoint_config(), medium);
    for way in [Way::Forward, Way::Back] {
        pair.call(way, |session, _| {
            session.set_armour(PEER, Some(Armour::Fixed(FecStrength::NONE)));
        });
    }
    pair.run(Duration::from_millis(300));
    pair
}

/// Sends so many octets; returns the datagrams that were beyond repair, those of them that were mended later, the TPDUs sent
/// again, and the octets that left.
fn crosses(pair: &mut Pair, len: usize) -> (u64, u64, u64, u64) {
    let before: usize = pair.app(Way::Forward).sent.iter().map(|(_, len)| len).sum();
    let sent = octets(len);
    pair.send(&sent);
    pair.run_to_end(Duration::from_secs(60));
    assert!(pair.app(Way::Back).received == sent, "at {}", pair.now);
    pair.run(Duration::from_millis(200));
    let status = damage(pair, Way::Back);
    let [_, _, again, _] = counters(pair).sent_tpdus;
    let after: usize = pair.app(Way::Forward).sent.iter().map(|(_, len)| len).sum();
    let (beyond, mended) = (status.inward.beyond_repair, status.mended_later);
    println!(
        "{beyond} beyond repair, {mended} mended later, {again} sent again, {} octets",
        after - before
    );
    (beyond, mended, again, (after - before) as u64)
}

#[test]
fn what_is_beyond_repair_is_mended_by_further_parity_and_hardly_sent_again() {
    let rate = Rate::default();
    let mut later = pair(ends_that_mend_later(), noisy(&rate, None));
    rate.set(3e-5);
    let (beyond, mended, again, octets) = crosses(&mut later, 4_000_000);
    assert!(beyond > 500, "{beyond}");
    assert!(mended * 10 > beyond * 9, "{mended} of {beyond}");
    assert!(again * 5 < beyond, "{again} for {beyond}");
    let mut sent_again = pair(ends(), noisy(&rate, None));
    let (beyond, none, again, more) = crosses(&mut sent_again, 4_000_000);
    assert_eq!(none, 0);
    assert!(again * 10 > beyond * 9, "{again} for {beyond}");
    // A quarter of the datagrams was sent again, and a twentieth of that is further parity.
    assert!(octets * 100 < more * 90, "{octets} beside {more}");
}

#[test]
fn an_end_that_does_not_say_so_gets_its_contents_again() {
    let [here, there] = ends_that_mend_later();
    let [old_here, old_there] = ends();
    for configs in [[here, old_there], [old_here, there]] {
        let rate = Rate::default();
        let mut pair = pair(configs, noisy(&rate, None));
        rate.set(3e-5);
        let (beyond, mended, again, _) = crosses(&mut pair, 1_000_000);
        assert_eq!(mended, 0);
        assert!(again * 10 > beyond * 9, "{again} for {beyond}");
    }
}

/// A medium that makes so many octets of every tenth full datagram wrong, and loses small ones forward if told to.
fn scripted(wrong: usize, loses_small: bool) -> Medium {
    let mut rng = Rng::from_seed(50).child("octets");
    let mut count = 0;
    Box::new(move |way, now, path, octets| {
        let mut octets = octets.to_vec();
        if way == Way::Forward && octets.len() > SMALL {
            count += 1;
            if count % 10 == 0 {
                for _ in 0..wrong {
                    let room = (octets.len() - HEADER) as u64;
                    let place = HEADER + usize::try_from(rng.below(room)).expect("small");
                    octets[place] ^= 0x55;
                }
            }
        }
        // Neither what is set up before nor the end of the stream.
        let is_under_way = (400..1_000).contains(&(now.as_nanos() / 1_000_000));
        if way == Way::Forward && loses_small && is_under_way && octets.len() <= SMALL {
            return Vec::new();
        }
        vec![(DELAY, path, octets)]
    })
}

#[test]
fn where_further_parity_is_lost_or_does_not_suffice_contents_are_sent_again() {
    // Five wrong octets are mended, by the second further parity at the latest; three hundred are not.
    let mut few = pair(ends_that_mend_later(), scripted(5, false));
    let (beyond, mended, again, _) = crosses(&mut few, 1_000_000);
    assert!(mended * 10 > beyond * 8, "{mended} of {beyond}");
    assert!(again * 4 < beyond, "{again} for {beyond}");
    let mut lost = pair(ends_that_mend_later(), scripted(5, true));
    let (beyond, mended, again, _) = crosses(&mut lost, 1_000_000);
    // That of the first half second.
    assert!(beyond > 50 && mended < beyond / 2, "{mended} of {beyond}");
    assert!((again + mended) * 10 > beyond * 9, "{again} for {beyond}");
    let mut hopeless = pair(ends_that_mend_later(), scripted(300, false));
    let (beyond, mended, again, _) = crosses(&mut hopeless, 1_000_000);
    assert!(beyond > 50 && mended == 0, "{mended} of {beyond}");
    assert!(again * 10 > beyond * 9, "{again} for {beyond}");
}

#[test]
fn damaged_copies_that_somebody_made_neither_bring_a_wrong_octet_nor_one_twice() {
    let mut rng = Rng::from_seed(51).child("copies");
    let medium: Medium = Box::new(move |way, _, path, octets| {
        let genuine = (DELAY, path, octets.to_vec());
        if way == Way::Back || octets.len() <= SMALL || !rng.chance(0.1) {
            return vec![genuine];
        }
        let mut damaged = octets.to_vec();
        for place in damaged.iter_mut().skip(HEADER).step_by(97) {
            *place ^= 0xFF;
        }
        let early = (
            DELAY.saturating_sub(Duration::from_millis(1)),
            path,
            damaged.clone(),
        );
        let late = (DELAY + Duration::from_millis(70), path, damaged);
        match rng.below(3) {
            0 => vec![early, genuine],
            // The genuine one comes when further parity for the other is on its way.
            1 => vec![
                early,
                (DELAY + Duration::from_millis(25), genuine.1, genuine.2),
            ],
            _ => vec![genuine, late],
        }
    });
    let mut pair = pair(ends_that_mend_later(), medium);
    let (.., again, _) = crosses(&mut pair, 1_000_000);
    let inner = pair.session(Way::Back).inner().endpoint_counters();
    assert_eq!(inner.rejected, 0, "damage got inside");
    assert!(again < 120, "{again}");
    // The stream drops what comes twice, and counts it.
    let path = PEER.inner_path();
    let twice = pair
        .session(Way::Back)
        .inner()
        .path_counters(path)
        .duplicates;
    assert!(twice <= again, "{twice} came twice, {again} left twice");
}
