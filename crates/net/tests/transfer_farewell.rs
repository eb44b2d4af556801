//! A sender that is stopped in the middle of its file is heard by the receiver, however many packets
//! the link loses.
//!
//! Method: both applications and their machines in virtual time, on a link that delays every datagram
//! by 10 ms and loses 40 % of them in either direction; 100 seeds a mode. The link is an event queue
//! of this test's own, so that a seed repeats everything but the octets' way to the disk.

use fulmar_net::transfer::{
    FileDestination, ReceiveObserver, ReceivePlan, ReceiveReport, Receiver, SendError, SendPlan,
    Sender, Source, Stop, TransferVerdict,
};
use fulmar_net::udp::{Application, Step};
use fulmar_proto::machine::{
    Datagram, Deadline, Ecn, Machine, MachineDriver, PathId, Transmit, drain,
};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, ConnectionConfig, EndpointConfig, Event, RateSource,
};
use fulmar_proto::units::{Bitrate, Duration, Instant};
use fulmar_proto::wire::Mode;
use std::collections::BTreeMap;
use std::path::Path;

const DELAY: Duration = Duration::from_millis(10);
const LOSS: f64 = 0.4;
const SEEDS: u64 = 100;
/// A patience so long that it explains no result.
const GIVE_UP: Duration = Duration::from_secs(300);

/// Whether a file was introduced to the receiver.
#[derive(Default)]
struct Introduced(bool);

impl ReceiveObserver for Introduced {
    fn started(&mut self, _name: &str, _size: Option<u64>, _resumed_at: u64) {
        self.0 = true;
    }
}

/// Datagrams on their way: time of arrival, order, and side.
#[derive(Default)]
struct Air {
    flying: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    count: u64,
}

/// One side of the link during a drain.
struct Turn<'a, A> {
    app: &'a mut A,
    air: &'a mut Air,
    rng: &'a mut Rng,
    to: usize,
    buffer: Vec<u8>,
    events: bool,
}

impl<A: Application<AerotpEndpoint>> MachineDriver<AerotpEndpoint> for Turn<'_, A> {
    fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    fn send(&mut self, now: Instant, transmit: Transmit) {
        let octets = self.buffer.split_off(self.buffer.len() - transmit.len);
        if !self.rng.chance(LOSS) {
            self.air.count += 1;
            let key = (now + DELAY, self.air.count);
            self.air.flying.insert(key, (self.to, octets));
        }
    }

    fn deliver(&mut self, now: Instant, machine: &mut AerotpEndpoint, event: Event) {
        self.events = true;
        self.app.deliver(now, machine, event);
    }
}

/// A machine with its application, until that stops.
struct Side<A> {
    machine: AerotpEndpoint,
    app: A,
    is_over: bool,
}

impl<A: Application<AerotpEndpoint>> Side<A> {
    fn settle(&mut self, now: Instant, air: &mut Air, rng: &mut Rng, to: usize) -> Option<Instant> {
        if self.is_over {
            return None;
        }
        if self
            .machine
            .next_deadline()
            .is_some_and(|due| due.at <= now)
        {
            self.machine.handle_deadline(now);
        }
        loop {
            let mut turn = Turn {
                app: &mut self.app,
                air,
                rng,
                to,
                buffer: Vec::new(),
                events: false,
            };
            let machine = drain(&mut self.machine, now, &mut turn);
            let events = turn.events;
            match self.app.work(now, &mut self.machine) {
                Step::Stop => {
                    self.is_over = true;
                    return None;
                }
                Step::Wait if !events => {
                    let due = Deadline::earlier(machine, self.app.next_deadline());
                    return due.map(|due| due.at.max(now));
                }
                Step::Wait | Step::Again => {}
            }
        }
    }

    fn hear(&mut self, now: Instant, octets: &[u8]) {
        if !self.is_over {
            self.machine.handle_datagram(
                now,
                Datagram {
                    path: PathId(0),
                    octets,
                    ecn: Ecn::NotCapable,
                },
            );
        }
    }
}

