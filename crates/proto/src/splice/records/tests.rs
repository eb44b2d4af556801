//! The codec: encoded records come back however the stream is cut, and no other octets are
//! accepted.

use super::*;
use crate::repair::{Deliver, DeliveryGoal, DeliveryOrder};
use crate::splice::address::{Beyond, Host, HostName};
use crate::tunnel::FLOW_BUCKETS;
use core::fmt::Write as _;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::num::NonZeroU8;
use proptest::prelude::*;

fn any_name() -> impl Strategy<Value = HostName> {
    "[a-zA-Z0-9_.-]{1,253}".prop_map(|text| text.parse().expect("letters of a name"))
}

fn any_ip() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits))),
        any::<u128>().prop_map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits))),
    ]
}

prop_compose! {
    fn any_address()(ip in any_ip(), port: u16) -> SocketAddr {
        SocketAddr::new(ip, port)
    }
}

fn any_beyond() -> impl Strategy<Value = Host> {
    let short = || "[a-zA-Z0-9_.-]{1,30}".prop_map(|text| text.parse().expect("a name"));
    let end = prop_oneof![
        any_ip().prop_map(Host::Address),
        short().prop_map(Host::Name)
    ];
    let gateways = prop::collection::vec(short(), 1..=7);
    (gateways, end, any::<u8>(), any::<u32>()).prop_map(|(gateways, end, passed, left)| {
        let left = (left > 0).then(|| Duration::from_micros(u64::from(left)));
        let beyond = Beyond::new(gateways, end).expect("short names");
        Host::Beyond(Box::new(beyond.after(passed).with_left(left)))
    })
}

prop_compose! {
    fn any_destination()(
        host in prop_oneof![
            any_ip().prop_map(Host::Address),
            any_name().prop_map(Host::Name),
            any_name().prop_map(Host::Tunnel),
            any_beyond(),
        ],
        port: u16,
    ) -> Destination {
        let is_tunnel = matches!(host, Host::Tunnel(_));
        let port = if is_tunnel { port % FLOW_BUCKETS } else { port };
        Destination { host, port }
    }
}

fn any_block() -> impl Strategy<Value = Option<BlockPlan>> {
    let plan = (1_u8..=200, 0_u8..=50, any::<u32>()).prop_map(|(k, repairs, micros)| {
        let k = NonZeroU8::new(k).expect("from 1");
        BlockPlan::new(k, repairs, Duration::from_micros(u64::from(micros)))
    });
    prop_oneof![Just(None), plan]
}

fn any_goal() -> impl Strategy<Value = ThinRepair> {
    let goal = (1_u32..=3_600_000_000, 0_u32..=50_000, any::<[bool; 2]>());
    (0..=100_u8, proptest::option::of(goal)).prop_map(|(overhead, goal)| {
        let plain = ThinRepair::at_most(overhead);
        let Some((micros, tens, [by_deadline, any_order])) = goal else {
            return plain;
        };
        let goal = DeliveryGoal {
            deadline: Duration::from_micros(u64::from(micros)),
            missed_millionths: tens * 10,
            deliver: if by_deadline {
                Deliver::ByDeadline
            } else {
                Deliver::All
            },
            order: if any_order {
                DeliveryOrder::Any
            } else {
                DeliveryOrder::Kept
            },
        };
        plain.with_goal(goal).expect("in range")
    })
}

fn any_hearer() -> impl Strategy<Value = Option<Hearer>> {
    prop::sample::select(vec![
        None,
        Some(Hearer::Present),
        Some(Hearer::Earlier),
        Some(Hearer::Unknown),
        Some(Hearer::Answered),
    ])
}

