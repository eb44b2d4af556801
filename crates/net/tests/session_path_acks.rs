//! A rate that nobody told is found through a session: each end tells what arrived of the other's datagrams.
//!
//! Method: two sessions without encryption, with AeroTP inside, in virtual time. The medium has a rate, a queue and a
//! delay each way, and loses what passes; it reads and may change the path acks.

use super::session_pair::{
    Copies, Inner, Late, Medium, PEER, PORT, Pair, Way, connection_config, endpoint_config, octets,
    unprotected,
};
use fulmar_net::session::{SessionConfig, Wire, path_acks, wire_2};
use fulmar_proto::rate::{RateCause, RateSharing};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{EndpointConfig, RateReason, RateSource};
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use fulmar_proto::wire::checksum::crc32;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

const MBIT: u64 = 1_000_000;
/// Headers of IPv6 and UDP, which the sessions count around each datagram: the test's addresses say nothing.
const HEADERS: usize = 48;

/// One direction of the link.
struct Lane {
    rate: Bitrate,
    queue: usize,
    delay: Duration,
    loss: f64,
    leaving: VecDeque<Instant>,
}

impl Lane {
    fn new(rate: u64, queue: usize, delay: Duration, loss: f64) -> Self {
        Self {
            rate: Bitrate::from_bits_per_second(rate),
            queue,
            delay,
            loss,
            leaving: VecDeque::new(),
        }
    }

    /// The delay of a datagram that enters now, if it arrives.
    fn pass(&mut self, now: Instant, octets: usize, rng: &mut Rng) -> Option<Duration> {
        while self.leaving.front().is_some_and(|at| *at <= now) {
            self.leaving.pop_front();
        }
        if self.leaving.len() > self.queue {
            return None;
        }
        let free = self.leaving.back().copied().unwrap_or(now);
        let wire = ByteCount::from_usize(octets + HEADERS);
        let leaves = free + self.rate.time_to_send(wire);
        self.leaving.push_back(leaves);
        let is_lost = rng.chance(self.loss);
        (!is_lost).then(|| leaves.saturating_since(now) + self.delay)
    }
}

/// The medium's account of path acks: sent back, and octets of everything back.
#[derive(Default)]
struct Account {
    path_acks: Cell<u64>,
    longest: Cell<usize>,
    back: Cell<u64>,
    forward: Cell<u64>,
}

/// A link of two lanes. `change` may rewrite the fields of each path ack.
fn link(
    lanes: [Lane; 2],
    account: &Rc<Account>,
    mut change: impl FnMut(&mut [u8]) + 'static,
) -> Medium {
    let lanes = RefCell::new(lanes);
    let account = Rc::clone(account);
    let mut rng = Rng::from_seed(9).child("medium");
    Box::new(move |way, now, path, octets| -> Copies {
        let mut octets = octets.to_vec();
        let is_ack = octets[0] == 0x28 && octets.len() > 8 && octets[8] == 0x10;
        if is_ack {
            let end = octets.len() - 4;
            let before = octets[9..end].to_vec();
            change(&mut octets[9..end]);
            if octets[9..end] != before[..] {
                let [c0, c1, c2] = [octets[5], octets[6], octets[7]];
                let check = crc32(&octets[8..end]) ^ crc32(&[0, 0, 0, 0, 0, c0, c1, c2]);
                octets[end..].copy_from_slice(&check.to_be_bytes());
            }
        }
        let counted = octets.len() + HEADERS;
        if way == Way::Back {
            account.back.set(account.back.get() + counted as u64);
            if is_ack {
                account.path_acks.set(account.path_acks.get() + 1);
                account.longest.set(account.longest.get().max(octets.len()));
            }
        } else {
            account.forward.set(account.forward.get() + counted as u64);
        }
        let passes = lanes.borrow_mut()[way as usize].pass(now, octets.len(), &mut rng);
        passes
            .into_iter()
            .map(|delay| (delay, path, octets.clone()))
            .collect()
    })
}

fn finding() -> EndpointConfig {
    EndpointConfig {
        rate: RateSource::Found {
            bound: None,
            first: None,
            sharing: RateSharing::default(),
        },
        ..endpoint_config()
    }
}

