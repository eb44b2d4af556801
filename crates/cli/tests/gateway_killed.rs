//! `kill -9` of either gateway, twenty times during one transfer: the destination and the client receive
//! exactly what the other wrote, and neither connection breaks.
//!
//! Method: two gateways as processes with custody on disk and a lossy link between them; one client
//! and one server, each writing octets of its own while reading. Kills come when the server has
//! received random amounts; a killed gateway is started again at once.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::gateways::{client, exchange, server};
use crate::processes::{Running, free_port, fulmar, octets, run, said, until};
use fulmar_proto::rng::Rng;
use rustix::process::Signal;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const KILLS: usize = 20;
/// Longer than any restart, and short enough that keepers are gone soon after the tests.
pub(crate) const KEPT: &str = "keep_connections = \"20s\"\n";
const LINK: &str = "--rate 50mbit --delay 5ms --queue 200 --loss 10%";
/// The longest wait in these tests: restarts take longer than the usual exchanges.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Two gateways and a link, with the files to start either again.
pub(crate) struct Pair {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) gateways: [Option<Running>; 2],
    _link: Running,
    pub(crate) entry: SocketAddr,
    messages: SocketAddr,
    pub(crate) socks: SocketAddr,
    /// The metrics of `AIR` before it is started again, where they are configured.
    pub(crate) metrics: Option<SocketAddr>,
}

pub(crate) const GROUND: usize = 0;
pub(crate) const AIR: usize = 1;
const NAMES: [&str; 2] = ["ground", "air"];

fn start(directory: &Path, which: usize) -> (Running, serde_json::Value) {
    let file = directory.join(format!("{}.toml", NAMES[which]));
    let arguments = format!("gateway -v --json --log-format text -c {}", file.display());
    let mut running = Running::start(fulmar(&arguments));
    let record = running.record();
    assert_eq!(record["kind"], "start", "{record}");
    (running, record)
}

impl Pair {
    pub(crate) fn start(to: SocketAddr, custody: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        let keys = NAMES.map(|name| {
            let output = run(&format!("keygen {}/{name}.key", place.display()));
            assert!(output.status.success(), "{}", said(&output));
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        });
        let ground = format!("127.0.0.1:{}", free_port());
        let mut link = Running::start(fulmar(&format!(
            "emulate --listen 127.0.0.1:0 --to {ground} {LINK}"
        )));
        let at = place.display();
        let text = |which: usize, listen: &str, address: &str, rest: &str| {
            let (name, peer, key) = (NAMES[which], NAMES[1 - which], &keys[1 - which]);
            format!(
                "[gateway]\nname = \"{name}\"\nlisten = \"{listen}\"\nstate_dir = \"{at}\"\n\
                 [security]\nkind = \"noise\"\nprivate_key_file = \"{at}/{name}.key\"\n\
                 [[peer]]\nname = \"{peer}\"\n{address}public_key = \"{key}\"\nrate = \"50mbit\"\n\
                 [class.bulk]\nmode = \"near-reliable\"\ncustody = \"disk\"\n\
                 [custody]\ndirectory = \"{at}/{name}\"\n{custody}{rest}"
            )
        };
        let allow = "[egress]\nallow = [\"127.0.0.0/8:1-65535\"]\n";
        let address = format!("address = \"{}\"\n", link.address());
        let forward = format!(
            "[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\nclass = \"bulk\"\n\
             [[forward]]\nprotocol = \"udp\"\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\n\
             class = \"telemetry\"\n[class.telemetry]\nmode = \"unreliable\"\n\
             [[socks]]\nlisten = \"127.0.0.1:0\"\nclass = \"bulk\"\n"
        );
        std::fs::write(place.join("ground.toml"), text(GROUND, &ground, "", allow)).unwrap();
        let air = text(AIR, "127.0.0.1:0", &address, &forward);
        std::fs::write(place.join("air.toml"), air).unwrap();
        let (ground, _) = start(place, GROUND);
        let (air, record) = start(place, AIR);
        Self {
            gateways: [Some(ground), Some(air)],
            _link: link,
            entry: record["entries"][0].as_str().unwrap().parse().unwrap(),
            messages: record["entries"][1].as_str().unwrap().parse().unwrap(),
            socks: record["entries"][2].as_str().unwrap().parse().unwrap(),
            metrics: record["metrics"]
                .as_str()
                .map(|address| address.parse().unwrap()),
            directory,
        }
    }

    pub(crate) fn kill(&mut self, which: usize) {
        let mut running = self.gateways[which].take().expect("it runs");
        running.signal(Signal::KILL);
        let (_, said) = running.end();
        // Shown where the test fails.
        eprintln!("{} was killed; it had said:\n{said}", NAMES[which]);
    }

