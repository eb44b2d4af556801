//! Splicers that talk to those of the version before.

use super::splicers::{PEER, Pair, SINK, pattern};
use fulmar_proto::machine::{Datagram, Ecn, Machine};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::records::{Accepted, Hearer, RecordPiece, RecordReader, SpliceRecord};
use fulmar_proto::splice::{FlowClass, FlowKind, RefuseCode, SplicerConfig};
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, ConnectionConfig, ConnectionId, EndpointConfig, Event,
};
use fulmar_proto::units::{ByteCount, Duration, Instant};
use fulmar_proto::wire::Port;
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
    let until = pair.now + span;
    while pair.now < until {
        pair.run(DELAY);
        let now = pair.now;
        for octets in sent.take() {
            far.endpoint.handle_datagram(now, datagram(&octets));
        }
        for octets in far.turn(now) {
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
