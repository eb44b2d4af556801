//! Two gateways with keys of their own over a link, air and ground, and a file that crosses them.
//!
//! A sender and a receiver with the kernel's own TCP compare octets: the sender is a client of the gateway on the ground, and the
//! receiver is where the gateway in the air connects to.

use crate::processes::{Running, octets, run};
use crate::rig::Namespace;
use rustix::process::Signal;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

/// The port of the ground's entry, and of the receiver in the air.
const PORT: u16 = 7000;
/// The port of the HTTP server of either gateway.
const STATUS: u16 = 7001;
/// The longest time of a transfer, by far; it turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(90);

/// The two gateways.
pub(crate) struct Stations<'a> {
    air: &'a Namespace,
    ground: &'a Namespace,
    running: [Running; 2],
}

fn connect(namespace: &Namespace, port: u16) -> TcpStream {
    let stream = namespace.within(|| TcpStream::connect(("127.0.0.1", port)).expect("it listens"));
    stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
    stream.set_write_timeout(Some(PATIENCE)).expect("not zero");
    stream
}

impl<'a> Stations<'a> {
    /// Starts both, whose peers have these further lines. The ground calls `address`, if there is one.
    pub(crate) fn start(
        place: &Path,
        [air, ground]: [&'a Namespace; 2],
        peer: &str,
        address: Option<SocketAddr>,
    ) -> Self {
        Self::start_bonded(place, [air, ground], (peer, ""), address)
    }

    /// Does the same, with `paths`, further paths that the ground names.
    pub(crate) fn start_bonded(
        place: &Path,
        [air, ground]: [&'a Namespace; 2],
        (peer, paths): (&str, &str),
        address: Option<SocketAddr>,
    ) -> Self {
        let public = ["ground", "air"].map(|name| {
            let output = run(&format!("keygen {}/{name}.key", place.display()));
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        });
        // One socket for both families.
        let head = |name: &str, other: &str, key: &str| {
            let place = place.display();
            format!(
                "[gateway]\nname = \"{name}\"\nlisten = \":4914\"\nstate_dir = \"{place}\"\n\
                 [metrics]\nlisten = \"127.0.0.1:{STATUS}\"\n\
                 [security]\nkind = \"noise\"\nprivate_key_file = \"{place}/{name}.key\"\n\
                 [[peer]]\nname = \"{other}\"\npublic_key = \"{key}\"\nrate = \"10mbit\"\n{peer}"
            )
        };
        let of_air = head("air", "ground", &public[0])
            + &format!("[egress]\nallow = [\"127.0.0.1:{PORT}\"]\n");
        let address = address.map(|address| format!("address = \"{address}\"\n"));
        let of_ground = head("ground", "air", &public[1])
            + &address.unwrap_or_default()
            + paths
            + &format!(
                "[class.bulk]\nmode = \"reliable\"\n\
                 [[forward]]\nlisten = \"127.0.0.1:{PORT}\"\nto = \"127.0.0.1:{PORT}\"\nclass = \"bulk\"\n"
            );
        let running = [
            air.gateway(place, "air", &of_air),
            ground.gateway(place, "ground", &of_ground),
        ];
        Self {
            air,
            ground,
            running,
        }
    }

    /// Sends so many octets from ground to air, which must be the same there.
    #[track_caller]
    pub(crate) fn transfer(&self, len: usize) {
        self.transfer_and(len, len, || ());
    }

    /// Does the same, and does `work` once so many octets have arrived.
    #[track_caller]
    pub(crate) fn transfer_and(&self, len: usize, arrived: usize, work: impl FnOnce() + Send) {
        let listener =
            (self.air).within(|| TcpListener::bind(("127.0.0.1", PORT)).expect("a port"));
        let mut client = connect(self.ground, PORT);
        let sent = octets(1, len);
        let received = thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let (mut stream, _) = listener.accept().expect("the gateway connects");
                stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
                let mut all = vec![0; arrived];
                stream.read_exact(&mut all).expect("the file's beginning");
                thread::scope(|scope| {
                    let working = scope.spawn(work);
                    stream.read_to_end(&mut all).expect("the whole file");
                    working.join().expect("the work succeeds");
                });
                all
            });
            client.write_all(&sent).expect("it is taken");
            client.shutdown(Shutdown::Write).expect("it is open");
            receiving.join().expect("received")
        });
        assert_eq!(received.len(), sent.len());
        assert!(received == sent, "other octets");
    }

    /// A page of the HTTP server of the gateway on the ground.
    pub(crate) fn page(&self, path: &str) -> String {
        Self::page_of(self.ground, path)
    }

    fn page_of(station: &Namespace, path: &str) -> String {
        let mut stream = connect(station, STATUS);
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").expect("it listens");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("text");
        page
    }

    fn status_of(station: &Namespace) -> serde_json::Value {
        let page = Self::page_of(station, "/status");
        let (_, body) = page.split_once("\r\n\r\n").expect("a page");
        serde_json::from_str(body).expect("JSON")
    }

    /// The peer of the gateway on the ground, as its `/status` tells.
    pub(crate) fn peer(&self) -> serde_json::Value {
        Self::status_of(self.ground)["peers"][0].take()
    }

    /// The number of times that the gateway in the air saw the one on the ground at another address.
    pub(crate) fn moves_in_the_air(&self) -> u64 {
        let status = Self::status_of(self.air);
        status["carrier"]["moves"].as_u64().expect("a count")
    }

    /// Ends both, and returns the log of the gateway on the ground.
    pub(crate) fn end(mut self) -> String {
        let [air, ground] = &mut self.running;
        air.signal(Signal::TERM);
        ground.signal(Signal::TERM);
        air.end();
        ground.end().1
    }
}