    pub(crate) fn start_again(&mut self, which: usize) {
        self.gateways[which] = Some(start(self.directory.path(), which).0);
    }
}

/// Writes `sent` and ends its direction, while reading everything from the other side.
pub(crate) fn talk(
    mut stream: TcpStream,
    sent: Vec<u8>,
    count: Arc<AtomicUsize>,
) -> JoinHandle<std::io::Result<Vec<u8>>> {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    thread::spawn(move || {
        let mut writing = stream.try_clone()?;
        let writer = thread::spawn(move || {
            writing.write_all(&sent)?;
            writing.shutdown(Shutdown::Write)
        });
        let mut all = Vec::new();
        let mut piece = vec![0; 65_536];
        loop {
            let len = stream.read(&mut piece)?;
            if len == 0 {
                break;
            }
            all.extend_from_slice(&piece[..len]);
            count.store(all.len(), Ordering::Relaxed);
        }
        writer.join().expect("the writer")?;
        Ok(all)
    })
}

#[test]
fn twenty_kills_of_either_gateway_lose_double_and_alter_nothing_and_break_no_connection() {
    let (up, down) = (octets(1, 8_000_000), octets(2, 3_000_000));
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut pair = Pair::start(listener.local_addr().unwrap(), KEPT);
    let at_client = Arc::new(AtomicUsize::new(0));
    let client = talk(client(pair.entry), up.clone(), Arc::clone(&at_client));
    let at_server = Arc::new(AtomicUsize::new(0));
    let server = talk(
        listener.accept().unwrap().0,
        down.clone(),
        Arc::clone(&at_server),
    );
    let mut rng = Rng::from_seed(5);
    let mut moments: Vec<usize> = (0..KILLS)
        .map(|_| usize::try_from(rng.below(7_900_000)).unwrap())
        .collect();
    moments.sort_unstable();
    for moment in moments {
        until("the transfer to go on", || {
            at_server.load(Ordering::Relaxed) >= moment
        });
        let which = usize::from(rng.chance(0.5));
        pair.kill(which);
        pair.start_again(which);
    }
    let (at_server, at_client) = (server.join().unwrap(), client.join().unwrap());
    assert!(
        at_server.expect("no reset") == up,
        "the destination has something else"
    );
    assert!(
        at_client.expect("no reset") == down,
        "the client has something else"
    );
}

/// Gateways that keep no connections, a client that has written `sent`, and its destination.
fn without_a_keeper(sent: &[u8]) -> (Pair, TcpStream, TcpStream) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let to = listener.local_addr().unwrap();
    let pair = Pair::start(to, "keep_connections = \"none\"\n");
    let mut client = client(pair.entry);
    let server = listener.accept().unwrap().0;
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(sent).unwrap();
    (pair, client, server)
}

#[test]
fn without_a_keeper_the_client_is_reset_and_what_was_taken_still_reaches_the_destination() {
    let sent = octets(3, 2_000_000);
    let (mut pair, mut client, mut server) = without_a_keeper(&sent);
    // The end of the client's stream is not sent on: the received octets may not look complete.
    let mut first = vec![0; 100_000];
    server.read_exact(&mut first).unwrap();
    pair.kill(AIR);
    let told = client.read(&mut [0; 1]).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::ConnectionReset);
    pair.start_again(AIR);
    let mut rest = Vec::new();
    let told = server.read_to_end(&mut rest).unwrap_err();
    assert_eq!(
        told.kind(),
        ErrorKind::ConnectionReset,
        "no end that was not said"
    );
    let all = [first, rest].concat();
    assert!(sent.starts_with(&all), "altered");
    assert!(all.len() > 100_000, "what custody held was carried on");
}

#[test]
fn without_a_keeper_an_end_that_custody_knows_of_reaches_the_destination() {
    let sent = octets(6, 4_000_000);
    let (mut pair, client, mut server) = without_a_keeper(&sent);
    client.shutdown(Shutdown::Write).unwrap();
    // Custody takes everything in milliseconds, the link in most of a second.
    let mut first = vec![0; 1_000_000];
    server.read_exact(&mut first).unwrap();
    pair.kill(AIR);
    pair.start_again(AIR);
    let mut rest = Vec::new();
    server.read_to_end(&mut rest).expect("an end");
    assert!([first, rest].concat() == sent, "altered or incomplete");
}

