//! Two sessions under an arbitrary list of operations: whatever arrives, neither panics, and a datagram
//! that comes out of a protected one was sealed at the other end, for it, and comes out once.

#![no_main]

use arbitrary::Arbitrary;
use fulmar_net::session::{
    EarlyData, Entropy, MtuConfig, PeerConfig, PresetKey, SecretKey, Security, Session,
    SessionConfig, SessionEvent, path_acks, wire_2,
};
use fulmar_proto::machine::{
    Carried, Datagram, Deadline, MachineDriver, Ecn, TransmitKind, Machine, PathId, PathSizes, Priority, Strict,
    TpduForm, Transmit, drain,
};
use fulmar_proto::units::{ByteCount, Duration, FecStrength, Instant};
use fulmar_proto::wire::aerotp::short::{Content, FrameKind};
use fulmar_proto::wire::checksum::hec;
use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeSet, VecDeque};

#[derive(Arbitrary, Debug)]
struct Plan {
    security: u8,
    early: bool,
    fec_words: u8,
    /// A bit for each end that says that it speaks wire 2.
    wires: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Send {
        forward: bool,
        more: u8,
    },
    Deliver {
        forward: bool,
    },
    Lose {
        forward: bool,
    },
    Overtake {
        forward: bool,
    },
    Damage {
        forward: bool,
        bit: u16,
    },
    /// An earlier datagram again, from any address.
    Replay {
        to_b: bool,
        nth: u8,
        path: u8,
    },
    Cut {
        to_b: bool,
        nth: u8,
        len: u16,
    },
    /// An earlier datagram with other octets from `from` on, and a header whose check is right.
    Rewrite {
        to_b: bool,
        nth: u8,
        kind: u8,
        from: u8,
        octets: Vec<u8>,
    },
    Forge {
        to_b: bool,
        octets: Vec<u8>,
    },
    Restart {
        forward: bool,
    },
    Close {
        forward: bool,
    },
    Wait {
        milliseconds: u16,
    },
}

const PATHS: [PathId; 2] = [PathId(1), PathId(2)];
/// The number of the latest datagrams among which the replayed ones are chosen.
const RECORDED: usize = 64;

/// The type of a frame of data in full.
const FULL: u8 = 0x68;

/// Sends numbered messages, in the form that it is told, and keeps those that arrive.
#[derive(Default)]
struct Inner {
    form: TpduForm,
    to_send: VecDeque<Vec<u8>>,
    arrived: VecDeque<Vec<u8>>,
}

impl Carried for Inner {
    const SHORT: bool = true;

    fn speak(&mut self, _now: Instant, path: PathId, form: TpduForm) {
        assert_eq!(path, PathId(0), "paths are peers");
        self.form = form;
    }
    fn handle_frames(&mut self, _now: Instant, datagram: Datagram<'_>) {
        assert_eq!(datagram.path, PathId(0), "paths are peers");
        for frame in Content::of(datagram.octets).flatten() {
            if frame.kind() == Some(FrameKind::Full) {
                self.arrived.push_back(frame.fields().to_vec());
            }
        }
    }
    fn hold(&mut self, _now: Instant, _path: PathId, _held: bool) {}
    fn set_path_sizes(
        &mut self,
        _now: Instant,
        _path: PathId,
        _sizes: PathSizes,
    ) -> Result<(), String> {
        Ok(())
    }
    fn on_sent_below(&mut self, _now: Instant, _path: PathId, _wire: ByteCount) {}
    fn peer_restarted(&mut self, _now: Instant, _path: PathId) {}
}

impl Machine for Inner {
    type Event = Vec<u8>;
    fn handle_datagram(&mut self, _: Instant, datagram: Datagram<'_>) {
        assert_eq!(datagram.path, PathId(0), "paths are peers");
        self.arrived.push_back(datagram.octets.to_vec());
    }
    fn handle_deadline(&mut self, _: Instant) {}
    fn poll_transmit(&mut self, _: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        let octets = self.to_send.pop_front()?;
        let start = out.len();
        if self.form == TpduForm::Short {
            out.push(FULL);
        }
        out.extend_from_slice(&octets);
        Some(Transmit {
            path: PathId(0),
            len: out.len() - start,
            kind: TransmitKind::Source,
            priority: Priority(0),
            ecn: Ecn::Capable,
        })
    }
    fn poll_event(&mut self) -> Option<Vec<u8>> {
        self.arrived.pop_front()
    }
    fn next_deadline(&self) -> Option<Deadline> {
        None
    }
}

struct End {
    machine: Strict<Session<Inner>>,
    config: SessionConfig,
    deadline: Option<Deadline>,
    starts: u8,
}

