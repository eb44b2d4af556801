//! Four gateways in a row: what one of them has in custody moves on while only one hop is up at a time and the gateways
//! between are killed, and the hosts at the ends receive exactly what the other wrote.
//!
//! Method: gateways as processes with custody on disk, and an emulated lossy link for each hop. A hop is down while its
//! link's process is stopped. A client and a server outside compare octets.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::gateway_killed::{KEPT, PATIENCE, talk};
use crate::gateways::{client, server, status_at};
use crate::processes::{Running, free_port, fulmar, moment, octets, run, said, until};
use rustix::process::Signal;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const NAMES: [&str; 4] = ["first", "second", "third", "fourth"];
const LINK: &str = "--rate 50mbit --delay 5ms --queue 200 --loss 5%";

/// The gateways, with the files to start any again.
struct Chain {
    directory: tempfile::TempDir,
    gateways: Vec<Option<Running>>,
    links: Vec<Running>,
    entries: Vec<SocketAddr>,
    /// The address of each gateway's HTTP server.
    status: Vec<SocketAddr>,
    kills: usize,
}

fn start(directory: &Path, which: usize) -> (Running, serde_json::Value) {
    let file = directory.join(format!("{}.toml", NAMES[which]));
    let arguments = format!("gateway -v --json --log-format text -c {}", file.display());
    let mut running = Running::start(fulmar(&arguments));
    let record = running.record();
    assert_eq!(record["kind"], "start", "{record}");
    (running, record)
}

fn address(of: &serde_json::Value) -> SocketAddr {
    of.as_str().unwrap().parse().unwrap()
}

impl Chain {
    /// Starts all; `entries` are tables of the first one's configuration. Those between carry on to the next, `relays` of
    /// them at most.
    fn start(entries: &str, class: &str, relays: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().display();
        let keys = NAMES.map(|name| {
            let output = run(&format!("keygen {place}/{name}.key"));
            assert!(output.status.success(), "{}", said(&output));
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        });
        let listen = NAMES.map(|_| format!("127.0.0.1:{}", free_port()));
        let links: Vec<(Running, String)> = (listen[1..].iter())
            .map(|to| {
                let emulate = format!("emulate --listen 127.0.0.1:0 --to {to} {LINK}");
                let mut link = Running::start(fulmar(&emulate));
                let at = link.address();
                (link, at)
            })
            .collect();
        for (which, name) in NAMES.into_iter().enumerate() {
            let mut text = format!(
                "[gateway]\nname = \"{name}\"\nlisten = \"{}\"\nstate_dir = \"{place}\"\n\
                 [security]\nkind = \"noise\"\nprivate_key_file = \"{place}/{name}.key\"\n\
                 [class.bulk]\n{class}\n[custody]\ndirectory = \"{place}/{name}\"\n{KEPT}\
                 [metrics]\nlisten = \"127.0.0.1:0\"\n",
                listen[which]
            );
            let mut peer = |other: usize, address: &str| {
                let (name, key) = (NAMES[other], &keys[other]);
                write!(text, "[[peer]]\nname = \"{name}\"\npublic_key = \"{key}\"\n{address}rate = \"50mbit\"\n").unwrap();
            };
            if which > 0 {
                peer(which - 1, "");
            }
            if which < 3 {
                peer(which + 1, &format!("address = \"{}\"\n", links[which].1));
            }
            match which {
                0 => {
                    text += "[[peer]]\nname = \"fourth\"\nvia = \"third\"\n[[peer]]\nname = \"third\"\nvia = \"second\"\n";
                    text += entries;
                }
                3 => text += "[egress]\nallow = [\"127.0.0.0/8:1-65535\"]\n",
                _ if which <= relays => {
                    write!(text, "[egress]\nrelay = [\"{}\"]\n", NAMES[which + 1]).unwrap();
                }
                // It would carry nothing.
                _ => text += "[egress]\nallow = [\"192.0.2.1:1\"]\n",
            }
            std::fs::write(directory.path().join(format!("{name}.toml")), text).unwrap();
        }
        let started = (0..4).map(|which| start(directory.path(), which));
        let (gateways, records): (Vec<_>, Vec<_>) = started.unzip();
        let entries = records[0]["entries"].as_array().unwrap().iter();
        Self {
            gateways: gateways.into_iter().map(Some).collect(),
            links: links.into_iter().map(|(link, _)| link).collect(),
            entries: entries.map(address).collect(),
            status: records
                .iter()
                .map(|record| address(&record["metrics"]))
                .collect(),
            directory,
            kills: 0,
        }
    }

