//! SOCKS5 and UDP through two gateways and a lossy link, with `curl` as the ordinary client.

use crate::gateways;
use crate::gateways::{LOSSY, Pair, nobody, server};
use crate::processes::{octets, until};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

const SOCKS: &str = "[[socks]]\nlisten = \"127.0.0.1:0\"\n";
/// The time between two tries of a datagram that may have been lost.
const RETRY: Duration = Duration::from_millis(300);

fn curl(arguments: &str) -> Output {
    Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "60"])
        .args(arguments.split_whitespace())
        .output()
        .expect("curl is installed (scripts/setup)")
}

/// A web server for one page.
fn web(page: Vec<u8>) -> SocketAddr {
    server(move |mut stream| {
        let mut request = Vec::new();
        let mut octet = [0; 1];
        while !request.ends_with(b"\r\n\r\n") && stream.read(&mut octet).unwrap_or(0) == 1 {
            request.push(octet[0]);
        }
        let head = format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
        // A client may break off.
        let _ = stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(&page));
    })
}

/// A UDP server that answers each message with itself.
fn udp_echo() -> SocketAddr {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).expect("a port");
    let local = socket.local_addr().expect("it is bound");
    thread::spawn(move || {
        let mut buffer = vec![0; 65_536];
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&buffer[..len], from);
        }
    });
    local
}

#[test]
fn curl_fetches_a_page_by_name_and_by_address() {
    let page = octets(1, 300_000);
    let web = web(page.clone());
    let pair = Pair::start(LOSSY, SOCKS);
    let proxy = pair.entries[0];
    for host in ["localhost", "127.0.0.1"] {
        let url = format!("http://{host}:{}/", web.port());
        let output = curl(&format!("--socks5-hostname {proxy} {url}"));
        assert!(output.status.success(), "{output:?}");
        assert!(output.stdout == page, "altered or incomplete");
    }
}

#[test]
fn a_proxy_says_why_a_connection_failed() {
    let pair = Pair::start(LOSSY, SOCKS);
    let reply_to = |host: [u8; 4], port: u16| {
        let mut stream = gateways::client(pair.entries[0]);
        stream.write_all(&[5, 1, 0]).unwrap();
        stream.read_exact(&mut [0; 2]).unwrap();
        let [a, b, c, d] = host;
        let [high, low] = port.to_be_bytes();
        stream
            .write_all(&[5, 1, 0, 1, a, b, c, d, high, low])
            .unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).unwrap();
        reply[1]
    };
    assert_eq!(
        reply_to([127, 0, 0, 1], nobody().port()),
        5,
        "connection refused"
    );
    assert_eq!(reply_to([192, 0, 2, 1], 80), 2, "not allowed by ruleset");
}

#[test]
fn a_proxy_with_a_login_takes_no_other() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("password");
    std::fs::write(&file, "open sesame\n").unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let login = format!("user = \"ali\"\npassword_file = \"{}\"\n", file.display());
    let web = web(b"cave".to_vec());
    let pair = Pair::start(LOSSY, &format!("{SOCKS}{login}"));
    let fetch = |user: &str| {
        let output = Command::new("curl")
            .args(["--silent", "--max-time", "60", "--proxy-user", user])
            .args(["--socks5-hostname", &pair.entries[0].to_string()])
            .arg(format!("http://127.0.0.1:{}/", web.port()))
            .output()
            .expect("curl is installed (scripts/setup)");
        (output.status.success(), output.stdout)
    };
    assert_eq!(fetch("ali:open sesame"), (true, b"cave".to_vec()));
    assert!(!fetch("ali:open barley").0);
    assert!(!fetch("kasim:open sesame").0);
}