struct Ends<'a> {
    buffer: Vec<u8>,
    sent: &'a mut VecDeque<Vec<u8>>,
    epoch: Option<u64>,
    arrived: Vec<Vec<u8>>,
}

impl MachineDriver<Strict<Session<Inner>>> for Ends<'_> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        &mut self.buffer
    }
    fn send(&mut self, _: Instant, _: Transmit) {
        self.sent.push_back(self.buffer.clone());
    }
    fn deliver(
        &mut self,
        _: Instant,
        _: &mut Strict<Session<Inner>>,
        event: SessionEvent<Vec<u8>>,
    ) {
        match event {
            SessionEvent::EpochSeen { epoch, .. } => self.epoch = Some(epoch),
            SessionEvent::Inner(octets) => self.arrived.push(octets),
            _ => {}
        }
    }
}

fn secret(n: u8) -> SecretKey {
    SecretKey::generate(&mut Entropy::from_seed([n; 32]))
}

fn configs(plan: &Plan) -> [SessionConfig; 2] {
    let keys = [secret(1), secret(2)];
    let preset = PresetKey::generate(&mut Entropy::from_seed([3; 32]));
    let config = |own: usize| {
        let security = match plan.security % 4 {
            0 => Security::Noise {
                peer: keys[1 - own].public(),
                preset: None,
            },
            1 => Security::Noise {
                peer: keys[1 - own].public(),
                preset: Some(preset.clone()),
            },
            2 => Security::Preset {
                key: preset.clone(),
            },
            _ => Security::None { label: 1 },
        };
        let peer = PeerConfig {
            name: "other".to_owned(),
            security,
            endpoints: vec![PATHS[own]],
            mtu: MtuConfig::default(),
        };
        let mut config = SessionConfig::new(Some(keys[own].clone()), vec![peer], 1 << 40);
        config.fec_words =
            FecStrength::from_words(u16::from(plan.fec_words % 8)).expect("a strength");
        if plan.wires >> own & 1 == 1 {
            config.capabilities.extend([wire_2(), path_acks()]);
        }
        config.rekey.after_datagrams = 40;
        if plan.early {
            config.early_data = [EarlyData::Send, EarlyData::Take][own];
        }
        config
    };
    [config(0), config(1)]
}

fn start(config: &SessionConfig, seed: u8, starts: u8) -> Strict<Session<Inner>> {
    let mut octets = [seed; 32];
    octets[0] = starts;
    let session = Session::new(config.clone(), Inner::default(), Entropy::from_seed(octets));
    Strict::new(session.expect("a sound configuration"))
}

struct World {
    now: Instant,
    ends: [End; 2],
    /// Datagrams on the way to each end.
    flying: [VecDeque<Vec<u8>>; 2],
    recorded: [VecDeque<Vec<u8>>; 2],
    /// Messages that were sent towards each end and have not come out.
    expected: [BTreeSet<Vec<u8>>; 2],
    secure: bool,
    sent: u32,
}

impl World {
    fn new(plan: &Plan) -> Self {
        let mut seed = 10;
        let ends = configs(plan).map(|config| {
            seed += 1;
            End {
                machine: start(&config, seed, 0),
                config,
                deadline: None,
                starts: 0,
            }
        });
        let mut world = Self {
            now: Instant::START,
            ends,
            flying: Default::default(),
            recorded: Default::default(),
            expected: Default::default(),
            secure: plan.security % 4 != 3,
            sent: 0,
        };
        world.settle(0);
        world.settle(1);
        world
    }

    fn settle(&mut self, end: usize) {
        let mut sent = VecDeque::new();
        let mut driver = Ends {
            buffer: Vec::new(),
            sent: &mut sent,
            epoch: None,
            arrived: Vec::new(),
        };
        let state = &mut self.ends[end];
        state.deadline = drain(&mut state.machine, self.now, &mut driver);
        let arrived = driver.arrived;
        if let Some(epoch) = driver.epoch {
            state.config.epochs_seen = vec![epoch];
        }
        for octets in sent {
            let recorded = &mut self.recorded[1 - end];
            recorded.push_back(octets.clone());
            if recorded.len() > RECORDED {
                recorded.pop_front();
            }
            self.flying[1 - end].push_back(octets);
        }
        for octets in arrived {
            let known = self.expected[end].remove(&octets);
            assert!(
                known || !self.secure,
                "{octets:?} was not sent, or came out twice"
            );
        }
    }

    fn arrive(&mut self, end: usize, path: PathId, octets: &[u8]) {
        let datagram = Datagram {
            path,
            octets,
            ecn: Ecn::Capable,
        };
        self.ends[end].machine.handle_datagram(self.now, datagram);
        self.settle(end);
    }

