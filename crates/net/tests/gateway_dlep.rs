//! A gateway finds a modem that speaks DLEP, uses what it tells, survives its restart, and is not led astray by what it may not send.
//!
//! Method: two gateways on threads over the loopback, and a modem of the test there: discovery in the group, a session over TCP. It
//! listens at DLEP's port, for which it needs root.

use super::gateway_told::{Running, keys, start};
use fulmar_proto::dlep::wire::{
    DLEP_GROUP, DLEP_PORT, DlepWriter, first_message, item, message, read_signal, signal, status,
};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

struct Modem {
    discovery: UdpSocket,
    listener: TcpListener,
}

/// A session from the modem's side.
struct Session {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Modem {
    fn new() -> Option<Self> {
        let discovery = match UdpSocket::bind((Ipv4Addr::UNSPECIFIED, DLEP_PORT)) {
            Ok(socket) => socket,
            Err(error) if std::env::var_os("CI").is_none() => {
                eprintln!("skipped, for want of root: {error}");
                return None;
            }
            Err(error) => panic!("DLEP's port: {error}"),
        };
        discovery
            .join_multicast_v4(&DLEP_GROUP, &Ipv4Addr::LOCALHOST)
            .expect("the loopback takes groups");
        discovery
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("not zero");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        listener.set_nonblocking(true).expect("it is open");
        Some(Self {
            discovery,
            listener,
        })
    }

    /// Answers the next discovery, and takes the session that follows.
    fn meet(&self) -> Session {
        let mut octets = [0; 2_048];
        let (len, from) = self
            .discovery
            .recv_from(&mut octets)
            .expect("it is looked for");
        let (kind, _) = read_signal(&octets[..len]).expect("a signal");
        assert_eq!(kind, signal::PEER_DISCOVERY);
        let port = self.listener.local_addr().expect("it has one").port();
        let mut point = vec![0, 127, 0, 0, 1];
        point.extend(port.to_be_bytes());
        let offer =
            DlepWriter::signal(signal::PEER_OFFER).item(item::IPV4_CONNECTION_POINT, &point);
        self.discovery
            .send_to(&offer.finish(), from)
            .expect("it goes");
        let mut stream = None;
        for _ in 0..600 {
            stream = self.listener.accept().ok();
            if stream.is_some() {
                break;
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
        let (stream, _) = stream.expect("it connects");
        stream.set_nonblocking(false).expect("it is open");
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .expect("not zero");
        let mut session = Session {
            stream,
            received: Vec::new(),
        };
        assert_eq!(session.next(), message::SESSION_INITIALIZATION);
        let answer = DlepWriter::message(message::SESSION_INITIALIZATION_RESPONSE)
            .status(status::SUCCESS)
            .item(item::HEARTBEAT_INTERVAL, &60_000_u32.to_be_bytes())
            .item(item::MDRT, &10_000_000_u64.to_be_bytes());
        session.say(answer);
        session
    }
}

impl Session {
    fn say(&mut self, message: DlepWriter) {
        self.stream
            .write_all(&message.finish())
            .expect("it is read");
    }

    /// The type of the next message that is no heartbeat.
    fn next(&mut self) -> u16 {
        loop {
            if let Some((kind, _, len)) = first_message(&self.received) {
                self.received.drain(..len);
                if kind != message::HEARTBEAT {
                    return kind;
                }
                continue;
            }
            let mut octets = [0; 1_024];
            let len = self.stream.read(&mut octets).expect("it writes");
            assert!(len > 0, "it has ended");
            self.received.extend(&octets[..len]);
        }
    }

    fn up(&mut self, rate: u64) {
        self.say(destination(message::DESTINATION_UP, rate));
        assert_eq!(self.next(), message::DESTINATION_UP_RESPONSE);
    }
}

fn destination(kind: u16, rate: u64) -> DlepWriter {
    DlepWriter::message(kind)
        .item(item::MAC_ADDRESS, &MAC)
        .item(item::CDRT, &rate.to_be_bytes())
}

fn rate_of(air: &Running, rate: u64) {
    air.until("the rate", |peer| {
        peer["links"][0]["rate_out_bits_per_second"] == rate
    });
}

#[test]
fn a_modem_s_rates_are_used_and_its_restart_and_its_faults_leave_the_session_alone() {
    let Some(modem) = Modem::new() else {
        return;
    };
    let place = keys();
    let at = place.path();
    let ground = start(at, "ground", "air", (None, ""));
    let air = start(
        at,
        "air",
        "ground",
        (
            Some(ground.carrier),
            "[[link]]\nname = \"radio\"\ndlep = \"lo\"\n",
        ),
    );
    let mut session = modem.meet();
    // A modem without destinations says that it reaches nobody.
    session.up(3_000_000);
    rate_of(&air, 3_000_000);
    air.until("a session", |peer| peer["link"] == "up");
    session.say(destination(message::DESTINATION_UPDATE, 2_000_000));
    rate_of(&air, 2_000_000);
    let handshakes = |peer: &serde_json::Value| peer["outages"]["count"].clone();
    let before = handshakes(&air.peer());
    // It restarts: nothing is known of the link until it is met again, and the gateways' session goes on.
    drop(session);
    let peer = air.until("the modem's end", |peer| {
        peer["links"][0]["is_heard"] == false
    });
    assert!(
        peer["links"][0]["rate_out_bits_per_second"].is_null(),
        "{peer}"
    );
    assert_eq!(peer["link"], "up");
    let mut session = modem.meet();
    session.up(5_000_000);
    rate_of(&air, 5_000_000);
    // What it may not send changes a counter; the session with it ends, and the one between the gateways does not.
    session.say(DlepWriter::message(message::DESTINATION_UP));
    assert_eq!(session.next(), message::SESSION_TERMINATION);
    session.say(DlepWriter::message(message::SESSION_TERMINATION_RESPONSE));
    let peer = air.until("the fault", |peer| peer["links"][0]["wrong_messages"] == 1);
    assert_eq!(peer["link"], "up");
    let mut session = modem.meet();
    session.up(6_000_000);
    rate_of(&air, 6_000_000);
    session.say(destination(message::DESTINATION_DOWN, 0));
    assert_eq!(session.next(), message::DESTINATION_DOWN_RESPONSE);
    air.until("down", |peer| peer["link"] == "down");
    session.up(6_000_000);
    let peer = air.until("up", |peer| peer["link"] == "up");
    assert_ne!(
        handshakes(&peer),
        before,
        "that was an outage, and none before"
    );
}