    /// Kills a gateway and starts it again at once.
    fn kill(&mut self, which: usize) {
        let mut running = self.gateways[which].take().expect("it runs");
        running.signal(Signal::KILL);
        let (_, said) = running.end();
        // Shown where the test fails.
        eprintln!("{} was killed; it had said:\n{said}", NAMES[which]);
        let (running, record) = start(self.directory.path(), which);
        self.gateways[which] = Some(running);
        self.status[which] = address(&record["metrics"]);
        self.kills += 1;
    }

    fn set_up(&self, hop: usize, is_up: bool) {
        let signal = if is_up { Signal::CONT } else { Signal::STOP };
        self.links[hop].signal(signal);
    }

    /// Octets that a gateway keeps for the peer of this name.
    fn kept(&self, which: usize, peer: &str) -> u64 {
        let status = status_at(self.status[which]);
        let peers = status["peers"].as_array().unwrap().iter();
        let mut peers = peers.filter(|it| it["name"] == peer);
        peers.next().unwrap()["custody_bytes"].as_u64().unwrap()
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one history, step by step")]
fn custody_moves_on_over_one_hop_at_a_time_through_twenty_kills_and_nothing_is_lost_or_doubled() {
    const UP: usize = 3_000_000;
    const DOWN: usize = 2_000_000;
    let (up, down) = (octets(1, UP), octets(2, DOWN));
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let to = listener.local_addr().unwrap();
    let entry = format!(
        "[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\npeer = \"fourth\"\nclass = \"bulk\"\n"
    );
    let class = "mode = \"near-reliable\"\ncustody = \"disk\"";
    let mut chain = Chain::start(&entry, class, 2);
    // The first hop is up, the second down: the second gateway takes all into custody.
    chain.set_up(1, false);
    let at_client = Arc::new(AtomicUsize::new(0));
    let client = talk(client(chain.entries[0]), up.clone(), Arc::clone(&at_client));
    for part in 1..=4 {
        until("the second gateway to take octets", || {
            chain.kept(1, "third") >= (UP / 5 * part) as u64
        });
        chain.kill(1);
    }
    until("the second gateway to have all", || {
        chain.kept(1, "third") == UP as u64
    });
    until("the first gateway to have let go", || {
        chain.kept(0, "second") == 0
    });
    // The end of the client's stream may be a repetition behind its last octet.
    (0..60).for_each(|_| moment());
    listener.set_nonblocking(true).unwrap();
    assert!(
        listener.accept().is_err(),
        "nothing has passed the second hop"
    );
    listener.set_nonblocking(false).unwrap();
    // The first hop is down, the second up: all arrives at the server without the first gateway.
    chain.set_up(0, false);
    chain.set_up(1, true);
    let at_server = Arc::new(AtomicUsize::new(0));
    let stream = listener.accept().unwrap().0;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut answering = stream.try_clone().unwrap();
    let count = Arc::clone(&at_server);
    let server = std::thread::spawn(move || {
        let (mut stream, mut all, mut piece) = (stream, Vec::new(), vec![0; 65_536]);
        loop {
            let len = stream.read(&mut piece)?;
            if len == 0 {
                return Ok::<_, std::io::Error>(all);
            }
            all.extend_from_slice(&piece[..len]);
            count.store(all.len(), Ordering::Relaxed);
        }
    });
    for part in 1..=6 {
        until("the server to receive", || {
            at_server.load(Ordering::Relaxed) >= UP / 7 * part
        });
        chain.kill(1 + part % 2);
    }
    let received = server
        .join()
        .unwrap()
        .expect("an end, while the first hop is down");
    assert!(received == up, "the server has something else");
    // The answer waits at the second gateway, whose way to the first is down.
    answering.write_all(&down).unwrap();
    answering.shutdown(Shutdown::Write).unwrap();
    for part in 1..=4 {
        until("the second gateway to take the answer", || {
            chain.kept(1, "first") >= (DOWN / 5 * part) as u64
        });
        chain.kill(1 + part % 2);
    }
    until("the second gateway to have the answer", || {
        chain.kept(1, "first") == DOWN as u64
    });
    assert_eq!(
        at_client.load(Ordering::Relaxed),
        0,
        "nothing has passed the first hop"
    );
    // And the other way round again.
    chain.set_up(1, false);
    chain.set_up(0, true);
    for part in 1..=5 {
        until("the client to receive", || {
            at_client.load(Ordering::Relaxed) >= DOWN / 6 * part
        });
        chain.kill(1);
    }
    until("the client to have all", || {
        at_client.load(Ordering::Relaxed) == DOWN
    });
    chain.set_up(1, true);
    chain.kill(2);
    assert_eq!(chain.kills, 20);
    assert!(
        client.join().unwrap().expect("no reset") == down,
        "the client has something else"
    );
    for which in 0..4 {
        until("the flows to be over", || {
            status_at(chain.status[which])["flows"].as_u64() == Some(0)
        });
    }
}

/// The first gateway's entries towards the fourth, in a class that keeps nothing.
const PLAIN: &str = "mode = \"reliable\"";

#[test]
fn without_custody_a_client_behind_a_chain_is_told_what_the_last_gateway_says() {
    let to = server(|mut stream| {
        let mut piece = [0; 4];
        stream.read_exact(&mut piece).unwrap();
        stream.write_all(&piece).unwrap();
    });
    let nobody = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let closed = nobody.local_addr().unwrap();
    drop(nobody);
    let entry = "[[socks]]\nlisten = \"127.0.0.1:0\"\npeer = \"fourth\"\nclass = \"bulk\"\n";
    let chain = Chain::start(entry, PLAIN, 2);
    for (to, code) in [(to, 0), (closed, 5)] {
        let mut asking = client(chain.entries[0]);
        asking.set_read_timeout(Some(PATIENCE)).unwrap();
        asking.write_all(&[5, 1, 0]).unwrap();
        asking.read_exact(&mut [0; 2]).unwrap();
        let [high, low] = to.port().to_be_bytes();
        asking
            .write_all(&[5, 1, 0, 1, 127, 0, 0, 1, high, low])
            .unwrap();
        let mut reply = [0; 10];
        asking.read_exact(&mut reply).unwrap();
        assert_eq!(reply[1], code, "RFC 1928, section 6");
        if code == 0 {
            assert_eq!(
                reply[4..8],
                [127, 0, 0, 1],
                "the last gateway's own address"
            );
            asking.write_all(b"ping").unwrap();
            let mut back = [0; 4];
            asking.read_exact(&mut back).unwrap();
            assert_eq!(&back, b"ping");
        }
    }
}

#[test]
fn a_gateway_that_may_not_carry_on_refuses_and_says_why() {
    let entry = "[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"127.0.0.1:9\"\npeer = \"fourth\"\nclass = \"bulk\"\n";
    let mut chain = Chain::start(entry, PLAIN, 1);
    let mut asking = client(chain.entries[0]);
    asking.set_read_timeout(Some(PATIENCE)).unwrap();
    let told = asking.read(&mut [0; 1]).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::ConnectionReset);
    let mut third = chain.gateways[2].take().unwrap();
    third.signal(Signal::TERM);
    let (_, said) = third.end();
    assert!(
        said.contains("event=\"not_relayed\" peer=\"second\" reason=\"not_permitted\""),
        "{said}"
    );
}

#[test]
fn datagrams_cross_a_chain_both_ways() {
    let far = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    let to = far.local_addr().unwrap();
    let entry = format!(
        "[[forward]]\nprotocol = \"udp\"\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\npeer = \"fourth\"\nclass = \"bulk\"\n"
    );
    let chain = Chain::start(&entry, "deadline = \"3s\"", 2);
    let near = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    for socket in [&near, &far] {
        socket
            .set_read_timeout(Some(std::time::Duration::from_millis(100)))
            .unwrap();
    }
    let mut piece = [0; 64];
    let mut from = None;
    until("a message to arrive", || {
        near.send_to(b"question", chain.entries[0]).unwrap();
        let came = far.recv_from(&mut piece);
        from = came
            .ok()
            .filter(|(len, _)| &piece[..*len] == b"question")
            .map(|(_, from)| from);
        from.is_some()
    });
    until("an answer to arrive", || {
        far.send_to(b"answer", from.unwrap()).unwrap();
        let came = near.recv(&mut piece);
        came.is_ok_and(|len| &piece[..len] == b"answer")
    });
}
