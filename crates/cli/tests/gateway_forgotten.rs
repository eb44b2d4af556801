//! A killed gateway resets no flow that it can still serve; a flow that it cannot continue ends at the far
//! gateway, too.
//!
//! Method: two gateways as processes, as in `gateway_killed`.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use crate::gateway_killed::{AIR, GROUND, KEPT, PATIENCE, Pair, sockets};
use crate::gateways::{client, exchange, server, status_at};
use crate::processes::{moment, octets, run, said, until};
use fulmar_net::clock::Clock;
use fulmar_proto::units::{Duration, Instant};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

fn is_reset(mut stream: &TcpStream) -> bool {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut rest = Vec::new();
    matches!(stream.read_to_end(&mut rest), Err(error) if error.kind() == ErrorKind::ConnectionReset)
}

/// The segment files that a gateway's custody has on the disk.
fn segments(pair: &Pair, gateway: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(pair.directory.path().join(gateway)).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|name| name == "segment");
    paths.filter(is_segment).collect()
}

/// The keeper of a gateway. The kernel's list of children may miss one while others come and go (proc(5)).
fn keeper(pair: &Pair, which: usize) -> u32 {
    let gateway = pair.gateways[which].as_ref().unwrap();
    let mut keeper = None;
    until("a keeper", || {
        keeper = gateway.children("gateway-keeper").first().copied();
        keeper.is_some()
    });
    keeper.expect("it was seen")
}

/// The number of sockets that the keeper has once it is at rest: it starts, and lets go, a moment after its
/// gateway says so.
fn at_rest(keeper: u32) -> usize {
    const LOOKS: u32 = 20;
    let (mut seen, mut same) = (0, 0);
    until("the keeper to rest", || {
        let now = sockets(keeper);
        same = if core::mem::replace(&mut seen, now) == now {
            same + 1
        } else {
            0
        };
        same == LOOKS
    });
    seen
}

fn pid(process: u32) -> Pid {
    Pid::from_raw(i32::try_from(process).unwrap()).unwrap()
}

/// A SOCKS client that has asked for `to`, and not read the reply.
fn asking(socks: SocketAddr, to: SocketAddr) -> TcpStream {
    let mut asking = client(socks);
    asking.set_read_timeout(Some(PATIENCE)).unwrap();
    asking.write_all(&[5, 1, 0]).unwrap();
    asking.read_exact(&mut [0; 2]).unwrap();
    let [high, low] = to.port().to_be_bytes();
    asking
        .write_all(&[5, 1, 0, 1, 127, 0, 0, 1, high, low])
        .unwrap();
    asking
}

