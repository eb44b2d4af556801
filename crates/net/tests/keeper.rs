//! A keeper's sockets outlive the process that gave them, and no octet is missing or doubled.
//!
//! Method: this program starts itself as a small gateway with a store and a keeper. It reads one
//! connection into the store, and writes octets that follow from their offset to another. The parent
//! is client and server of the two. The gateway kills itself (SIGKILL) again and again: before the
//! store has the octets read, before they are taken out of the socket, after both. The next gateway
//! knows only from the store and the kernel where to go on.
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use fulmar_net::custody::{FlowStore, Store, StoreConfig, SyncPolicy};
use fulmar_net::keeper::{
    Baseline, Keeper, KeeperConfig, KeeperError, SocketRecord, TakenSocket, run,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::splice::{FlowId, Role};
use fulmar_proto::units::ByteCount;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

const TOTAL: u64 = 24 << 20;
const KILLS: u64 = 20;
/// The most steps, of at most 64 KiB in each direction, before a kill.
const STEPS_MAX: u64 = 60;
const IN: FlowId = FlowId([1; 16]);
const OUT: FlowId = FlowId([2; 16]);
const PORT: FlowId = FlowId([0; 16]);

fn octets(offset: u64, len: u64) -> Vec<u8> {
    let octet = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0];
    (offset..offset + len).map(octet).collect()
}

/// This program as another, with words on its standard input.
fn command(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--ignored", "--nocapture"]);
    command
}

fn start(directory: &Path, keep_for: Duration) -> Result<(Keeper, Vec<TakenSocket>), KeeperError> {
    Keeper::start(
        &directory.join("keeper"),
        KeeperConfig { keep_for },
        command("keeper"),
    )
}

#[test]
#[ignore = "is the keeper of the tests below, with its listening socket on standard input"]
fn keeper() {
    let listener = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    run(&listener, KeeperConfig::default()).unwrap();
}

fn record(role: Role, socket: &TcpStream) -> SocketRecord {
    SocketRecord {
        role,
        baseline: Baseline::of(socket, Role::Acceptor).unwrap(),
        note: b"a note".to_vec(),
    }
}

/// The two connections, one for each direction.
struct Gateway {
    store: Store,
    keeper: Keeper,
    custody: FlowStore,
    incoming: TcpStream,
    outgoing: TcpStream,
    written: u64,
}

impl Gateway {
    fn start(directory: &Path, client: SocketAddr, server: SocketAddr) -> Self {
        let (store, recovery) = Store::open(store_config(directory), None).unwrap();
        let (mut keeper, taken) = start(directory, Duration::from_secs(60)).unwrap();
        let mut taken = taken.into_iter();
        let mut take = |flow, role, address: SocketAddr| {
            if let Some(taken) = taken.next() {
                assert_eq!((taken.flow, taken.record.role), (flow, role));
                assert_eq!(taken.record.note, b"a note");
                return (taken.socket, taken.record.baseline);
            }
            let socket = TcpStream::connect(address).unwrap();
            let record = record(role, &socket);
            keeper.keep(flow, &socket, &record).unwrap();
            (socket, record.baseline)
        };
        let (mut incoming, incoming_base) = take(IN, Role::Opener, client);
        let (outgoing, outgoing_base) = take(OUT, Role::Acceptor, server);
        let custody = recovery.flows.into_iter().next().map(|found| found.store);
        let custody = custody.unwrap_or_else(|| store.begin(IN, 0, b"").unwrap().unwrap());
        let doubled = custody.end() - incoming_base.position(&incoming).unwrap().taken;
        assert!(doubled <= 65_536, "at most one read: {doubled}");
        let mut sink = vec![0; usize::try_from(doubled).unwrap()];
        incoming.set_nonblocking(false).unwrap();
        incoming.read_exact(&mut sink).unwrap();
        outgoing.set_nonblocking(true).unwrap();
        let written = outgoing_base.position(&outgoing).unwrap().given;
        println!("doubled {doubled} written {written}");
        Self {
            store,
            keeper,
            custody,
            incoming,
            outgoing,
            written,
        }
    }

    /// Peeks, appends, consumes, and dies in between if told so. `false` at the end.
    fn read(&mut self, len: usize, die_at: Option<u64>) -> bool {
        let mut octets = vec![0; len];
        let len = self.incoming.peek(&mut octets).unwrap();
        die_if(die_at == Some(0));
        assert_eq!(self.custody.append(&octets[..len]).unwrap(), len);
        die_if(die_at == Some(1));
        self.incoming.read_exact(&mut octets[..len]).unwrap();
        die_if(die_at == Some(2));
        len > 0
    }

