//! Two gateways behind NATs that meet through a third: directly where the NATs let them, through it where they do not.
//!
//! Method: gateways on threads in network namespaces. Each of the two is behind a router that masquerades what leaves and drops what nobody
//! asked for, as a router at home does; the third gateway is on the network of the routers' outsides. Needs root, ip and nft.
//!
//! ```text
//!   air ── veth ── nat ──┐                ┌── nat ── veth ── ground
//!   10.0.0.2   10.0.0.1  └── hub (bridge) ┘  10.0.0.1   10.0.0.2
//!              203.0.113.2    203.0.113.1    203.0.113.3
//! ```

use fulmar_net::clock::Clock;
use fulmar_net::gateway::{Asker, Control, Gateway, Reload, config::GatewayConfig};
use fulmar_net::session::{Entropy, SecretKey, write_secret_key};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

const OCTETS: usize = 1_000_000;
const HUB: &str = "203.0.113.1";
/// The port of the ground's entry, of the receiver in the air, and of each page.
const PORT: u16 = 7_000;
const STATUS: u16 = 7_001;
/// The longest time of a transfer, by far, and of a wait; it turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(90);
const LOOKS_APART: Duration = Duration::from_millis(100);
const LOOKS_MAX: u32 = 900;

fn ready() -> bool {
    let has_nft = Command::new("nft").arg("--version").output().is_ok();
    if rustix::process::geteuid().is_root() && has_nft {
        return true;
    }
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!is_ci, "needs root and nft, and CI=true forbids to skip");
    eprintln!("skipped: needs root and nft");
    false
}

#[track_caller]
fn must(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.expect("it is installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A network namespace, which is removed with this.
struct Namespace(String);

impl Namespace {
    fn new(what: &str, test: &str) -> Self {
        let name = format!("fulmar-{}-{test}-{what}", std::process::id());
        must("ip", &["netns", "add", &name]);
        let namespace = Self(name);
        namespace.run("ip link set lo up");
        namespace
    }

    /// Runs a command line inside, separated by blanks.
    #[track_caller]
    fn run(&self, line: &str) -> String {
        let mut arguments = vec!["netns", "exec", &self.0];
        arguments.extend(line.split_whitespace());
        must("ip", &arguments)
    }

    /// Moves this thread inside. Sockets that it opens stay there.
    fn enter(&self) {
        let handle = File::open(Path::new("/run/netns").join(&self.0)).expect("it is there");
        move_into_link_name_space(handle.as_fd(), Some(LinkNameSpaceType::Network))
            .expect("root may enter");
    }

    fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let inside = scope.spawn(|| {
                self.enter();
                work()
            });
            inside.join().expect("the work inside succeeds")
        })
    }

    fn connect(&self, port: u16) -> TcpStream {
        let stream = self.within(|| TcpStream::connect(("127.0.0.1", port)).expect("it listens"));
        stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
        stream.set_write_timeout(Some(PATIENCE)).expect("not zero");
        stream
    }

    fn status(&self) -> Value {
        let mut stream = self.connect(STATUS);
        write!(stream, "GET /status HTTP/1.0\r\n\r\n").expect("it reads");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("text");
        let (_, body) = page.split_once("\r\n\r\n").expect("a page");
        serde_json::from_str(body).expect("JSON")
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Panicking in a drop would hide the test's own failure.
        drop(
            Command::new("ip")
                .args(["netns", "delete", &self.0])
                .output(),
        );
    }
}

/// A gateway on a thread inside a namespace.
struct Running {
    thread: Option<thread::JoinHandle<()>>,
    control: Control,
}