#[test]
fn clients_that_come_while_a_gateway_is_killed_and_started_wait_and_are_served() {
    const KILLS: usize = 8;
    const CLIENTS: usize = 3;
    let to = server(|mut stream| {
        let mut all = Vec::new();
        // A gateway that was killed between accepting and the first octet resets.
        if stream.read_to_end(&mut all).is_ok() {
            let _ = stream.write_all(&all);
        }
    });
    let mut pair = Pair::start(to, KEPT);
    let (entry, done) = (pair.entry, Arc::new(AtomicUsize::new(0)));
    let stop = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..CLIENTS as u64)
        .map(|number| {
            let (done, stop) = (Arc::clone(&done), Arc::clone(&stop));
            thread::spawn(move || {
                while stop.load(Ordering::Relaxed) == 0 {
                    let asking = client(entry);
                    asking.set_read_timeout(Some(PATIENCE)).unwrap();
                    let sent = octets(number, 4_000);
                    assert!(exchange(asking, sent.clone()) == sent);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for kill in 1..=KILLS {
        until("exchanges", || {
            done.load(Ordering::Relaxed) >= kill * CLIENTS
        });
        pair.kill(AIR);
        // Nobody is there, and the port is open.
        let early = client(entry);
        pair.start_again(AIR);
        early.set_read_timeout(Some(PATIENCE)).unwrap();
        assert!(
            exchange(early, b"early".to_vec()) == b"early",
            "kill {kill}"
        );
    }
    stop.store(1, Ordering::Relaxed);
    for client in clients {
        client.join().expect("neither refused nor reset");
    }
}

#[test]
fn a_killed_gateway_s_port_can_be_opened_at_a_wider_address() {
    let to = server(|mut stream| {
        let mut all = Vec::new();
        if stream.read_to_end(&mut all).is_ok() {
            let _ = stream.write_all(&all);
        }
    });
    let mut pair = Pair::start(to, KEPT);
    pair.kill(AIR);
    let file = pair.directory.path().join("air.toml");
    let text = fs::read_to_string(&file).unwrap();
    let wider = format!("[[forward]]\nlisten = \"0.0.0.0:{}\"", pair.entry.port());
    // Another entry at "any port" would be given the one that is kept.
    let (text, _) = text.split_once("[[socks]]").unwrap();
    let text = text.replacen("[[forward]]\nlisten = \"127.0.0.1:0\"", &wider, 1);
    assert!(text.contains(&wider));
    fs::write(&file, text).unwrap();
    pair.start_again(AIR);
    let asking = client(pair.entry);
    asking.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(exchange(asking, b"asked".to_vec()) == b"asked");
}

#[test]
fn a_proxy_s_client_that_waits_for_the_reply_outlives_a_kill() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let to = listener.local_addr().unwrap();
    let mut pair = Pair::start(to, KEPT);
    // Nobody connects to the destination, so that no reply can come yet.
    pair.kill(GROUND);
    let keeper = keeper(&pair, AIR);
    let held = at_rest(keeper);
    let mut asking = asking(pair.socks, to);
    until("the keeper to have the client", || at_rest(keeper) > held);
    pair.kill(AIR);
    pair.start_again(AIR);
    pair.start_again(GROUND);
    let mut reply = [0; 10];
    asking.read_exact(&mut reply).unwrap();
    assert_eq!(reply[..4], [5, 0, 0, 1]);
    let mut server = listener.accept().unwrap().0;
    asking.write_all(b"there").unwrap();
    let mut there = [0; 5];
    server.read_exact(&mut there).unwrap();
    assert_eq!(&there, b"there");
}

#[test]
fn what_a_killed_gateway_knows_nothing_of_ends_at_the_destination() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let to = listener.local_addr().unwrap();
    let mut pair = Pair::start(to, "keep_connections = \"none\"\n");
    // A client that says nothing has nothing in custody.
    let client = client(pair.entry);
    let server = listener.accept().unwrap().0;
    pair.kill(AIR);
    pair.start_again(AIR);
    assert!(is_reset(&client));
    assert!(is_reset(&server), "the far gateway waits for the opener");
}

#[test]
fn a_request_that_a_killed_gateway_gave_to_the_destination_is_not_given_to_it_again() {
    for acceptor in ["disk", "memory"] {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let to = listener.local_addr().unwrap();
        let mut pair = Pair::start(to, "keep_connections = \"none\"\n");
        if acceptor == "memory" {
            pair.kill(GROUND);
            let file = pair.directory.path().join("ground.toml");
            let text = fs::read_to_string(&file).unwrap();
            fs::write(&file, text.replacen("custody = \"disk\"\n", "", 1)).unwrap();
            pair.start_again(GROUND);
        }
        let mut client = client(pair.entry);
        client.write_all(b"once").unwrap();
        let mut server = listener.accept().unwrap().0;
        server.read_exact(&mut [0; 4]).unwrap();
        // The destination's acknowledgement is reported 50 ms later.
        pair.kill(GROUND);
        pair.start_again(GROUND);
        assert!(is_reset(&client), "{acceptor}");
        assert!(is_reset(&server), "{acceptor}");
        listener.set_nonblocking(true).unwrap();
        let second = listener.accept();
        assert!(
            second.is_err(),
            "{acceptor}: the destination was asked twice"
        );
    }
}

#[test]
fn a_flow_that_the_server_s_gateway_cannot_write_down_is_refused_before_its_first_octet() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let to = listener.local_addr().unwrap();
    let mut pair = Pair::start(to, "keep_connections = \"none\"\n");
    // Nothing can be made in a directory that is gone.
    fs::remove_dir_all(pair.directory.path().join("ground")).unwrap();
    let mut client = client(pair.entry);
    client.write_all(b"once").unwrap();
    assert!(is_reset(&client));
    let mut server = listener.accept().unwrap().0;
    let mut given = Vec::new();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let told = server.read_to_end(&mut given).expect_err("never an end");
    assert_eq!(told.kind(), ErrorKind::ConnectionReset);
    assert!(given.is_empty(), "{given:?}");
    let mut ground = pair.gateways[GROUND].take().unwrap();
    ground.signal(Signal::TERM);
    let (_, said) = ground.end();
    for event in ["exit_not_noted", "exit_refused"] {
        let line = said.lines().find(|line| line.contains(event));
        let line = line.unwrap_or_else(|| panic!("no {event}: {said}"));
        assert!(line.contains("not_kept"), "{line}");
    }
}

#[test]
fn a_flow_whose_custody_has_a_damaged_header_is_reset_at_both_ends() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut pair = Pair::start(listener.local_addr().unwrap(), KEPT);
    let mut client = client(pair.entry);
    client.write_all(b"first").unwrap();
    let mut server = listener.accept().unwrap().0;
    server.read_exact(&mut [0; 5]).unwrap();
    pair.kill(GROUND);
    client.write_all(&octets(1, 100_000)).unwrap();
    let sizes = |pair: &Pair| {
        let of = |path: &PathBuf| fs::metadata(path).map_or(0, |file| file.len());
        segments(pair, "air").iter().map(of).sum::<u64>()
    };
    until("custody", || sizes(&pair) >= 100_000);
    pair.kill(AIR);
    for path in segments(&pair, "air") {
        let mut all = fs::read(&path).unwrap();
        all[40] ^= 1;
        fs::write(&path, all).unwrap();
    }
    pair.start_again(AIR);
    pair.start_again(GROUND);
    assert!(is_reset(&client));
    assert!(is_reset(&server));
}

