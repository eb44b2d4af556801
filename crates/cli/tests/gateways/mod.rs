//! Two gateways with an emulated lossy link between them, as processes on the loopback.

use crate::processes::{Running, free_port, fulmar, run, said};
use fulmar_net::session::{SecretKey, read_secret_key};
use rustix::process::Signal;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The longest exchange here, by far; it turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// The flags of the link between the gateways.
pub(crate) const LOSSY: &str = "--rate 50mbit --delay 5ms --queue 200 --loss 20%";
/// The rate that the gateways are told.
const TOLD: &str = "rate = \"50mbit\"\n";

/// A pair of gateways: clients enter at `air`, servers are reached from `ground`.
pub(crate) struct Pair {
    /// It is removed when it is dropped.
    directory: tempfile::TempDir,
    pub(crate) ground: Running,
    pub(crate) air: Running,
    /// The link; `None` where the test carries the datagrams itself.
    link: Option<Running>,
    /// The addresses where clients enter, in the order of the configuration.
    pub(crate) entries: Vec<SocketAddr>,
    /// The address of the air gateway's carrier.
    pub(crate) carrier: SocketAddr,
    /// The address of the air gateway's HTTP server.
    pub(crate) metrics: SocketAddr,
    /// The address of the ground gateway's HTTP server.
    pub(crate) ground_metrics: SocketAddr,
    /// The ground gateway's public key.
    pub(crate) ground_key: String,
    air_file: PathBuf,
    air_head: String,
}

fn keygen(directory: &std::path::Path, name: &str) -> String {
    let path = directory.join(name);
    let output = run(&format!("keygen {}", path.display()));
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout)
        .expect("a key is text")
        .trim()
        .to_owned()
}

fn started(running: &mut Running) -> serde_json::Value {
    let record = running.record();
    assert_eq!(record["kind"], "start", "{record}");
    record
}

fn gateway(file: &std::path::Path, wrapper: &[&str]) -> Running {
    let arguments = format!("gateway --json --log-format text -c {}", file.display());
    Running::start(wrapped(wrapper, fulmar(&arguments)))
}

/// `command` as the last arguments of another, which becomes it.
fn wrapped(wrapper: &[&str], command: Command) -> Command {
    let Some((program, arguments)) = wrapper.split_first() else {
        return command;
    };
    let mut outer = Command::new(program);
    outer.args(arguments).arg(command.get_program());
    outer.args(command.get_args());
    outer
}

impl Pair {
    /// Starts two gateways over a link with these properties. `entries` are tables of the air gateway's
    /// configuration, for ports on the loopback that the system chooses.
    pub(crate) fn start(link: &str, entries: &str) -> Self {
        Self::start_wrapped(link, entries, &[])
    }

    /// As [`Pair::start`], with the air gateway's command wrapped into another.
    pub(crate) fn start_wrapped(link: &str, entries: &str, wrapper: &[&str]) -> Self {
        Self::begin(Self::emulated(link), (entries, "", [TOLD; 2]), wrapper)
    }

    /// As [`Pair::start`], with tables for the ground gateway's configuration, too.
    pub(crate) fn start_both(link: &str, air: &str, ground: &str) -> Self {
        Self::begin(Self::emulated(link), (air, ground, [TOLD; 2]), &[])
    }

    /// As [`Pair::start`], but with these lines about the rate in the configurations of `air` and `ground`.
    pub(crate) fn start_told(link: &str, entries: &str, rates: [&str; 2]) -> Self {
        Self::begin(Self::emulated(link), (entries, "", rates), &[])
    }

    fn emulated(link: &str) -> impl FnOnce(SocketAddr) -> (SocketAddr, Option<Running>) {
        move |to| {
            let emulate = format!("emulate --listen 127.0.0.1:0 --to {to} {link}");
            let mut link = Running::start(fulmar(&emulate));
            let at = link.address().parse().expect("an address");
            (at, Some(link))
        }
    }

    /// Starts two gateways over a link of the test's own: `link` is told the ground gateway's address, and
    /// returns the one at which the air gateway finds it.
    pub(crate) fn start_over(
        link: impl FnOnce(SocketAddr) -> (SocketAddr, Option<Running>),
        entries: &str,
    ) -> Self {
        Self::begin(link, (entries, "", [TOLD; 2]), &[])
    }

