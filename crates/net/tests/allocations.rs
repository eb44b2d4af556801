//! What two gateways allocate while octets flow: a program of its own, since it counts with an
//! allocator of its own.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use allocation_counter::AllocationInfo;
use fulmar_net::clock::Clock;
use fulmar_net::gateway::{Control, Gateway, config::GatewayConfig};
use fulmar_net::session::{Entropy, PresetKey, write_preset_key};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// Of what passes, no datagram has more.
const DATAGRAM_OCTETS_MAX: u64 = 1_472;

fn free_port() -> SocketAddr {
    let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
    socket.local_addr().unwrap()
}

fn config(
    directory: &Path,
    own: (&str, SocketAddr),
    peer: (&str, SocketAddr),
    rest: &str,
) -> GatewayConfig {
    let key = directory.join("key");
    let text = format!(
        "[gateway]\nname = \"{}\"\nlisten = \"{}\"\nstate_dir = \"{}\"\n\
         [security]\nkind = \"preset\"\npreset_key_file = \"{}\"\n\
         [[peer]]\nname = \"{}\"\naddress = \"{}\"\nrate = \"2gbit\"\n\
         [class.bulk]\nmode = \"reliable\"\nwindow = \"4MiB\"\n{rest}",
        own.0,
        own.1,
        directory.join(own.0).display(),
        key.display(),
        peer.0,
        peer.1,
    );
    GatewayConfig::read("test", &text).unwrap()
}

/// Runs a gateway on a thread, which ends with what it allocated once it is told to stop.
fn start(
    config: GatewayConfig,
    tell: Sender<(Control, Vec<SocketAddr>)>,
) -> thread::JoinHandle<AllocationInfo> {
    thread::spawn(move || {
        let gateway = Gateway::start(Clock::start(), config).unwrap();
        tell.send((gateway.control().unwrap(), gateway.entries().to_vec()))
            .unwrap();
        allocation_counter::measure(|| {
            gateway.run().unwrap();
        })
    })
}

/// Allocations of the sending and of the receiving gateway while `octets` pass.
fn allocations(octets: u64) -> [u64; 2] {
    let directory = tempfile::tempdir().unwrap();
    let key = PresetKey::generate(&mut Entropy::from_seed([1; 32]));
    write_preset_key(&directory.path().join("key"), &key).unwrap();
    let server = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let to = server.local_addr().unwrap();
    let sink = thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let got = io::copy(&mut stream, &mut io::sink()).unwrap();
        stream.write_all(b".").unwrap();
        got
    });
    let (here, there) = (free_port(), free_port());
    let forward =
        format!("[[forward]]\nlisten = \"127.0.0.1:0\"\nto = \"{to}\"\nclass = \"bulk\"\n");
    let egress = format!("[egress]\nallow = [\"{to}\"]\n");
    let ends = [
        config(directory.path(), ("ground", here), ("air", there), &forward),
        config(directory.path(), ("air", there), ("ground", here), &egress),
    ];
    let gateways = ends.map(|config| {
        let (tell, told) = channel();
        let thread = start(config, tell);
        (thread, told.recv().unwrap())
    });
    let entry = gateways[0].1.1[0];
    let mut client = TcpStream::connect(entry).unwrap();
    io::copy(&mut io::repeat(7).take(octets), &mut client).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    client.read_exact(&mut [0]).unwrap();
    assert_eq!(sink.join().unwrap(), octets);
    gateways.map(|(thread, (control, _))| {
        control.stop();
        thread.join().unwrap().count_total
    })
}

/// Buffers grow, and nodes of trees come and go with every burst, but no datagram needs memory of its
/// own: the second 40 MB cost far fewer allocations than they have datagrams.
#[test]
fn gateways_allocate_nothing_for_a_datagram() {
    let (less, more) = (20_000_000, 60_000_000);
    let [first, second] = [less, more].map(allocations);
    let datagrams = (more - less) / DATAGRAM_OCTETS_MAX;
    for (end, (first, second)) in ["sending", "receiving"]
        .iter()
        .zip(first.into_iter().zip(second))
    {
        let further = second.saturating_sub(first);
        assert!(
            further * 4 < datagrams,
            "{end}: {further} allocations for {datagrams} datagrams"
        );
    }
}
