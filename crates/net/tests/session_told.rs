//! A link that tells of itself is believed at once: its rate, its outages; and what is told is used without a packet lost.
//!
//! Method: two sessions without encryption, with AeroTP inside, in virtual time. The medium has a rate and a queue each way, which
//! the test changes, and the test tells the sending session.

use super::session_pair::{
    Copies, Inner, Medium, PEER, Pair, Way, endpoint_config, octets, unprotected,
};
use fulmar_net::session::{SessionConfig, SessionEvent, path_acks, wire_2};
use fulmar_proto::dlep::wire::{DlepWriter, item, message, signal, status};
use fulmar_proto::dlep::{DlepAction, DlepConfig, DlepRouter};
use fulmar_proto::rate::RateSharing;
use fulmar_proto::told::{ToldFacts, ToldLink, VALID_FOR};
use fulmar_proto::transport::aerotp::{EndpointConfig, RateSource};
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

const MBIT: u64 = 1_000_000;
/// Headers of IPv6 and UDP, which the sessions count around each datagram.
const HEADERS: usize = 48;
const DELAY: Duration = Duration::from_millis(20);
const ROUND_TRIP: Duration = Duration::from_millis(40);

/// The modem in the forward direction: a rate, a queue, and whether it is on the air.
struct Modem {
    rate: Bitrate,
    queue: usize,
    is_up: bool,
    leaving: VecDeque<Instant>,
    dropped: usize,
    /// The longest time that a datagram has waited.
    longest: Duration,
    passed: Vec<(Instant, usize)>,
}

type Air = Rc<RefCell<Modem>>;

fn modem(mbit: u64, queue: usize) -> (Air, Medium) {
    let air = Rc::new(RefCell::new(Modem {
        rate: bits(mbit),
        queue,
        is_up: true,
        leaving: VecDeque::new(),
        dropped: 0,
        longest: Duration::ZERO,
        passed: Vec::new(),
    }));
    let seen = Rc::clone(&air);
    let medium: Medium = Box::new(move |way, now, path, octets| -> Copies {
        let mut air = air.borrow_mut();
        if way == Way::Back {
            let copies = air.is_up.then(|| (DELAY, path, octets.to_vec()));
            return copies.into_iter().collect();
        }
        while air.leaving.front().is_some_and(|at| *at <= now) {
            air.leaving.pop_front();
        }
        if !air.is_up || air.leaving.len() > air.queue {
            air.dropped += 1;
            return Vec::new();
        }
        let free = air.leaving.back().copied().unwrap_or(now);
        let leaves = free
            + air
                .rate
                .time_to_send(ByteCount::from_usize(octets.len() + HEADERS));
        air.longest = air.longest.max(free.saturating_since(now));
        air.leaving.push_back(leaves);
        air.passed.push((now, octets.len() + HEADERS));
        vec![(leaves.saturating_since(now) + DELAY, path, octets.to_vec())]
    });
    (seen, medium)
}

fn bits(mbit: u64) -> Bitrate {
    Bitrate::from_bits_per_second(mbit * MBIT)
}

fn telling() -> [SessionConfig; 2] {
    unprotected().map(|mut config| {
        config.capabilities = vec![wire_2(), path_acks()];
        config
    })
}

fn finding() -> EndpointConfig {
    EndpointConfig {
        rate: RateSource::Found {
            bound: None,
            first: None,
            sharing: RateSharing::Own,
        },
        ..endpoint_config()
    }
}

fn tell(pair: &mut Pair, told: ToldFacts) {
    pair.call(Way::Forward, |session: &mut Inner, now| {
        assert!(session.take_told(now, (PEER, None), told));
    });
}

fn rate(mbit: u64) -> ToldFacts {
    ToldFacts {
        is_up: Some(true),
        rate: Some(bits(mbit)),
        ..ToldFacts::default()
    }
}

fn down() -> ToldFacts {
    ToldFacts {
        is_up: Some(false),
        ..ToldFacts::default()
    }
}

