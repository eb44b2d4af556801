//! One peer, client or stranger takes only a part of a gateway: the others still find room.
//!
//! Method: gateways in this process, without a lossy link. A *hub* has two peers, `left` and `right`, with
//! destinations at each and clients from each; each of its tables is filled from the left while clients of the right
//! ask for service.

use fulmar_net::clock::Clock;
use fulmar_net::gateway::config::GatewayConfig;
use fulmar_net::gateway::{Control, Gateway};
use fulmar_net::inquiry::InquiryServer;
use fulmar_net::wait::wait;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A time far beyond what anything here takes; it turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(60);
/// The hub's limit of flows: low, so that it is reached quickly.
const FLOWS: usize = 128;
const SOCKS: &str = "[[socks]]\nlisten = \"127.0.0.1:0\"\n";

/// A gateway that ends with the test.
struct Running {
    control: Control,
    thread: Option<JoinHandle<()>>,
    carrier: SocketAddr,
    entries: Vec<SocketAddr>,
    metrics: Option<SocketAddr>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.control.stop();
        if let Some(thread) = self.thread.take() {
            // A panic of its own has been printed.
            drop(thread.join());
        }
    }
}

/// A gateway with these peers and their addresses, and further tables.
fn start(peers: &[(&str, Option<SocketAddr>)], more: &str) -> Running {
    let state = tempfile::tempdir().expect("a directory");
    let mut text = format!(
        "[gateway]\nname = \"g\"\nlisten = \"127.0.0.1:0\"\nlog = \"error\"\nstate_dir = \"{}\"\n\
         [security]\nkind = \"none\"\n",
        state.path().display()
    );
    for (name, address) in peers {
        let address = address.map(|address| format!("address = \"{address}\"\n"));
        let address = address.unwrap_or_default();
        write!(
            text,
            "[[peer]]\nname = \"{name}\"\nrate = \"100mbit\"\n{address}"
        )
        .expect("memory");
    }
    let config = GatewayConfig::read("g.toml", &(text + more)).expect("it is right");
    let (made, gateway) = std::sync::mpsc::channel();
    // The gateway is made on the thread where it runs, since its parts cannot leave that thread.
    let thread = thread::spawn(move || {
        let gateway = Gateway::start(Clock::start(), config).expect("it starts");
        let control = gateway.control().expect("a descriptor");
        let places = (
            gateway.carrier(),
            gateway.entries().to_vec(),
            gateway.metrics(),
        );
        made.send((control, places)).expect("it is waited for");
        gateway.run().expect("it runs to its end");
        drop(state);
    });
    let (control, (carrier, entries, metrics)) = gateway.recv().expect("it starts");
    Running {
        control,
        thread: Some(thread),
        carrier,
        entries,
        metrics,
    }
}

/// A hub between a left and a right gateway.
struct Three {
    hub: Running,
    left: Running,
    right: Running,
}

const ALLOW: &str = "[egress]\nallow = [\"127.0.0.0/8:1-65535\"]\n";

impl Three {
    /// Starts the three gateways, each with further tables of configuration.
    fn start(hub: &str, left: &str, right: &str) -> Self {
        let metrics = "[metrics]\nlisten = \"127.0.0.1:0\"\n";
        let limits = format!("{ALLOW}{metrics}{hub}");
        let hub = start(&[("left", None), ("right", None)], &limits);
        let at = Some(hub.carrier);
        // Without security a peer is known by its place in the list.
        let right = start(&[("nobody", None), ("hub", at)], &format!("{ALLOW}{right}"));
        let left = start(&[("hub", at)], &format!("{ALLOW}{left}"));
        Self { hub, left, right }
    }
}

fn forward(protocol: &str, to: SocketAddr, peer: &str) -> String {
    format!(
        "[[forward]]\nprotocol = \"{protocol}\"\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\npeer = \"{peer}\"\n"
    )
}

fn limits(flows: usize, more: &str) -> String {
    format!("[limits]\nflows = {flows}\n{more}")
}

/// A server that treats each connection with `serve`, on a thread of its own.
fn server(serve: impl Fn(TcpStream) + Send + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let local = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    local
}

/// A server that sends back the octets that come, and ends when the client does.
fn echo() -> SocketAddr {
    server(|mut stream| {
        let mut back = stream.try_clone().expect("a descriptor");
        // A client may break off.
        drop(std::io::copy(&mut stream, &mut back));
    })
}

fn udp_echo() -> SocketAddr {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("a port");
    let local = socket.local_addr().expect("it is bound");
    thread::spawn(move || {
        let mut buffer = [0; 2_000];
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            drop(socket.send_to(&buffer[..len], from));
        }
    });
    local
}

