//! Clients that know nothing of a proxy, behind a gateway that diverts forwarded traffic (TPROXY).
//!
//! ```text
//!   client ── veth ── air gateway ══ lossy link ══ ground gateway ── veth ── server
//! ```
//!
//! Method: four network namespaces, the kernel's own TCP and UDP at both ends, and the rules that
//! `--print-rules` prints. Needs root; without it the test says that it was skipped.

use crate::gateways;
use crate::gateways::exchange;
use crate::processes;
use crate::processes::{Running, octets, until};
use crate::rig::{Host, Namespace, Rig, ready};
use std::fs;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::Duration;

const RETRY: Duration = Duration::from_millis(300);

fn gateway(namespace: &Namespace, file: &Path) -> Running {
    let binary = assert_cmd::cargo::cargo_bin!("fulmar");
    let line = format!(
        "{} gateway --json --log-format text -c {}",
        binary.display(),
        file.display()
    );
    let mut running = namespace.start(&line);
    assert_eq!(running.record()["kind"], "start");
    running
}

fn serve(host: &Host) {
    for ip in [IpAddr::from(host.v4), IpAddr::from(host.v6)] {
        let (listener, socket) = host.namespace.within(|| {
            let listener = TcpListener::bind((ip, 7)).expect("a port");
            (listener, UdpSocket::bind((ip, 7)).expect("a port"))
        });
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || gateways::echo(stream));
            }
        });
        thread::spawn(move || {
            let mut buffer = vec![0; 65_536];
            while let Ok((len, from)) = socket.recv_from(&mut buffer) {
                // The link loses some anyway.
                let _ = socket.send_to(&buffer[..len], from);
            }
        });
    }
}

#[test]
fn tcp_and_udp_of_both_families_are_diverted_and_come_back_from_where_they_went() {
    if !ready(&["nft", "sh"]) {
        return;
    }
    let rig = Rig::start("--rate 20mbit --delay 5ms --loss 20%");
    let (server, client) = (rig.host_behind_ground(), rig.host_behind_air());
    serve(&server);
    let place = tempfile::tempdir().unwrap();
    let head = |name: &str, peer: &str| {
        format!(
            "[gateway]\nname = \"{name}\"\nstate_dir = \"{}\"\n[security]\nkind = \"none\"\n\
             [[peer]]\nname = \"{peer}\"\nrate = \"20mbit\"\n",
            place.path().display()
        )
    };
    let ground_file = place.path().join("ground.toml");
    let egress = "[egress]\nallow = [\"10.78.0.0/16:7\", \"[fd78::/16]:7\"]\n";
    fs::write(&ground_file, head("ground", "air") + egress).unwrap();
    let air_file = place.path().join("air.toml");
    let entries = "address = \"10.77.0.1:4914\"\n\
                   [[transparent]]\nprotocol = \"tcp\"\nlisten = \":4915\"\n\
                   [[transparent]]\nprotocol = \"udp\"\nlisten = \":4915\"\nclass = \"quick\"\n\
                   [class.quick]\nmode = \"unreliable\"\n";
    fs::write(&air_file, head("air", "ground") + entries).unwrap();
    let _ground = gateway(&rig.ground, &ground_file);
    let _air = gateway(&rig.air, &air_file);
    let script = place.path().join("rules.sh");
    let rules = processes::run(&format!("gateway --print-rules -c {}", air_file.display()));
    fs::write(&script, rules.stdout).unwrap();
    // Twice, as after an edit: the second run replaces the rules of the first.
    for _ in 0..2 {
        rig.air.must(&format!("sh {}", script.display()));
    }

    for ip in [IpAddr::from(server.v4), IpAddr::from(server.v6)] {
        let to = SocketAddr::new(ip, 7);
        let stream = client
            .namespace
            .within(|| TcpStream::connect(to).expect("it is diverted"));
        // To the client, the far end of its connection is the server.
        assert_eq!(stream.peer_addr().unwrap(), to);
        let sent = octets(1, 200_000);
        assert!(
            exchange(stream, sent.clone()) == sent,
            "{to}: altered or incomplete"
        );

        let socket = client.namespace.within(|| {
            let any: IpAddr = if ip.is_ipv4() {
                client.v4.into()
            } else {
                client.v6.into()
            };
            UdpSocket::bind((any, 0)).expect("a port")
        });
        // A connected socket hears nobody but the server's address.
        socket.connect(to).unwrap();
        socket.set_read_timeout(Some(RETRY)).unwrap();
        let message = octets(2, 900);
        let mut buffer = vec![0; 2_000];
        until(&format!("an answer from {to}"), || {
            socket.send(&message).expect("it is taken");
            socket
                .recv(&mut buffer)
                .is_ok_and(|len| buffer[..len] == message)
        });
    }
    // Had nothing been diverted, the clients' own addresses would have crossed the link.
    let counted = rig.air.must("nft list chain inet fulmar divert");
    assert_eq!(counted.matches("tproxy").count(), 4, "{counted}");
}
