//! The time that a small file takes over a link that loses a fifth, in virtual time.

use super::{FileDestination, ReceivePlan, Receiver, SendPlan, Sender, Source, Stop};
use crate::perf::pair::settle;
use crate::secured::{Credentials, Secured, SecurityNote, secured_by};
use crate::session::{Entropy, PeerIndex, PresetKey, SESSION_OVERHEAD};
use crate::udp::{Application, BURST_TIME};
use fulmar_proto::machine::{Datagram, Ecn, Machine, PathId};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AddressKey, AerotpEndpoint, ConnectionConfig, EndpointConfig, RateSource,
};
use fulmar_proto::transport::parts::RtoLimits;
use fulmar_proto::units::{Bitrate, ByteCount, Duration, Instant};
use std::collections::VecDeque;
use std::path::Path;

const PATH: PathId = PathId(0);
const RATE: Bitrate = Bitrate::from_bits_per_second(5_000_000);
const MTU: ByteCount = ByteCount(1_500);
/// IPv4 and UDP.
const HEADERS: ByteCount = ByteCount(28);
const RUNS: u64 = 50;
/// The virtual time from which on a transfer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A link that loses a share of the datagrams.
#[derive(Clone, Copy)]
struct Lossy {
    one_way: Duration,
    loss: f64,
}

/// Runs both applications until the first one stops; returns the time of that and the datagrams that it sent.
fn meet<M: Machine>(
    link: Lossy,
    rng: &mut Rng,
    (ours, app): (&mut M, &mut impl Application<M>),
    (theirs, far): (&mut M, &mut impl Application<M>),
) -> (Instant, u64) {
    let mut under_way: VecDeque<(Instant, bool, Vec<u8>)> = VecDeque::new();
    let (mut now, mut count) = (Instant::START, 0);
    loop {
        let (said, our_next, is_over) = settle(now, ours, app);
        count += said.len() as u64;
        if is_over {
            return (now, count);
        }
        let (answered, their_next, _) = settle(now, theirs, far);
        let said = said.into_iter().map(|octets| (true, octets));
        for (is_ours, octets) in said.chain(answered.into_iter().map(|octets| (false, octets))) {
            if !rng.chance(link.loss) {
                under_way.push_back((now + link.one_way, is_ours, octets));
            }
        }
        let deadlines = [our_next, their_next].into_iter().flatten();
        let arrival = under_way.front().map(|(at, ..)| *at);
        let next = deadlines.map(|deadline| deadline.at).chain(arrival).min();
        now = next.expect("somebody waits for something").max(now);
        assert!(now < Instant::START + PATIENCE, "it hangs");
        while under_way.front().is_some_and(|(at, ..)| *at <= now) {
            let (_, is_ours, octets) = under_way.pop_front().expect("it was there");
            let (path, octets, ecn) = (PATH, octets.as_slice(), Ecn::NotCapable);
            let to = if is_ours { &mut *theirs } else { &mut *ours };
            to.handle_datagram(now, Datagram { path, octets, ecn });
        }
    }
}

/// The times that files took, of [`RUNS`].
#[derive(Debug)]
struct Took {
    median: Duration,
    /// Nineteen in twenty took no longer.
    most: Duration,
    datagrams: u64,
}

/// Sends a file of so many octets over `link` in every run.
fn took(octets: usize, link: Lossy, secured: bool, rto: RtoLimits) -> Took {
    let mut all = Vec::new();
    let mut datagrams = 0;
    for seed in 0..RUNS {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("file");
        std::fs::write(&file, vec![7; octets]).expect("room");
        let mut rng = Rng::from_seed(seed);
        let ended = run(&file, place.path(), link, secured, rto, &mut rng);
        all.push(ended.0.saturating_since(Instant::START));
        datagrams += ended.1;
    }
    all.sort();
    let at = |share: usize| all[all.len() * share / 100];
    Took {
        median: at(50),
        most: at(95),
        datagrams,
    }
}

/// The plans of both ends.
fn plans(place: &Path, connection: ConnectionConfig) -> (SendPlan, ReceivePlan) {
    let send = SendPlan {
        name: "file".to_owned(),
        connection,
        connect_timeout: Duration::from_secs(30),
        id: 1,
    };
    let receive = ReceivePlan {
        destination: FileDestination::Directory {
            path: place.join("in"),
            replace: false,
        },
        connection,
        once: false,
        checkpoint_every: Duration::from_secs(1),
    };
    std::fs::create_dir(place.join("in")).expect("room");
    (send, receive)
}

