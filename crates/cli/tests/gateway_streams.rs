//! TCP through two gateways and a link that loses a fifth of its packets: octets, ends, refusals,
//! resets, and a configuration read again on the way.
//!
//! Method: `fulmar gateway` twice with `fulmar emulate` between them; clients and servers are
//! threads of the test with the kernel's own TCP. What arrives is compared octet by octet.

use crate::gateways::{LOSSY, Pair, client, echo, exchange, nobody, server};
use crate::processes;
use crate::processes::{octets, until};
use rustix::process::Signal;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::thread;

fn forward(to: SocketAddr) -> String {
    format!("[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\n")
}

#[test]
fn two_megabytes_each_way_come_out_as_they_went_in() {
    let to = server(echo);
    let pair = Pair::start(LOSSY, &forward(to));
    let sent = octets(1, 2_000_000);
    let back = exchange(client(pair.entries[0]), sent.clone());
    assert_eq!(back.len(), sent.len());
    assert!(back == sent, "altered on the way");
}

#[test]
fn custody_takes_what_the_destination_does_not_want_yet_and_delivers_it() {
    // Reads nothing before the client has ended its direction and gone.
    let (told, heard) = std::sync::mpsc::channel();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
    let to = server(move |mut stream| {
        wait.lock().unwrap().recv().unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        told.send(all).unwrap();
    });
    let entries = format!(
        "{}class = \"bulk\"\n[class.bulk]\nmode = \"near-reliable\"\nwindow = \"64KiB\"\n",
        forward(to)
    );
    let pair = Pair::start(LOSSY, &entries);
    let sent = octets(2, 8_000_000);
    let mut stream = client(pair.entries[0]);
    stream.write_all(&sent).expect("custody takes it");
    stream.shutdown(Shutdown::Write).unwrap();
    go.send(()).unwrap();
    assert!(heard.recv().unwrap() == sent, "altered or incomplete");
    drop(stream);
    until("the flow to end", || pair.status()["flows"] == 0);
}

#[test]
fn a_client_that_has_ended_its_direction_still_hears_the_answer() {
    let to = server(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&all.len().to_be_bytes()).unwrap();
    });
    let pair = Pair::start(LOSSY, &forward(to));
    let back = exchange(client(pair.entries[0]), octets(3, 100_000));
    assert_eq!(back, 100_000_usize.to_be_bytes());
}

#[test]
fn a_server_that_speaks_first_and_ends_first_is_heard_whole() {
    let text = octets(4, 300_000);
    let said = text.clone();
    let to = server(move |mut stream| stream.write_all(&said).unwrap());
    let pair = Pair::start(LOSSY, &forward(to));
    let mut stream = client(pair.entries[0]);
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).unwrap();
    assert!(heard == text, "altered or incomplete");
}

#[test]
fn a_destination_that_refuses_is_a_reset_to_the_client() {
    let pair = Pair::start(LOSSY, &forward(nobody()));
    let mut stream = client(pair.entries[0]);
    let told = stream.read(&mut [0; 1]).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_destination_that_is_not_allowed_is_a_reset_to_the_client_and_the_logs_say_where_to_allow_it() {
    let outside: SocketAddr = "192.0.2.1:80".parse().unwrap();
    let mut pair = Pair::start(LOSSY, &forward(outside));
    let mut stream = client(pair.entries[0]);
    let told = stream.read(&mut [0; 1]).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::ConnectionReset);
    // The logs say where it would be allowed: the gateway that connects knows, and the other one names it.
    pair.ground.signal(Signal::TERM);
    pair.air.signal(Signal::TERM);
    let (_, ground) = pair.ground.end();
    let (_, air) = pair.air.end();
    let is_told = |log: &str, words: &str| {
        let mut lines = log.lines();
        lines.any(|line| line.contains("not_allowed") && line.contains(words))
    };
    assert!(
        is_told(&ground, "to allow of [egress] of `ground`"),
        "{ground}"
    );
    assert!(is_told(&air, "the log of `ground` says"), "{air}");
}

#[test]
fn a_reset_of_either_side_reaches_the_other() {
    let (told, heard) = std::sync::mpsc::channel();
    let to = server(move |mut stream| {
        let mut first = [0; 1];
        stream.read_exact(&mut first).unwrap();
        if first == *b"r" {
            rustix::net::sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO))
                .unwrap();
            return;
        }
        stream.write_all(&first).unwrap();
        told.send(stream.read(&mut first).unwrap_err().kind())
            .unwrap();
    });
    let pair = Pair::start(LOSSY, &forward(to));
    let mut by_server = client(pair.entries[0]);
    by_server.write_all(b"r").unwrap();
    let end = by_server.read(&mut [0; 1]).unwrap_err();
    assert_eq!(end.kind(), ErrorKind::ConnectionReset);

    let mut by_client = client(pair.entries[0]);
    by_client.write_all(b"c").unwrap();
    by_client.read_exact(&mut [0; 1]).unwrap();
    rustix::net::sockopt::set_socket_linger(&by_client, Some(std::time::Duration::ZERO)).unwrap();
    drop(by_client);
    assert_eq!(heard.recv().unwrap(), ErrorKind::ConnectionReset);
}