#[test]
fn a_request_whose_note_is_damaged_is_not_given_to_the_destination_again() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let to = listener.local_addr().unwrap();
    let mut pair = Pair::start(to, "keep_connections = \"none\"\n");
    let mut client = client(pair.entry);
    client.write_all(b"once").unwrap();
    let mut server = listener.accept().unwrap().0;
    server.read_exact(&mut [0; 4]).unwrap();
    pair.kill(GROUND);
    let notes = segments(&pair, "ground");
    assert_eq!(notes.len(), 1);
    for path in notes {
        let mut all = fs::read(&path).unwrap();
        // After the words that say what kind of file it is.
        all.iter_mut().skip(40).for_each(|octet| *octet ^= 1);
        fs::write(&path, all).unwrap();
    }
    pair.start_again(GROUND);
    assert!(is_reset(&client));
    assert!(is_reset(&server));
    listener.set_nonblocking(true).unwrap();
    let second = listener.accept();
    assert!(second.is_err(), "the destination was asked twice");
}

#[test]
fn a_gateway_that_dies_as_it_writes_a_flow_down_goes_on_with_its_connection() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let mut pair = Pair::start(listener.local_addr().unwrap(), KEPT);
    keeper(&pair, GROUND);
    // The first octet that it writes into a file kills it (SIGXFSZ).
    let ground = pair.gateways[GROUND].as_ref().unwrap().id();
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    rustix::process::prlimit(Some(pid(ground)), Resource::Fsize, none).unwrap();
    let mut client = client(pair.entry);
    client.write_all(b"once").unwrap();
    let (status, said) = pair.gateways[GROUND].take().unwrap().end();
    assert!(!status.success(), "{said}");
    pair.start_again(GROUND);
    let mut server = listener.accept().unwrap().0;
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut given = [0; 4];
    server.read_exact(&mut given).expect("its first connection");
    assert_eq!(&given, b"once");
    // It is written down now, before it is given anything.
    assert_eq!(segments(&pair, "ground").len(), 1);
}

#[test]
fn clients_of_before_a_restart_are_counted_and_reset_when_they_say_nothing() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let to = listener.local_addr().unwrap();
    let mut silent = Pair::start(to, &format!("{KEPT}[limits]\ntcp_silent = \"5s\"\n"));
    let quiet = client(silent.entry);
    let _server = listener.accept().unwrap();
    silent.kill(AIR);
    quiet.set_nonblocking(true).unwrap();
    let told = (&quiet).read(&mut [0; 1]).unwrap_err();
    assert_eq!(
        told.kind(),
        ErrorKind::WouldBlock,
        "it was not reset before"
    );
    quiet.set_nonblocking(false).unwrap();
    silent.start_again(AIR);
    assert!(is_reset(&quiet));

    let to = listener.local_addr().unwrap();
    let mut narrow = Pair::start(to, &format!("{KEPT}[limits]\nflows_per_client = 1\n"));
    let mut first = client(narrow.entry);
    // One that has spoken does not give way.
    first.write_all(b"1").unwrap();
    let mut server = listener.accept().unwrap().0;
    server.read_exact(&mut [0; 1]).unwrap();
    narrow.kill(AIR);
    narrow.start_again(AIR);
    assert!(is_reset(&client(narrow.entry)), "a second of its address");
    first.write_all(b"2").unwrap();
    server.read_exact(&mut [0; 1]).unwrap();
}