/// Bits a second that passed the modem in a span.
fn passed(air: &Air, from: Instant, until: Instant) -> f64 {
    let air = air.borrow();
    let within = air
        .passed
        .iter()
        .filter(|(at, _)| (from..until).contains(at));
    let octets: usize = within.map(|(_, octets)| octets).sum();
    octets as f64 * 8.0 / until.saturating_since(from).as_secs_f64()
}

#[test]
fn a_rate_told_lower_is_kept_within_one_round_trip_and_the_modem_loses_nothing() {
    for (kind, endpoint) in [("found", finding()), ("told", endpoint_config())] {
        // A queue of 20 packets: at 2 mbit after 10, an end that finds out by itself loses some.
        for (is_told, loses) in [(true, false), (false, true)] {
            let (air, medium) = modem(10, 20);
            let told = RateSource::Told(bits(10));
            let endpoint = match endpoint.rate {
                RateSource::Told(_) => EndpointConfig {
                    rate: told,
                    ..endpoint
                },
                RateSource::Found { .. } => endpoint,
            };
            let mut pair = Pair::with_endpoints(telling(), endpoint, medium);
            tell(&mut pair, rate(10));
            pair.run(Duration::from_millis(100));
            pair.send(&octets(20_000_000));
            pair.run(Duration::from_secs(4));
            let fell = pair.now;
            assert_eq!(air.borrow().dropped, 0, "{kind}");
            air.borrow_mut().rate = bits(2);
            if is_told {
                tell(&mut pair, rate(2));
            }
            pair.run(Duration::from_secs(3));
            let first = passed(&air, fell + ROUND_TRIP, fell + 12 * ROUND_TRIP);
            let dropped = air.borrow().dropped;
            println!(
                "{kind}, told: {is_told}: {first:.0} bit/s in the first round trips, {dropped} dropped"
            );
            assert_eq!(dropped > 0, loses, "{kind}, told: {is_told}");
            if is_told {
                assert!(first <= 2.1e6, "{kind}: {first}");
                let rest = passed(&air, fell + ROUND_TRIP, pair.now);
                assert!(rest >= 1.8e6, "{kind}: {rest}");
            }
        }
    }
}

#[test]
fn a_rate_told_higher_is_tried_at_once_and_given_up_where_it_is_not_carried() {
    let (air, medium) = modem(2, 100);
    let mut pair = Pair::with_endpoints(telling(), finding(), medium);
    tell(&mut pair, rate(2));
    pair.run(Duration::from_millis(100));
    pair.send(&octets(50_000_000));
    pair.run(Duration::from_secs(3));
    let rose = pair.now;
    air.borrow_mut().rate = bits(20);
    tell(&mut pair, rate(20));
    pair.run(Duration::from_secs(1));
    let first = passed(&air, rose + ROUND_TRIP, rose + Duration::from_secs(1));
    assert!(first >= 0.9 * 20e6, "in the first second: {first}");
    assert_eq!(air.borrow().dropped, 0);
    // And a word that is wrong: twice of what the link carries.
    let lied = pair.now;
    tell(&mut pair, rate(40));
    pair.run(Duration::from_secs(4));
    let later = passed(&air, lied + Duration::from_secs(2), pair.now);
    println!("{first:.0} in the first second; {later:.0} after a wrong word");
    assert!((0.85 * 20e6..1.1 * 20e6).contains(&later), "{later}");
    let found = pair
        .session(Way::Forward)
        .inner()
        .path_rate(PEER.inner_path());
    assert!(found.expect("a path").current <= bits(24), "{found:?}");
}

#[test]
fn a_ceiling_bounds_what_is_sent_and_is_neither_tried_nor_a_word_that_can_be_wrong() {
    for (kind, endpoint) in [("found", finding()), ("told", endpoint_config())] {
        let ceiling = |mbit| ToldFacts {
            ceiling: Some(bits(mbit)),
            ..ToldFacts::default()
        };
        let (air, medium) = modem(10, 100);
        let mut pair = Pair::with_endpoints(telling(), endpoint, medium);
        pair.run(Duration::from_millis(100));
        pair.send(&octets(50_000_000));
        pair.run(Duration::from_secs(3));
        let raised = pair.now;
        tell(&mut pair, ceiling(100));
        pair.run(Duration::from_secs(3));
        let far_above = passed(&air, raised, pair.now);
        assert!(far_above >= 0.9 * 10e6, "{kind}: {far_above}");
        let rate = pair
            .session(Way::Forward)
            .inner()
            .path_rate(PEER.inner_path());
        let rate = rate.expect("a path");
        if kind == "found" {
            assert!(rate.current <= bits(13), "nothing of it is tried: {rate:?}");
            assert!(!rate.declared_wrong, "{rate:?}");
        }
        let lowered = pair.now;
        tell(&mut pair, ceiling(4));
        pair.run(Duration::from_secs(2));
        let below = passed(&air, lowered + ROUND_TRIP, pair.now);
        assert!((3.2e6..4.2e6).contains(&below), "{kind}: {below}");
    }
}