prop_compose! {
    fn any_open()(
        names in (any::<[u8; 16]>(), any::<u64>(), any::<[bool; 5]>()),
        again in any_hearer(),
        treatment in (any::<u8>(), any::<u8>(), any::<u8>(), 0_u16..=256, any_block()),
        deadline in proptest::option::of(1_u32..),
        sizes in (any::<u32>(), any::<u32>(), any::<u64>(), any::<u64>(), any::<u64>()),
        destination in any_destination(),
    ) -> Open {
        let (flow, attempt, [datagrams, resume, refresh, farewell, durable]) = names;
        let (priority, class, weight, words, block) = treatment;
        let (window, presumed, received, limit, kept_from) = sizes;
        Open {
            flow: FlowId(flow),
            attempt,
            kind: if datagrams { FlowKind::Datagrams } else { FlowKind::Stream },
            resume,
            durable,
            again,
            refresh,
            farewell,
            priority: Priority(priority),
            class: ClassId(class),
            weight,
            fec_words: FecStrength::from_words(words).expect("in range"),
            block,
            deadline: deadline.map(|micros| Duration::from_micros(u64::from(micros))),
            window,
            presumed,
            received,
            limit,
            kept_from,
            destination,
        }
    }
}

/// A record that owns its octets.
#[derive(Clone, Debug)]
enum Owned {
    Plain(SpliceRecord<'static>),
    Data(Vec<u8>),
    Message(u32, u32, u8, u8, Vec<u8>),
}

impl Owned {
    fn record(&self) -> SpliceRecord<'_> {
        match self {
            Self::Plain(record) => record.clone(),
            Self::Data(octets) => SpliceRecord::Data(octets),
            Self::Message(number, stamp, index, more, octets) => {
                SpliceRecord::Message(MessageRecord {
                    number: *number,
                    stamp: *stamp,
                    index: *index,
                    last: index.saturating_add(*more),
                    octets,
                })
            }
        }
    }
}

fn any_record() -> impl Strategy<Value = Owned> {
    let octets = |from: usize| proptest::collection::vec(any::<u8>(), from..3_000);
    let plain = prop_oneof![
        any_open().prop_map(|open| SpliceRecord::Open(Box::new(open))),
        (any::<u64>(), any::<u64>(), any_address()).prop_map(|(received, limit, bound)| {
            SpliceRecord::Accepted(Accepted {
                received,
                limit,
                bound,
            })
        }),
        prop::sample::select(&RefuseCode::ALL[..]).prop_map(SpliceRecord::Refused),
        prop::sample::select(&ResetCode::ALL[..]).prop_map(SpliceRecord::Reset),
        any::<u64>().prop_map(|total| SpliceRecord::End { total }),
        (any::<u64>(), any::<u64>())
            .prop_map(|(offset, limit)| SpliceRecord::Delivered(Delivered { offset, limit })),
        any::<[u8; 16]>().prop_map(|id| SpliceRecord::Flow(FlowId(id))),
        Just(SpliceRecord::Finished),
        Just(SpliceRecord::Stop),
        proptest::collection::vec((any::<[u8; 16]>(), any::<u64>()), 1..40).prop_map(|questions| {
            let question = |(flow, attempt)| Question {
                flow: FlowId(flow),
                attempt,
            };
            SpliceRecord::Ask(questions.into_iter().map(question).collect())
        }),
        proptest::collection::vec(any::<[u8; 16]>(), 0..40)
            .prop_map(|flows| SpliceRecord::Gone(flows.into_iter().map(FlowId).collect())),
        any_goal().prop_map(SpliceRecord::Goal),
        Just(SpliceRecord::Ignored),
    ];
    prop_oneof![
        plain.prop_map(Owned::Plain),
        octets(1).prop_map(Owned::Data),
        (
            any::<u32>(),
            any::<u32>(),
            any::<u8>(),
            any::<u8>(),
            octets(0)
        )
            .prop_map(|(n, s, i, m, o)| Owned::Message(n, s, i, m, o)),
    ]
}

/// Reads a stream cut into `cuts`; adjacent pieces of data are put together, with a mark of every
/// other record between.
fn read_all(stream: &[u8], cuts: &[usize]) -> Result<(Vec<String>, Vec<u8>), MalformedRecord> {
    let mut reader = RecordReader::default();
    let (mut records, mut data) = (Vec::new(), Vec::new());
    let mut rest = stream;
    let mut cuts = cuts.iter().copied().cycle();
    while !rest.is_empty() {
        let (mut input, after) = rest.split_at(cuts.next().unwrap_or(1).clamp(1, rest.len()));
        rest = after;
        loop {
            match reader.next(&mut input)? {
                RecordPiece::Wait => break,
                RecordPiece::Record(SpliceRecord::Data(octets)) => data.extend_from_slice(octets),
                RecordPiece::Record(record) => records.push(format!("{} {record:?}", data.len())),
            }
        }
    }
    assert!(reader.held_bytes() <= HEADER_BYTES + BODY_BYTES_MAX);
    Ok((records, data))
}

