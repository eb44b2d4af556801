//! Two endpoints under an arbitrary list of operations: whatever the medium and the applications
//! do, neither panics, and in confirming modes what is read is a prefix of what was written. Their paths change between the
//! long form and the short one, where what is damaged is lost.

#![no_main]

use arbitrary::Arbitrary;
use core::num::NonZeroU8;
use fulmar_proto::fec::block::BlockPlan;
use fulmar_proto::machine::{
    Carried, Datagram, MachineDriver, Ecn, Machine, PathId, Strict, TpduForm, Transmit, drain,
};
use fulmar_proto::repair::{Deliver, DeliveryGoal, DeliveryOrder};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AckPolicy, AckStyle, ConnectionConfig, ConnectionId, AerotpEndpoint, EndpointConfig, Event, RateSource,
    ThinRepair,
};
use fulmar_proto::units::{Bitrate, Duration, Instant};
use fulmar_proto::wire::TpduSeq;
use fulmar_proto::wire::aerotp::FecStrength;
use fulmar_proto::wire::{Mode, Port};
use libfuzzer_sys::fuzz_target;
use std::collections::VecDeque;

#[derive(Arbitrary, Debug)]
struct Plan {
    mode: u8,
    fec_words: u8,
    mack_every: u8,
    listed: bool,
    block: Option<(u8, u8, u8)>,
    window: u8,
    first_seq: u32,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Write { octets: u16 },
    Answer { octets: u16 },
    Close { forward: bool },
    Abort { forward: bool },
    Deliver { forward: bool },
    Duplicate { forward: bool },
    Lose { forward: bool },
    Overtake { forward: bool },
    Damage { forward: bool, bit: u16 },
    Forge { forward: bool, octets: Vec<u8> },
    Wait { milliseconds: u16 },
    Hold { forward: bool, held: bool },
    Speak { forward: bool, short: bool },
    UseWindows { forward: bool, are_taken: bool },
}

const PORT: Port = Port(9);

struct End {
    machine: Strict<AerotpEndpoint>,
    app: App,
}

#[derive(Default)]
struct App {
    id: Option<ConnectionId>,
    /// A replay can open a second connection; only the first is compared.
    watched: Option<ConnectionId>,
    read: Vec<u8>,
    buffer: Vec<u8>,
    form: TpduForm,
    out: VecDeque<(TpduForm, Vec<u8>)>,
}

impl MachineDriver<Strict<AerotpEndpoint>> for App {
    fn buffer(&mut self) -> &mut Vec<u8> {
        self.buffer.clear();
        &mut self.buffer
    }
    fn send(&mut self, _now: Instant, _transmit: Transmit) {
        if self.out.len() < 512 {
            self.out.push_back((self.form, self.buffer.clone()));
        }
    }
    fn deliver(&mut self, now: Instant, machine: &mut Strict<AerotpEndpoint>, event: Event) {
        match event {
            Event::Incoming { id, .. } => {
                self.id.get_or_insert(id);
                self.watched.get_or_insert(id);
            }
            Event::Readable(id) => {
                while let Some(chunk) = machine.app().read(now, id) {
                    if self.watched == Some(id) {
                        self.read.extend_from_slice(&chunk.octets);
                    }
                }
            }
            _ => {}
        }
    }
}

impl End {
    fn settle(&mut self, now: Instant) {
        drain(&mut self.machine, now, &mut self.app);
    }

    fn take(&mut self, now: Instant, form: TpduForm, octets: &[u8]) {
        let datagram = Datagram {
            path: PathId(0),
            octets,
            ecn: Ecn::NotCapable,
        };
        match form {
            TpduForm::Long => self.machine.handle_datagram(now, datagram),
            TpduForm::Short => self.machine.handle_frames(now, datagram),
        }
        self.settle(now);
    }

    fn wake(&mut self, now: Instant) {
        for _ in 0..64 {
            match self.machine.next_deadline() {
                Some(deadline) if deadline.at <= now => self.machine.handle_deadline(now),
                _ => return,
            }
            self.settle(now);
        }
    }
}

fn octets(from: usize, len: usize) -> Vec<u8> {
    (from..from + len)
        .map(|i| (i.wrapping_mul(31) >> 3) as u8)
        .collect()
}

