//! Gateways in a row: what one of them has acknowledged moves on while any hop is down and whoever is killed, once and
//! unaltered, and no side is told more than is true.
//!
//! Method: four splicers over three hops that are taken down by script. The gateways between have relays; killed ones lose
//! what their stores did not have safe. An application at either end keeps what it sent until it is told *delivered*.

use super::chain::Chain;
use super::splicers::{ECHO, REFUSES, SINK, pattern};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::{Acknowledge, FlowClass, FlowEvent, RefuseCode, RelayStore, ResetCode};
use fulmar_proto::units::{ByteCount, Duration};

const SECOND: Duration = Duration::from_secs(1);
/// Histories with drawn outages and kills.
const HISTORIES: u64 = 60;

fn class() -> FlowClass {
    FlowClass {
        window: ByteCount(200_000),
        resume: true,
        durable: true,
        ..FlowClass::default()
    }
}

#[test]
fn custody_moves_on_while_only_one_hop_is_up_at_a_time() {
    let mut chain = Chain::new(Acknowledge::Custody, 0.05, 1);
    let octets = pattern(500_000);
    chain.set_up(1, false);
    let id = chain.open(SINK, class(), &octets);
    chain.run(SECOND * 5);
    assert!(chain.server().is_none(), "the second hop is down");
    assert_eq!(
        chain.client(id).delivered,
        500_000,
        "the second gateway has it"
    );
    for (down, up) in [(0, 1), (1, 2)] {
        chain.set_up(down, false);
        chain.kill(1);
        chain.kill(2);
        chain.set_up(up, true);
        if up == 1 {
            chain.set_up(2, false);
        }
        chain.run(SECOND * 20);
    }
    let server = chain.server().expect("it was connected");
    assert!(server.received == octets);
    assert!(server.peer_finished, "the end came, too");
    assert!(!chain.is_closed(id), "the way back is down");
    chain.server().expect("it is there").finishes = true;
    let at_server = *chain.nodes[3].apps.keys().next().expect("one flow");
    chain.touch(3, at_server);
    for hop in 0..3 {
        chain.set_up(hop, true);
    }
    chain.run(SECOND * 40);
    assert!(chain.is_closed(id), "{:?}", chain.client(id).last);
}

#[test]
fn without_custody_the_source_hears_what_the_destination_has() {
    let mut chain = Chain::new(Acknowledge::Destination, 0.0, 2);
    let octets = pattern(60_000);
    chain.set_up(2, false);
    let id = chain.open(SINK, class(), &octets);
    chain.run(SECOND * 5);
    assert_eq!(chain.client(id).delivered, 0, "the destination has nothing");
    assert!(chain.client(id).bound.is_none(), "nobody has connected");
    chain.set_up(2, true);
    chain.run(SECOND * 20);
    assert_eq!(chain.client(id).delivered, 60_000);
    assert!(chain.client(id).bound.is_some());
}

#[test]
fn without_custody_a_refusal_comes_back_with_its_reason() {
    let mut chain = Chain::new(Acknowledge::Destination, 0.0, 3);
    let id = chain.open(REFUSES, class(), b"hello");
    chain.run(SECOND * 5);
    let refused = FlowEvent::Refused {
        flow: id,
        code: RefuseCode::Refused,
    };
    assert_eq!(chain.client(id).last, Some(refused));
}

#[test]
fn what_is_in_custody_arrives_before_the_reset_of_a_client_that_left() {
    let mut chain = Chain::new(Acknowledge::Custody, 0.0, 4);
    let octets = pattern(300_000);
    chain.set_up(1, false);
    let id = chain.open(SINK, class(), &octets);
    chain.client(id).finishes = false;
    chain.run(SECOND * 5);
    assert_eq!(chain.client(id).delivered, 300_000);
    let now = chain.now;
    let splicer = chain.nodes[0].machine.app();
    splicer.reset(now, id, ResetCode::Reset);
    chain.nodes[0].apps.remove(&id);
    chain.touch(0, id);
    chain.run(SECOND);
    chain.set_up(1, true);
    chain.run(SECOND * 10);
    let server = chain.server().expect("it was connected");
    assert!(server.received == octets, "{}", server.received.len());
    assert!(
        matches!(server.last, Some(FlowEvent::Reset { .. })),
        "{:?}",
        server.last
    );
}

#[test]
fn an_end_in_custody_arrives_although_its_client_is_gone() {
    let mut chain = Chain::new(Acknowledge::Custody, 0.0, 5);
    let octets = pattern(300_000);
    chain.set_up(1, false);
    let id = chain.open(SINK, class(), &octets);
    chain.run(SECOND * 5);
    assert_eq!(chain.client(id).delivered, 300_000);
    let now = chain.now;
    let splicer = chain.nodes[0].machine.app();
    splicer.reset(now, id, ResetCode::PeerLost);
    chain.nodes[0].apps.remove(&id);
    chain.touch(0, id);
    chain.run(SECOND);
    chain.set_up(1, true);
    chain.run(SECOND * 10);
    let server = chain.server().expect("it was connected");
    assert!(server.received == octets, "{}", server.received.len());
    assert!(server.peer_finished, "{:?}", server.last);
}

#[test]
fn drawn_outages_and_kills_lose_double_and_alter_nothing() {
    for seed in 0..HISTORIES {
        let mut rng = Rng::from_seed(seed);
        let mut chain = Chain::new(Acknowledge::Custody, 0.1, seed);
        let octets = pattern(usize::try_from(rng.below(400_000)).expect("small"));
        let id = chain.open(ECHO, class(), &octets);
        let mut is_up = [true; 3];
        for _ in 0..12 {
            chain.run(Duration::from_millis(rng.below(2_000)));
            if rng.chance(0.5) {
                chain.kill(1 + usize::from(rng.chance(0.5)));
            } else {
                let hop = usize::try_from(rng.below(3)).expect("small");
                is_up[hop] = !is_up[hop];
                chain.set_up(hop, is_up[hop]);
            }
            // What the client was told is in the store of the gateway behind it, or was there.
            let delivered = chain.client(id).delivered;
            if let Some(relay) = chain.nodes[1].relays.first() {
                let received = relay.stores[0].end();
                assert!(
                    delivered <= received,
                    "seed {seed}: {delivered} of {received}"
                );
            }
        }
        for hop in 0..3 {
            chain.set_up(hop, true);
        }
        chain.run(SECOND * 200);
        let back = &chain.client(id).received;
        assert!(
            *back == octets,
            "seed {seed}: {} of {}",
            back.len(),
            octets.len()
        );
        assert!(
            chain.is_closed(id),
            "seed {seed}: {:?}",
            chain.client(id).last
        );
        let server = chain.server().expect("it was connected");
        assert!(server.received == octets, "seed {seed}");
        assert!(
            matches!(server.last, Some(FlowEvent::Closed(_))),
            "seed {seed}: {:?}",
            server.last
        );
    }
}