#[test]
fn a_client_is_told_nothing_that_the_keeper_was_not_told_before() {
    // More notes than fit into the line to a keeper that does not read.
    const CLIENTS: usize = 400;
    // Longer than a reply, which would be left out of it.
    const ANSWER: &[u8] = b"an answer of some octets";
    let served = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&served);
    let to = server(move |mut stream| {
        count.fetch_add(1, Ordering::Relaxed);
        if stream.read_exact(&mut [0; 1]).is_ok() {
            let _ = stream.write_all(ANSWER);
            drop(stream.read(&mut [0; 1]));
        }
    });
    let metrics = "[metrics]\nlisten = \"127.0.0.1:0\"\n";
    let mut pair = Pair::start(to, &format!("{KEPT}{metrics}"));
    pair.kill(GROUND);
    let keeper = keeper(&pair, AIR);
    let held = at_rest(keeper);
    let clients: Vec<TcpStream> = (0..CLIENTS).map(|_| asking(pair.socks, to)).collect();
    let metrics = pair.metrics.unwrap();
    until("the requests to be read", || {
        status_at(metrics)["flows"].as_u64() >= Some(CLIENTS as u64)
    });
    until("the keeper to have the clients", || {
        at_rest(keeper) >= held + CLIENTS
    });
    rustix::process::kill_process(pid(keeper), Signal::STOP).unwrap();
    pair.start_again(GROUND);
    let answered = || {
        clients.iter().filter(|client| {
            client.set_nonblocking(true).unwrap();
            let came = client.peek(&mut [0; 1]).is_ok();
            client.set_nonblocking(false).unwrap();
            came
        })
    };
    until("the destination to have all", || {
        served.load(Ordering::Relaxed) >= CLIENTS
    });
    let mut seen = 0;
    until("no more answers to come", || {
        for _ in 0..50 {
            moment();
        }
        let now = answered().count();
        now > 0 && core::mem::replace(&mut seen, now) == now
    });
    pair.kill(AIR);
    rustix::process::kill_process(pid(keeper), Signal::CONT).unwrap();
    pair.start_again(AIR);
    for mut client in &clients {
        client.write_all(b"?").unwrap();
    }
    for (number, mut client) in clients.iter().enumerate() {
        // It may have had the reply before, and must not have another.
        let mut told = [0; 10 + ANSWER.len()];
        client
            .read_exact(&mut told)
            .expect("the reply and the answer");
        assert_eq!(told[..4], [5, 0, 0, 1], "client {number}: {told:?}");
        assert_eq!(&told[10..], ANSWER, "client {number}: {told:?}");
    }
}

#[test]
fn starts_that_fail_at_the_store_leave_the_connections_to_the_next() {
    const KEEP: Duration = Duration::from_secs(6);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let keep = format!("keep_connections = \"{}s\"\n", KEEP.as_secs());
    let mut pair = Pair::start(listener.local_addr().unwrap(), &keep);
    let mut client = client(pair.entry);
    client.write_all(b"before").unwrap();
    let mut server = listener.accept().unwrap().0;
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    server.read_exact(&mut [0; 6]).unwrap();
    pair.kill(AIR);
    let set_mode = |mode| {
        for path in segments(&pair, "air") {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    // A start does not go on with a file that its group may write.
    set_mode(0o660);
    let file = pair.directory.path().join("air.toml");
    let clock = Clock::start();
    while clock.now() < Instant::START + KEEP * 3 / 2 {
        let output = run(&format!("gateway -c {}", file.display()));
        assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    }
    set_mode(0o600);
    pair.start_again(AIR);
    client.write_all(b"after").unwrap();
    let mut after = [0; 5];
    server.read_exact(&mut after).expect("no reset");
    assert_eq!(&after, b"after");
}