fuzz_target!(|plan: Plan| {
    let mode = [
        Mode::Unreliable,
        Mode::QuasiReliable,
        Mode::NearReliable,
        Mode::Reliable,
        Mode::HybridNack,
        Mode::HybridNackMack,
        Mode::Datagram,
    ][usize::from(plan.mode % 7)];
    let style = if plan.listed {
        AckStyle::Listed
    } else {
        AckStyle::Cumulative
    };
    let config = ConnectionConfig {
        mode,
        fec_words: FecStrength::from_words(u16::from(plan.fec_words % 32)).unwrap_or_default(),
        ack: AckPolicy {
            every: u16::from(plan.mack_every).max(1),
            style,
            ..AckPolicy::default()
        },
        block: plan.block.and_then(|(k, repairs, ms)| {
            BlockPlan::new(
                NonZeroU8::new(k)?,
                repairs,
                Duration::from_millis(u64::from(ms)),
            )
        }),
        window_tpdus: u16::from(plan.window).max(2),
        thin: (plan.window % 2 == 1).then(|| {
            let thin = ThinRepair::at_most(plan.mack_every);
            let goal = DeliveryGoal {
                deadline: Duration::from_millis(u64::from(plan.fec_words)),
                missed_millionths: 10_000,
                deliver: Deliver::All,
                order: DeliveryOrder::Kept,
            };
            if plan.window % 4 == 3 { thin.with_goal(goal).unwrap_or(thin) } else { thin }
        }),
        tpdu_bytes_max: 300,
        first_seq: TpduSeq(plan.first_seq),
        ..ConnectionConfig::default()
    };
    let endpoint = EndpointConfig {
        rate: RateSource::Told(Bitrate::from_bits_per_second(1_000_000)),
        ..Default::default()
    };
    let end = |seed| End {
        machine: Strict::new(AerotpEndpoint::new(endpoint, Rng::from_seed(seed))),
        app: App::default(),
    };
    let mut ends = [end(1), end(2)];
    let mut now = Instant::START;
    ends[1].machine.app().listen(PORT, config).expect("sound");
    ends[1].settle(now);
    let id = ends[0]
        .machine
        .app()
        .connect(now, PathId(0), PORT, config)
        .expect("sound");
    ends[0].app.id = Some(id);
    ends[0].app.watched = Some(id);
    ends[0].settle(now);

    let mut written = [0_usize; 2];
    let mut forged = false;
    for step in plan.steps.iter().take(400) {
        let from = |forward: bool| usize::from(!forward);
        match step {
            Step::Write { octets: len } | Step::Answer { octets: len } => {
                let side = usize::from(matches!(step, Step::Answer { .. }));
                let more = octets(written[side], usize::from(*len % 5_000));
                if let Some(id) = ends[side].app.id {
                    written[side] += ends[side].machine.app().write(now, id, &more).unwrap_or(0);
                    ends[side].settle(now);
                }
            }
            Step::Close { forward } | Step::Abort { forward } => {
                let side = from(*forward);
                if let Some(id) = ends[side].app.id {
                    match step {
                        Step::Close { .. } => ends[side].machine.app().close(now, id),
                        _ => ends[side].machine.app().abort(now, id),
                    }
                    ends[side].settle(now);
                }
            }
            Step::Deliver { forward } | Step::Damage { forward, .. } => {
                let side = from(*forward);
                if let Some((form, mut datagram)) = ends[side].app.out.pop_front() {
                    if let Step::Damage { bit, .. } = step {
                        if form == TpduForm::Short {
                            continue;
                        }
                        let bit = usize::from(*bit) % (datagram.len() * 8);
                        datagram[bit / 8] ^= 1 << (bit % 8);
                    }
                    ends[1 - side].take(now, form, &datagram);
                }
            }
            Step::Duplicate { forward } => {
                let side = from(*forward);
                if let Some((form, datagram)) = ends[side].app.out.front().cloned() {
                    ends[1 - side].take(now, form, &datagram);
                }
            }
            Step::Lose { forward } => {
                ends[from(*forward)].app.out.pop_front();
            }
            Step::Overtake { forward } => {
                let out = &mut ends[from(*forward)].app.out;
                if let Some(front) = out.pop_front() {
                    out.push_back(front);
                }
            }
            Step::Forge { forward, octets } => {
                forged = true;
                let side = from(*forward);
                let form = ends[side].app.form;
                ends[1 - side].take(now, form, octets);
            }
            Step::Speak { forward, short } => {
                let side = from(*forward);
                let form = if *short {
                    TpduForm::Short
                } else {
                    TpduForm::Long
                };
                ends[side].app.form = form;
                ends[side].machine.speak(now, PathId(0), form);
                ends[side].settle(now);
            }
            Step::UseWindows { forward, are_taken } => {
                let side = from(*forward);
                ends[side].machine.use_windows(now, PathId(0), *are_taken);
                ends[side].settle(now);
            }
            Step::Hold { forward, held } => {
                let side = from(*forward);
                ends[side].machine.app().hold(now, PathId(0), *held);
                ends[side].settle(now);
                if *held {
                    let before = ends[side].app.out.len();
                    ends[side].wake(now);
                    assert_eq!(ends[side].app.out.len(), before, "nothing leaves");
                }
            }
            Step::Wait { milliseconds } => {
                now += Duration::from_millis(u64::from(*milliseconds));
                ends[0].wake(now);
                ends[1].wake(now);
            }
        }
    }
    // The fuzzer can forge what a check of 48 bits accepts; then only the absence of panics counts.
    let confirming = matches!(
        mode,
        Mode::Reliable | Mode::NearReliable | Mode::HybridNackMack
    );
    if confirming && !forged {
        for side in 0..2 {
            let read = &ends[1 - side].app.read;
            assert!(read.len() <= written[side]);
            assert_eq!(*read, octets(0, read.len()));
        }
    }
});
