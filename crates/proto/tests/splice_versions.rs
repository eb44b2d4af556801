//! Splicers that talk to those of the version before.

use super::splicers::{PEER, Pair, SINK, pattern};
use fulmar_proto::machine::{Datagram, Ecn, Machine};
use fulmar_proto::repair::{Deliver, DeliveryGoal, DeliveryOrder};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::records::{Accepted, Hearer, RecordPiece, RecordReader, SpliceRecord};
use fulmar_proto::splice::{ClassId, FlowClass, FlowKind, RefuseCode, SplicerConfig};
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, ConnectionConfig, ConnectionId, EndpointConfig, Event, ThinRepair,
};
use fulmar_proto::units::{ByteCount, Duration, Instant};
use fulmar_proto::wire::{Mode, Port};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

const DELAY: Duration = Duration::from_millis(10);
const SECOND: Duration = Duration::from_secs(1);

fn config(incarnation: u32) -> SplicerConfig {
    SplicerConfig {
        incarnation,
        ..SplicerConfig::default()
    }
}

fn class() -> FlowClass {
    FlowClass {
        window: ByteCount(200_000),
        resume: true,
        durable: true,
        ..FlowClass::default()
    }
}

/// An acceptor of version 2, as far as one flow needs it: it refuses flags that it does not know, has the flow, and
/// keeps octets that come.
struct OfVersion2 {
    endpoint: AerotpEndpoint,
    refused: u32,
    received: Vec<u8>,
    /// The numbers of the messages that came.
    messages: Vec<u32>,
    /// Records of types that it may ignore, and those that say a goal, of which it knows nothing.
    ignored: u32,
    readers: BTreeMap<ConnectionId, RecordReader>,
}

impl OfVersion2 {
    fn new() -> Self {
        let rng = Rng::from_seed(3).child("ports");
        let mut endpoint = AerotpEndpoint::new(EndpointConfig::default(), rng);
        let config = ConnectionConfig::default();
        for port in 7_070..7_074 {
            endpoint.listen(Port(port), config).expect("it is free");
        }
        Self {
            endpoint,
            refused: 0,
            received: Vec::new(),
            messages: Vec::new(),
            ignored: 0,
            readers: BTreeMap::new(),
        }
    }

    fn read(&mut self, now: Instant, id: ConnectionId) {
        let mut answers = Vec::new();
        let mut refused = false;
        while let Some(chunk) = self.endpoint.read(now, id) {
            let mut input = &chunk.octets[..];
            let reader = self.readers.entry(id).or_default();
            loop {
                match reader.next(&mut input).expect("what a splicer sends") {
                    RecordPiece::Wait => break,
                    RecordPiece::Record(SpliceRecord::Open(open)) => {
                        refused = !matches!(open.again, None | Some(Hearer::Present));
                        let accepted = Accepted {
                            received: self.received.len() as u64,
                            limit: 1 << 20,
                            bound: SocketAddr::from(([10, 0, 0, 1], SINK)),
                        };
                        let answer = if refused {
                            SpliceRecord::Refused(RefuseCode::Invalid)
                        } else {
                            SpliceRecord::Accepted(accepted)
                        };
                        answer.encode(&mut answers);
                    }
                    RecordPiece::Record(SpliceRecord::Data(octets)) => self.received.extend(octets),
                    RecordPiece::Record(SpliceRecord::Message(message)) => {
                        self.messages.push(message.number);
                    }
                    RecordPiece::Record(SpliceRecord::Goal(_)) => self.ignored += 1,
                    RecordPiece::Record(_) => {}
                }
            }
        }
        if !answers.is_empty() {
            let written = self.endpoint.write(now, id, &answers);
            assert_eq!(written, Ok(answers.len()));
        }
        if refused {
            self.refused += 1;
            self.endpoint.close(now, id);
        }
    }

    fn turn(&mut self, now: Instant) -> Vec<Vec<u8>> {
        if self
            .endpoint
            .next_deadline()
            .is_some_and(|due| due.at <= now)
        {
            self.endpoint.handle_deadline(now);
        }
        let mut sent = Vec::new();
        loop {
            while let Some(event) = self.endpoint.poll_event() {
                if let Event::Readable(id) = event {
                    self.read(now, id);
                }
            }
            let mut octets = Vec::new();
            if self.endpoint.poll_transmit(now, &mut octets).is_none() {
                return sent;
            }
            sent.push(octets);
        }
    }
}

const fn datagram(octets: &[u8]) -> Datagram<'_> {
    Datagram {
        path: PEER,
        octets,
        ecn: Ecn::Capable,
    }
}