/// A counter of the flows of the only class at the air gateway.
fn counted(pair: &Pair, counter: &str) -> u64 {
    let status = pair.status();
    match &status["classes"][0][counter] {
        serde_json::Value::Object(by_reason) => by_reason
            .values()
            .filter_map(serde_json::Value::as_u64)
            .sum(),
        count => count.as_u64().unwrap_or(0),
    }
}

#[test]
fn a_reset_after_the_servers_own_end_ends_the_flow() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Arc::new(std::sync::Mutex::new(wait));
    let to = server(move |stream| {
        stream.shutdown(Shutdown::Write).unwrap();
        // Everything was delivered then, and the gateway has nothing to write. The unread octets make the
        // close a reset.
        wait.lock().unwrap().recv().unwrap();
    });
    let pair = Pair::start(LOSSY, &forward(to));
    let mut client = client(pair.entries[0]);
    client.write_all(&[7; 1_000]).unwrap();
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0, "the server's end");
    until("delivery", || counted(&pair, "delivered_bytes") == 1_000);
    go.send(()).unwrap();
    until("the flow to end", || pair.status()["flows"] == 0);
    assert_eq!(counted(&pair, "flows_reset"), 1);
    until("the client to hear of it", || {
        client.take_error().unwrap().is_some()
    });
}

#[test]
fn a_reset_after_the_clients_own_end_ends_the_flow() {
    let (told, heard) = std::sync::mpsc::channel();
    let to = server(move |mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        // Nothing to say: only the reset can end this.
        told.send(all.len()).unwrap();
        while stream.take_error().unwrap().is_none() {
            processes::moment();
        }
        told.send(0).unwrap();
    });
    let pair = Pair::start(LOSSY, &forward(to));
    let mut client = client(pair.entries[0]);
    client.write_all(&[7; 1_000]).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(heard.recv().unwrap(), 1_000);
    rustix::net::sockopt::set_socket_linger(&client, Some(std::time::Duration::ZERO)).unwrap();
    drop(client);
    until("the flow to end", || pair.status()["flows"] == 0);
    assert_eq!(counted(&pair, "flows_reset"), 1);
    assert_eq!(heard.recv().unwrap(), 0, "the server hears of it");
}

#[test]
fn what_a_broken_host_never_took_is_not_said_to_be_delivered_and_holds_nobody_up() {
    let answer = octets(8, 2_000_000);
    let said = answer.clone();
    let (told, heard) = std::sync::mpsc::channel();
    let to = server(move |mut stream| {
        rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 4096).unwrap();
        stream.write_all(&said).unwrap();
        // Reads nothing; the octets that its kernel accepted are all that was delivered.
        let mut taken = 0;
        loop {
            for _ in 0..50 {
                processes::moment();
            }
            let unread = rustix::io::ioctl_fionread(&stream).unwrap();
            if unread == taken && unread > 0 {
                break;
            }
            taken = unread;
        }
        // The unread octets make the close a reset.
        drop(stream);
        told.send(taken).unwrap();
    });
    let class = "class = \"bulk\"\n[class.bulk]\nmode = \"near-reliable\"\nkeep = \"8MiB\"\n";
    let pair = Pair::start(LOSSY, &format!("{}{class}", forward(to)));
    let mut stream = client(pair.entries[0]);
    rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 65_536).unwrap();
    // Far more than all buffers on the way hold: it can be written only if nobody keeps it.
    stream.write_all(&octets(9, 32_000_000)).unwrap();
    let mut back = vec![0; answer.len()];
    stream.read_exact(&mut back).unwrap();
    assert!(back == answer, "custody brings what the server had said");
    let end = stream.read(&mut [0; 1]).unwrap_err();
    assert_eq!(end.kind(), ErrorKind::ConnectionReset);
    until("the flow to end", || pair.status()["flows"] == 0);
    let status = pair.status();
    let class = status["classes"]
        .as_array()
        .and_then(|all| all.iter().find(|class| class["name"] == "bulk"))
        .unwrap();
    let taken = heard.recv().unwrap();
    let delivered = class["delivered_bytes"].as_u64().unwrap();
    assert!(
        delivered > 0 && delivered <= taken,
        "{delivered} were said to be delivered, {taken} were"
    );
}

#[test]
fn fifty_flows_at_once_keep_their_octets_apart() {
    let to = server(echo);
    let pair = Pair::start(LOSSY, &forward(to));
    let entry = pair.entries[0];
    let flows: Vec<_> = (0..50)
        .map(|n| {
            thread::spawn(move || {
                let sent = octets(100 + n, 20_000);
                exchange(client(entry), sent.clone()) == sent
            })
        })
        .collect();
    for (n, flow) in flows.into_iter().enumerate() {
        assert!(flow.join().unwrap(), "flow {n} was altered");
    }
    until("all flows to end", || pair.status()["flows"] == 0);
}