    fn wait(&mut self, span: Duration) {
        let until = self.now + span;
        for _ in 0..2_000 {
            let at = |end: &End| end.deadline.map(|deadline| deadline.at);
            let (a, b) = (at(&self.ends[0]), at(&self.ends[1]));
            let Some(first) = a.into_iter().chain(b).min().filter(|at| *at <= until) else {
                break;
            };
            self.now = self.now.max(first);
            for (end, due) in [a, b].into_iter().enumerate() {
                if due == Some(first) {
                    self.ends[end].machine.handle_deadline(self.now);
                    self.settle(end);
                }
            }
        }
        self.now = until;
    }

    fn recorded(&self, end: usize, nth: u8) -> Option<Vec<u8>> {
        self.recorded[end].get(usize::from(nth) % RECORDED).cloned()
    }

    fn step(&mut self, step: Step) {
        let at = |forward: bool| usize::from(forward);
        match step {
            Step::Send { forward, more } => {
                let end = 1 - at(forward);
                for _ in 0..=more % 16 {
                    self.sent += 1;
                    let message = [&self.sent.to_be_bytes()[..], &[more; 40]].concat();
                    self.expected[1 - end].insert(message.clone());
                    self.ends[end]
                        .machine
                        .app()
                        .inner_mut()
                        .to_send
                        .push_back(message);
                }
                self.settle(end);
            }
            Step::Deliver { forward } => {
                if let Some(octets) = self.flying[at(forward)].pop_front() {
                    self.arrive(at(forward), PATHS[1 - at(forward)], &octets);
                }
            }
            Step::Lose { forward } => drop(self.flying[at(forward)].pop_front()),
            Step::Overtake { forward } => {
                let queue = &mut self.flying[at(forward)];
                if let Some(octets) = queue.pop_front() {
                    queue.push_back(octets);
                }
            }
            Step::Damage { forward, bit } => {
                if let Some(mut octets) = self.flying[at(forward)].pop_front() {
                    let bit = usize::from(bit) % (octets.len() * 8);
                    octets[bit / 8] ^= 1 << (bit % 8);
                    self.arrive(at(forward), PATHS[1 - at(forward)], &octets);
                }
            }
            Step::Replay { to_b, nth, path } => {
                if let Some(octets) = self.recorded(at(to_b), nth) {
                    self.arrive(at(to_b), PathId(u32::from(path)), &octets);
                }
            }
            Step::Cut { to_b, nth, len } => {
                if let Some(mut octets) = self.recorded(at(to_b), nth) {
                    octets.truncate(usize::from(len) % (octets.len() + 1));
                    self.arrive(at(to_b), PATHS[1 - at(to_b)], &octets);
                }
            }
            Step::Rewrite {
                to_b,
                nth,
                kind,
                from,
                octets: new,
            } => {
                if let Some(mut octets) = self.recorded(at(to_b), nth) {
                    // Data in wire 2 has no check, and stays such data.
                    if octets[0] >> 3 == 5 {
                        octets[0] = 0x28 | kind & 7;
                        let old = octets.iter_mut().skip(usize::from(from).max(1));
                        old.zip(&new).for_each(|(old, new)| *old = *new);
                        self.arrive(at(to_b), PATHS[1 - at(to_b)], &octets);
                        return;
                    }
                    octets[0] = 0x10 | kind & 0x0F;
                    let old = octets.iter_mut().skip(usize::from(from).max(4));
                    old.zip(&new).for_each(|(old, new)| *old = *new);
                    if octets.len() >= 12 {
                        let hec = hec(&octets[..2], &octets[4..12]);
                        octets[2..4].copy_from_slice(&hec.to_be_bytes());
                    }
                    self.arrive(at(to_b), PATHS[1 - at(to_b)], &octets);
                }
            }
            Step::Forge { to_b, octets } => {
                self.arrive(at(to_b), PATHS[1 - at(to_b)], &octets);
            }
            Step::Restart { forward } => {
                let end = 1 - at(forward);
                let state = &mut self.ends[end];
                state.starts += 1;
                state.config.boot_epoch += 1 << 24;
                state.machine = start(&state.config, end as u8 + 11, state.starts);
                state.machine.poll_transmit(self.now, &mut Vec::new());
                self.settle(end);
            }
            Step::Close { forward } => {
                let now = self.now;
                let end = 1 - at(forward);
                self.ends[end].machine.app().close(now);
                self.settle(end);
            }
            Step::Wait { milliseconds } => {
                self.wait(Duration::from_millis(u64::from(milliseconds)));
            }
        }
    }
}

fuzz_target!(|plan: Plan| {
    let mut plan = plan;
    // An epoch a start; no more starts than its octet has numbers.
    let steps = core::mem::take(&mut plan.steps);
    let mut world = World::new(&plan);
    for step in steps.into_iter().take(120) {
        world.step(step);
    }
});
