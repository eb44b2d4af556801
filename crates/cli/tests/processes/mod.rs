//! The `fulmar` binary as a child process: started, watched, signalled, and never left behind.

use fulmar_net::wait::wait;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The longest run of any command here, by far; it turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The page size of x86-64 and most others; a larger one would only make growth look smaller.
const PAGE_BYTES: u64 = 4_096;
/// Ports that the kernel gives to nobody who asks for any: it takes those from 32,768 on (`ip_local_port_range`).
const OWN_PORTS: core::ops::Range<u16> = 10_000..32_000;

/// The command with these arguments, separated by blanks.
pub(crate) fn fulmar(arguments: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("fulmar"));
    command
        .args(arguments.split_whitespace())
        // A directory of the tests' own, where a configuration names none.
        .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"))
        .env_remove("STATE_DIRECTORY")
        .stdin(Stdio::null());
    command
}

/// Runs the command to its end.
pub(crate) fn run(arguments: &str) -> Output {
    fulmar(arguments).output().expect("the binary starts")
}

/// Octets that cannot be compressed, the same for the same seed.
pub(crate) fn octets(seed: u64, len: usize) -> Vec<u8> {
    let mut octets = vec![0; len];
    fulmar_proto::rng::Rng::from_seed(seed).fill(&mut octets);
    octets
}

/// The output of a command, stdout and stderr in one string.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits a moment.
pub(crate) fn moment() {
    wait(&[], Some(LOOK_EVERY), &mut Vec::new()).expect("poll works");
}

/// Waits until `done`, or fails saying `what` was waited for.
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let mut looks = PATIENCE.as_millis() / LOOK_EVERY.as_millis();
    while !done() {
        looks = looks
            .checked_sub(1)
            .unwrap_or_else(|| panic!("waited in vain for {what}"));
        moment();
    }
}

/// A port of UDP and TCP that is free, and stays so until whoever asked has it opened: the kernel gives it to nobody, and this to no
/// other test. A program that is told a port at its start needs one; others take any (port 0) and say which.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let count = u32::try_from(OWN_PORTS.len()).expect("a few thousand");
    // Tests of another program at the same time begin elsewhere.
    let begin = std::process::id().wrapping_mul(97);
    loop {
        let place = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % count;
        let port = OWN_PORTS.start + u16::try_from(place).expect("within the range");
        let any = (Ipv4Addr::UNSPECIFIED, port);
        if UdpSocket::bind(any).is_ok() && TcpListener::bind(any).is_ok() {
            return port;
        }
    }
}

/// Whether somebody has a UDP port of IPv4 open (proc(5): `/proc/net/udp`).
pub(crate) fn is_open(port: u16) -> bool {
    let end = format!(":{port:04X}");
    let sockets = std::fs::read_to_string("/proc/net/udp").expect("Linux has it");
    let mut local = sockets
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1));
    local.any(|address| address.ends_with(&end))
}

