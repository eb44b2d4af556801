//! Real programs on both sides of two gateways: their places, and what each of them must achieve.
//!
//! ```text
//!   client ── veth ── ground gateway ══ lossy link ══ air gateway ── veth ── server
//! ```

mod proxy;

use self::proxy::tunnel;
use crate::processes::{Running, octets, read, run, until};
use crate::rig::{Host, Namespace, Rig};
use fulmar_net::clock::Clock;
use fulmar_net::wait::wait;
use fulmar_proto::units::Instant;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread;
use std::time::Duration;

/// The programs that the tests need besides the rig's.
pub(crate) const PROGRAMS: &[&str] = &[
    "nft",
    "curl",
    "nginx",
    "iperf3",
    "sshd",
    "scp",
    "ssh-keygen",
    "dnsmasq",
    "dig",
];

const WEB: u16 = 8080;
const IPERF: u16 = 5201;
const SSH: u16 = 2222;
const DNS: u16 = 5353;
const RTP: u16 = 5004;
/// Forwards to the server's addresses listen this much higher: transparent replies come from the
/// server's own ports, which a forward at the same number would hold.
const V4_OFFSET: u16 = 20_000;
const V6_OFFSET: u16 = 10_000;
const PARALLEL: usize = 200;
const SMALL_BYTES: usize = 5_000;
/// The least that iperf3 must carry in 3 s: a tenth of what the worst link carries.
const IPERF_BYTES_MIN: u64 = 200_000;
const RTP_MESSAGES: usize = 300;
const RTP_BYTES: usize = 172;
const RTP_EVERY: Duration = Duration::from_millis(3);
/// The longest time that a client may take; it turns a hang into a failure.
const PATIENCE_SECONDS: &str = "150";

/// The way on which a client reaches the gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Forward,
    Socks,
    Transparent,
}

impl Way {
    pub(crate) const ALL: [Self; 3] = [Self::Forward, Self::Socks, Self::Transparent];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Socks => "SOCKS5",
            Self::Transparent => "TPROXY",
        }
    }
}

/// The whole site, running.
#[allow(
    dead_code,
    reason = "servers and gateways are stopped when they are dropped"
)]
pub(crate) struct Site {
    servers: Vec<Running>,
    gateways: Vec<Running>,
    client: Host,
    server: Host,
    // Last: their namespaces hang on the rig's.
    rig: Rig,
    place: tempfile::TempDir,
    loss_percent: u32,
    file_bytes: usize,
    streams: u32,
}

fn key(place: &Path, name: &str) -> String {
    let output = run(&format!("keygen {}", place.join(name).display()));
    String::from_utf8(output.stdout)
        .expect("a key is text")
        .trim()
        .to_owned()
}

fn authority(ip: IpAddr, port: u16) -> String {
    SocketAddr::new(ip, port).to_string()
}