/// Sends `message` until an answer comes: the link may lose either.
fn ask(socket: &UdpSocket, to: SocketAddr, message: &[u8]) -> Vec<u8> {
    socket.set_read_timeout(Some(RETRY)).expect("a socket");
    let mut buffer = vec![0; 65_536];
    let mut answer = None;
    until("an answer", || {
        socket.send_to(message, to).expect("it is taken");
        while let Ok((len, _)) = socket.recv_from(&mut buffer) {
            // Answers to earlier messages may still be under way.
            if buffer[..len].ends_with(&message[message.len() - 8..]) {
                answer = Some(buffer[..len].to_vec());
                return true;
            }
        }
        false
    });
    answer.expect("it came")
}

#[test]
fn udp_messages_come_back_whole_in_every_mode() {
    let to = udp_echo();
    let modes = [
        "datagram",
        "unreliable",
        "quasi-reliable",
        "nack",
        "nack-mack",
        "near-reliable",
        "reliable",
    ];
    let entry = |mode: &str| {
        format!(
            "[[forward]]\nprotocol = \"udp\"\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\n\
             class = \"{mode}\"\n[class.{mode}]\nmode = \"{mode}\"\n"
        )
    };
    let entries = modes.map(entry).concat();
    let pair = Pair::start(LOSSY, &entries);
    for (mode, entry) in modes.iter().zip(&pair.entries) {
        for (n, len) in [16, 1_000, 4_000].into_iter().enumerate() {
            let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
            let message = octets(n as u64 + 1, len);
            assert!(
                ask(&socket, *entry, &message) == message,
                "{mode}, {len} octets"
            );
        }
    }
}

#[test]
fn a_socks_association_carries_messages_both_ways() {
    let to = udp_echo();
    let pair = Pair::start(LOSSY, SOCKS);
    let mut control: TcpStream = gateways::client(pair.entries[0]);
    control.write_all(&[5, 1, 0]).unwrap();
    control.read_exact(&mut [0; 2]).unwrap();
    control.write_all(&[5, 3, 0, 1, 0, 0, 0, 0, 0, 0]).unwrap();
    let mut reply = [0; 10];
    control.read_exact(&mut reply).unwrap();
    assert_eq!(reply[..4], [5, 0, 0, 1]);
    let relay: SocketAddr = (
        [reply[4], reply[5], reply[6], reply[7]],
        u16::from_be_bytes([reply[8], reply[9]]),
    )
        .into();
    let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    let mut message = vec![0, 0, 0, 1, 127, 0, 0, 1];
    message.extend(to.port().to_be_bytes());
    message.extend(octets(9, 900));
    assert!(
        ask(&socket, relay, &message) == message,
        "header and octets come back"
    );
    drop(control);
    until("the association to end", || pair.status()["flows"] == 0);
}

#[test]
fn associations_count_among_the_flows() {
    let to = udp_echo();
    let pair = Pair::start(LOSSY, &format!("{SOCKS}[limits]\nflows = 8\n"));
    let associate = || -> std::io::Result<(TcpStream, SocketAddr)> {
        let mut control: TcpStream = gateways::client(pair.entries[0]);
        control.write_all(&[5, 1, 0])?;
        control.read_exact(&mut [0; 2])?;
        control.write_all(&[5, 3, 0, 1, 0, 0, 0, 0, 0, 0])?;
        let mut reply = [0; 10];
        control.read_exact(&mut reply)?;
        assert_eq!(reply[..4], [5, 0, 0, 1]);
        let ip = [reply[4], reply[5], reply[6], reply[7]];
        let port = u16::from_be_bytes([reply[8], reply[9]]);
        Ok((control, (ip, port).into()))
    };
    // Each has one destination that answers: an association that has sent nothing would give way.
    let speaking = || {
        let (control, relay) = associate().expect("there is room");
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let mut message = vec![0, 0, 0, 1, 127, 0, 0, 1];
        message.extend(to.port().to_be_bytes());
        message.extend(octets(9, 100));
        assert!(ask(&socket, relay, &message) == message);
        control
    };
    let (first, _second) = (speaking(), speaking());
    associate().expect_err("one client has half of the places");
    drop(first);
    until("room for another", || associate().is_ok());
}