    fn begin(
        link: impl FnOnce(SocketAddr) -> (SocketAddr, Option<Running>),
        (entries, on_ground, [air_rate, ground_rate]): (&str, &str, [&str; 2]),
        wrapper: &[&str],
    ) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path();
        let (ground_key, air_key) = (keygen(place, "ground.key"), keygen(place, "air.key"));
        let head = |name: &str, peer: &str, address: &str, key: &str, rate: &str| {
            let mut text = String::new();
            write!(
                text,
                "[gateway]\nname = \"{name}\"\nlisten = \"127.0.0.1:0\"\nstate_dir = \"{0}\"\n\
                 [security]\nkind = \"noise\"\nprivate_key_file = \"{0}/{name}.key\"\n\
                 [[peer]]\nname = \"{peer}\"\n{address}public_key = \"{key}\"\n{rate}",
                place.display()
            )
            .expect("it is memory");
            text
        };
        let ground_file = place.join("ground.toml");
        let allow = "[egress]\nallow = [\"127.0.0.0/8:1-65535\", \"[::1]:1-65535\", \
                     \"localhost:1-65535\"]\n";
        let metrics = "[metrics]\nlisten = \"127.0.0.1:0\"\n";
        let parsed = |value: &serde_json::Value| -> SocketAddr {
            let text = value.as_str().expect("an address");
            text.parse().expect("an address")
        };
        let ground_text =
            head("ground", "air", "", &air_key, ground_rate) + allow + metrics + on_ground;
        fs::write(&ground_file, ground_text).expect("room");
        let mut ground = gateway(&ground_file, &[]);
        let record = started(&mut ground);
        let ground_metrics = parsed(&record["metrics"]);
        let (at, link) = link(parsed(&record["listening"]));
        let address = format!("address = \"{at}\"\n");
        let air_head = head("air", "ground", &address, &ground_key, air_rate) + metrics;
        let air_file = place.join("air.toml");
        fs::write(&air_file, format!("{air_head}{entries}")).expect("room");
        let mut air = gateway(&air_file, wrapper);
        let record = started(&mut air);
        let list = record["entries"].as_array().expect("a list");
        Self {
            entries: list.iter().map(parsed).collect(),
            carrier: parsed(&record["listening"]),
            metrics: parsed(&record["metrics"]),
            ground_metrics,
            ground_key,
            directory,
            ground,
            air,
            link,
            air_file,
            air_head,
        }
    }

    /// Kills the air gateway, and lets `look` see what it left before it is started again.
    pub(crate) fn restart_air(&mut self, look: impl FnOnce()) {
        self.air.signal(Signal::KILL);
        drop(self.air.end());
        look();
        self.air = gateway(&self.air_file, &[]);
        started(&mut self.air);
    }

    /// Lets the air gateway come to its end, and starts it again.
    pub(crate) fn start_air_again(&mut self) {
        self.air.signal(Signal::TERM);
        drop(self.air.end());
        self.air = gateway(&self.air_file, &[]);
        started(&mut self.air);
    }

    /// Ends the gateways and the link as Ctrl-C does.
    pub(crate) fn interrupt(mut self) {
        let link = self.link.as_mut().into_iter();
        for running in [&mut self.air, &mut self.ground].into_iter().chain(link) {
            running.signal(Signal::INT);
            assert_eq!(running.code(), Some(130));
        }
    }

    /// Resident memory in kB and open descriptors of the ground and the air gateway.
    pub(crate) fn taken(&self) -> [(u64, usize); 2] {
        [&self.ground, &self.air].map(|gateway| (gateway.resident_kb(), gateway.descriptors()))
    }

    /// Writes other entries into the air gateway's configuration.
    pub(crate) fn rewrite(&self, entries: &str) {
        fs::write(&self.air_file, format!("{}{entries}", self.air_head)).expect("room");
    }

    /// The air gateway's secret key.
    pub(crate) fn air_secret(&self) -> SecretKey {
        read_secret_key(&self.directory.path().join("air.key")).expect("it was written")
    }

    /// A page of the air gateway's HTTP server.
    pub(crate) fn page(&self, path: &str) -> String {
        page_at(self.metrics, path)
    }

    /// `/status` of the air gateway.
    pub(crate) fn status(&self) -> serde_json::Value {
        status_at(self.metrics)
    }
}

/// A page of a gateway's HTTP server.
fn page_at(server: SocketAddr, path: &str) -> String {
    let mut stream = client(server);
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").expect("it listens");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("it is text");
    page
}

/// `/status` of the gateway whose HTTP server this is.
pub(crate) fn status_at(server: SocketAddr) -> serde_json::Value {
    let page = page_at(server, "/status");
    let body = page.split("\r\n\r\n").nth(1).unwrap_or_default();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error} in {page}"))
}

/// A connection that fails rather than hangs.
pub(crate) fn client(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).expect("somebody listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

/// A server that handles each connection with `serve`, on a thread of its own.
pub(crate) fn server(serve: impl Fn(TcpStream) + Send + Clone + 'static) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    // When the standard library's 128 are waiting, the kernel answers with SYN cookies, and a connection whose last
    // ACK is dropped then exists at its client alone.
    rustix::net::listen(&listener, 4_096).expect("it is bound");
    let local = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
            thread::spawn(move || serve(stream));
        }
    });
    local
}

/// A port on the loopback where nobody listens.
pub(crate) fn nobody() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port()).into()
}

/// Sends back what comes, and ends when the client does.
pub(crate) fn echo(mut stream: TcpStream) {
    let mut back = stream.try_clone().expect("a descriptor");
    // A client may break off.
    let _ = std::io::copy(&mut stream, &mut back);
}

/// Writes `sent` while reading, ends its own direction, and returns everything that came back.
pub(crate) fn exchange(mut stream: TcpStream, sent: Vec<u8>) -> Vec<u8> {
    let mut writing = stream.try_clone().expect("a descriptor");
    let writer: JoinHandle<()> = thread::spawn(move || {
        writing.write_all(&sent).expect("it is taken");
        writing
            .shutdown(std::net::Shutdown::Write)
            .expect("it is open");
    });
    let mut back = Vec::new();
    stream.read_to_end(&mut back).expect("it ends properly");
    writer.join().expect("the writer");
    back
}