impl Site {
    /// Two gateways that meet over IPv4 or IPv6, and all servers.
    pub(crate) fn start(loss_percent: u32, carrier_v6: bool, file_bytes: usize) -> Self {
        let loss = format!("--rate 10mbit --delay 5ms --loss {loss_percent}%");
        let rig = Rig::start(&loss);
        let (client, server) = (rig.host_behind_ground(), rig.host_behind_air());
        let place = tempfile::tempdir().expect("a directory");
        let mut site = Self {
            servers: Vec::new(),
            gateways: Vec::new(),
            client,
            server,
            rig,
            place,
            loss_percent,
            file_bytes,
            streams: 0,
        };
        site.serve();
        site.connect(Rig::AIR[usize::from(carrier_v6)]);
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn serve(&mut self) {
        let place = self.place.path().display().to_string();
        let root = self.path("www");
        fs::create_dir(&root).expect("room");
        fs::write(root.join("file"), octets(1, self.file_bytes)).expect("room");
        for index in 1..=PARALLEL {
            let small = octets(index as u64 + 100, SMALL_BYTES);
            fs::write(root.join(format!("s{index}")), small).expect("room");
        }
        let nginx = format!(
            "daemon off; master_process off; user root; pid {place}/nginx.pid; error_log stderr;\n\
             events {{ worker_connections 1024; }}\n\
             http {{ access_log off; server {{ listen {WEB}; listen [::]:{WEB}; root {place}/www; }} }}\n"
        );
        fs::write(self.path("nginx.conf"), nginx).expect("room");
        for name in ["host-key", "user-key"] {
            let made = std::process::Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(self.path(name))
                .status();
            assert!(made.expect("ssh-keygen is installed").success());
        }
        let public = |name: &str| fs::read_to_string(self.path(name)).expect("it was made");
        fs::write(self.path("authorized"), public("user-key.pub")).expect("room");
        let known = format!("field {}", public("host-key.pub"));
        fs::write(self.path("known"), known).expect("room");
        // sshd gives up its rights in there.
        fs::create_dir_all("/run/sshd").expect("root may");
        let sshd = format!(
            "Port {SSH}\nHostKey {place}/host-key\nAuthorizedKeysFile {place}/authorized\n\
             StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n\
             Subsystem sftp internal-sftp\n"
        );
        fs::write(self.path("sshd.conf"), sshd).expect("room");
        let lines = [
            format!("nginx -p {place} -c {place}/nginx.conf"),
            format!("iperf3 -s -p {IPERF}"),
            format!("/usr/sbin/sshd -D -e -f {place}/sshd.conf"),
            format!(
                "dnsmasq -k -p {DNS} --no-resolv --no-hosts --conf-file=/dev/null -u root \
                 --pid-file= --host-record=ship.test,192.0.2.7,2001:db8::7"
            ),
        ];
        let host = &self.server.namespace;
        self.servers = lines.iter().map(|line| host.start(line)).collect();
        for port in [WEB, IPERF, SSH] {
            host.listening("tcp", port);
        }
        host.listening("udp", DNS);
    }

    fn connect(&mut self, air: IpAddr) {
        let place = self.place.path();
        let (ground_key, air_key) = (key(place, "ground.key"), key(place, "air.key"));
        let head = |name: &str, peer: &str, address: &str, key: &str| {
            let place = place.display();
            format!(
                "[gateway]\nname = \"{name}\"\nstate_dir = \"{place}\"\n\
                 [security]\nkind = \"noise\"\nprivate_key_file = \"{place}/{name}.key\"\n\
                 [[peer]]\nname = \"{peer}\"\n{address}public_key = \"{key}\"\nrate = \"10mbit\"\n"
            )
        };
        let allow = "[egress]\nallow = [\"10.79.0.0/24:1-65535\", \"[fd79::/64]:1-65535\"]\n";
        fs::write(
            place.join("air.toml"),
            head("air", "ground", "", &ground_key) + allow,
        )
        .expect("room");
        let address = format!("address = \"{}\"\n", authority(air, 4914));
        let mut ground = head("ground", "air", &address, &air_key)
            + "[class.bulk]\nmode = \"reliable\"\n[class.meter]\nmode = \"reliable\"\nwindow = \"64KiB\"\n\
               [class.media]\nmode = \"unreliable\"\n\
               [[socks]]\nlisten = \":1080\"\nclass = \"bulk\"\n\
               [[transparent]]\nprotocol = \"tcp\"\nlisten = \":4915\"\nclass = \"bulk\"\n\
               class_by_port = { \"5201\" = \"meter\" }\n\
               [[transparent]]\nprotocol = \"udp\"\nlisten = \":4915\"\nclass = \"bulk\"\n\
               class_by_port = { \"5004\" = \"media\" }\n";
        for (ip, offset) in [
            (self.server.v4.into(), V4_OFFSET),
            (self.server.v6.into(), V6_OFFSET),
        ] {
            for (port, protocol, class) in [
                (WEB, "tcp", "bulk"),
                (IPERF, "tcp", "meter"),
                (SSH, "tcp", "bulk"),
                (DNS, "udp", "bulk"),
                (RTP, "udp", "media"),
            ] {
                let to = authority(ip, port);
                let listen = port + offset;
                writeln!(
                    ground,
                    "[[forward]]\nprotocol = \"{protocol}\"\nlisten = \":{listen}\"\n\
                     to = \"{to}\"\nclass = \"{class}\""
                )
                .expect("it is memory");
            }
        }
        let file = place.join("ground.toml");
        fs::write(&file, ground).expect("room");
        let rules = run(&format!("gateway --print-rules -c {}", file.display()));
        fs::write(place.join("rules.sh"), rules.stdout).expect("room");
        let binary = assert_cmd::cargo::cargo_bin!("fulmar").display();
        let start = |namespace: &Namespace, name: &str| {
            let file = place.join(name);
            let line = format!("{binary} gateway --json -c {}", file.display());
            let mut gateway = namespace.start(&line);
            assert_eq!(gateway.record()["kind"], "start");
            gateway
        };
        self.gateways = vec![
            start(&self.rig.air, "air.toml"),
            start(&self.rig.ground, "ground.toml"),
        ];
        let script = place.join("rules.sh");
        self.rig.ground.must(&format!("sh {}", script.display()));
    }

    /// The address to which a client of `way` connects for the server's `port`.
    fn target(&self, way: Way, v6: bool, port: u16) -> (IpAddr, u16) {
        let server: IpAddr = if v6 {
            self.server.v6.into()
        } else {
            self.server.v4.into()
        };
        match way {
            Way::Socks | Way::Transparent => (server, port),
            Way::Forward if v6 => (entry(true), port + V6_OFFSET),
            Way::Forward => (entry(false), port + V4_OFFSET),
        }
    }

    fn client<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Output {
        let mut command = self.client.namespace.command("timeout");
        command.arg(PATIENCE_SECONDS).args(arguments);
        command.output().expect("setpriv is installed")
    }

    #[track_caller]
    fn must<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> String {
        let output = self.client(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {text}{said}", output.status);
        text
    }

    fn curl(&self, way: Way, v6: bool, arguments: &[&str]) {
        let proxy = format!("socks5h://{}", authority(entry(v6), 1080));
        let mut all = vec!["curl", "-sS", "--fail"];
        if way == Way::Socks {
            all.extend(["-x", &proxy]);
        }
        all.extend(arguments);
        self.must(all);
    }

    /// Fetches one large file from a web server.
    pub(crate) fn web(&self, way: Way, v6: bool) -> Duration {
        let (ip, port) = self.target(way, v6, WEB);
        let out = self.path("got");
        let (url, out_text) = (
            format!("http://{}/file", authority(ip, port)),
            out.display().to_string(),
        );
        let clock = Clock::start();
        self.curl(way, v6, &["-o", &out_text, &url]);
        let took = since(clock);
        assert!(read(&out) == octets(1, self.file_bytes), "curl: altered");
        took
    }

    /// Fetches 200 small files at once.
    pub(crate) fn parallel(&self, way: Way, v6: bool) -> Duration {
        let (ip, port) = self.target(way, v6, WEB);
        let directory = self.path("many");
        fs::create_dir_all(&directory).expect("room");
        let url = format!("http://{}/s[1-{PARALLEL}]", authority(ip, port));
        let out = format!("{}/s#1", directory.display());
        let at_once = PARALLEL.to_string();
        let clock = Clock::start();
        let flags = ["-Z", "--parallel-immediate", "--parallel-max", &at_once];
        self.curl(way, v6, &[&flags[..], &["-o", &out, &url]].concat());
        let took = since(clock);
        for index in 1..=PARALLEL {
            let got = read(&directory.join(format!("s{index}")));
            assert!(
                got == octets(index as u64 + 100, SMALL_BYTES),
                "s{index}: altered"
            );
        }
        fs::remove_dir_all(directory).expect("ours");
        took
    }

    /// Copies a file to the server by scp, which speaks SFTP.
    pub(crate) fn ssh(&self, way: Way, v6: bool) -> Duration {
        let (mut ip, mut port) = self.target(way, v6, SSH);
        if way == Way::Socks {
            // ssh speaks no SOCKS itself.
            let to = SocketAddr::new(ip, port);
            (ip, port) = (
                Ipv4Addr::LOCALHOST.into(),
                tunnel(&self.client.namespace, (entry(v6), 1080), to),
            );
        }
        let place = self.place.path().display();
        let sent = octets(2, self.file_bytes / 4);
        fs::write(self.path("out"), &sent).expect("room");
        let copy = self.path("copied");
        let mut line: Vec<String> = ["scp", "-q", "-F", "none", "-B", "-i"]
            .map(str::to_owned)
            .into();
        line.push(format!("{place}/user-key"));
        let mut option = |text: String| line.extend(["-o".to_owned(), text]);
        option(format!("UserKnownHostsFile={place}/known"));
        option("HostKeyAlias=field".to_owned());
        option(format!("Port={port}"));
        line.push(format!("{place}/out"));
        let host = if ip.is_ipv6() {
            format!("[{ip}]")
        } else {
            ip.to_string()
        };
        line.push(format!("root@{host}:{}", copy.display()));
        let clock = Clock::start();
        self.must(line);
        let took = since(clock);
        assert!(read(&copy) == sent, "scp: altered");
        fs::remove_file(copy).expect("ours");
        took
    }

    /// Runs iperf3; its server counts what it received.
    pub(crate) fn iperf(&self, way: Way, v6: bool) -> Duration {
        let (ip, port) = self.target(way, v6, IPERF);
        let line = format!("iperf3 -J -c {ip} -p {port} -t 3");
        let clock = Clock::start();
        let text = self.must(line.split(' '));
        let took = since(clock);
        let report: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let received = report["end"]["sum_received"]["bytes"].as_u64();
        assert!(received >= Some(IPERF_BYTES_MIN), "iperf3: {received:?}");
        took
    }

    /// Resolves names over UDP.
    pub(crate) fn dns(&self, way: Way, v6: bool) -> Duration {
        let (ip, port) = self.target(way, v6, DNS);
        let clock = Clock::start();
        for (kind, expected) in [("A", "192.0.2.7"), ("AAAA", "2001:db8::7")] {
            let line = format!("dig +short +time=5 +tries=3 @{ip} -p {port} ship.test {kind}");
            assert_eq!(self.must(line.split(' ')).trim(), expected);
        }
        since(clock)
    }

    /// Sends a stream of numbered messages. Returns how many of [`RTP_MESSAGES`] arrived, each once and
    /// unaltered.
    pub(crate) fn rtp(&mut self, way: Way, v6: bool) -> usize {
        self.streams += 1;
        let stream = self.streams;
        let (ip, port) = self.target(way, v6, RTP);
        let server: IpAddr = if v6 {
            self.server.v6.into()
        } else {
            self.server.v4.into()
        };
        let bind = |ip| UdpSocket::bind((ip, RTP)).expect("a port");
        let sink = self.server.namespace.within(|| bind(server));
        sink.set_read_timeout(Some(Duration::from_secs(1)))
            .expect("a socket");
        let any: IpAddr = if v6 {
            self.client.v6.into()
        } else {
            self.client.v4.into()
        };
        let source = self
            .client
            .namespace
            .within(|| UdpSocket::bind((any, 0)).expect("a port"));
        let message = |index: usize| {
            let seed = (u64::from(stream) << 32) | index as u64;
            let mut message = u64::to_be_bytes(seed).to_vec();
            message.extend(octets(seed, RTP_BYTES - 8));
            message
        };
        let heard = thread::scope(|scope| {
            let listening = scope.spawn(|| {
                let mut counts = BTreeMap::<Vec<u8>, u32>::new();
                let mut buffer = vec![0; 2_000];
                // It ends when nothing comes for seconds, which is longer than any pause of the machine; the first may take longer.
                let mut patience = 10;
                while patience > 0 {
                    match sink.recv(&mut buffer) {
                        Ok(len) => {
                            *counts.entry(buffer[..len].to_vec()).or_default() += 1;
                            patience = 3;
                        }
                        Err(_) => patience -= 1,
                    }
                }
                counts
            });
            for index in 0..RTP_MESSAGES {
                source.send_to(&message(index), (ip, port)).expect("room");
                wait(&[], Some(RTP_EVERY), &mut Vec::new()).expect("poll works");
            }
            listening.join().expect("the listener")
        });
        let sent: BTreeMap<_, _> = (0..RTP_MESSAGES).map(|i| (message(i), 1)).collect();
        for (message, count) in &heard {
            assert_eq!(
                sent.get(message),
                Some(count),
                "altered, foreign or repeated"
            );
        }
        let through = RTP_MESSAGES as f64 * (1.0 - f64::from(self.loss_percent) / 100.0);
        // Five standard deviations, and ten messages before the flow's first round trip.
        let spread = (through * f64::from(self.loss_percent) / 100.0).sqrt();
        let least = through - 5.0 * spread - 10.0;
        assert!(
            heard.len() as f64 >= least,
            "{} of {RTP_MESSAGES}",
            heard.len()
        );
        heard.len()
    }

    /// Waits until the link between the gateways is up.
    pub(crate) fn warm_up(&self) {
        until("the first answer", || {
            let (ip, port) = self.target(Way::Forward, false, DNS);
            let line = format!("dig +short +time=1 +tries=1 @{ip} -p {port} ship.test A");
            self.client(line.split(' ')).status.success()
        });
    }
}

fn since(clock: Clock) -> Duration {
    clock.now().saturating_since(Instant::START)
}

/// The ground gateway's address on the client's network.
fn entry(v6: bool) -> IpAddr {
    let text = if v6 { "fd78::1" } else { "10.78.0.1" };
    text.parse().expect("an address")
}