fn telling() -> [SessionConfig; 2] {
    unprotected().map(|mut config| {
        config.capabilities = vec![wire_2(), path_acks()];
        config
    })
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Sends `count` octets and says which share of the forward lane's capacity they took, headers included, from the
/// first to the last.
fn share(pair: &mut Pair, count: usize, rate: u64, loss: f64) -> f64 {
    pair.run(millis(100));
    let (sent, began) = (octets(count), pair.now);
    pair.send(&sent);
    pair.run_to_end(Duration::from_secs(600));
    assert!(
        pair.app(Way::Back).received == sent,
        "every octet, once, in order"
    );
    share_since(began, pair.now, count, rate as f64 * (1.0 - loss))
}

/// The share that so many octets take of what a lane carries that passes so many bits a second.
fn share_since(began: Instant, ended: Instant, count: usize, carried: f64) -> f64 {
    let took = ended.saturating_since(began).as_secs_f64();
    // Packets of 1,500 octets with the headers that the medium counts, 12 of session without protection and 9 of data.
    let payload = 1_500.0 - HEADERS as f64 - 21.0;
    count as f64 * 8.0 / took / (carried * payload / 1_500.0)
}

fn both(rate: u64, queue: usize, delay: Duration, loss: f64) -> [Lane; 2] {
    [rate, rate].map(|rate| Lane::new(rate, queue, delay, loss))
}

#[test]
fn a_rate_that_nobody_told_is_found_by_path_acks_whatever_is_lost() {
    for (loss, least) in [(0.0, 0.92), (0.1, 0.92), (0.3, 0.9), (0.5, 0.87)] {
        let account = Rc::default();
        let lanes = both(10 * MBIT, 100, millis(5), loss);
        let medium = link(lanes, &account, |_| {});
        let mut pair = Pair::with_endpoints(telling(), finding(), medium);
        let share = share(&mut pair, 10_000_000, 10 * MBIT, loss);
        let rate = pair
            .session(Way::Forward)
            .inner()
            .path_rate(PEER.inner_path());
        println!(
            "{loss}: {share:.3} {rate:?}, {} path acks",
            account.path_acks.get()
        );
        assert!(share > least, "{loss}: {share}");
        let status = pair.session(Way::Forward).status(PEER).expect("a peer");
        assert_eq!(status.wire, Some(Wire::Two));
        assert!(matches!(rate.expect("a path").reason, RateReason::Found(_)));
        // Eight octets of header, the frame, and four of check: 69 with IPv4, UDP and a tag of 16.
        assert_eq!(account.longest.get(), 8 + 17 + 4);
        let seconds = pair.now.as_secs_f64();
        let each_second = account.path_acks.get() as f64 / seconds;
        assert!(each_second < 110.0, "{each_second} a second");
    }
}

#[test]
fn an_end_that_wakes_late_is_no_queue_where_its_driver_knows_when_datagrams_came() {
    let mut gained = 0.0;
    for loss in [0.0, 0.1, 0.3, 0.5] {
        let [blind, seeing] = [false, true].map(|tells| {
            let account = Rc::default();
            let medium = link(both(10 * MBIT, 100, millis(5), loss), &account, |_| {});
            let mut pair = Pair::with_endpoints(telling(), finding(), medium);
            pair.late = Some(Late { tells });
            share(&mut pair, 10_000_000, 10 * MBIT, loss)
        });
        println!("{loss}: {blind:.3} by when they are handled, {seeing:.3} by when they came");
        // With one seed either moves by up to .02, so the four together say whether it is a gain.
        assert!(seeing > 0.94, "{loss}: {blind} {seeing}");
        gained += seeing - blind;
    }
    assert!(gained > 0.0, "{gained}");
}

/// Sends so many octets on a connection of their own.
fn say(session: &mut Inner, now: Instant, count: usize) {
    let endpoint = session.inner_mut();
    let id = endpoint.connect(now, PEER.inner_path(), PORT, connection_config());
    let id = id.expect("connects");
    let written = endpoint.write(now, id, &octets(count));
    assert_eq!(written, Ok(count));
}

/// Octets of the word that is said before a download.
const WORD: usize = 200;

/// The same as [`share`], as gateways that carry a download see it: a question from there, a word that it was heard, and
/// what was asked for when the next question has come.
fn share_of_download(pair: &mut Pair, count: usize, (rate, delay): (u64, Duration)) -> f64 {
    pair.run(Duration::from_secs(3));
    pair.call(Way::Back, |session, now| say(session, now, 300));
    pair.run(delay + millis(10));
    pair.call(Way::Forward, |session, now| say(session, now, WORD));
    pair.run(2 * delay);
    let (sent, began) = (octets(count), pair.now);
    pair.send(&sent);
    while pair.app(Way::Back).received.len() < WORD + count {
        pair.run(millis(5));
        assert!(pair.now < began + Duration::from_secs(600), "it hangs");
    }
    assert!(pair.app(Way::Back).received[WORD..] == sent);
    share_since(began, pair.now, count, rate as f64)
}

#[test]
fn what_was_said_before_a_download_costs_it_nothing() {
    for (mbit, delay, packets, count, first, least) in [
        (10, 300, 500, 20_000_000, None, 0.85),
        (10, 300, 500, 50_000_000, None, 0.92),
        (10, 300, 500, 20_000_000, Some(3), 0.89),
        (10, 300, 500, 20_000_000, Some(10), 0.93),
        (10, 300, 500, 20_000_000, Some(20), 0.93),
        (100, 50, 833, 40_000_000, None, 0.87),
        (100, 50, 833, 100_000_000, None, 0.91),
        (100, 50, 833, 40_000_000, Some(95), 0.92),
    ] {
        let (rate, delay) = (mbit * MBIT, millis(delay));
        let account = Rc::default();
        let medium = link(both(rate, packets, delay, 0.0), &account, |_| {});
        let mut pair = Pair::with_endpoints(telling(), finding(), medium);
        let first = first.map(|mbit| Bitrate::from_bits_per_second(mbit * MBIT));
        pair.call(Way::Forward, |session, now| {
            // The other end had nothing to send, and so has found nothing.
            let source = finding().rate.after(first);
            session
                .inner_mut()
                .set_rate_source(now, PEER.inner_path(), source);
        });
        let share = share_of_download(&mut pair, count, (rate, delay));
        let found = pair
            .session(Way::Forward)
            .inner()
            .path_rate(PEER.inner_path());
        println!(
            "{mbit} mbit, {delay:?}, {first:?}: {share:.3}, {} path acks in {}, {found:?}",
            account.path_acks.get(),
            pair.now
        );
        // A hundred in a second, although the other end has not found what its way carries.
        assert!(account.path_acks.get() > 300, "told of too rarely");
        assert!(share > least, "{mbit} mbit, {delay:?}, {first:?}: {share}");
    }
}

#[test]
fn beside_an_end_that_tells_nothing_the_reports_of_acknowledgements_do() {
    for knows in [0, 1] {
        let mut configs = telling();
        configs[knows].capabilities = vec![wire_2()];
        let account = Rc::default();
        let medium = link(both(10 * MBIT, 100, millis(5), 0.1), &account, |_| {});
        let mut pair = Pair::with_endpoints(configs, finding(), medium);
        let share = share(&mut pair, 5_000_000, 10 * MBIT, 0.1);
        println!("{share:.3}");
        assert!(share > 0.9, "{share}");
        assert_eq!(account.path_acks.get(), 0);
    }
}

#[test]
fn a_rate_that_is_told_while_the_session_stands_still_follows_a_link_that_carries_less() {
    let account = Rc::default();
    let medium = link(both(5 * MBIT, 100, millis(20), 0.05), &account, |_| {});
    let mut pair = Pair::with_endpoints(telling(), finding(), medium);
    pair.run(millis(100));
    let path = PEER.inner_path();
    pair.call(Way::Forward, |session, now| {
        let told = RateSource::Told(Bitrate::from_bits_per_second(20 * MBIT));
        session.inner_mut().set_rate_source(now, path, told);
    });
    let share = share(&mut pair, 5_000_000, 5 * MBIT, 0.05);
    let rate = pair.session(Way::Forward).inner().path_rate(path);
    let rate = rate.expect("a path");
    println!("{share:.3} {rate:?}, {} path acks", account.path_acks.get());
    assert_eq!(rate.reason, RateReason::Link, "{rate:?}");
    assert!(rate.declared_wrong, "{rate:?}");
    assert!(share > 0.7, "{share}");
}

#[test]
fn whatever_a_path_ack_says_everything_arrives_once() {
    for seed in 0..9 {
        let account = Rc::default();
        let mut wild = Rng::from_seed(seed).child("wild");
        let medium = link(
            both(10 * MBIT, 100, millis(5), 0.1),
            &account,
            move |fields| {
                let rng = &mut wild;
                match seed % 3 {
                    // All fields, an octet, or one bit.
                    0 => rng.fill(fields),
                    1 => {
                        let at = usize::try_from(rng.below(16)).expect("small");
                        rng.fill(&mut fields[at..=at]);
                    }
                    _ => {
                        let bit = usize::try_from(rng.below(128)).expect("small");
                        fields[bit / 8] ^= 1 << (bit % 8);
                    }
                }
            },
        );
        let mut pair = Pair::with_endpoints(telling(), finding(), medium);
        pair.run(millis(100));
        let sent = octets(200_000);
        pair.send(&sent);
        pair.run_to_end(Duration::from_secs(3_600));
        assert!(
            pair.app(Way::Back).received == sent,
            "{seed}: {:?}",
            pair.now
        );
        println!("{seed}: after {}", pair.now);
    }
}

#[test]
fn the_rate_is_found_again_after_a_restart_and_stays_through_a_change_of_keys() {
    let account = Rc::default();
    let medium = link(both(10 * MBIT, 100, millis(20), 0.05), &account, |_| {});
    let configs = telling().map(|mut config| {
        config.rekey.after = Duration::from_secs(2);
        config
    });
    let mut pair = Pair::with_endpoints(configs, finding(), medium);
    let first = share(&mut pair, 15_000_000, 10 * MBIT, 0.05);
    println!("through changes of keys {first:.3}");
    assert!(first > 0.9, "{first}");
    let rekeyed = pair.session(Way::Forward).counters().rekeys;
    assert!(rekeyed >= 4, "{rekeyed}");
    for (way, config) in [Way::Forward, Way::Back].into_iter().zip(telling()) {
        // Above those of all handshakes before.
        let boot_epoch = config.boot_epoch + 1_000;
        let config = SessionConfig {
            boot_epoch,
            ..config
        };
        pair.restart(way, config, 77 + way as u8);
        pair.run(Duration::from_secs(10));
    }
    let again = share(&mut pair, 10_000_000, 10 * MBIT, 0.05);
    println!("after restarts {again:.3}");
    assert!(again > 0.9, "{again}");
}

#[test]
fn two_idle_ends_tell_each_other_nothing() {
    let account = Rc::default();
    let medium = link(both(10 * MBIT, 100, millis(5), 0.0), &account, |_| {});
    let mut pair = Pair::with_endpoints(telling(), finding(), medium);
    share(&mut pair, 100_000, 10 * MBIT, 0.0);
    pair.run(Duration::from_secs(2));
    let (path_acks, back, forward) = (
        account.path_acks.get(),
        account.back.get(),
        account.forward.get(),
    );
    pair.run(Duration::from_secs(60));
    assert_eq!(account.path_acks.get(), path_acks);
    // A probe every ten seconds and its answer, and tries of sizes.
    let quiet = |before: u64, now: u64| now - before < 20_000;
    assert!(quiet(back, account.back.get()) && quiet(forward, account.forward.get()));
}

/// The share of a download that is cut off, in the ideal time that it may take, and the shares of the one before and of
/// the one after new starts of both ends, which try the rate first that was found.
fn shares_again((mbit, packets, delay, loss): (u64, usize, u64, f64), count: usize) -> [f64; 2] {
    let (rate, delay) = (mbit * MBIT, millis(delay));
    let account = Rc::default();
    let medium = link(both(rate, packets, delay, loss), &account, |_| {});
    let mut pair = Pair::with_endpoints(telling(), finding(), medium);
    pair.call(Way::Back, |session, now| say(session, now, 300));
    pair.run(3 * delay);
    pair.call(Way::Forward, |session, now| say(session, now, WORD));
    pair.run(2 * delay);
    let began = pair.now;
    let carried = rate as f64 * (1.0 - loss);
    let ideal = count as f64 * 8.0 / carried;
    pair.send(&octets(count));
    pair.run(Duration::from_secs_f64(ideal / 2.0));
    let came = pair.app(Way::Back).received.len();
    let first = share_since(began, pair.now, came, carried);
    let found = [Way::Forward, Way::Back].map(|way| {
        let path = pair.session(way).inner().path_rate(PEER.inner_path());
        let found = path.filter(|rate| rate.reason != RateReason::Found(RateCause::Searching));
        found.and_then(|rate| rate.link)
    });
    for ((way, config), found) in [Way::Forward, Way::Back]
        .into_iter()
        .zip(telling())
        .zip(found)
    {
        let boot_epoch = config.boot_epoch + 1_000;
        let config = SessionConfig {
            boot_epoch,
            ..config
        };
        pair.restart(way, config, 77 + way as u8);
        pair.call(way, |session, now| {
            let source = finding().rate.after(found);
            session
                .inner_mut()
                .set_rate_source(now, PEER.inner_path(), source);
        });
    }
    pair.call(Way::Back, |session, now| say(session, now, 300));
    pair.run(10 * delay);
    pair.call(Way::Forward, |session, now| say(session, now, WORD));
    pair.run(2 * delay);
    let began = pair.now;
    pair.send(&octets(count));
    while pair.app(Way::Back).received.len() < WORD + count {
        pair.run(millis(5));
        let since = pair.now.saturating_since(began);
        assert!(since < Duration::from_secs_f64(10.0 * ideal), "it hangs");
    }
    let again = share_since(began, pair.now, count, carried);
    println!("{mbit} mbit, {delay:?}, {loss}: {first:.3}, again {again:.3}, {found:?}");
    [first, again]
}

#[test]
fn a_second_session_begins_with_what_the_first_one_found() {
    for (link, count, least) in [
        ((10, 500, 300, 0.0), 50_000_000, 0.94),
        ((10, 500, 300, 0.05), 50_000_000, 0.92),
        ((100, 833, 50, 0.0), 100_000_000, 0.94),
        ((10, 100, 5, 0.1), 20_000_000, 0.94),
    ] {
        let [_, again] = shares_again(link, count);
        assert!(again > least, "{link:?}: {again}");
    }
}

#[test]
fn a_narrow_way_back_carries_what_the_other_needs() {
    for (kbit, least) in [(64, 0.9), (256, 0.96)] {
        let account = Rc::default();
        let lanes = [
            Lane::new(10 * MBIT, 100, millis(10), 0.05),
            Lane::new(1_000 * kbit, 100, millis(10), 0.05),
        ];
        let medium = link(lanes, &account, |_| {});
        let mut pair = Pair::with_endpoints(telling(), finding(), medium);
        let share = share(&mut pair, 20_000_000, 10 * MBIT, 0.05);
        println!(
            "{kbit} kbit back: {share:.3}, {} path acks in {}",
            account.path_acks.get(),
            pair.now
        );
        assert!(share > least, "{kbit} kbit back: {share}");
    }
}

#[test]
fn words_beside_acknowledgements_do_not_hide_that_their_way_is_narrow() {
    // Told, both ends are told the rate of the wide way.
    for (endpoint, kbit, least) in [
        (endpoint_config(), 64, 0.96),
        (endpoint_config(), 256, 0.96),
        (finding(), 64, 0.93),
        (finding(), 256, 0.96),
    ] {
        let lanes = [
            Lane::new(10 * MBIT, 100, millis(10), 0.05),
            Lane::new(1_000 * kbit, 100, millis(10), 0.05),
        ];
        let (rate, count) = (endpoint.rate, 20_000_000);
        let medium = link(lanes, &Rc::default(), |_| {});
        let mut pair = Pair::with_endpoints(telling(), endpoint, medium);
        pair.run(millis(100));
        let began = pair.now;
        pair.send(&octets(count));
        let (mut words, mut step) = (None, 0);
        while pair.app(Way::Back).received.len() < count {
            step += 1;
            pair.run(millis(5));
            // As a gateway gives credit.
            if step % 50 != 1 {
                continue;
            }
            pair.call(Way::Back, |session, now| {
                let endpoint = session.inner_mut();
                let id = *words.get_or_insert_with(|| {
                    let path = PEER.inner_path();
                    let id = endpoint.connect(now, path, PORT, connection_config());
                    id.expect("connects")
                });
                assert_eq!(endpoint.write(now, id, &octets(20)), Ok(20));
            });
            assert!(pair.now < began + Duration::from_secs(100), "it hangs");
        }
        let share = share_since(began, pair.now, count, 10e6 * 0.95);
        println!("{rate:?}, {kbit} kbit back: {share:.3}");
        let sent = octets(count);
        assert!(pair.app(Way::Back).received == sent, "in order");
        assert!(share > least, "{rate:?}, {kbit} kbit back: {share}");
    }
}

#[test]
fn words_on_the_way_back_of_a_download_do_not_wait_for_a_train() {
    // What an earlier session may have kept for a way that carried answers alone.
    for first in [None, Some(180_000)] {
        let (delay, count) = (millis(300), 20_000_000);
        let medium = link(both(100 * MBIT, 5_000, delay, 0.0), &Rc::default(), |_| {});
        let mut pair = Pair::with_endpoints(telling(), finding(), medium);
        pair.call(Way::Back, |session, now| {
            let first = first.map(Bitrate::from_bits_per_second);
            let source = finding().rate.after(first);
            session
                .inner_mut()
                .set_rate_source(now, PEER.inner_path(), source);
        });
        pair.run(Duration::from_secs(3));
        pair.send(&octets(count));
        let (mut said, mut longest) = (Vec::new(), Duration::ZERO);
        while pair.app(Way::Back).received.len() < count {
            pair.call(Way::Back, |session, now| say(session, now, 60));
            said.push(pair.now);
            pair.run(millis(50));
            let heard = pair.app(Way::Forward).received.len() / 60;
            if let Some(waits) = said.get(heard) {
                longest = longest.max(pair.now.saturating_since(*waits));
            }
            assert!(said.len() < 1_000, "it hangs");
        }
        println!("{first:?}: {longest:?} after {:?}", pair.now);
        // Its way, the next step of the test, and a pause of the pacer.
        assert!(longest < delay + millis(120), "{first:?}: {longest:?}");
    }
}

/// The same link, which carries all but marks what comes faster than `most`.
fn marking(mut link: Medium, most: Bitrate, marks: &Rc<Cell<bool>>) -> Medium {
    let marks = Rc::clone(marks);
    let mut phantom = Lane::new(most.as_bits_per_second(), usize::MAX, Duration::ZERO, 0.0);
    let mut none = Rng::from_seed(1);
    Box::new(move |way, now, path, octets| {
        if way == Way::Forward {
            let waits = phantom.pass(now, octets.len(), &mut none);
            marks.set(waits.is_some_and(|waits| waits > millis(10)));
        }
        link(way, now, path, octets)
    })
}

#[test]
fn marks_slow_a_rate_that_is_found_although_nothing_is_lost() {
    let seconds = 20;
    let [marked, unmarked] = [4, 1_000].map(|most| {
        let lanes = both(10 * MBIT, 100, millis(5), 0.0);
        let marks = Rc::default();
        let medium = link(lanes, &Rc::default(), |_| {});
        let medium = marking(medium, Bitrate::from_bits_per_second(most * MBIT), &marks);
        let mut pair = Pair::with_endpoints(telling(), finding(), medium);
        pair.marks = marks;
        pair.run(millis(100));
        pair.send(&octets(40_000_000));
        pair.run(Duration::from_secs(seconds));
        let counters = pair.session(Way::Forward).inner();
        assert_eq!(counters.path_counters(PEER.inner_path()).held_lost(), 0);
        let received = pair.app(Way::Back).received.len() as u64;
        Bitrate::of(ByteCount(received), Duration::from_secs(seconds))
    });
    println!("{marked} marked, {unmarked} not");
    assert!(
        unmarked > Bitrate::from_bits_per_second(8 * MBIT),
        "{unmarked}"
    );
    assert!(marked < Bitrate::from_bits_per_second(6 * MBIT), "{marked}");
}