#[test]
fn what_was_kept_for_a_peer_that_is_not_configured_any_more_is_set_aside() {
    let sent = octets(9, 4_000_000);
    let (mut pair, _client, mut server) = without_a_keeper(&sent);
    server.read_exact(&mut vec![0; 100_000]).unwrap();
    pair.kill(AIR);
    let place = pair.directory.path();
    let (file, aside) = (place.join("air.toml"), place.join("air/damaged"));
    let text = std::fs::read_to_string(&file).unwrap();
    let of_another = text.replace("name = \"ground\"", "name = \"moon\"");
    assert_ne!(of_another, text);
    std::fs::write(&file, of_another).unwrap();
    assert_eq!(files(&aside), 0);
    pair.start_again(AIR);
    until("what was kept lies aside", || files(&aside) > 0);
    let mut gateway = pair.gateways[AIR].take().unwrap();
    gateway.signal(Signal::TERM);
    let (_, said) = gateway.end();
    assert!(
        said.contains("its peer is not configured any more"),
        "{said}"
    );
}

/// The files in a directory, which need not be there.
fn files(directory: &Path) -> usize {
    std::fs::read_dir(directory).map_or(0, Iterator::count)
}

#[test]
fn a_proxy_s_client_hears_one_reply_and_nothing_twice_with_every_octet_synced() {
    let (up, down) = (octets(7, 4_000_000), octets(8, 2_000_000));
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let to = listener.local_addr().unwrap();
    let mut pair = Pair::start(to, &format!("{KEPT}fsync = \"always\"\n"));
    let mut asking = client(pair.socks);
    asking.write_all(&[5, 1, 0]).unwrap();
    let mut chosen = [0; 2];
    asking.read_exact(&mut chosen).unwrap();
    assert_eq!(chosen, [5, 0]);
    let [high, low] = to.port().to_be_bytes();
    asking
        .write_all(&[5, 1, 0, 1, 127, 0, 0, 1, high, low])
        .unwrap();
    let mut reply = [0; 10];
    asking.read_exact(&mut reply).unwrap();
    assert_eq!(reply[..4], [5, 0, 0, 1]);
    let none = || Arc::new(AtomicUsize::new(0));
    let client = talk(asking, up.clone(), none());
    let count = none();
    let server = talk(
        listener.accept().unwrap().0,
        down.clone(),
        Arc::clone(&count),
    );
    for (moment, which) in [(50_000, AIR), (1_000_000, GROUND), (2_000_000, AIR)] {
        until("the transfer to go on", || {
            count.load(Ordering::Relaxed) >= moment
        });
        pair.kill(which);
        pair.start_again(which);
    }
    assert!(server.join().unwrap().expect("no reset") == up);
    assert!(client.join().unwrap().expect("no reset") == down);
}

/// The number of sockets that a process has.
pub(crate) fn sockets(process: u32) -> usize {
    let all = std::fs::read_dir(format!("/proc/{process}/fd"));
    let is_socket = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    };
    all.map_or(0, |all| all.flatten().filter(is_socket).count())
}

#[test]
fn a_keeper_that_dies_is_replaced_and_given_every_connection() {
    let sent = octets(9, 2_000_000);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut pair = Pair::start(listener.local_addr().unwrap(), KEPT);
    let keeper = |pair: &Pair| {
        let air = pair.gateways[AIR].as_ref().unwrap();
        air.children("gateway-keeper").first().copied()
    };
    // The kernel's list of children may miss one while others come and go (proc(5)).
    let mut first = None;
    until("a keeper", || {
        first = keeper(&pair);
        first.is_some()
    });
    let first = first.expect("it was seen");
    let mut client = client(pair.entry);
    client.write_all(&sent[..1_000_000]).unwrap();
    let server = talk(listener.accept().unwrap().0, Vec::new(), Arc::default());
    let held = sockets(first);
    let first = rustix::process::Pid::from_raw(i32::try_from(first).unwrap()).unwrap();
    rustix::process::kill_process(first, Signal::KILL).unwrap();
    until("another keeper", || {
        keeper(&pair).is_some_and(|now| {
            let is_new = i64::from(now) != i64::from(first.as_raw_nonzero().get());
            // One that was just started has not been given the connection yet.
            is_new && sockets(now) >= held
        })
    });
    pair.kill(AIR);
    pair.start_again(AIR);
    client.write_all(&sent[1_000_000..]).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert!(server.join().unwrap().expect("no reset") == sent);
}