#[test]
fn down_stops_sending_at_once_and_up_goes_on_at_the_old_rate_with_nothing_lost() {
    let (air, medium) = modem(10, 100);
    let mut pair = Pair::with_endpoints(telling(), finding(), medium);
    tell(&mut pair, rate(10));
    pair.run(Duration::from_millis(100));
    let sent = octets(20_000_000);
    pair.send(&sent);
    pair.run(Duration::from_secs(3));
    // The modem goes off once what it has is through, and before the far end asks why it hears nothing, 75 ms after.
    tell(&mut pair, down());
    pair.run(Duration::from_millis(60));
    air.borrow_mut().is_up = false;
    let before = air.borrow().passed.len();
    pair.run(Duration::from_secs(8));
    assert_eq!(air.borrow().passed.len(), before, "nothing is sent");
    assert_eq!(air.borrow().dropped, 0, "and nothing lost");
    air.borrow_mut().is_up = true;
    let back = pair.now;
    tell(&mut pair, rate(10));
    pair.run(Duration::from_secs(1));
    let first = passed(&air, back, pair.now);
    assert!(first >= 0.9 * 10e6, "in the first second: {first}");
    pair.run_to_end(Duration::from_secs(60));
    assert!(pair.app(Way::Back).received == sent);
    assert_eq!(air.borrow().dropped, 0);
    let events = &pair.app(Way::Forward).events;
    let is_down = |event: &SessionEvent<()>| matches!(event, SessionEvent::LinkDown { .. });
    let is_up = |event: &SessionEvent<()>| matches!(event, SessionEvent::LinkUp { .. });
    assert_eq!(events.iter().filter(|(_, event)| is_down(event)).count(), 1);
    assert_eq!(events.iter().filter(|(_, event)| is_up(event)).count(), 1);
}

#[test]
fn what_arrives_while_the_link_is_told_down_is_seen_and_ends_nothing() {
    let (_, medium) = modem(10, 100);
    let mut pair = Pair::with_endpoints(telling(), finding(), medium);
    pair.run(Duration::from_millis(500));
    tell(&mut pair, down());
    let told_at = pair.now;
    // One probe in ten seconds leaves, and its answer shows that the word is wrong.
    pair.run(Duration::from_secs(11));
    let seen = pair
        .session(Way::Forward)
        .path_seen(PEER, None)
        .expect("a path");
    assert!(
        seen.last_heard
            .is_some_and(|at| at > told_at + Duration::from_secs(2)),
        "{seen:?}"
    );
    assert_eq!(seen.silent_since, None, "it was told");
    let status = pair.session(Way::Forward).status(PEER).expect("a peer");
    assert_eq!(status.link, fulmar_net::session::LinkState::Down);
    // Nobody tells any more: the next answer ends it.
    tell(&mut pair, ToldFacts::default());
    pair.run(Duration::from_millis(200));
    let status = pair.session(Way::Forward).status(PEER).expect("a peer");
    assert_eq!(status.link, fulmar_net::session::LinkState::Up);
}

#[test]
fn a_session_below_a_link_that_is_told_down_wakes_for_probes_alone() {
    let (_, medium) = modem(10, 100);
    let mut pair = Pair::with_endpoints(telling(), finding(), medium);
    pair.run(Duration::from_millis(100));
    pair.send(&octets(5_000_000));
    pair.run(Duration::from_millis(500));
    tell(&mut pair, down());
    // Nothing comes any longer, so the far end tries its sizes of packets, and is answered.
    pair.run(Duration::from_secs(2));
    let before = pair.app(Way::Forward).sent.len();
    pair.run(Duration::from_secs(35));
    let sent = pair.app(Way::Forward).sent.len() - before;
    assert!((3..=4).contains(&sent), "a probe each ten seconds: {sent}");
}