impl Running {
    fn start(namespace: &Namespace, text: &str) -> Self {
        let config = GatewayConfig::read("test", text).expect("sound");
        let handle = Namespace(namespace.0.clone());
        let (tell, told) = std::sync::mpsc::channel();
        let thread = thread::spawn(move || {
            handle.enter();
            // The namespace is the test's to remove.
            core::mem::forget(handle);
            let gateway = Gateway::start(Clock::start(), config).expect("it starts");
            tell.send(gateway.control().expect("a handle"))
                .expect("the test waits");
            gateway.run().expect("it runs");
        });
        let control = told.recv().expect("it starts");
        Self {
            thread: Some(thread),
            control,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.control.stop();
        drop(self.thread.take().map(thread::JoinHandle::join));
    }
}

/// The ports that a router gives what leaves.
#[derive(Clone, Copy, Debug)]
enum Ports {
    /// As inside, whatever the destination.
    Kept,
    /// At random for each destination.
    Random,
}

/// Has a router give ports in this way.
fn give_ports(router: &Namespace, ports: Ports) {
    let how = match ports {
        Ports::Kept => "masquerade",
        Ports::Random => "masquerade random,fully-random",
    };
    router.run("nft flush chain ip nat leaving");
    router.run(&format!("nft add rule ip nat leaving oifname wan {how}"));
}

/// Has a router forget the ports that it gave: the kernel forgets what it translated to an address that goes.
fn forget(router: &Namespace) {
    let address = router.run("ip -4 -o address show dev wan");
    let address = address.split_whitespace().nth(3).expect("an address");
    router.run(&format!("ip address delete {address} dev wan"));
    router.run(&format!("ip address add {address} dev wan"));
}

fn octets(len: usize) -> Vec<u8> {
    let mut rng = fulmar_proto::rng::Rng::from_seed(44);
    let mut octets = vec![0; len];
    rng.fill(&mut octets);
    octets
}

/// Waits until it is so.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..LOOKS_MAX {
        if is_so() {
            return;
        }
        thread::park_timeout(LOOKS_APART);
    }
    panic!("{what}");
}

/// The networks, and the three gateways.
struct Lab {
    // In this order: gateways end before their networks go.
    running: Vec<Running>,
    air: Namespace,
    ground: Namespace,
    routers: [Namespace; 2],
    hub: Namespace,
    /// The files of the hub, the air and the ground, and the folder of their keys.
    texts: [String; 3],
    _place: tempfile::TempDir,
}

impl Lab {
    /// Routers that give such ports, and a hub that helps the air and the ground so far.
    fn start(test: &str, ports: [Ports; 2], helps: [&str; 2]) -> Self {
        let hub = Namespace::new("hub", test);
        hub.run("ip link add outside type bridge");
        hub.run(&format!("ip address add {HUB}/24 dev outside"));
        hub.run("ip link set outside up");
        let routers = ["nat0", "nat1"].map(|what| Namespace::new(what, test));
        let [air, ground] = ["air", "ground"].map(|what| Namespace::new(what, test));
        for (place, (router, end)) in routers.iter().zip([&air, &ground]).enumerate() {
            let name = &router.0;
            hub.run(&format!(
                "ip link add wan{place} type veth peer name wan netns {name}"
            ));
            hub.run(&format!("ip link set wan{place} master outside up"));
            router.run(&format!(
                "ip address add 203.0.113.{}/24 dev wan",
                place + 2
            ));
            router.run("ip link set wan up");
            let name = &end.0;
            router.run(&format!(
                "ip link add lan type veth peer name eth0 netns {name}"
            ));
            router.run("ip address add 10.0.0.1/24 dev lan");
            router.run("ip link set lan up");
            end.run("ip address add 10.0.0.2/24 dev eth0");
            end.run("ip link set eth0 up");
            end.run("ip route add default via 10.0.0.1");
            router.run("sysctl -q -w net.ipv4.ip_forward=1");
            router.run("nft add table ip nat");
            router.run("nft add chain ip nat leaving { type nat hook postrouting priority 100 ; }");
            give_ports(router, ports[place]);
            // What nobody inside asked for is for the router itself, and gone: otherwise it would hold the port for whoever sent it.
            router.run("nft add chain ip nat arriving { type filter hook input priority 0 ; }");
            router.run("nft add rule ip nat arriving iifname wan drop");
        }
        let place = tempfile::tempdir().expect("a directory");
        let texts = texts(place.path(), helps);
        let running = [&hub, &air, &ground].into_iter().zip(&texts);
        let running = running.map(|(namespace, text)| Running::start(namespace, text));
        Self {
            running: running.collect(),
            air,
            ground,
            routers,
            hub,
            texts,
            _place: place,
        }
    }

