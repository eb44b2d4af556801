//! What a session costs a datagram: sealing at one end and opening at the other.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fulmar_net::session::{
    Entropy, MtuConfig, PeerConfig, PeerIndex, PresetKey, SecretKey, Security, Session,
    SessionConfig,
};
use fulmar_proto::machine::{Datagram, Deadline, Ecn, Kind, Machine, PathId, Priority, Transmit};
use fulmar_proto::units::Instant;

const OCTETS: usize = 1_400;
const PATH: PathId = PathId(1);

/// Sends as many datagrams as it is told to.
#[derive(Default)]
struct Source {
    left: u32,
    received: u64,
}

impl Machine for Source {
    type Event = ();
    fn handle_datagram(&mut self, _now: Instant, _datagram: Datagram<'_>) {
        self.received += 1;
    }
    fn handle_deadline(&mut self, _now: Instant) {}
    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.left = self.left.checked_sub(1)?;
        out.resize(out.len() + OCTETS, 7);
        Some(Transmit {
            path: PeerIndex(0).inner_path(),
            len: OCTETS,
            kind: Kind::Source,
            priority: Priority(0),
            ecn: Ecn::Capable,
        })
    }
    fn poll_event(&mut self) -> Option<()> {
        None
    }
    fn next_deadline(&self) -> Option<Deadline> {
        None
    }
}

/// One end; with endpoints, the one that calls.
fn session(
    security: Security,
    identity: Option<SecretKey>,
    endpoints: &[PathId],
) -> Session<Source> {
    let peer = PeerConfig {
        name: "peer".to_owned(),
        security,
        endpoints: endpoints.to_vec(),
        mtu: MtuConfig::default(),
    };
    let config = SessionConfig::new(identity, vec![peer], 1);
    let seed = if endpoints.is_empty() { 2 } else { 3 };
    let entropy = Entropy::from_seed([seed; 32]);
    Session::new(config, Source::default(), entropy).expect("a sound configuration")
}

/// Moves everything that waits at `from` to `to`.
fn carry(from: &mut Session<Source>, to: &mut Session<Source>, buffer: &mut Vec<u8>) {
    loop {
        buffer.clear();
        if from.poll_transmit(Instant::START, buffer).is_none() {
            return;
        }
        let datagram = Datagram {
            path: PATH,
            octets: buffer,
            ecn: Ecn::Capable,
        };
        to.handle_datagram(Instant::START, datagram);
    }
}

fn benches(criterion: &mut Criterion) {
    let mut entropy = Entropy::from_seed([1; 32]);
    let [ours, theirs] = [(); 2].map(|()| SecretKey::generate(&mut entropy));
    let to = |key: &SecretKey| Security::Noise {
        peer: key.public(),
        preset: None,
    };
    let noise = [to(&theirs), to(&ours)];
    let preset = Security::Preset {
        key: PresetKey::generate(&mut entropy),
    };
    let none = Security::None { label: 1 };
    let mut group = criterion.benchmark_group("session");
    group.throughput(Throughput::Bytes(OCTETS as u64));
    for (name, [here, there], keys) in [
        ("noise", noise, [Some(ours), Some(theirs)]),
        ("preset", [preset.clone(), preset], [None, None]),
        ("none", [none.clone(), none], [None, None]),
    ] {
        let [our_key, their_key] = keys;
        let mut from = session(here, our_key, &[PATH]);
        let mut to = session(there, their_key, &[]);
        let mut buffer = Vec::new();
        for _ in 0..3 {
            carry(&mut from, &mut to, &mut buffer);
            carry(&mut to, &mut from, &mut buffer);
        }
        group.bench_function(format!("seal and open, {name}"), |bencher| {
            bencher.iter(|| {
                from.inner_mut().left = 1;
                carry(&mut from, &mut to, &mut buffer);
            });
        });
        assert!(to.inner().received > 0, "nothing arrived");
    }
    group.finish();
}

criterion_group!(sessions, benches);
criterion_main!(sessions);
