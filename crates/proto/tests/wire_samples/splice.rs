//! Samples of the splice's records.

use super::sample::{Sample, hold};
use core::net::{IpAddr, SocketAddr};
use core::num::NonZeroU8;
use fulmar_proto::fec::block::BlockPlan;
use fulmar_proto::machine::Priority;
use fulmar_proto::repair::{Deliver, DeliveryGoal, DeliveryOrder};
use fulmar_proto::splice::records::{
    Accepted, Delivered, HEADER_BYTES, Hearer, MalformedRecord, MessageRecord, Open, Question,
    SpliceRecord,
};
use fulmar_proto::splice::{
    Beyond, ClassId, Destination, FlowId, FlowKind, Host, RefuseCode, ResetCode,
};
use fulmar_proto::transport::aerotp::ThinRepair;
use fulmar_proto::units::Duration;
use fulmar_proto::wire::aerotp::FecStrength;
use std::collections::BTreeSet;

const FLOW: FlowId = FlowId(*b"sixteen octets!!");

fn destination(address: &str) -> Destination {
    let address: SocketAddr = address.parse().expect("samples are valid");
    address.into()
}

fn open(destination: Destination) -> Open {
    Open {
        flow: FLOW,
        attempt: 1 << 32 | 7,
        kind: FlowKind::Stream,
        resume: true,
        durable: false,
        again: Some(Hearer::Present),
        refresh: false,
        farewell: false,
        priority: Priority(3),
        class: ClassId(2),
        weight: 10,
        fec_words: FecStrength::NONE,
        block: None,
        deadline: None,
        window: 65_536,
        presumed: 32_768,
        received: 1 << 40,
        limit: 1 << 41,
        kept_from: 9,
        destination,
    }
}

fn opens() -> Vec<(String, SpliceRecord<'static>)> {
    let name = Destination {
        host: Host::Name("host-1.example".parse().expect("samples are valid")),
        port: 443,
    };
    let all = Open {
        kind: FlowKind::Datagrams,
        durable: true,
        refresh: true,
        farewell: true,
        resume: false,
        again: Some(Hearer::Answered),
        fec_words: FecStrength::MAX,
        block: BlockPlan::new(
            NonZeroU8::new(20).expect("samples are valid"),
            4,
            Duration::from_millis(30),
        ),
        deadline: Some(Duration::from_millis(150)),
        ..open(name)
    };
    assert!(all.block.is_some());
    let tunnel = Destination {
        host: Host::Tunnel("air".parse().expect("samples are valid")),
        port: 1_023,
    };
    let tunnel = Open {
        kind: FlowKind::Datagrams,
        ..open(tunnel)
    };
    let way = Beyond::new(
        ["relay", "far"]
            .map(|name| name.parse().expect("samples are valid"))
            .to_vec(),
        destination("10.20.0.5:5000").host,
    );
    let way = way.expect("samples are valid").after(1);
    let beyond = Destination {
        host: Host::Beyond(Box::new(way.with_left(Some(Duration::from_millis(100))))),
        port: 5_000,
    };
    let plain = |at| SpliceRecord::Open(Box::new(open(destination(at))));
    vec![
        ("open, IPv4".to_owned(), plain("10.20.0.5:5000")),
        ("open, IPv6".to_owned(), plain("[2001:db8::1]:5000")),
        (
            "open, a name and every option".to_owned(),
            SpliceRecord::Open(Box::new(all)),
        ),
        (
            "open, a tunnel".to_owned(),
            SpliceRecord::Open(Box::new(tunnel)),
        ),
        (
            "open, behind two gateways".to_owned(),
            SpliceRecord::Open(Box::new(open(beyond))),
        ),
    ]
}