#[test]
fn a_slow_reader_holds_up_nobody_else() {
    let to = server(echo);
    let slow = server(|mut stream| {
        let mut first = [0; 1];
        stream.read_exact(&mut first).unwrap();
        // Reads no more, and keeps the connection until the test ends.
        thread::park();
    });
    let pair = Pair::start(LOSSY, &(forward(to) + &forward(slow)));
    let mut stuck = client(pair.entries[1]);
    let writer = thread::spawn(move || {
        // Blocks when everything on the way is full, and fails when the gateways end.
        let _ = stuck.write_all(&octets(5, 64_000_000));
    });
    let sent = octets(6, 500_000);
    assert!(exchange(client(pair.entries[0]), sent.clone()) == sent);
    drop(pair);
    writer.join().unwrap();
}

#[test]
fn a_configuration_read_again_changes_entries_and_drops_no_flow() {
    let to = server(echo);
    let other = server(|mut stream| stream.write_all(b"other").unwrap());
    let first = nobody();
    let second = nobody();
    let entry = |port: SocketAddr, to: SocketAddr| {
        format!("[[forward]]\nlisten = \"{port}\"\nto = \"{to}\"\n")
    };
    let pair = Pair::start(LOSSY, &entry(first, to));
    let mut standing = client(first);
    standing.write_all(b"before").unwrap();
    let mut heard = [0; 6];
    standing.read_exact(&mut heard).unwrap();
    pair.rewrite(&entry(second, other));
    pair.air.signal(Signal::HUP);
    until("the new entry", || {
        std::net::TcpStream::connect(second).is_ok()
    });
    let mut answer = Vec::new();
    client(second).read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"other");
    assert!(
        std::net::TcpStream::connect(first).is_err(),
        "the old entry is closed"
    );
    standing.write_all(b"after.").unwrap();
    standing.read_exact(&mut heard).unwrap();
    assert_eq!(
        &heard, b"after.",
        "the flow of the closed entry still stands"
    );
    // A mistake changes nothing.
    pair.rewrite("[[forward]]\nlisten = 7\n");
    pair.air.signal(Signal::HUP);
    standing.write_all(b"still.").unwrap();
    standing.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"still.");
}

#[test]
fn a_gateway_that_is_stopped_resets_what_is_left_and_says_how_many() {
    let to = server(echo);
    let mut pair = Pair::start(LOSSY, &forward(to));
    let mut standing = client(pair.entries[0]);
    standing.write_all(b"x").unwrap();
    standing.read_exact(&mut [0; 1]).unwrap();
    pair.air.signal(Signal::TERM);
    let (status, said) = pair.air.end();
    assert_eq!(status.code(), Some(143), "{said}");
    assert!(said.contains("flows_cut=1"), "{said}");
    let told = standing.read(&mut [0; 1]).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::ConnectionReset);
    pair.ground.signal(Signal::INT);
    let (status, said) = pair.ground.end();
    assert_eq!(status.code(), Some(130), "{said}");
}

#[test]
fn metrics_are_open_metrics_and_count_the_flows() {
    let to = server(echo);
    let pair = Pair::start(LOSSY, &forward(to));
    assert_eq!(
        exchange(client(pair.entries[0]), b"hello".to_vec()),
        b"hello"
    );
    until("the flow to end", || pair.status()["flows"] == 0);
    let page = pair.page("/metrics");
    assert!(page.contains("application/openmetrics-text"), "{page}");
    assert!(
        page.contains("fulmar_flows_finished_total{class=\"default\"} 1"),
        "{page}"
    );
    assert!(
        page.contains("fulmar_packets_sent_total{peer=\"ground\",class=\"default\",kind="),
        "{page}"
    );
    assert!(page.trim_end().ends_with("# EOF"), "{page}");
    assert!(
        pair.page("/nothing").starts_with("HTTP/1.0 404"),
        "an unknown path"
    );
}

#[test]
fn clients_of_the_metrics_that_dawdle_hold_up_no_other() {
    let pair = Pair::start(LOSSY, &forward(nobody()));
    let silent = client(pair.metrics);
    let mut half = client(pair.metrics);
    half.write_all(b"GET /metrics HT").unwrap();
    // Asks for far more than the kernels keep, and reads nothing.
    let mut greedy = client(pair.metrics);
    let greed = thread::spawn(move || {
        for _ in 0..20_000 {
            if greedy.write_all(b"GET /status HTTP/1.1\r\n\r\n").is_err() {
                break;
            }
        }
        greedy
    });
    let greedy = greed.join().unwrap();
    for _ in 0..3 {
        assert!(pair.page("/metrics").starts_with("HTTP/1.0 200"));
    }
    drop((silent, half, greedy));
}
