//! Peers that break the protocol: they harm their own flow and no other, and cost bounded memory.

use super::splicers::{ECHO, PEER, Pair, SINK, clean, pattern};
use fulmar_proto::machine::{Datagram, Ecn, Machine, PathId, Priority};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::records::{Delivered, Hearer, Open, SpliceRecord};
use fulmar_proto::splice::{
    ClassId, Destination, FlowClass, FlowEvent, FlowId, FlowKind, ResetCode, SplicerConfig,
};
use fulmar_proto::transport::aerotp::{AerotpEndpoint, ConnectionConfig, EndpointConfig};
use fulmar_proto::units::{ByteCount, Duration};
use fulmar_proto::wire::aerotp::FecStrength;
use fulmar_proto::wire::{Mode, Port};
use std::net::SocketAddr;

const DELAY: Duration = Duration::from_millis(10);
const SECOND: Duration = Duration::from_secs(1);

fn open(name: u8, presumed: u32) -> Open {
    Open {
        flow: FlowId([name; 16]),
        attempt: 1,
        kind: FlowKind::Stream,
        resume: false,
        durable: false,
        again: None,
        refresh: false,
        farewell: false,
        priority: Priority(0),
        class: ClassId(0),
        weight: 1,
        fec_words: FecStrength::NONE,
        block: None,
        deadline: None,
        window: 100_000,
        presumed,
        received: 0,
        limit: 100_000,
        kept_from: 0,
        destination: Destination::from(SocketAddr::from(([192, 0, 2, 1], SINK))),
    }
}