fn endpoint(rng: &Rng) -> AerotpEndpoint {
    let config = EndpointConfig {
        rate: RateSource::Told(Bitrate::from_bits_per_second(5_000_000)),
        ..EndpointConfig::default()
    };
    AerotpEndpoint::new(config, rng.child("endpoint"))
}

fn connection(mode: Mode) -> ConnectionConfig {
    ConnectionConfig {
        mode,
        give_up_after: GIVE_UP,
        ..ConnectionConfig::default()
    }
}

/// The ends of a transfer that is stopped after two seconds.
struct Ends {
    sender: Option<SendError>,
    introduced: bool,
    receiver: Option<ReceiveReport>,
}

/// Sends a file in `mode`, stops the sender after two seconds, and runs for `further`.
fn stopped_transfer(directory: &Path, mode: Mode, seed: u64, further: Duration) -> Ends {
    let file = directory.join("file");
    std::fs::write(&file, vec![7; 4_000_000]).expect("room");
    let inbox = directory.join(format!("in-{mode}-{seed}"));
    std::fs::create_dir(&inbox).expect("room");
    let root = Rng::from_seed(seed);
    let (mut air, mut rng, stop) = (Air::default(), root.child("loss"), Stop::default());
    let plan = SendPlan {
        name: "file".to_owned(),
        connection: connection(mode),
        connect_timeout: GIVE_UP,
        id: seed,
    };
    let source = Source::open(&file).expect("it was just written");
    let mut sender = Side {
        machine: endpoint(&root.child("sender")),
        app: Sender::new(plan, PathId(0), source, stop.clone(), ()),
        is_over: false,
    };
    let plan = ReceivePlan {
        destination: FileDestination::Directory {
            path: inbox,
            replace: false,
        },
        connection: connection(Mode::Reliable),
        once: false,
        checkpoint_every: GIVE_UP,
    };
    let mut machine = endpoint(&root.child("receiver"));
    let app = Receiver::new(plan, &mut machine, Stop::default(), Introduced::default())
        .expect("the settings can work");
    let mut receiver = Side {
        machine,
        app,
        is_over: false,
    };
    let stop_at = Instant::START + Duration::from_secs(2);
    let mut now = Instant::START;
    while now <= stop_at + further {
        if now >= stop_at {
            stop.request();
        }
        let due = [
            sender.settle(now, &mut air, &mut rng, 1),
            receiver.settle(now, &mut air, &mut rng, 0),
            air.flying.keys().next().map(|(at, _)| *at),
            (now < stop_at).then_some(stop_at),
        ];
        now = due
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(Instant::FAR_FUTURE);
        while let Some(next) = air.flying.first_entry().filter(|next| next.key().0 <= now) {
            let (side, octets) = next.remove();
            if side == 0 {
                sender.hear(now, &octets);
                sender.settle(now, &mut air, &mut rng, 1);
            } else {
                receiver.hear(now, &octets);
                receiver.settle(now, &mut air, &mut rng, 0);
            }
        }
    }
    let outcome = sender.app.take_outcome();
    Ends {
        sender: outcome.map(|outcome| outcome.expect_err("it was stopped")),
        introduced: receiver.app.observer.0,
        receiver: receiver.app.take_report(),
    }
}

#[test]
fn a_stopped_sender_is_heard_on_a_link_that_loses_two_packets_of_five() {
    let directory = tempfile::tempdir().unwrap();
    let mut introduced = 0;
    for mode in [Mode::Reliable, Mode::HybridNackMack, Mode::Unreliable] {
        for seed in 0..SEEDS {
            let ends = stopped_transfer(directory.path(), mode, seed, Duration::from_secs(6));
            let error = ends.sender;
            assert!(
                matches!(error, Some(SendError::Stopped)),
                "{mode}, seed {seed}: {error:?}"
            );
            // The first packets of some transfers are lost for so long that there is nobody to tell.
            introduced += u64::from(ends.introduced);
            let verdict = ends.receiver.map(|report| report.verdict);
            let wanted = ends.introduced.then_some(TransferVerdict::Abandoned);
            assert_eq!(verdict, wanted, "{mode}, seed {seed}");
        }
    }
    assert!(introduced > 2 * SEEDS, "{introduced} of {}", 3 * SEEDS);
}
