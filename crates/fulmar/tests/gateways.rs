//! A program that talks to TCP servers behind one gateway, over a link that loses a fifth of the packets.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[expect(dead_code, reason = "its main function is the program's")]
#[path = "../examples/through.rs"]
mod through;

use crate::link::{ANY, Link, PATIENCE, RATE, keys, lossy, octets};
use fulmar::{Config, Endpoint, GatewayStream, PublicKey};
use fulmar_net::clock::Clock;
use fulmar_net::gateway::config::GatewayConfig;
use fulmar_net::gateway::{Control, Gateway};
use fulmar_net::session::write_secret_key;
use fulmar_proto::units::Duration;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

/// Gateways that were started, so that each has a place of its own.
static STARTED: AtomicU32 = AtomicU32::new(0);

/// A gateway, the link to it, and a program's endpoint.
struct Near {
    endpoint: Endpoint,
    link: Link,
    key: PublicKey,
    control: Control,
    thread: Option<JoinHandle<()>>,
    state: PathBuf,
}

impl Near {
    /// Starts a gateway whose file has these further lines.
    fn start(lines: &str) -> Self {
        let [called, calling] = keys();
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("gateway-{}-{number}", std::process::id());
        let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&state).unwrap();
        let place = state.display();
        write_secret_key(&state.join("own.key"), &called).unwrap();
        let text = format!(
            "[gateway]\nname = \"g\"\nlisten = \"127.0.0.1:0\"\nstate_dir = \"{place}\"\n\
             [security]\nkind = \"noise\"\nprivate_key_file = \"{place}/own.key\"\n\
             [[peer]]\nname = \"device\"\npublic_key = \"{}\"\nrate = \"50mbit\"\n{lines}",
            calling.public()
        );
        let config = GatewayConfig::read("g.toml", &text).unwrap();
        // A gateway stays on its thread.
        let (told, tells) = channel();
        let thread = std::thread::spawn(move || {
            let gateway = Gateway::start(Clock::start(), config).unwrap();
            told.send((gateway.carrier(), gateway.control().unwrap()))
                .unwrap();
            gateway.run().unwrap();
        });
        let (carrier, control) = tells.recv().unwrap();
        let way = || lossy(0.2, Duration::from_millis(5));
        let endpoint = Endpoint::bind(ANY, Config::new(calling).rate(RATE)).unwrap();
        Self {
            endpoint,
            link: Link::to(carrier, way(), way()),
            key: called.public(),
            control,
            thread: Some(thread),
            state,
        }
    }

    fn open(&self, to: &str) -> GatewayStream {
        let stream = self
            .endpoint
            .connect_through(self.link.address, &self.key, to);
        let stream = stream.unwrap();
        stream.set_timeout(Some(PATIENCE));
        stream
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        self.control.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
        std::fs::remove_dir_all(&self.state).unwrap();
    }
}

/// A TCP server that handles one connection with `serve`.
fn server(serve: impl FnOnce(TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind(ANY).unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let stream = listener.accept().unwrap().0;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        serve(stream);
    });
    at
}

const ALL: &str = "[egress]\nallow = [\"127.0.0.1:1-65535\", \"localhost:1-65535\"]\n";

#[test]
fn a_page_of_a_web_server_comes_through_one_gateway() {
    let at = server(|mut stream| {
        let mut request = String::new();
        stream.read_to_string(&mut request).unwrap();
        assert!(request.starts_with("GET /here HTTP/1.0\r\n"), "{request}");
        stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nwelcome").unwrap();
    });
    let near = Near::start(ALL);
    let to = format!("localhost:{}", at.port());
    let answer = through::ask(&mut near.open(&to), &to, "/here").unwrap();
    assert!(answer.ends_with("welcome"), "{answer}");
}

#[test]
fn many_octets_go_both_ways_once_and_unaltered() {
    const LEN: usize = 2_000_000;
    let at = server(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&all).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
    });
    let near = Near::start(ALL);
    let mut stream = near.open(&at.to_string());
    let sent = octets(LEN);
    stream.write_all(&sent).unwrap();
    stream.finish().unwrap();
    let mut back = Vec::new();
    stream.read_to_end(&mut back).unwrap();
    assert!(back == sent, "{} of {LEN}", back.len());
}

#[test]
fn an_error_says_why_there_is_no_connection() {
    let nobody = TcpListener::bind(ANY).unwrap();
    let closed = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let near = Near::start("[egress]\nallow = [\"127.0.0.1:1-65535\"]\n");
    for (to, kind) in [
        (closed.as_str(), ErrorKind::ConnectionRefused),
        ("192.0.2.1:80", ErrorKind::PermissionDenied),
    ] {
        let told = near.open(to).read(&mut [0; 1]).unwrap_err();
        assert_eq!(told.kind(), kind, "{to}: {told}");
    }
    let wrong = near
        .endpoint
        .connect_through(near.link.address, &near.key, "nowhere");
    assert_eq!(wrong.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_server_that_breaks_off_resets_the_stream() {
    let at = server(|mut stream| {
        // An octet stays unread, so the kernel resets the connection (RFC 9293, section 3.6).
        stream.read_exact(&mut [0; 5]).unwrap();
    });
    let near = Near::start(ALL);
    let mut stream = near.open(&at.to_string());
    stream.write_all(b"hello!").unwrap();
    let told = stream.read(&mut [0; 1]).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::ConnectionReset, "{told}");
}