#[test]
fn a_peer_behind_a_link_that_is_told_down_from_the_start_is_called_as_rarely_as_one_is_probed() {
    let (air, medium) = modem(10, 100);
    air.borrow_mut().is_up = false;
    let mut pair = Pair::with_endpoints(telling(), finding(), medium);
    tell(&mut pair, down());
    pair.run(Duration::from_secs(35));
    let calls = pair.app(Way::Forward).sent.len();
    assert!((3..=4).contains(&calls), "a call each ten seconds: {calls}");
}

#[test]
fn a_peer_that_comes_anew_while_the_link_is_told_down_is_sent_nothing_until_it_is_up() {
    let (_, medium) = modem(10, 100);
    let mut pair = Pair::with_endpoints(telling(), finding(), medium);
    pair.run(Duration::from_millis(100));
    tell(&mut pair, down());
    let [_, config] = telling();
    pair.restart(Way::Back, config, 9);
    pair.run(Duration::from_secs(1));
    let before = pair.app(Way::Forward).sent.len();
    pair.send(&octets(500_000));
    pair.run(Duration::from_secs(5));
    let sent = pair.app(Way::Forward).sent.len() - before;
    assert!(sent <= 8, "probes and a handshake alone: {sent}");
}

/// Ends whose configured rate is the modem's at first, and ends that find theirs.
fn both() -> [(&'static str, EndpointConfig); 2] {
    let told = EndpointConfig {
        rate: RateSource::Told(bits(10)),
        ..endpoint_config()
    };
    [("found", finding()), ("told", told)]
}

#[test]
fn a_rate_that_is_told_wrong_is_noticed_though_it_moves() {
    for (kind, endpoint) in both() {
        for apart in [0, 100_000, 5 * MBIT] {
            let (_air, medium) = modem(2, 100);
            let mut pair = Pair::with_endpoints(telling(), endpoint, medium);
            let word = |second: u64| ToldFacts {
                rate: Some(Bitrate::from_bits_per_second(
                    9 * MBIT + apart * (second % 2),
                )),
                ..ToldFacts::default()
            };
            tell(&mut pair, word(0));
            pair.run(Duration::from_millis(100));
            pair.send(&octets(20_000_000));
            let mut noticed = None;
            for second in 0..25 {
                tell(&mut pair, word(second));
                pair.run(Duration::from_secs(1));
                let session = pair.session(Way::Forward).inner();
                let rate = session.path_rate(PEER.inner_path()).expect("a path");
                if rate.declared_wrong {
                    noticed.get_or_insert(second);
                }
            }
            println!("{kind}, {apart} bit/s apart: noticed after {noticed:?} s");
            assert!(
                noticed.is_some_and(|second| second < 20),
                "{kind}, {apart}: {noticed:?}"
            );
        }
    }
}

/// A modem that speaks DLEP, as the router has it, and what its gateway makes of its words.
struct Dlep {
    router: DlepRouter,
    link: ToldLink,
}

const MODEM: ([u8; 4], u16) = ([192, 0, 2, 9], 854);

fn destination(kind: u16, mbit: u64) -> Vec<u8> {
    DlepWriter::message(kind)
        .item(item::MAC_ADDRESS, &[2, 0, 0, 0, 0, 1])
        .item(item::CDRT, &(mbit * MBIT).to_be_bytes())
        .finish()
}

impl Dlep {
    /// A modem that is met and tells a rate.
    fn met(pair: &mut Pair, mbit: u64) -> Self {
        let mut modem = Self {
            router: DlepRouter::new(DlepConfig::default()),
            link: ToldLink::default(),
        };
        modem.router.handle_deadline(pair.now);
        modem.meet(pair, mbit);
        modem
    }

    fn meet(&mut self, pair: &mut Pair, mbit: u64) {
        let now = pair.now;
        let offer = DlepWriter::signal(signal::PEER_OFFER).finish();
        self.router.handle_datagram(now, MODEM.into(), &offer);
        self.router.handle_connected(now);
        let begin = DlepWriter::message(message::SESSION_INITIALIZATION_RESPONSE)
            .status(status::SUCCESS)
            .item(item::HEARTBEAT_INTERVAL, &60_000_u32.to_be_bytes());
        self.say(pair, &begin.finish());
        assert!(self.router.is_in_session());
        self.say(pair, &destination(message::DESTINATION_UP, mbit));
    }

    /// The modem says this, and the session hears at once what it amounts to.
    fn say(&mut self, pair: &mut Pair, octets: &[u8]) {
        self.router.handle_octets(pair.now, octets);
        self.turn(pair);
    }

    /// Does what a gateway does in a turn. Returns whether the modem is looked for.
    fn turn(&mut self, pair: &mut Pair) -> bool {
        let now = pair.now;
        if self
            .router
            .next_deadline()
            .is_some_and(|next| next.at <= now)
        {
            self.router.handle_deadline(now);
        }
        let actions = core::iter::from_fn(|| self.router.poll_action());
        let is_sought = actions
            .filter(|action| matches!(action, DlepAction::Discover(_)))
            .count()
            > 0;
        match self.router.poll_news() {
            Some(Some(news)) => self.link.take(now, news, Duration::from_secs(3_600)),
            Some(None) => self.link.forget(),
            None => {}
        }
        tell(pair, self.link.facts(now));
        is_sought
    }
}

#[test]
fn a_rate_that_a_modem_tells_lower_is_kept_within_one_round_trip_and_its_queue_loses_nothing() {
    for (kind, endpoint) in both() {
        let (air, medium) = modem(10, 20);
        let mut pair = Pair::with_endpoints(telling(), endpoint, medium);
        let mut dlep = Dlep::met(&mut pair, 10);
        pair.run(Duration::from_millis(100));
        pair.send(&octets(20_000_000));
        pair.run(Duration::from_secs(4));
        let fell = pair.now;
        air.borrow_mut().rate = bits(2);
        dlep.say(&mut pair, &destination(message::DESTINATION_UPDATE, 2));
        pair.run(Duration::from_secs(3));
        let first = passed(&air, fell + ROUND_TRIP, fell + 12 * ROUND_TRIP);
        println!("{kind}: {first:.0} bit/s in the first round trips");
        assert!((1.5e6..2.1e6).contains(&first), "{kind}: {first}");
        assert_eq!(air.borrow().dropped, 0, "{kind}");
    }
}

#[test]
fn a_modem_s_wrong_message_changes_nothing_of_what_is_sent_until_it_is_met_again() {
    for (kind, endpoint) in both() {
        let (air, medium) = modem(10, 20);
        let mut pair = Pair::with_endpoints(telling(), endpoint, medium);
        let mut dlep = Dlep::met(&mut pair, 10);
        pair.run(Duration::from_millis(100));
        pair.send(&octets(20_000_000));
        pair.run(Duration::from_secs(2));
        air.borrow_mut().rate = bits(2);
        dlep.say(&mut pair, &destination(message::DESTINATION_UPDATE, 2));
        pair.run(Duration::from_secs(1));
        let wrong = pair.now;
        dlep.say(&mut pair, &DlepWriter::message(99).finish());
        assert_eq!(dlep.router.counters().wrong, 1);
        assert!(!dlep.router.is_in_session());
        let mut met = None;
        while met.is_none() {
            pair.run(Duration::from_millis(500));
            if dlep.turn(&mut pair) {
                dlep.meet(&mut pair, 2);
                met = Some(pair.now);
            }
            assert!(pair.now < wrong + VALID_FOR, "it is looked for");
        }
        pair.run(Duration::from_secs(1));
        let meanwhile = passed(&air, wrong, pair.now);
        println!("{kind}: {meanwhile:.0} bit/s after the wrong message");
        assert!((1.8e6..2.1e6).contains(&meanwhile), "{kind}: {meanwhile}");
        assert_eq!(air.borrow().dropped, 0, "{kind}");
    }
}