fn encoded(records: &[SpliceRecord<'_>]) -> Vec<u8> {
    let mut octets = Vec::new();
    for record in records {
        record.encode(&mut octets);
    }
    octets
}

/// Writes octets on a connection of their own from side 0, past its splicer.
fn inject(pair: &mut Pair, mode: Mode, octets: &[u8]) {
    pair.call(0, |splicer, now| {
        let config = ConnectionConfig {
            mode,
            ..ConnectionConfig::default()
        };
        let endpoint = splicer.endpoint_mut();
        let id = endpoint.connect(now, PEER, Port(7_070), config);
        let id = id.expect("room for a connection");
        if mode == Mode::Reliable {
            let written = endpoint.write(now, id, octets);
            assert_eq!(written, Ok(octets.len()));
        } else {
            let octets = &octets[..octets.len().min(1_400)];
            endpoint
                .write_message(now, id, octets)
                .expect("fits a TPDU");
        }
        endpoint.close(now, id);
    });
}

fn reset_after(records: &[SpliceRecord<'_>]) -> Option<ResetCode> {
    let mut pair = Pair::new(&SplicerConfig::default(), clean(DELAY));
    let octets = pattern(300_000);
    let class = FlowClass::default();
    let good = pair.open(ECHO, class, &octets);
    pair.run(SECOND / 20);
    inject(&mut pair, Mode::Reliable, &encoded(records));
    pair.run(SECOND * 5);
    assert_eq!(pair.app(0, good).last, Some(FlowEvent::Closed(good)));
    assert!(
        pair.app(0, good).received == octets,
        "the other flow is whole"
    );
    let known = pair.sides[1].apps.contains_key(&FlowId([7; 16]));
    let code = known.then(|| pair.reset_code(1, FlowId([7; 16]))).flatten();
    pair.run(SECOND * 3600 * 9);
    pair.assert_nothing_left();
    code
}

#[test]
fn records_that_break_the_protocol_reset_their_own_flow_alone() {
    let begin = SpliceRecord::Open(Box::new(open(7, 1_000)));
    let data = SpliceRecord::Data(&[1; 1_000]);
    let (protocol, credit) = (Some(ResetCode::Protocol), Some(ResetCode::Credit));
    let with = |record| reset_after(&[begin.clone(), record]);
    assert_eq!(with(SpliceRecord::Data(&[1; 1_001])), credit);
    assert_eq!(
        with(SpliceRecord::End { total: 1 }),
        protocol,
        "not what came"
    );
    assert_eq!(
        with(SpliceRecord::Finished),
        protocol,
        "not an opener's word"
    );
    assert_eq!(with(begin.clone()), protocol, "opened already");
    let delivered = Delivered {
        offset: 1,
        limit: 5,
    };
    assert_eq!(
        with(SpliceRecord::Delivered(delivered)),
        protocol,
        "nothing sent"
    );
    let end = SpliceRecord::End { total: 1_000 };
    let after = [
        begin.clone(),
        data.clone(),
        end,
        SpliceRecord::Data(b"more"),
    ];
    assert_eq!(reset_after(&after), protocol, "data after the end");
    assert_eq!(reset_after(&[data]), None, "no flow yet: refused");
}

#[test]
fn garbage_never_becomes_a_flow_and_leaves_nothing() {
    let mut pair = Pair::new(&SplicerConfig::default(), clean(DELAY));
    let mut rng = Rng::from_seed(11);
    let modes = [
        Mode::Reliable,
        Mode::Unreliable,
        Mode::HybridNack,
        Mode::Datagram,
    ];
    for round in 0..2_000_usize {
        let len = usize::try_from(1 + rng.below(600)).expect("small");
        let mut octets = vec![0; len];
        rng.fill(&mut octets);
        if rng.chance(0.5) {
            // A right beginning, then damage.
            let mut right = encoded(&[SpliceRecord::Open(Box::new(open(9, 10)))]);
            let at = usize::try_from(rng.below(right.len() as u64)).expect("small");
            right[at] ^= 1 << rng.below(8);
            right.extend_from_slice(&octets);
            octets = right;
        }
        inject(&mut pair, modes[round % modes.len()], &octets);
        pair.run(SECOND / 100);
    }
    pair.run(SECOND * 3600 * 9);
    pair.assert_nothing_left();
    assert!(pair.splicer(1).counters().malformed > 500);
}

#[test]
fn a_flow_of_another_peer_cannot_be_taken_over() {
    let mut pair = Pair::new(&SplicerConfig::default(), clean(DELAY));
    let class = FlowClass {
        resume: true,
        ..FlowClass::default()
    };
    let octets = pattern(400_000);
    let id = pair.open(ECHO, class, &octets);
    pair.run(SECOND / 10);
    let stranger = PathId(9);
    let theft = Open {
        flow: id,
        attempt: u64::MAX,
        resume: true,
        again: Some(Hearer::Present),
        ..open(0, 0)
    };
    let mut thief = AerotpEndpoint::new(EndpointConfig::default(), Rng::from_seed(5));
    let now = pair.now;
    let config = ConnectionConfig::default();
    let connection = thief.connect(now, stranger, Port(7_070), config);
    let connection = connection.expect("the first");
    let stolen = encoded(&[
        SpliceRecord::Open(Box::new(theft)),
        SpliceRecord::Reset(ResetCode::Reset),
    ]);
    thief.write(now, connection, &stolen).expect("it is open");
    let mut out = Vec::new();
    let sent = thief.poll_transmit(now, &mut out);
    assert!(sent.is_some());
    pair.sides[1].machine.handle_datagram(
        now,
        Datagram {
            path: stranger,
            octets: &out,
            ecn: Ecn::Capable,
        },
    );
    pair.touch(1, id);
    pair.run(SECOND * 10);
    assert!(pair.app(0, id).received == octets);
    assert_eq!(pair.app(0, id).last, Some(FlowEvent::Closed(id)));
}

#[test]
fn readers_that_stop_hold_no_more_than_the_memory_for_all() {
    let memory = 8 << 20;
    let config = SplicerConfig {
        flows_max: 200,
        receive_memory: ByteCount(memory),
        ..SplicerConfig::default()
    };
    let mut pair = Pair::new(&config, clean(DELAY));
    pair.sides[1].new_flows_hold = true;
    let octets = pattern(300_000);
    let ids: Vec<FlowId> = (0..200)
        .map(|_| {
            let id = pair.open(SINK, FlowClass::default(), &octets);
            pair.run(SECOND / 20);
            id
        })
        .collect();
    pair.run(SECOND * 30);
    let held = pair.splicer(1).counters().credit_reserved;
    assert!(held <= memory, "{held} of {memory}");
    for &id in &ids {
        let app = pair.app(0, id);
        assert!(
            app.last.is_none() && app.sent >= 16 << 10,
            "each has its floor"
        );
    }
    pair.sides[1].new_flows_hold = false;
    for &id in &ids {
        let app = pair.app(1, id);
        app.holds = false;
        app.finishes = true;
        pair.touch(1, id);
    }
    pair.run(SECOND * 120);
    for &id in &ids {
        assert!(pair.app(1, id).received == octets);
        assert_eq!(pair.app(0, id).last, Some(FlowEvent::Closed(id)));
    }
    pair.run(SECOND * 3600 * 9);
    pair.assert_nothing_left();
}