/// A running command. It is killed when the test ends, however it ends.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    /// Starts a command whose stdout is read.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, stdout }
    }

    /// Starts a command whose stdout is read and whose stderr goes where it was told.
    pub(crate) fn start_with_its_stderr(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, stdout }
    }

    /// Its children that have this argument.
    pub(crate) fn children(&self, argument: &str) -> Vec<u32> {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let children = std::fs::read_to_string(children).expect("it runs");
        let ids = children.split_whitespace().flat_map(str::parse);
        let is_called = |id: &u32| {
            let words = std::fs::read_to_string(format!("/proc/{id}/cmdline"));
            words.is_ok_and(|words| words.split('\0').any(|word| word == argument))
        };
        ids.filter(is_called).collect()
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its resident memory in octets (proc(5): `statm`).
    pub(crate) fn resident_bytes(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id()));
        let statm = statm.expect("it runs");
        let pages = statm.split_whitespace().nth(1).expect("resident pages");
        pages.parse::<u64>().expect("a number") * PAGE_BYTES
    }

    /// The next line of NDJSON.
    pub(crate) fn record(&mut self) -> serde_json::Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("it is text");
        serde_json::from_str(&line).unwrap_or_else(|error| {
            let mut said = String::new();
            drop(self.child.kill());
            if let Some(stderr) = &mut self.child.stderr {
                drop(stderr.read_to_string(&mut said));
            }
            panic!("{error} in {line:?}; it said {said}")
        })
    }

    /// All lines of NDJSON that are still to come, until its stdout ends.
    pub(crate) fn records(&mut self) -> Vec<serde_json::Value> {
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).expect("it is text");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("one JSON object a line"))
            .collect()
    }

    /// The processor time that it has used, in ticks of 10 ms (proc(5): `utime` and `stime`).
    pub(crate) fn processor_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        let stat = stat.expect("it runs");
        let (_, fields) = stat.rsplit_once(") ").expect("the name is in brackets");
        let number = |field: &str| field.parse::<u64>().expect("a number");
        fields.split(' ').skip(11).take(2).map(number).sum()
    }

    /// Its resident memory (proc(5): `VmRSS`).
    pub(crate) fn resident_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
        number.and_then(|n| n.parse().ok()).expect("a number")
    }

    /// The number of its open descriptors.
    pub(crate) fn descriptors(&self) -> usize {
        let all = std::fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        all.expect("it runs").count()
    }

    /// The rest of its stdout.
    pub(crate) fn rest(&mut self) -> String {
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).expect("it is text");
        text
    }

    /// The address in the first record.
    pub(crate) fn address(&mut self) -> String {
        let record = self.record();
        record["listening"]
            .as_str()
            .unwrap_or_else(|| panic!("{record}"))
            .to_owned()
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a pid"), signal).expect("it runs");
    }

    /// Waits for the end; returns the status, and the rest of stderr.
    pub(crate) fn end(&mut self) -> (ExitStatus, String) {
        let mut status = None;
        until("a process to end", || {
            status = self.child.try_wait().expect("it is ours");
            status.is_some()
        });
        let mut said = String::new();
        if let Some(stderr) = &mut self.child.stderr {
            stderr.read_to_string(&mut said).expect("it is text");
        }
        (status.expect("it ended"), said)
    }

    /// Waits for the end and its exit code.
    pub(crate) fn code(&mut self) -> Option<i32> {
        let (status, said) = self.end();
        eprintln!("{said}");
        status.code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        drop(self.child.kill());
        drop(self.child.wait());
        if std::thread::panicking()
            && let Some(stderr) = &mut self.child.stderr
        {
            let mut said = String::new();
            drop(stderr.read_to_string(&mut said));
            eprintln!("process {} had said:\n{said}", self.child.id());
        }
    }
}

/// A directory with a file of pseudo-random octets in it, and a place to receive.
pub(crate) struct Place {
    directory: tempfile::TempDir,
    pub(crate) octets: Vec<u8>,
}

impl Place {
    pub(crate) fn with(len: usize) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let mut octets = vec![0; len];
        fulmar_proto::rng::Rng::from_seed(len as u64).fill(&mut octets);
        std::fs::write(directory.path().join("file"), &octets).expect("room");
        std::fs::create_dir(directory.path().join("in")).expect("room");
        Self { directory, octets }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn file(&self) -> String {
        self.path("file").display().to_string()
    }

    pub(crate) fn inbox(&self) -> String {
        self.path("in").display().to_string()
    }

    /// The octets that arrived under the file's name.
    pub(crate) fn arrived(&self) -> Vec<u8> {
        read(&self.path("in/file"))
    }
}

/// A file's octets.
pub(crate) fn read(path: &Path) -> Vec<u8> {
    let mut octets = Vec::new();
    File::open(path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .read_to_end(&mut octets)
        .expect("it can be read");
    octets
}

/// A receiver into `place`, with further flags.
pub(crate) fn receiver(place: &Place, flags: &str) -> Running {
    let inbox = place.inbox();
    Running::start(fulmar(&format!(
        "recv {inbox} --listen 127.0.0.1:0 --json {flags}"
    )))
}