    /// Gives the air another file.
    fn reload_air(&self, text: &str) {
        let config = GatewayConfig::read("test", text).expect("sound");
        let reload = Reload::prepare(config, Asker::default()).expect("sound");
        self.running[1].control.reload(reload);
    }

    /// The way by which each gateway says that it reaches the other.
    fn ways(&self) -> [Option<String>; 2] {
        [&self.air, &self.ground].map(|end| {
            let status = end.status();
            status["peers"][0]["reached"].as_str().map(str::to_owned)
        })
    }

    #[track_caller]
    fn wait_for(&self, way: &str) {
        until(&format!("both reach each other {way}"), || {
            self.ways().iter().all(|said| said.as_deref() == Some(way))
        });
    }

    /// Datagrams that the hub has passed on.
    fn relayed(&self) -> u64 {
        let status = self.hub.status();
        let count = &status["carrier"]["relayed_datagrams"];
        count.as_u64().expect("a count")
    }

    /// The decisions of an end about its peers: what and why.
    fn decisions(end: &Namespace) -> Vec<(String, String)> {
        let status = end.status();
        let all = status["decisions"].as_array().expect("a list").iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        all.map(|one| (text(&one["what"]), text(&one["why"])))
            .collect()
    }

    /// Sends so many octets from the ground to the air, and does `work` once a part of them has arrived.
    #[track_caller]
    fn transfer_and(&self, len: usize, arrived: usize, work: impl FnOnce() + Send) {
        let listener =
            (self.air).within(|| TcpListener::bind(("127.0.0.1", PORT)).expect("a port"));
        let mut client = self.ground.connect(PORT);
        let sent = octets(len);
        let received = thread::scope(|scope| {
            let receiving = scope.spawn(|| {
                let (mut stream, _) = listener.accept().expect("the gateway connects");
                stream.set_read_timeout(Some(PATIENCE)).expect("not zero");
                let mut all = vec![0; arrived];
                stream.read_exact(&mut all).expect("the beginning");
                work();
                stream.read_to_end(&mut all).expect("all of it");
                all
            });
            client.write_all(&sent).expect("it is taken");
            client.shutdown(Shutdown::Write).expect("it is open");
            receiving.join().expect("received")
        });
        assert!(
            received == sent,
            "{} octets of {len}, or others",
            received.len()
        );
    }

    #[track_caller]
    fn transfer(&self) {
        self.transfer_and(OCTETS, OCTETS, || ());
    }
}

/// The files of the hub, the air and the ground.
fn texts(place: &Path, helps: [&str; 2]) -> [String; 3] {
    let [hub, air, ground] = [(1, "hub"), (2, "air"), (3, "ground")].map(|(seed, name)| {
        let key = SecretKey::generate(&mut Entropy::from_seed([seed; 32]));
        write_secret_key(&place.join(format!("{name}.key")), &key).expect("room");
        key.public().to_string()
    });
    let head = |name: &str| {
        let listen = SocketAddr::from(([0, 0, 0, 0], 4_914));
        let place = place.display();
        format!(
            "[gateway]\nname = \"{name}\"\nlisten = \"{listen}\"\nstate_dir = \"{place}\"\n\
             [metrics]\nlisten = \"127.0.0.1:{STATUS}\"\n\
             [security]\nkind = \"noise\"\nprivate_key_file = \"{place}/{name}.key\"\n"
        )
    };
    let peer = |name: &str, key: &str, rest: &str| {
        format!("[[peer]]\nname = \"{name}\"\npublic_key = \"{key}\"\n{rest}\n")
    };
    let help = |help: &str| match help {
        "" => String::new(),
        help => format!("introduce = \"{help}\""),
    };
    let to_hub = peer("hub", &hub, &format!("address = \"{HUB}:4914\""));
    let met = "rate = \"20mbit\"\nrendezvous = \"hub\"";
    [
        head("hub")
            + &peer("air", &air, &help(helps[0]))
            + &peer("ground", &ground, &help(helps[1])),
        head("air")
            + &peer("ground", &ground, met)
            + &to_hub
            + &format!("[egress]\nallow = [\"127.0.0.1:{PORT}\"]\n"),
        head("ground")
            + &peer("air", &air, met)
            + &to_hub
            + &format!(
                "[class.bulk]\nmode = \"reliable\"\n[[forward]]\nlisten = \"127.0.0.1:{PORT}\"\n\
                 to = \"127.0.0.1:{PORT}\"\nclass = \"bulk\"\npeer = \"air\"\n"
            ),
    ]
}

