use super::*;
use crate::gateway::flows::custody::{Budget, MemoryCustody};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::SplicerConfig;
use fulmar_proto::transport::aerotp::{AerotpEndpoint, EndpointConfig};
use fulmar_proto::units::ByteCount;
use std::net::TcpListener;

fn splicer() -> Splicer {
    let rng = Rng::from_seed(1);
    let endpoint = AerotpEndpoint::new(EndpointConfig::default(), rng.child("ports"));
    Splicer::new(SplicerConfig::default(), endpoint, rng.child("flows")).unwrap()
}

/// A client's side, and the gateway's.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (socket, _) = listener.accept().unwrap();
    socket.set_nonblocking(true).unwrap();
    (client, socket)
}

#[test]
fn what_came_behind_the_request_waits_for_custody_that_others_fill() {
    let mut splicer = splicer();
    let (mut client, socket) = connection();
    client.write_all(b"request, and early").unwrap();
    let budget = Budget::new(ByteCount(10), [0]);
    let mut others = MemoryCustody::new(10, budget.clone());
    others.append(&[0; 10]).unwrap();
    let mut stream = Stream::new(socket, Some(Box::new(MemoryCustody::new(100, budget))));
    stream.hold("request, and ".len() as u64);
    stream.begin(Vec::new());
    let flow = FlowId([1; 16]);
    let now = Instant::START;
    let turn = stream.pump(now, flow, &mut splicer, &mut [0; 100]);
    assert_eq!((turn, stream.kept()), (Turn::Rest, 0));
    // Nothing else will wake the stream: the client waits for an answer.
    let check = stream.next_check(now).unwrap();
    drop(others);
    stream.pump(check, flow, &mut splicer, &mut [0; 100]);
    assert_eq!(stream.kept(), 5);
    assert_eq!(stream.custody.unwrap().read(0, 5).unwrap(), b"early");
}

/// A disk that fails in its own way at one call.
#[derive(Debug, Default)]
struct Failing {
    append: bool,
    finish: bool,
    note: bool,
    kept: &'static [u8],
    released: u64,
}

impl Failing {
    fn when(fails: bool) -> io::Result<()> {
        if fails {
            return Err(io::Error::other("the disk is gone"));
        }
        Ok(())
    }
}

impl Custody for Failing {
    fn append(&mut self, octets: &[u8]) -> io::Result<usize> {
        Self::when(self.append).map(|()| octets.len())
    }
    fn read(&mut self, from: u64, max: usize) -> io::Result<&[u8]> {
        let from = usize::try_from(from).unwrap();
        let rest = &self.kept[from..];
        Ok(&rest[..rest.len().min(max)])
    }
    fn release(&mut self, to: u64) {
        self.released = to;
    }
    fn room(&self) -> usize {
        100
    }
    fn start(&self) -> u64 {
        self.released
    }
    fn end(&self) -> u64 {
        self.kept.len() as u64
    }
    fn finish(&mut self) -> io::Result<()> {
        Self::when(self.finish)
    }
    fn note_received(&mut self, _: u64) -> io::Result<()> {
        Self::when(self.note)
    }
}

#[test]
fn a_store_that_fails_ends_the_flow_as_such_and_not_as_a_broken_host() {
    let (mut splicer, flow, now) = (splicer(), FlowId([1; 16]), Instant::START);
    let over = Turn::Over(ResetCode::CustodyLost);
    for ends in [false, true] {
        let (mut client, socket) = connection();
        let failing = Failing {
            append: !ends,
            finish: ends,
            ..Failing::default()
        };
        let mut stream = Stream::new(socket, Some(Box::new(failing)));
        stream.begin(Vec::new());
        if ends {
            drop(client);
        } else {
            client.write_all(b"octets").unwrap();
        }
        stream.ready(true, true);
        let turn = (0..1_000).map(|_| stream.pump(now, flow, &mut splicer, &mut [0; 100]));
        assert!(turn.into_iter().any(|turn| turn == over), "end {ends}");
    }
}

#[test]
fn what_is_in_a_store_that_takes_no_more_is_carried_on_before_the_flow_ends() {
    let (mut splicer, flow, now) = (splicer(), FlowId([1; 16]), Instant::START);
    let (mut client, socket) = connection();
    let failing = Failing {
        append: true,
        kept: b"early",
        ..Failing::default()
    };
    let mut stream = Stream::new(socket, Some(Box::new(failing)));
    stream.begin(Vec::new());
    client.write_all(b"late").unwrap();
    let mut pump = |stream: &mut Stream| {
        stream.ready(true, true);
        stream.pump(now, flow, &mut splicer, &mut [0; 100])
    };
    while !stream.broken {
        assert_ne!(
            pump(&mut stream),
            Turn::Over(ResetCode::CustodyLost),
            "octets are kept"
        );
    }
    assert_eq!(pump(&mut stream), Turn::Rest);
    stream.far_delivered(4);
    assert_eq!(pump(&mut stream), Turn::Rest, "one octet is on its way");
    stream.far_delivered(5);
    assert_eq!(pump(&mut stream), Turn::Over(ResetCode::CustodyLost));
}
