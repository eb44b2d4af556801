//! Two network namespaces joined by `fulmar emulate --tun`, for tests with real programs.
//!
//! ```text
//!   host ── veth ── ground ══ lossy link ══ air ── veth ── host        (hosts on request)
//!   10.78.0.2    10.77.0.1               10.77.0.2     10.79.0.2
//!   fd78::2         fd77::1               fd77::2        fd79::2
//! ```
//!
//! Names are unique to the test, so tests run in parallel. Everything that a test started is stopped and
//! removed when its [`Rig`] is dropped, also by a panic; if the test process is killed, the link and the
//! programs are stopped by the kernel's parent-death signal (prctl(2)).

use crate::processes::{Running, until};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The longest run of any program here, by far; it turns a hang into a failure.
const PATIENCE_SECONDS: &str = "120";

/// Whether a rig with these programs can be had. Names in one line, once, what is missing, and fails
/// instead where tests must not be skipped (`CI=true`).
pub(crate) fn ready(programs: &[&str]) -> bool {
    let root = rustix::process::geteuid().is_root();
    let needed = ["ip", "setpriv", "timeout"];
    let lacking = needed.iter().chain(programs).find(|name| !installed(name));
    let missing = if !root || !Path::new("/dev/net/tun").exists() {
        "root and /dev/net/tun".to_owned()
    } else if let Some(program) = lacking {
        format!("{program}: run scripts/setup-debian")
    } else {
        return true;
    };
    let ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!ci, "needs {missing}, and CI=true forbids to skip");
    // Not eprintln!, which the test harness keeps to itself.
    drop(writeln!(std::io::stderr(), "skipped: needs {missing}"));
    false
}

fn installed(program: &str) -> bool {
    let places = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&places).any(|place| place.join(program).is_file())
}

fn ip(arguments: &str) {
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .output()
        .expect("ip is installed");
    assert!(
        output.status.success(),
        "ip {arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A command that is told to end when the calling thread ends, and with it the test.
fn mortal(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "--"]).arg(program);
    // In a process group of its own, so that Ctrl-C or timeout(1), which kill the test's group, leave the
    // clean-up alive.
    command.stdin(Stdio::null()).process_group(0);
    command
}

/// A name that no other test uses now.
pub(crate) fn unique(what: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("fulmar-{}-{count}-{what}", std::process::id())
}

/// A network namespace. Processes in it are killed, and it is removed, when this is dropped.
#[derive(Debug)]
pub(crate) struct Namespace {
    name: String,
}

impl Namespace {
    /// A new namespace, with its loopback interface up.
    pub(crate) fn new(what: &str) -> Self {
        let namespace = Self { name: unique(what) };
        ip(&format!("netns add {}", namespace.name));
        ip(&format!("-n {} link set lo up", namespace.name));
        namespace
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the namespace exists.
    pub(crate) fn exists(&self) -> bool {
        self.path().exists()
    }

    fn path(&self) -> std::path::PathBuf {
        Path::new("/run/netns").join(&self.name)
    }

    /// A program inside; the caller adds arguments.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = mortal("ip");
        command.args(["netns", "exec", &self.name]);
        command.arg(program);
        command
    }

    /// A command line inside, whose words are separated by blanks.
    fn line(&self, line: &str) -> Command {
        let mut words = line.split_whitespace();
        let mut command = self.command(words.next().expect("a program"));
        command.args(words);
        command
    }

    /// Runs a command line, separated by blanks, to its end.
    pub(crate) fn run(&self, line: &str) -> Output {
        let line = format!("timeout {PATIENCE_SECONDS} {line}");
        self.line(&line).output().expect("setpriv is installed")
    }

    /// Runs a command line that must succeed; returns what it printed.
    #[track_caller]
    pub(crate) fn must(&self, line: &str) -> String {
        let output = self.run(line);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{line}: {}: {printed}{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        printed
    }

    /// Waits until a ping of `address` is answered. A tunnel drops the packets that wait for its session longer than about a second.
    #[track_caller]
    pub(crate) fn answered_by(&self, address: Ipv4Addr) {
        // With a deadline, `-c` counts answers.
        self.must(&format!("ping -c 1 -w 60 -q {address}"));
    }

    /// Starts a command line, such as a server's; it is killed when the value is dropped.
    pub(crate) fn start(&self, line: &str) -> Running {
        Running::start(self.line(line))
    }

    /// Starts a gateway with a configuration of this text, kept at `place/name.toml`, and waits until it is
    /// up.
    pub(crate) fn gateway(&self, place: &Path, name: &str, text: &str) -> Running {
        let file = place.join(format!("{name}.toml"));
        std::fs::write(&file, text).expect("room");
        let binary = assert_cmd::cargo::cargo_bin!("fulmar").display();
        let mut gateway = self.start(&format!("{binary} gateway --json -c {}", file.display()));
        assert_eq!(gateway.record()["kind"], "start");
        gateway
    }

    /// Does `work` on a thread inside. Sockets opened there stay there, wherever they are used.
    pub(crate) fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let handle = File::open(self.path()).expect("the namespace is there");
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                move_into_link_name_space(handle.as_fd(), Some(LinkNameSpaceType::Network))
                    .expect("root may enter");
                work()
            });
            inside.join().expect("the work inside succeeds")
        })
    }

    /// Waits until something listens at `port` (`tcp` or `udp`).
    pub(crate) fn listening(&self, protocol: &str, port: u16) {
        let kind = if protocol == "udp" { "-u" } else { "-t" };
        until(&format!("{protocol} port {port} in {}", self.name), || {
            let line = format!("ss -H -l -n {kind} sport = :{port}");
            !self.run(&line).stdout.is_empty()
        });
    }

    fn kill_all(&self) {
        let Ok(output) = Command::new("ip")
            .args(["netns", "pids", &self.name])
            .output()
        else {
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let pids = text.split_whitespace().filter_map(|pid| pid.parse().ok());
        for pid in pids.filter_map(Pid::from_raw) {
            // It may have ended since.
            let _ended = kill_process(pid, Signal::KILL);
        }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.exists() {
            self.kill_all();
            // Panicking in a drop would hide the test's own failure.
            drop(
                Command::new("ip")
                    .args(["netns", "delete", &self.name])
                    .output(),
            );
        }
    }
}