    /// Writes the octets that fit. `false` when all were written.
    fn write(&mut self, len: u64) -> bool {
        let len = len.min(TOTAL - self.written);
        match self.outgoing.write(&octets(self.written, len)) {
            Ok(len) => self.written += len as u64,
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        self.written < TOTAL
    }
}

fn die_if(so: bool) {
    if so {
        let ourselves = rustix::process::getpid();
        rustix::process::kill_process(ourselves, rustix::process::Signal::KILL).unwrap();
    }
}

fn store_config(directory: &Path) -> StoreConfig {
    StoreConfig {
        directory: directory.join("custody"),
        limit: ByteCount(1 << 30),
        sync: SyncPolicy::Never,
    }
}

#[test]
#[ignore = "is the gateway of the test below, and waits for its parent's words"]
fn gateway() {
    let mut words = String::new();
    std::io::stdin().read_line(&mut words).unwrap();
    let words: Vec<&str> = words.split_whitespace().collect();
    let [seed, client, server, directory] = words[..] else {
        panic!("four words")
    };
    let life: u64 = seed.parse().unwrap();
    let mut rng = Rng::from_seed(life);
    let directory = Path::new(directory);
    let mut gateway = Gateway::start(directory, client.parse().unwrap(), server.parse().unwrap());
    let (mut reading, mut writing) = (true, true);
    let (mut step, last) = (0, rng.below(STEPS_MAX));
    while reading || writing {
        let mut len = || 1 + rng.below(65_536);
        let (read_len, write_len) = (len(), len());
        let die_at = (step == last && life < KILLS).then_some(life % 3);
        reading = reading && gateway.read(usize::try_from(read_len).unwrap(), die_at);
        if writing && !gateway.write(write_len) {
            gateway.outgoing.shutdown(Shutdown::Write).unwrap();
            writing = false;
        }
        step += 1;
    }
    gateway.keeper.stop();
    drop(gateway.store);
}

#[test]
fn connections_outlive_a_killed_gateway_and_every_octet_passes_once() {
    let directory = tempfile::tempdir().unwrap();
    let listeners = [0, 1].map(|_| TcpListener::bind(("127.0.0.1", 0)).unwrap());
    let [client_at, server_at] = listeners.each_ref().map(|l| l.local_addr().unwrap());
    let [client, server] = listeners;
    let client = thread::spawn(move || {
        let mut client = client.accept().unwrap().0;
        let all = octets(0, TOTAL);
        client.write_all(&all).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        // Open until the gateway closes.
        drop(client.read(&mut [0; 1]));
    });
    let server = thread::spawn(move || {
        let mut received = Vec::new();
        server
            .accept()
            .unwrap()
            .0
            .read_to_end(&mut received)
            .unwrap();
        received
    });
    let mut in_the_middle = 0;
    for life in 0..=KILLS {
        let mut child = command("gateway")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.as_mut().unwrap();
        let at = directory.path().display();
        writeln!(stdin, "{life} {client_at} {server_at} {at}").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.success(), life == KILLS, "life {life}");
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains("doubled"), "life {life}: {said}");
        in_the_middle += usize::from(!said.contains("doubled 0"));
    }
    assert!(
        in_the_middle >= 6,
        "every third kill comes between store and socket"
    );
    client.join().unwrap();
    let received = server.join().unwrap();
    assert!(
        received == octets(0, TOTAL),
        "{} of {TOTAL} octets came",
        received.len()
    );
    let (_store, mut recovery) = Store::open(store_config(directory.path()), None).unwrap();
    let custody = &mut recovery.flows[0].store;
    assert_eq!(custody.end(), TOTAL);
    let mut at = 0;
    while at < TOTAL {
        let piece = custody.read(at, usize::MAX).unwrap();
        assert!(piece == octets(at, piece.len() as u64), "at {at}");
        at += piece.len() as u64;
    }
}

/// A connection of a gateway that is then forgotten, and the other host's end of it.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (ours, listener.accept().unwrap().0)
}

#[test]
fn without_a_gateway_unfinished_connections_are_reset_and_finished_ones_are_delivered() {
    let directory = tempfile::tempdir().unwrap();
    let (mut keeper, taken) = start(directory.path(), Duration::from_millis(300)).unwrap();
    assert!(taken.is_empty());
    let (mut unfinished, mut waits) = connection();
    let (mut finished, mut hears) = connection();
    unfinished.write_all(b"half of ").unwrap();
    finished.write_all(b"the whole").unwrap();
    finished.shutdown(Shutdown::Write).unwrap();
    keeper
        .keep(IN, &unfinished, &record(Role::Opener, &unfinished))
        .unwrap();
    keeper
        .keep(OUT, &finished, &record(Role::Acceptor, &finished))
        .unwrap();
    drop((keeper, unfinished, finished));
    let mut text = Vec::new();
    hears.read_to_end(&mut text).unwrap();
    assert_eq!(text, b"the whole");
    text.clear();
    let told = waits.read_to_end(&mut text).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_forgotten_socket_ends_with_its_gateway_s_and_a_second_gateway_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (mut keeper, _) = start(directory.path(), Duration::from_secs(60)).unwrap();
    let refused = start(directory.path(), Duration::from_secs(60)).unwrap_err();
    assert!(matches!(refused, KeeperError::Busy(_)), "{refused}");
    let (ours, mut theirs) = connection();
    let (kept, _far) = connection();
    let birth = record(Role::Opener, &ours);
    keeper.keep(IN, &ours, &birth).unwrap();
    keeper.keep(OUT, &kept, &birth).unwrap();
    let other = SocketRecord {
        note: b"other words".to_vec(),
        ..birth
    };
    keeper.note(OUT, &other).unwrap();
    keeper.forget(IN).unwrap();
    drop(ours);
    assert_eq!(
        theirs.read(&mut [0; 1]).unwrap(),
        0,
        "an end, as nobody has it now"
    );
    assert!(!keeper.is_gone());
    // A process that is killed closes its files a moment after.
    let last = keeper.as_fd().try_clone_to_owned().unwrap();
    drop(keeper);
    let dying = thread::spawn(move || {
        thread::park_timeout(Duration::from_millis(100));
        drop(last);
    });
    let (keeper, taken) = start(directory.path(), Duration::from_secs(60)).unwrap();
    dying.join().unwrap();
    assert_eq!(taken.len(), 1);
    assert_eq!((taken[0].flow, &taken[0].record), (OUT, &other));
    assert_eq!(
        taken[0].socket.local_addr().unwrap(),
        kept.local_addr().unwrap()
    );
    keeper.stop();
}