fn all() -> Vec<(String, SpliceRecord<'static>)> {
    let accepted = |bound: &str| {
        SpliceRecord::Accepted(Accepted {
            received: 1 << 33,
            limit: 9,
            bound: bound.parse().expect("samples are valid"),
        })
    };
    let mut all = opens();
    let mut add = |name: &str, record| all.push((name.to_owned(), record));
    add("accepted, IPv4", accepted("192.0.2.1:40000"));
    add("accepted, IPv6", accepted("[2001:db8::2]:40000"));
    for code in RefuseCode::ALL {
        add(
            &format!("refused, {}", code.name()),
            SpliceRecord::Refused(code),
        );
    }
    add("data", SpliceRecord::Data(b"octets of a stream"));
    add("end", SpliceRecord::End { total: 1 << 50 });
    for code in ResetCode::ALL {
        add(
            &format!("reset, {}", code.name()),
            SpliceRecord::Reset(code),
        );
    }
    let delivered = Delivered {
        offset: 5,
        limit: u64::MAX,
    };
    add("delivered", SpliceRecord::Delivered(delivered));
    for (name, octets) in [("message", &b"a datagram"[..]), ("an empty message", b"")] {
        let message = MessageRecord {
            number: 4_000_000_000,
            stamp: 123_456,
            index: 1,
            last: 3,
            octets,
        };
        add(name, SpliceRecord::Message(message));
    }
    add("flow", SpliceRecord::Flow(FLOW));
    add("finished", SpliceRecord::Finished);
    add("stop", SpliceRecord::Stop);
    let question = |attempt| Question {
        flow: FLOW,
        attempt,
    };
    add(
        "ask",
        SpliceRecord::Ask(vec![question(1 << 32 | 7), question(0)]),
    );
    add("gone, two", SpliceRecord::Gone(vec![FLOW, FlowId([7; 16])]));
    add("gone, none", SpliceRecord::Gone(Vec::new()));
    add(
        "goal, an overhead",
        SpliceRecord::Goal(ThinRepair::at_most(40)),
    );
    for (name, deliver, order) in [
        ("goal, all in order", Deliver::All, DeliveryOrder::Kept),
        (
            "goal, by deadline in any order",
            Deliver::ByDeadline,
            DeliveryOrder::Any,
        ),
    ] {
        let goal = DeliveryGoal {
            deadline: Duration::from_millis(150),
            missed_millionths: DeliveryGoal::usual_miss(deliver),
            deliver,
            order,
        };
        let thin = ThinRepair::at_most(90).with_goal(goal).expect("sound");
        add(name, SpliceRecord::Goal(thin));
    }
    add("ignored", SpliceRecord::Ignored);
    all
}

fn written(record: &SpliceRecord<'_>) -> Vec<u8> {
    let mut octets = Vec::new();
    record.encode(&mut octets);
    octets
}

fn read_host(sample: &mut Sample, host: &Host, port: u16) {
    let (kind, field, text) = match host {
        Host::Address(IpAddr::V4(ip)) => (4, "host.ipv4", ip.to_string()),
        Host::Address(IpAddr::V6(ip)) => (6, "host.ipv6", ip.to_string()),
        Host::Name(name) => (1, "host.name", name.to_string()),
        Host::Tunnel(name) => (2, "host.name", name.to_string()),
        Host::Beyond(beyond) => {
            sample.field("fulmar.splice.host_type", 3);
            sample.field("fulmar.splice.passed", beyond.passed());
            let left = beyond.left().map_or(0, |left| left.as_micros());
            sample.field("fulmar.splice.left", left);
            sample.field("fulmar.splice.gateways", beyond.gateways().len());
            for name in beyond.gateways() {
                sample.field("fulmar.splice.gateway", name);
            }
            return read_host(sample, beyond.host(), port);
        }
    };
    sample.field("fulmar.splice.host_type", kind);
    sample.field("fulmar.splice.port", port);
    sample.field(&format!("fulmar.splice.{field}"), text);
}

fn read_open(sample: &mut Sample, open: &Open) {
    let Open {
        flow,
        attempt,
        kind,
        resume,
        durable,
        again,
        refresh,
        farewell,
        priority,
        class,
        weight,
        fec_words,
        block,
        deadline,
        window,
        presumed,
        received,
        limit,
        kept_from,
        destination,
    } = open;
    sample.octets("fulmar.splice.flow", &flow.0);
    for (name, is_set) in [
        ("datagrams", *kind == FlowKind::Datagrams),
        ("resume", *resume),
        ("again", again.is_some()),
        ("refresh", *refresh),
        ("farewell", *farewell),
        ("durable", *durable),
    ] {
        sample.flag(&format!("fulmar.splice.flags.{name}"), is_set);
    }
    let hearer = again.map_or(0, |hearer| match hearer {
        Hearer::Present => 0,
        Hearer::Earlier => 1,
        Hearer::Unknown => 2,
        Hearer::Answered => 3,
    });
    sample.field("fulmar.splice.flags.hearer", hearer);
    let (k, repairs, close_after) = block.map_or((0, 0, 0), |plan| {
        let (k, repairs) = (plan.k().get(), plan.repairs());
        (k, repairs, plan.close_after().as_micros())
    });
    let mut field = |name: &str, value: u128| sample.field(&format!("fulmar.splice.{name}"), value);
    field("attempt", (*attempt).into());
    field("priority", priority.0.into());
    field("class", class.0.into());
    field("weight", (*weight).into());
    field("fec_words", fec_words.words().into());
    field("block_k", k.into());
    field("block_repairs", repairs.into());
    field("block_close_after", close_after);
    field(
        "deadline",
        deadline.map_or(0, |deadline| deadline.as_micros()),
    );
    field("window", (*window).into());
    field("presumed", (*presumed).into());
    field("received", (*received).into());
    field("limit", (*limit).into());
    field("kept_from", (*kept_from).into());
    read_host(sample, &destination.host, destination.port);
}