#[test]
fn a_keeper_that_dies_beside_a_gateway_that_nobody_speaks_to_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let at = place.display();
    // No peer calls, none is called and no page is read: nothing but the keeper's end wakes it.
    let text = format!(
        "[gateway]\nname = \"air\"\nlisten = \"127.0.0.1:0\"\nstate_dir = \"{at}\"\n\
         [security]\nkind = \"none\"\n[[peer]]\nname = \"ground\"\nrate = \"50mbit\"\n\
         [class.bulk]\nmode = \"near-reliable\"\ncustody = \"disk\"\n\
         [custody]\ndirectory = \"{at}/store\"\n{KEPT}\
         [egress]\nallow = [\"127.0.0.1:1-65535\"]\n"
    );
    std::fs::write(place.join("air.toml"), text).unwrap();
    let (gateway, _) = start(place, AIR);
    let keeper = || gateway.children("gateway-keeper").first().copied();
    let mut first = None;
    until("a keeper", || {
        first = keeper();
        first.is_some()
    });
    let first = first.expect("it was seen");
    let pid = rustix::process::Pid::from_raw(i32::try_from(first).unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    until("another keeper", || {
        keeper().is_some_and(|now| now != first)
    });
}

#[test]
fn many_connections_outlive_kills_together() {
    const FLOWS: u64 = 100;
    const LEN: usize = 100_000;
    let through = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&through);
    let to = server(move |mut stream| {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut piece = vec![0; 65_536];
        while let Ok(len @ 1..) = stream.read(&mut piece) {
            count.fetch_add(len, Ordering::Relaxed);
            stream.write_all(&piece[..len]).unwrap();
        }
    });
    let mut pair = Pair::start(to, KEPT);
    let clients: Vec<_> = (0..FLOWS)
        .map(|flow| {
            let client = client(pair.entry);
            client.set_read_timeout(Some(PATIENCE)).unwrap();
            thread::spawn(move || exchange(client, octets(100 + flow, LEN)))
        })
        .collect();
    for (sixths, which) in [(1, AIR), (2, GROUND), (3, AIR), (4, GROUND)] {
        let moment = LEN * clients.len() * sixths / 6;
        until("the transfers to go on", || {
            through.load(Ordering::Relaxed) >= moment
        });
        pair.kill(which);
        pair.start_again(which);
    }
    for (flow, client) in (0..FLOWS).zip(clients) {
        let back = client.join().expect("no reset");
        assert!(back == octets(100 + flow, LEN), "flow {flow} is altered");
    }
}

#[test]
fn a_restart_by_signal_leaves_flows_standing_too() {
    // Seconds on this link, while a stop waits for nothing.
    let up = octets(4, 16_000_000);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut pair = Pair::start(listener.local_addr().unwrap(), KEPT);
    let back = {
        let up = up.clone();
        let client = client(pair.entry);
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        thread::spawn(move || exchange(client, up))
    };
    let server = listener.accept().unwrap().0;
    let count = Arc::new(AtomicUsize::new(0));
    let server = talk(server, b"well received".to_vec(), Arc::clone(&count));
    for which in [AIR, GROUND] {
        let before = count.load(Ordering::Relaxed);
        until("the transfer to go on", || {
            count.load(Ordering::Relaxed) >= before + 100_000
        });
        let running = pair.gateways[which].as_mut().unwrap();
        running.signal(Signal::TERM);
        assert_eq!(running.code(), Some(143));
        pair.start_again(which);
    }
    assert!(server.join().unwrap().expect("no reset") == up);
    assert_eq!(back.join().unwrap(), b"well received");
}

#[test]
fn messages_are_answered_again_soon_after_the_far_gateway_was_killed() {
    const BEFORE: u64 = 1_000;
    let echo = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    let mut pair = Pair::start(echo.local_addr().unwrap(), "");
    thread::spawn(move || {
        let mut buffer = [0; 2_000];
        while let Ok((len, from)) = echo.recv_from(&mut buffer) {
            let _ = echo.send_to(&buffer[..len], from);
        }
    });
    let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    socket.connect(pair.messages).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    let mut sent = 0_u64;
    let mut answered = |least: u64| {
        let from = sent;
        let mut buffer = [0; 2_000];
        until("an answer", || {
            socket.send(&sent.to_be_bytes()).unwrap();
            sent += 1;
            let came = socket.recv(&mut buffer).ok().filter(|len| *len == 8);
            let number = came.and_then(|_| buffer.first_chunk().map(|n| u64::from_be_bytes(*n)));
            assert!(number.is_none_or(|number| number < sent), "{number:?}");
            number.is_some_and(|number| number >= from) && sent >= least
        });
        sent - from
    };
    answered(BEFORE);
    pair.kill(GROUND);
    pair.start_again(GROUND);
    let needed = answered(0);
    // Were its numbers taken for those of its earlier life, as many messages as before would go unanswered.
    assert!(needed < BEFORE / 2, "{needed} messages until an answer");
}