/// A port that the keeper has, the address of it, and the record of whoever is accepted there.
fn kept_port(keeper: &mut Keeper) -> (TcpListener, SocketRecord) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let record = SocketRecord {
        role: Role::Opener,
        baseline: Baseline::default(),
        note: b"a note".to_vec(),
    };
    keeper.keep(PORT, &listener, &record).unwrap();
    (listener, record)
}

#[test]
fn a_client_that_the_keeper_accepted_outlives_its_gateway_from_the_first_moment() {
    let directory = tempfile::tempdir().unwrap();
    let (mut keeper, _) = start(directory.path(), Duration::from_secs(60)).unwrap();
    let (listener, record) = kept_port(&mut keeper);
    let nobody = keeper.accept(PORT, &record).unwrap_err();
    assert_eq!(nobody.kind(), ErrorKind::WouldBlock);
    let elsewhere = keeper.accept(IN, &record).unwrap();
    assert!(elsewhere.is_none(), "it has no such port");
    let call = || {
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.write_all(b"asked").unwrap();
        client
    };
    let clients = [call(), call(), call()];
    let mut accept = || keeper.accept(PORT, &record).unwrap().expect("it is new");
    let [unnamed, claimed, forgotten] = [accept(), accept(), accept()];
    let names = [unnamed.client, claimed.client, forgotten.client];
    keeper.claim(claimed.client, IN, &record).unwrap();
    keeper.forget(forgotten.client).unwrap();
    drop((keeper, unnamed, claimed, forgotten));
    let (keeper, taken) = start(directory.path(), Duration::from_secs(60)).unwrap();
    let taken: Vec<TakenSocket> = taken.into_iter().filter(|t| t.flow != PORT).collect();
    let [first, second] = taken.try_into().unwrap();
    assert_eq!((first.flow, second.flow), (names[0], IN));
    for (mut kept, client) in [(first, &clients[0]), (second, &clients[1])] {
        assert_eq!(kept.record.note, b"a note");
        kept.socket.set_nonblocking(false).unwrap();
        let mut asked = [0; 5];
        kept.socket.read_exact(&mut asked).unwrap();
        assert_eq!(&asked, b"asked");
        assert_eq!(
            kept.socket.peer_addr().unwrap(),
            client.local_addr().unwrap()
        );
    }
    let [_, _, mut forgotten] = clients;
    let told = forgotten.read(&mut [0; 1]);
    assert!(!matches!(told, Ok(1..)), "nobody has it: {told:?}");
    keeper.stop();
}

#[test]
fn many_sockets_come_back_and_a_keeper_that_left_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let (mut keeper, _) = start(directory.path(), Duration::from_secs(60)).unwrap();
    let pairs: Vec<_> = (0..300).map(|_| connection()).collect();
    let name = |i: usize| FlowId((i as u128).to_be_bytes());
    for (i, (ours, _)) in pairs.iter().enumerate() {
        keeper
            .keep(name(i), ours, &record(Role::Opener, ours))
            .unwrap();
    }
    // A line that was full empties in time.
    while keeper.flush().unwrap() {
        thread::yield_now();
    }
    drop(keeper);
    let (keeper, taken) = start(directory.path(), Duration::from_secs(60)).unwrap();
    assert!(taken.iter().map(|t| t.flow).eq((0..300).map(name)));
    for (taken, (ours, _)) in taken.iter().zip(&pairs) {
        assert_eq!(
            taken.socket.local_addr().unwrap(),
            ours.local_addr().unwrap()
        );
    }
    keeper.stop();
    let (mut keeper, taken) = start(directory.path(), Duration::from_millis(1)).unwrap();
    assert!(
        taken.is_empty(),
        "the old one is gone, with its socket file still there"
    );
    assert!(!keeper.is_gone());
}