#[test]
fn gateways_behind_two_nats_reach_each_other_directly_and_outlive_the_hub() {
    if !ready() {
        return;
    }
    for help in ["relay", "address"] {
        let mut lab = Lab::start(&format!("direct-{help}"), [Ports::Kept; 2], [help; 2]);
        lab.wait_for("directly");
        let before = lab.relayed();
        lab.transfer();
        let carried = lab.relayed() - before;
        // Where a machine is busy the direct way may be in doubt for a moment.
        let tenth = OCTETS as u64 / 1_400 / 10;
        assert!(carried < tenth, "{help}: {carried} of {tenth}");
        // The first of them is the hub.
        drop(lab.running.remove(0));
        lab.transfer();
        assert!(
            lab.ways()
                .iter()
                .all(|way| way.as_deref() == Some("directly"))
        );
        let decisions = Lab::decisions(&lab.air);
        let told = |(what, why): &(String, String)| {
            what == "peer_introduced" && why.contains("203.0.113.3:4914")
        };
        assert!(decisions.iter().any(told), "{decisions:?}");
    }
}

#[test]
fn where_a_nat_has_a_port_for_each_destination_the_hub_passes_on_what_it_cannot_read() {
    if !ready() {
        return;
    }
    for (name, ports) in [
        ("both", [Ports::Random; 2]),
        ("one", [Ports::Random, Ports::Kept]),
    ] {
        let lab = Lab::start(&format!("relay-{name}"), ports, ["relay"; 2]);
        lab.wait_for("through `hub`");
        lab.transfer();
        assert!(lab.relayed() > 800, "{}", lab.relayed());
        let status = lab.ground.status();
        assert_eq!(status["peers"][0]["paths"][1]["way"], "through `hub`");
        let hub = lab.hub.status();
        assert_eq!(
            hub["carrier"]["received_datagrams"], 0,
            "nothing is opened there"
        );
    }
}

#[test]
fn a_transfer_outlives_a_router_that_begins_to_give_other_ports_and_is_direct_again_when_that_ends()
{
    if !ready() {
        return;
    }
    let lab = Lab::start("changes", [Ports::Kept; 2], ["relay"; 2]);
    lab.wait_for("directly");
    let router = &lab.routers[0];
    lab.transfer_and(4 * OCTETS, OCTETS, || {
        give_ports(router, Ports::Random);
        forget(router);
    });
    lab.wait_for("through `hub`");
    give_ports(router, Ports::Kept);
    forget(router);
    lab.wait_for("directly");
    lab.transfer();
}

#[test]
fn a_reload_that_names_no_hub_ends_the_way_through_it_and_one_that_names_it_again_brings_it_back() {
    if !ready() {
        return;
    }
    let lab = Lab::start("reload", [Ports::Random; 2], ["relay"; 2]);
    lab.wait_for("through `hub`");
    lab.transfer();
    let met = lab.texts[1].as_str();
    let line = "rendezvous = \"hub\"\n";
    assert!(met.contains(line));
    lab.reload_air(&met.replace(line, ""));
    until("the air has no way left, and the ground finds out", || {
        lab.ways() == [None, None]
    });
    let status = lab.air.status();
    assert_eq!(
        status["peers"][0]["paths"].as_array().map_or(0, Vec::len),
        0
    );
    lab.reload_air(met);
    lab.wait_for("through `hub`");
    lab.transfer();
}

#[test]
fn a_hub_that_does_not_introduce_them_is_named_with_the_cure() {
    if !ready() {
        return;
    }
    let lab = Lab::start("refused", [Ports::Kept; 2], ["relay", ""]);
    for end in [&lab.air, &lab.ground] {
        until("the decision is told", || {
            let decisions = Lab::decisions(end);
            decisions.iter().any(|(what, why)| {
                what == "peer_not_introduced"
                    && why.starts_with("by `hub`: ")
                    && why.contains("write introduce = ")
            })
        });
    }
    assert_eq!(lab.ways(), [None, None]);
    assert_eq!(lab.relayed(), 0);
}