fn read(name: &str, octets: &[u8]) -> Sample {
    let mut sample = Sample::new(name, octets);
    sample.field("fulmar.splice.type", octets[0]);
    sample.field("fulmar.splice.length", octets.len() - HEADER_BYTES);
    match SpliceRecord::take(&mut &octets[..]).expect("samples are valid") {
        SpliceRecord::Open(open) => read_open(&mut sample, &open),
        SpliceRecord::Accepted(Accepted {
            received,
            limit,
            bound,
        }) => {
            sample.field("fulmar.splice.received", received);
            sample.field("fulmar.splice.limit", limit);
            read_host(&mut sample, &Host::Address(bound.ip()), bound.port());
        }
        SpliceRecord::Refused(code) => sample.field("fulmar.splice.refused", code.number()),
        SpliceRecord::Data(octets) => sample.octets("fulmar.splice.data", octets),
        SpliceRecord::End { total } => sample.field("fulmar.splice.total", total),
        SpliceRecord::Reset(code) => sample.field("fulmar.splice.reset", code.number()),
        SpliceRecord::Delivered(Delivered { offset, limit }) => {
            sample.field("fulmar.splice.offset", offset);
            sample.field("fulmar.splice.limit", limit);
        }
        SpliceRecord::Message(MessageRecord {
            number,
            stamp,
            index,
            last,
            octets,
        }) => {
            sample.field("fulmar.splice.number", number);
            sample.field("fulmar.splice.stamp", stamp);
            sample.field("fulmar.splice.index", index);
            sample.field("fulmar.splice.last", last);
            sample.octets("fulmar.splice.message", octets);
        }
        SpliceRecord::Flow(flow) => sample.octets("fulmar.splice.flow", &flow.0),
        SpliceRecord::Ask(questions) => {
            for Question { flow, attempt } in questions {
                sample.octets("fulmar.splice.flow", &flow.0);
                sample.field("fulmar.splice.attempt", attempt);
            }
        }
        SpliceRecord::Gone(flows) => {
            for flow in flows {
                sample.octets("fulmar.splice.flow", &flow.0);
            }
        }
        SpliceRecord::Goal(thin) => {
            let goal = thin.goal();
            let is = |is: fn(&DeliveryGoal) -> bool| goal.as_ref().is_some_and(is);
            let by_deadline = is(|goal| goal.deliver == Deliver::ByDeadline);
            let any_order = is(|goal| goal.order == DeliveryOrder::Any);
            sample.flag("fulmar.splice.goal.by_deadline", by_deadline);
            sample.flag("fulmar.splice.goal.any_order", any_order);
            sample.field("fulmar.splice.goal.overhead", thin.overhead_percent);
            let missed = goal.map_or(0, |goal| goal.missed_millionths);
            sample.field("fulmar.splice.goal.residual", missed);
            let deadline = goal.map_or(0, |goal| goal.deadline.as_micros());
            sample.field("fulmar.splice.goal.deadline", deadline);
        }
        SpliceRecord::Finished | SpliceRecord::Stop | SpliceRecord::Ignored => {}
    }
    sample
}

#[test]
fn the_samples_of_records_are_what_the_codec_writes_and_reads() {
    let read = |(name, record): &(String, SpliceRecord<'_>)| read(name, &written(record));
    let samples: Vec<Sample> = all().iter().map(read).collect();
    hold("splice", &samples);
}

#[test]
fn every_kind_of_record_that_the_codec_knows_has_a_sample() {
    let kind = |record| written(record)[0].min(129);
    let sampled: BTreeSet<u8> = all().iter().map(|(_, record)| kind(record)).collect();
    let is_known =
        |kind: &u8| SpliceRecord::decode(*kind, b"") != Err(MalformedRecord::UnknownType(*kind));
    let known: BTreeSet<u8> = (0..=129).filter(is_known).collect();
    assert_eq!(known, sampled);
}