fn client(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).expect("somebody listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

/// Whether `stream` leads to an echo.
fn echoes(stream: &mut TcpStream) -> bool {
    let mut heard = [0; 5];
    stream.write_all(b"hello").is_ok()
        && stream.read_exact(&mut heard).is_ok()
        && &heard == b"hello"
}

/// Those of `count` fresh connections that lead to an echo.
fn working(to: SocketAddr, count: usize) -> Vec<TcpStream> {
    let streams = (0..count).map(|_| client(to));
    streams
        .filter_map(|mut stream| echoes(&mut stream).then_some(stream))
        .collect()
}

#[test]
fn silent_clients_of_one_peer_keep_out_neither_those_of_another_nor_the_next_of_their_own() {
    let to = echo();
    let entries = forward("tcp", to, "left") + &forward("tcp", to, "right");
    let three = Three::start(&(entries + &limits(FLOWS, "")), "", "");
    let [to_left, to_right] = [0, 1].map(|n| three.hub.entries[n]);
    let silent: Vec<TcpStream> = (0..2 * FLOWS).map(|_| client(to_left)).collect();
    // The reserve of the right: an eighth.
    assert_eq!(working(to_right, FLOWS / 8).len(), FLOWS / 8);
    assert_eq!(working(to_left, 5).len(), 5);
    drop(silent);
}

#[test]
fn talking_clients_of_one_peer_leave_the_others_their_reserve_and_themselves_a_half() {
    let to = echo();
    let entries = forward("tcp", to, "left") + &forward("tcp", to, "right");
    let three = Three::start(&(entries + &limits(FLOWS, "")), "", "");
    let [to_left, to_right] = [0, 1].map(|n| three.hub.entries[n]);
    let greedy = working(to_left, FLOWS);
    // One client may have half of the party's places, which are half of all and its own reserve.
    assert_eq!(greedy.len(), FLOWS * 5 / 16);
    assert_eq!(working(to_right, FLOWS / 8).len(), FLOWS / 8);
}

#[test]
fn a_peer_that_asks_for_everything_leaves_the_other_its_reserve() {
    let to = echo();
    let entry = forward("tcp", to, "hub");
    let unlimited = format!("{entry}{}", limits(2_000, ""));
    let three = Three::start(&limits(FLOWS, ""), &unlimited, &entry);
    let greedy = working(three.left.entries[0], 2 * FLOWS);
    assert_eq!(
        greedy.len(),
        FLOWS * 3 / 4,
        "half of all, and its own reserve"
    );
    let modest = working(three.right.entries[0], FLOWS / 4);
    assert_eq!(modest.len(), FLOWS / 4);
}

#[test]
fn socks_clients_that_say_nothing_give_way() {
    let to = echo();
    let entries = format!("{SOCKS}peer = \"left\"\n{}", forward("tcp", to, "left"));
    let three = Three::start(&(entries + &limits(FLOWS, "")), "", "");
    // The entries of forwards come first.
    let [forward, socks] = [0, 1].map(|n| three.hub.entries[n]);
    let mut silent: Vec<TcpStream> = (0..2 * FLOWS).map(|_| client(socks)).collect();
    // The clients greet, which makes no difference.
    for stream in &mut silent {
        drop(stream.write_all(&[5, 1, 0]));
    }
    assert_eq!(working(forward, 3).len(), 3);
}

#[test]
fn datagrams_of_many_addresses_keep_out_neither_those_of_another_peer_nor_the_next() {
    let to = udp_echo();
    let entries = forward("udp", to, "left") + &forward("udp", to, "right");
    let three = Three::start(&(entries + &limits(FLOWS, "")), "", "");
    let [to_left, to_right] = [0, 1].map(|n| three.hub.entries[n]);
    let from = |n: usize| {
        let last = u8::try_from(1 + n % 200).expect("small");
        UdpSocket::bind((Ipv4Addr::new(127, 0, 1, last), 0)).expect("the loopback has it")
    };
    let forged: Vec<UdpSocket> = (0..2 * FLOWS).map(from).collect();
    for socket in &forged {
        socket.send_to(b"once", to_left).expect("it is taken");
    }
    for entry in [to_right, to_left] {
        let socket = from(200);
        socket
            .set_read_timeout(Some(Duration::from_millis(200)))
            .expect("a socket");
        let mut heard = [0; 10];
        // Datagrams may be lost while the peers come up.
        let answered = (0..300).any(|_| {
            drop(socket.send_to(b"hello", entry));
            socket.recv(&mut heard).is_ok()
        });
        assert!(answered, "{entry}");
    }
}

#[test]
fn a_client_that_says_nothing_is_reset_and_one_that_listens_or_has_spoken_is_not() {
    let feed = server(|mut stream| {
        while stream.write_all(b".").is_ok() {
            drop(wait(&[], Some(Duration::from_millis(100)), &mut Vec::new()));
        }
    });
    let to = echo();
    let entries = forward("tcp", to, "left") + &forward("tcp", feed, "left");
    let limits = limits(FLOWS, "tcp_silent = \"1s\"\n");
    let three = Three::start(&(entries + &limits), "", "");
    let [to_echo, to_feed] = [0, 1].map(|n| three.hub.entries[n]);
    let mut spoke = working(to_echo, 1);
    let mut listener = client(to_feed);
    listener.read_exact(&mut [0]).expect("the feed begins");
    let mut silent = client(to_echo);
    let told = silent.read(&mut [0]).expect_err("nothing is sent to it");
    assert_eq!(told.kind(), ErrorKind::ConnectionReset);
    // A second client, so that twice the time has passed for the others.
    let told = client(to_echo).read(&mut [0]).expect_err("as before");
    assert_eq!(told.kind(), ErrorKind::ConnectionReset);
    let mut heard = [0; 30];
    listener.read_exact(&mut heard).expect("the feed goes on");
    assert!(echoes(&mut spoke[0]));
}

#[test]
fn a_hundred_slow_readers_of_the_page_keep_nobody_from_an_answer() {
    let three = Three::start(&limits(FLOWS, ""), "", "");
    let metrics = three.hub.metrics.expect("it is configured");
    let server: InquiryServer = metrics.to_string().parse().expect("an address");
    let mut readers = Vec::new();
    for n in 0..100 {
        let mut reader = client(metrics);
        let asked = [
            "GET /view HTTP/1.0\r\n\r\n",
            "GET / HTTP/1.0\r\n\r\n",
            "GET",
        ][n % 3];
        // A connection that gave way meanwhile cannot ask.
        drop(reader.write_all(asked.as_bytes()));
        readers.push(reader);
    }
    for _ in 0..5 {
        let view = server.get("/view").expect("an answer");
        assert!(view.starts_with('{'), "{view}");
    }
    drop(readers);
}