/// An endpoint, which asks strangers to show their addresses or not.
fn endpoint(rng: Rng, (rate, lower_overhead): (Bitrate, ByteCount), asks: bool) -> AerotpEndpoint {
    let config = EndpointConfig {
        rate: RateSource::Told(rate),
        lower_overhead,
        burst: BURST_TIME,
        address_key: asks.then(|| AddressKey::new([7; 32])),
        ..EndpointConfig::default()
    };
    AerotpEndpoint::new(config, rng)
}

fn run(
    file: &Path,
    place: &Path,
    link: Lossy,
    secured: bool,
    rto: RtoLimits,
    rng: &mut Rng,
) -> (Instant, u64) {
    let session = if secured {
        SESSION_OVERHEAD
    } else {
        ByteCount(0)
    };
    let overhead = HEADERS + session;
    let connection = ConnectionConfig {
        tpdu_bytes_max: (MTU - overhead).as_usize(),
        give_up_after: Duration::from_secs(30),
        rto,
        ..ConnectionConfig::default()
    };
    let (send, receive) = plans(place, connection);
    let mut ours = endpoint(rng.child("sender"), (RATE, overhead), false);
    let fast = Bitrate::from_bits_per_second(1_000_000_000);
    let mut theirs = endpoint(rng.child("receiver"), (fast, overhead), !secured);
    let mut receiver =
        Receiver::new(receive, &mut theirs, Stop::default(), ()).expect("sound settings");
    let path = if secured {
        PeerIndex(0).inner_path()
    } else {
        PATH
    };
    let source = Source::open(file).expect("it is there");
    let mut sender = Sender::new(send, path, source, Stop::default(), ());
    let mut losses = rng.child("loss");
    let ended = if secured {
        let calls = |endpoint, calls, seed| {
            let key = PresetKey::generate(&mut Entropy::from_seed([9; 32]));
            let entropy = Entropy::from_seed([seed; 32]);
            let credentials = Credentials::Preset(key);
            secured_by(
                endpoint,
                credentials,
                (MTU, calls),
                (u64::from(seed), entropy),
            )
            .expect("sound settings")
        };
        let mut ours = calls(ours, Some(PATH), 1);
        let mut theirs = calls(theirs, None, 2);
        let tell = |note: SecurityNote| panic!("{note:?}");
        let (mut app, mut far) = (
            Secured::new(&mut sender, tell),
            Secured::new(&mut receiver, tell),
        );
        meet(
            link,
            &mut losses,
            (&mut ours, &mut app),
            (&mut theirs, &mut far),
        )
    } else {
        meet(
            link,
            &mut losses,
            (&mut ours, &mut sender),
            (&mut theirs, &mut receiver),
        )
    };
    let report = sender
        .take_outcome()
        .expect("it ended")
        .expect("it arrived");
    assert!(report.intact);
    ended
}

const MS: Duration = Duration::from_millis(1);

/// The wire of a small file: the size of this project's README when somebody tried it, in five packets.
const FIVE_PACKETS: usize = 5_770;

#[test]
fn a_small_file_over_a_short_path_that_loses_a_fifth_seldom_waits_for_the_timeout_of_an_unknown_path()
 {
    let early = RtoLimits::asking_early(RATE, MTU);
    let link = Lossy {
        one_way: 10 * MS,
        loss: 0.2,
    };
    for (octets, secured, median, most) in [
        (500, false, 300, 1_600),
        (500, true, 300, 900),
        (FIVE_PACKETS, false, 250, 600),
        (FIVE_PACKETS, true, 250, 800),
    ] {
        let took = took(octets, link, secured, early);
        let what = format!("{octets} octets, with keys {secured}: {took:?}");
        assert!(took.median <= median * MS, "{what}");
        assert!(took.most <= most * MS, "{what}");
    }
}

#[test]
fn over_a_satellite_the_early_questions_cost_a_few_packets_and_no_time() {
    let link = Lossy {
        one_way: 300 * MS,
        loss: 0.0,
    };
    for secured in [false, true] {
        let patient = took(FIVE_PACKETS, link, secured, RtoLimits::default());
        let early = took(
            FIVE_PACKETS,
            link,
            secured,
            RtoLimits::asking_early(RATE, MTU),
        );
        assert_eq!((early.median, early.most), (patient.median, patient.most));
        let more = early.datagrams - patient.datagrams;
        assert!(more <= 5 * RUNS, "{more} more in {RUNS} runs");
    }
}