/// Lets side 0 and the acceptor talk for `span`.
fn talk(pair: &mut Pair, sent: &RefCell<Vec<Vec<u8>>>, far: &mut OfVersion2, span: Duration) {
    talk_lossily(pair, sent, far, (span, &mut || false));
}

/// Does the same and loses datagrams of both.
fn talk_lossily(
    pair: &mut Pair,
    sent: &RefCell<Vec<Vec<u8>>>,
    far: &mut OfVersion2,
    (span, loses): (Duration, &mut dyn FnMut() -> bool),
) {
    let until = pair.now + span;
    while pair.now < until {
        pair.run(DELAY);
        let now = pair.now;
        for octets in sent.take() {
            if loses() {
                continue;
            }
            far.endpoint.handle_datagram(now, datagram(&octets));
        }
        for octets in far.turn(now) {
            if loses() {
                continue;
            }
            let machine = &mut pair.sides[0].machine;
            machine.handle_datagram(now, datagram(&octets));
            pair.call(0, |_, _| ());
        }
    }
}

#[test]
fn an_acceptor_that_cannot_read_who_heard_a_flow_is_asked_without_that_word() {
    let sent = Rc::new(RefCell::new(Vec::new()));
    let taken = Rc::clone(&sent);
    let mut pair = Pair::new(
        &config(0),
        Box::new(move |side, _, octets| {
            if side == 0 {
                taken.borrow_mut().push(octets.to_vec());
            }
            Vec::new()
        }),
    );
    let mut far = OfVersion2::new();
    let octets = pattern(50_000);
    let id = pair.open_only(FlowKind::Stream, SINK, class());
    pair.app(0, id).outgoing = octets[..20_000].to_vec();
    pair.touch(0, id);
    talk(&mut pair, &sent, &mut far, SECOND);
    assert!(far.received == octets[..20_000]);
    pair.restart(0, &config(1));
    pair.app(0, id).outgoing.extend(&octets[20_000..]);
    pair.touch(0, id);
    talk(&mut pair, &sent, &mut far, SECOND * 5);
    assert_eq!(far.refused, 1);
    assert_eq!(pair.app(0, id).last, None, "the flow goes on");
    assert!(far.received == octets, "{}", far.received.len());
}

#[test]
fn an_acceptor_that_knows_no_goals_gets_messages_with_a_deadline_in_order_and_none_is_taken_back() {
    let sent = Rc::new(RefCell::new(Vec::new()));
    let taken = Rc::clone(&sent);
    let plain = config(0);
    let config = SplicerConfig {
        connection: ConnectionConfig {
            thin: Some(ThinRepair::default()),
            ..plain.connection
        },
        ..plain
    };
    let mut pair = Pair::new(
        &config,
        Box::new(move |side, _, octets| {
            if side == 0 {
                taken.borrow_mut().push(octets.to_vec());
            }
            Vec::new()
        }),
    );
    let mut far = OfVersion2::new();
    let deadline = DELAY * 6;
    let goal = DeliveryGoal {
        deadline,
        missed_millionths: DeliveryGoal::usual_miss(Deliver::ByDeadline),
        deliver: Deliver::ByDeadline,
        order: DeliveryOrder::Any,
    };
    let class = FlowClass {
        mode: Mode::HybridNackMack,
        deadline: Some(deadline),
        thin_messages: ThinRepair::at_most(90).with_goal(goal).ok(),
        resume: false,
        durable: false,
        ..class()
    };
    let id = pair.open_only(FlowKind::Datagrams, SINK, class);
    let mut rng = Rng::from_seed(8).child("loss");
    for _ in 0..500 {
        pair.call(0, |splicer, now| {
            splicer.accept_datagram(now, id, &pattern(1_000))
        });
        let mut loses = || rng.chance(0.3);
        talk_lossily(&mut pair, &sent, &mut far, (DELAY * 2, &mut loses));
    }
    talk(&mut pair, &sent, &mut far, SECOND * 2);
    assert!(far.ignored >= 1, "a goal is said once on a connection");
    assert_eq!(pair.app(0, id).last, None, "the flow goes on");
    let numbers: Vec<u32> = (0..).take(far.messages.len()).collect();
    assert_eq!(far.messages, numbers, "in order, and each once");
    let counters = &pair.splicer(0).counters().classes[&ClassId(0)];
    let left = counters.messages_accepted - counters.late_unsent;
    assert_eq!(far.messages.len() as u64, left);
}
