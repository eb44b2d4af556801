//! Two gateways whose link carries shorter packets than their interfaces allow, and says so to nobody: the
//! path MTU is found, also when the path shrinks under a transfer, and every file is whole.
//!
//! Method: two network namespaces, `fulmar emulate --tun` at 10 mbit and 5 ms with interfaces of 1500
//! octets or more on a link that drops longer packets silently, security on. A sender and a receiver with
//! the kernel's own TCP compare octets. `/status` and the log give the path MTU. Needs root.

use crate::processes::{octets, run};
use crate::rig::{Namespace, Rig, ready};
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const PORT: u16 = 7000;
const STATUS: u16 = 7001;
/// The longest time of a transfer, by far; it turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(90);

fn connect(namespace: &Namespace, port: u16) -> TcpStream {
    let stream = namespace.within(|| TcpStream::connect(("127.0.0.1", port)).expect("it listens"));
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    stream.set_write_timeout(Some(PATIENCE)).expect("not zero");
    stream
}

/// The page of the ground gateway's HTTP server.
fn page(rig: &Rig, path: &str) -> String {
    let mut stream = connect(&rig.ground, STATUS);
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").expect("it listens");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("text");
    page
}

fn path_mtu(rig: &Rig) -> u64 {
    let page = page(rig, "/status");
    let (_, body) = page.split_once("\r\n\r\n").expect("a page");
    let status: serde_json::Value = serde_json::from_str(body).expect("JSON");
    status["peers"][0]["path_mtu_bytes"]
        .as_u64()
        .expect("octets")
}

/// Sends `len` octets from ground to air over a link with these properties between gateways whose peers
/// have these further lines; returns the path MTU that was found in the end.
fn transfer(link: &str, carrier: IpAddr, peer: &str, len: usize) -> u64 {
    let rig = Rig::start(&format!("--rate 10mbit --delay 5ms {link}"));
    let place = tempfile::tempdir().expect("a directory");
    let place = place.path();
    let public = ["ground", "air"].map(|name| {
        let output = run(&format!("keygen {}/{name}.key", place.display()));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    });
    // One socket for both families.
    let head = |name: &str, other: &str, key: &str| {
        let place = place.display();
        format!(
            "[gateway]\nname = \"{name}\"\nlisten = \":4914\"\nstate_dir = \"{place}\"\n\
             [security]\nkind = \"noise\"\nprivate_key_file = \"{place}/{name}.key\"\n\
             [[peer]]\nname = \"{other}\"\npublic_key = \"{key}\"\nrate = \"10mbit\"\n{peer}"
        )
    };
    let air =
        head("air", "ground", &public[0]) + &format!("[egress]\nallow = [\"127.0.0.1:{PORT}\"]\n");
    let carrier = SocketAddr::new(carrier, 4914);
    let ground = head("ground", "air", &public[1])
        + &format!(
            "address = \"{carrier}\"\n[class.bulk]\nmode = \"reliable\"\n\
             [[forward]]\nlisten = \"127.0.0.1:{PORT}\"\nto = \"127.0.0.1:{PORT}\"\nclass = \"bulk\"\n\
             [metrics]\nlisten = \"127.0.0.1:{STATUS}\"\n"
        );
    let _air = rig.air.gateway(place, "air", &air);
    let _ground = rig.ground.gateway(place, "ground", &ground);
    let listener = rig
        .air
        .within(|| TcpListener::bind(("127.0.0.1", PORT)).expect("a port"));
    let mut client = connect(&rig.ground, PORT);
    let sent = octets(1, len);
    let received = thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let (mut stream, _) = listener.accept().expect("the gateway connects");
            stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
            let mut all = Vec::new();
            stream.read_to_end(&mut all).expect("the whole file");
            all
        });
        client.write_all(&sent).expect("it is taken");
        client.shutdown(Shutdown::Write).expect("it is open");
        receiving.join().expect("received")
    });
    assert_eq!(received.len(), sent.len(), "over {link}");
    assert!(received == sent, "other octets over {link}");
    let found = path_mtu(&rig);
    let line = format!("fulmar_path_mtu_bytes{{peer=\"air\"}} {found}.0\n");
    let metrics = page(&rig, "/metrics");
    assert!(metrics.contains(&line), "{line}: {metrics}");
    found
}

#[test]
fn a_path_of_1400_octets_is_found_out_over_both_families() {
    if !ready(&[]) {
        return;
    }
    for carrier in Rig::AIR {
        let found = transfer("--drop-above 1400", carrier, "", 3_000_000);
        assert!((1_396..=1_400).contains(&found), "{carrier}: {found}");
    }
}

#[test]
fn a_path_of_9000_octets_is_found_out_when_it_is_allowed() {
    if !ready(&[]) {
        return;
    }
    let larger = "mtu = \"9000B\"\n";
    let found = transfer("--mtu 9000", Rig::AIR[0], larger, 3_000_000);
    assert_eq!(found, 9_000);
    // The interface itself refuses longer packets.
    let found = transfer("--mtu 1500", Rig::AIR[0], larger, 3_000_000);
    assert_eq!(found, 1_500);
}

#[test]
fn a_path_that_shrinks_under_a_transfer_is_followed() {
    if !ready(&[]) {
        return;
    }
    // 8 MB take 7 s.
    let link = "--drop-above 1300 --drop-above-after 3s";
    let found = transfer(link, Rig::AIR[0], "", 8_000_000);
    assert!((1_296..=1_300).contains(&found), "{found}");
}

#[test]
fn a_path_that_shrinks_under_a_lossy_transfer_is_followed_and_loss_alone_shrinks_nothing() {
    if !ready(&[]) {
        return;
    }
    for carrier in Rig::AIR {
        let link = "--drop-above 1300 --drop-above-after 4s --loss 20%";
        let found = transfer(link, carrier, "", 8_000_000);
        assert!((1_296..=1_300).contains(&found), "{found}");
        let found = transfer("--loss 40%", carrier, "", 8_000_000);
        assert_eq!(found, 1_500);
    }
}

#[test]
fn a_fixed_size_is_taken_as_it_is() {
    if !ready(&[]) {
        return;
    }
    let fixed = "mtu = \"1400B\"\nmtu_discovery = false\n";
    let found = transfer("--drop-above 1400", Rig::AIR[1], fixed, 1_000_000);
    assert_eq!(found, 1_400);
}