proptest! {
    #[test]
    fn every_record_comes_back_from_its_octets(owned in any_record()) {
        let record = owned.record();
        let mut octets = Vec::new();
        record.encode(&mut octets);
        let mut rest = octets.as_slice();
        prop_assert_eq!(SpliceRecord::take(&mut rest), Ok(record));
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn a_stream_of_records_reads_the_same_however_it_is_cut(
        records in proptest::collection::vec(any_record(), 0..12),
        cuts in proptest::collection::vec(1_usize..2_000, 1..9),
    ) {
        let mut stream = Vec::new();
        for owned in &records {
            owned.record().encode(&mut stream);
        }
        let whole = read_all(&stream, &[usize::MAX]);
        prop_assert!(whole.is_ok());
        prop_assert_eq!(read_all(&stream, &cuts), whole);
    }

    #[test]
    fn octets_of_any_kind_are_a_record_or_malformed_and_encode_to_themselves(
        mut octets in proptest::collection::vec(any::<u8>(), 0..400),
        kind in 0_u8..13,
        length in any::<bool>(),
    ) {
        if let [first, high, low, body @ ..] = octets.as_mut_slice() && length {
            let len = u16::try_from(body.len()).expect("short");
            *first = kind;
            [*high, *low] = len.to_be_bytes();
        }
        let mut rest = octets.as_slice();
        if let Ok(record) = SpliceRecord::take(&mut rest) && record != SpliceRecord::Ignored {
            let taken = octets.len() - rest.len();
            let mut again = Vec::new();
            record.encode(&mut again);
            let mut second = again.as_slice();
            prop_assert_eq!(SpliceRecord::take(&mut second), Ok(record));
            prop_assert_eq!(again.len(), taken);
        }
        let mut reader = RecordReader::default();
        let mut input = octets.as_slice();
        while let Ok(RecordPiece::Record(_)) = reader.next(&mut input) {}
    }
}

fn malformed(kind: u8, body: &[u8]) -> MalformedRecord {
    SpliceRecord::decode(kind, body).expect_err("it is not a record")
}

fn open() -> Open {
    Open {
        flow: FlowId([7; 16]),
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
        window: 1,
        presumed: 1,
        received: 0,
        limit: 1,
        kept_from: 0,
        destination: Destination {
            host: Host::Address(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            port: 80,
        },
    }
}

#[test]
fn ways_that_lead_nowhere_are_malformed() {
    let value = |field| MalformedRecord::Value { kind: 1, field };
    // The host type comes first, then the gateways that were passed, the rest of a deadline, and the number of names.
    let mut beyond = open();
    let way = Beyond::new(
        vec!["c".parse().expect("a name")],
        Host::Name("d".parse().expect("a name")),
    );
    beyond.destination.host = Host::Beyond(Box::new(way.expect("a way")));
    let mut octets = Vec::new();
    SpliceRecord::Open(Box::new(beyond)).encode(&mut octets);
    let body = &octets[HEADER_BYTES..];
    let with = |from_end: usize, octet: u8| {
        let mut body = body.to_vec();
        let at = body.len() - from_end;
        body[at] = octet;
        malformed(1, &body)
    };
    assert_eq!(with(5, b' '), value("gateway"));
    assert_eq!(with(4, 2), value("host type"), "a tunnel behind gateways");
    assert_eq!(with(4, 3), value("host type"), "a way within a way");
    assert_eq!(with(1, b' '), value("host name"));
    let none = [&body[..body.len() - 7], &[0], &body[body.len() - 4..]].concat();
    assert_eq!(malformed(1, &none), value("gateways"));
}

#[test]
fn values_that_a_field_may_not_have_are_malformed() {
    let mut octets = Vec::new();
    SpliceRecord::Open(Box::new(open())).encode(&mut octets);
    let body = &octets[HEADER_BYTES..];
    let with = |at: usize, value: u8| {
        let mut body = body.to_vec();
        body[at] = value;
        malformed(1, &body)
    };
    let value = |field| MalformedRecord::Value { kind: 1, field };
    for hearer in [64, 128, 192] {
        assert_eq!(with(24, hearer), value("flags"), "it was not asked before");
    }
    assert_eq!(with(28, 2), value("fec words"));
    assert_eq!(with(31, 1), value("block"));
    assert_eq!(with(72, 5), value("host type"));
    let mut named = open();
    named.destination.host = Host::Name("a.b".parse().expect("a name"));
    let mut octets = Vec::new();
    SpliceRecord::Open(Box::new(named)).encode(&mut octets);
    let last = octets.len() - 1;
    octets[last] = b' ';
    assert_eq!(malformed(1, &octets[HEADER_BYTES..]), value("host name"));
    octets.truncate(last - 2);
    assert_eq!(malformed(1, &octets[HEADER_BYTES..]), value("host name"));
    let mut tunnel = open();
    tunnel.destination = Destination {
        host: Host::Tunnel("a".parse().expect("a name")),
        port: FLOW_BUCKETS,
    };
    let mut octets = Vec::new();
    SpliceRecord::Open(Box::new(tunnel)).encode(&mut octets);
    assert_eq!(malformed(1, &octets[HEADER_BYTES..]), value("bucket"));
    let part = MalformedRecord::Value {
        kind: 8,
        field: "part index",
    };
    assert_eq!(malformed(8, &[0, 0, 0, 0, 0, 0, 0, 0, 3, 2]), part);
    assert_eq!(
        malformed(4, &[]),
        MalformedRecord::Length { kind: 4, len: 0 }
    );
    assert_eq!(
        malformed(5, &[0; 9]),
        MalformedRecord::Length { kind: 5, len: 9 }
    );
    assert_eq!(malformed(14, &[]), MalformedRecord::UnknownType(14));
    for (kind, len) in [
        (12, 0),
        (12, 23),
        (12, 24 * 1_025),
        (13, 15),
        (13, 16 * 1_025),
    ] {
        let wrong = MalformedRecord::Length { kind, len };
        assert_eq!(malformed(kind, &vec![0; len]), wrong);
    }
    assert_eq!(malformed(0, &[]), MalformedRecord::UnknownType(0));
    assert_eq!(malformed(127, &[]), MalformedRecord::UnknownType(127));
    assert_eq!(
        SpliceRecord::decode(129, &[1, 2]),
        Ok(SpliceRecord::Ignored)
    );
}

#[test]
fn a_goal_of_a_later_version_is_ignored_and_one_that_makes_no_sense_is_malformed() {
    let goal = |octets: [u8; 10]| match SpliceRecord::decode(128, &octets) {
        Ok(SpliceRecord::Goal(thin)) => Ok(Some(thin)),
        Ok(_) => Ok(None),
        Err(error) => Err(error),
    };
    let sound = [3, 90, 0, 0, 2, 188, 0, 2, 73, 240];
    assert!(matches!(goal(sound), Ok(Some(_))));
    let with = |at: usize, value: u8| {
        let mut octets = sound;
        octets[at] = value;
        goal(octets)
    };
    assert_eq!(with(0, 4), Ok(None));
    let wrong = |field| Err(MalformedRecord::Value { kind: 128, field });
    assert_eq!(with(6, 255), wrong("deadline"));
    assert_eq!(with(2, 1), wrong("residual"));
    assert_eq!(goal([3, 90, 0, 0, 0, 0, 0, 0, 0, 0]), wrong("deadline"));
    assert_eq!(goal([0, 90, 0, 0, 0, 1, 0, 0, 0, 0]), wrong("deadline"));
    for len in [0, 9, 11] {
        let wrong = MalformedRecord::Length { kind: 128, len };
        assert_eq!(malformed(128, &vec![0; len]), wrong);
    }
}

/// A record as `docs/protocol/splice.md` specifies it, octet by octet.
fn hex(record: &SpliceRecord<'_>) -> String {
    let mut octets = Vec::new();
    record.encode(&mut octets);
    let mut text = String::new();
    for octet in octets {
        write!(text, "{octet:02x}").expect("a String takes all");
    }
    text
}

#[test]
fn an_opening_has_its_golden_octets() {
    let named = Open {
        attempt: 0x0000_0002_0000_0005,
        kind: FlowKind::Datagrams,
        refresh: true,
        durable: true,
        priority: Priority(3),
        class: ClassId(4),
        weight: 5,
        fec_words: FecStrength::from_words(24).expect("in range"),
        block: BlockPlan::new(
            NonZeroU8::new(10).expect("above 0"),
            2,
            Duration::from_millis(1),
        ),
        deadline: Some(Duration::from_millis(50)),
        window: 0x1_0000,
        presumed: 0x4000,
        received: 6,
        limit: 7,
        kept_from: 8,
        destination: Destination {
            host: Host::Name("a.b".parse().expect("a name")),
            port: 443,
        },
        ..open()
    };
    let expected = concat!(
        "01004e",
        "07070707070707070707070707070707",
        "0000000200000005",
        "29",
        "030405",
        "0018",
        "0a02000003e8",
        "0000c350",
        "00010000",
        "00004000",
        "0000000000000006",
        "0000000000000007",
        "0000000000000008",
        "0101bb",
        "612e62"
    );
    assert_eq!(hex(&SpliceRecord::Open(Box::new(named))), expected);
}

#[test]
fn the_other_records_have_their_golden_octets() {
    let bound = SocketAddr::from(([10, 0, 0, 1], 0x1234));
    let accepted = Accepted {
        received: 1,
        limit: 2,
        bound,
    };
    assert_eq!(
        hex(&SpliceRecord::Accepted(accepted)),
        "020017000000000000000100000000000000020412340a000001"
    );
    assert_eq!(
        hex(&SpliceRecord::Refused(RefuseCode::NotAllowed)),
        "03000104"
    );
    assert_eq!(hex(&SpliceRecord::Data(b"abc")), "040003616263");
    assert_eq!(
        hex(&SpliceRecord::End { total: 258 }),
        "0500080000000000000102"
    );
    assert_eq!(hex(&SpliceRecord::Reset(ResetCode::Idle)), "06000106");
    let delivered = Delivered {
        offset: 1,
        limit: 2,
    };
    assert_eq!(
        hex(&SpliceRecord::Delivered(delivered)),
        "07001000000000000000010000000000000002"
    );
    let message = MessageRecord {
        number: 1,
        stamp: 2,
        index: 0,
        last: 3,
        octets: b"x",
    };
    assert_eq!(
        hex(&SpliceRecord::Message(message)),
        "08000b0000000100000002000378"
    );
    assert_eq!(
        hex(&SpliceRecord::Flow(FlowId([7; 16]))),
        "09001007070707070707070707070707070707"
    );
    assert_eq!(hex(&SpliceRecord::Finished), "0a0000");
    assert_eq!(hex(&SpliceRecord::Stop), "0b0000");
    let flow = FlowId(*b"0123456789abcdef");
    let ask = SpliceRecord::Ask(vec![Question { flow, attempt: 7 }]);
    assert_eq!(
        hex(&ask),
        "0c0018303132333435363738396162636465660000000000000007"
    );
    let goal = DeliveryGoal {
        deadline: Duration::from_millis(150),
        missed_millionths: 700,
        deliver: Deliver::ByDeadline,
        order: DeliveryOrder::Any,
    };
    let thin = ThinRepair::at_most(90).with_goal(goal).expect("sound");
    assert_eq!(hex(&SpliceRecord::Goal(thin)), "80000a035a000002bc000249f0");
    assert_eq!(
        hex(&SpliceRecord::Goal(ThinRepair::at_most(40))),
        "80000a00280000000000000000"
    );
    let gone = SpliceRecord::Gone(vec![flow]);
    assert_eq!(hex(&gone), "0d001030313233343536373839616263646566");
    assert_eq!(hex(&SpliceRecord::Gone(Vec::new())), "0d0000");
}