/// A machine behind one end of the link, reached through a veth pair.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) namespace: Namespace,
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Ipv6Addr,
}

/// A lossy link between two namespaces.
pub(crate) struct Rig {
    // In this order: the link ends before the namespaces are removed.
    link: Running,
    /// The end `a` of the emulator: `10.77.0.1` and `fd77::1`.
    pub(crate) ground: Namespace,
    /// The end `b`: `10.77.0.2` and `fd77::2`.
    pub(crate) air: Namespace,
}

impl Rig {
    /// The addresses of the link's end on the ground: IPv4, then IPv6.
    pub(crate) const GROUND: [IpAddr; 2] = ends(1);
    /// The addresses of the link's end in the air: IPv4, then IPv6.
    pub(crate) const AIR: [IpAddr; 2] = ends(2);

    /// Starts `fulmar emulate --tun` with further flags, separated by blanks, and waits until the link is
    /// up.
    pub(crate) fn start(flags: &str) -> Self {
        Self::start_with(&flags.split_whitespace().collect::<Vec<_>>())
    }

    /// As [`Rig::start`], with flags whose values have blanks in them.
    pub(crate) fn start_with(flags: &[&str]) -> Self {
        Self::between("tun", ["", ""], flags)
    }

    /// Starts `fulmar emulate --tap` between devices called `radio`, which have these addresses.
    pub(crate) fn of_frames(addresses: [&str; 2], flags: &str) -> Self {
        let ends = addresses.map(|addresses| format!("/radio:{addresses}"));
        let flags: Vec<_> = flags.split_whitespace().collect();
        Self::between("tap", ends.each_ref().map(String::as_str), &flags)
    }

    fn between(devices: &str, [of_ground, of_air]: [&str; 2], flags: &[&str]) -> Self {
        // The emulator makes them, with default routes over the link; we remove what it leaves.
        let [ground, air] = ["ground", "air"].map(|what| Namespace { name: unique(what) });
        let mut command = emulate(&format!(
            "--{devices} a={}{of_ground} b={}{of_air} --json",
            ground.name(),
            air.name()
        ));
        command.args(flags);
        let mut link = Running::start(command);
        assert_eq!(link.record()["kind"], "start");
        Self { link, ground, air }
    }

    /// Stops the link and returns its final counters.
    pub(crate) fn counters(mut self) -> serde_json::Value {
        self.link.signal(Signal::INT);
        let last = loop {
            let record = self.link.record();
            if record["kind"] == "end" {
                break record;
            }
        };
        assert_eq!(self.link.code(), Some(130));
        last
    }

    /// Kills the link, which then cannot remove anything.
    pub(crate) fn kill(mut self) -> (Namespace, Namespace) {
        self.link.signal(Signal::KILL);
        self.link.end();
        (self.ground, self.air)
    }

    /// A machine behind the ground station: `10.78.0.2` and `fd78::2`, routed through `ground`, which
    /// forwards; the other end of the link has a route to it.
    pub(crate) fn host_behind_ground(&self) -> Host {
        host(&self.ground, 78, "ground-host")
    }

    /// A machine behind the aircraft: `10.79.0.2` and `fd79::2`, routed in the same way.
    pub(crate) fn host_behind_air(&self) -> Host {
        host(&self.air, 79, "air-host")
    }
}

/// `fulmar emulate` with these flags; it ends with the test.
pub(crate) fn emulate(flags: &str) -> Command {
    let mut command = mortal(assert_cmd::cargo::cargo_bin!("fulmar"));
    command.arg("emulate").args(flags.split_whitespace());
    command
}

const fn ends(host: u8) -> [IpAddr; 2] {
    [
        IpAddr::V4(Ipv4Addr::new(10, 77, 0, host)),
        IpAddr::V6(Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, host as u16)),
    ]
}

/// A machine in the networks `10.NET.0.0/24` and `fdNET::/64` of `router`.
fn host(router: &Namespace, net: u8, what: &str) -> Host {
    let namespace = Namespace::new(what);
    let (inside, outside) = (namespace.name(), router.name());
    ip(&format!(
        "-n {outside} link add lan type veth peer name eth0 netns {inside}"
    ));
    for (name, device, last) in [(outside, "lan", 1), (inside, "eth0", 2)] {
        ip(&format!(
            "-n {name} address add 10.{net}.0.{last}/24 dev {device}"
        ));
        ip(&format!(
            "-n {name} address add fd{net}::{last}/64 dev {device} nodad"
        ));
        ip(&format!("-n {name} link set {device} up"));
    }
    ip(&format!("-n {inside} route add default via 10.{net}.0.1"));
    ip(&format!("-n {inside} -6 route add default via fd{net}::1"));
    router.must("sysctl -q -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
    Host {
        namespace,
        v4: Ipv4Addr::new(10, net, 0, 2),
        v6: format!("fd{net}::2").parse().expect("an address"),
    }
}
