//! The octets that wait on a path, counted as they come and go.

use super::*;
use crate::machine::{Datagram, PathFacts, PathSizes};
use crate::rng::Rng;
use crate::wire::Mode;
use proptest::prelude::*;

const HOMES: [PathId; 2] = [PathId(0), PathId(1)];
const FURTHER: PathId = PathId(2);
/// The datagrams that leave in one step, at most.
const LEAVE_MAX: usize = 6;

#[derive(Clone, Copy, Debug)]
enum Step {
    Connect {
        home: PathId,
        mode: Mode,
    },
    Write {
        which: usize,
        octets: usize,
    },
    Message {
        which: usize,
        octets: usize,
    },
    Leave {
        near: bool,
        count: usize,
        lost: bool,
    },
    Wait {
        millis: u64,
    },
    Close {
        which: usize,
    },
    Abort {
        which: usize,
    },
    Hold {
        path: PathId,
        held: bool,
    },
    Sizes {
        path: PathId,
        octets: usize,
    },
    Bond,
    Part,
    OtherLink {
        path: PathId,
    },
    Restart {
        home: PathId,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let home = || prop::sample::select(&HOMES[..]);
    let path = || prop::sample::select(vec![HOMES[0], HOMES[1], FURTHER]);
    let which = || 0..8_usize;
    prop_oneof![
        3 => (home(), prop::sample::select(&Mode::ALL[..]))
            .prop_map(|(home, mode)| Step::Connect { home, mode }),
        6 => (which(), 1..20_000_usize).prop_map(|(which, octets)| Step::Write { which, octets }),
        3 => (which(), 1..1_000_usize).prop_map(|(which, octets)| Step::Message { which, octets }),
        12 => (any::<bool>(), 1..=LEAVE_MAX, prop::bool::weighted(0.3))
            .prop_map(|(near, count, lost)| Step::Leave { near, count, lost }),
        6 => (1..400_u64).prop_map(|millis| Step::Wait { millis }),
        1 => which().prop_map(|which| Step::Close { which }),
        1 => which().prop_map(|which| Step::Abort { which }),
        2 => (path(), any::<bool>()).prop_map(|(path, held)| Step::Hold { path, held }),
        1 => (path(), 300..1_400_usize).prop_map(|(path, octets)| Step::Sizes { path, octets }),
        1 => Just(Step::Bond),
        1 => Just(Step::Part),
        1 => path().prop_map(|path| Step::OtherLink { path }),
        1 => home().prop_map(|home| Step::Restart { home }),
    ]
}

/// An endpoint that writes, and one that answers.
struct Ends {
    now: Instant,
    both: [AerotpEndpoint; 2],
    opened: Vec<ConnectionId>,
}

impl Ends {
    fn new() -> Self {
        let rate = RateSource::Told(Bitrate::from_bits_per_second(5_000_000));
        let config = EndpointConfig {
            rate,
            ..EndpointConfig::default()
        };
        let mut both = [1, 2].map(|seed| AerotpEndpoint::new(config, Rng::from_seed(seed)));
        both[1]
            .listen(Port(1), ConnectionConfig::default())
            .expect("the usual settings");
        Self {
            now: Instant::START,
            both,
            opened: Vec::new(),
        }
    }

    fn opened(&self, which: usize) -> Option<ConnectionId> {
        let place = which.checked_rem(self.opened.len())?;
        Some(self.opened[place])
    }

    fn leave(&mut self, near: bool, count: usize, lost: bool) {
        let [from, to] = if near { [0, 1] } else { [1, 0] };
        for _ in 0..count {
            let mut octets = Vec::new();
            let Some(transmit) = self.both[from].poll_transmit(self.now, &mut octets) else {
                return;
            };
            if lost {
                continue;
            }
            let datagram = Datagram {
                path: transmit.path,
                octets: &octets,
                ecn: transmit.ecn,
            };
            self.both[to].handle_datagram(self.now, datagram);
            while let Some(event) = self.both[to].poll_event() {
                if let Event::Readable(id) = event {
                    while self.both[to].read(self.now, id).is_some() {}
                }
            }
        }
    }

    fn take(&mut self, step: Step) {
        let now = self.now;
        let near = &mut self.both[0];
        match step {
            Step::Connect { home, mode } => {
                let config = ConnectionConfig {
                    mode,
                    ..ConnectionConfig::default()
                };
                self.opened.extend(near.connect(now, home, Port(1), config));
            }
            Step::Write { which, octets } => {
                if let Some(id) = self.opened(which) {
                    // What is over takes nothing.
                    let _ = self.both[0].write(now, id, &vec![7; octets]);
                }
            }
            Step::Message { which, octets } => {
                if let Some(id) = self.opened(which) {
                    let _ = self.both[0].write_message(now, id, &vec![7; octets]);
                }
            }
            Step::Leave { near, count, lost } => self.leave(near, count, lost),
            Step::Wait { millis } => {
                self.now += Duration::from_millis(millis);
                for end in &mut self.both {
                    end.handle_deadline(self.now);
                }
            }
            Step::Close { which } => {
                if let Some(id) = self.opened(which) {
                    self.both[0].close(now, id);
                }
            }
            Step::Abort { which } => {
                if let Some(id) = self.opened(which) {
                    self.both[0].abort(now, id);
                }
            }
            Step::Hold { path, held } => near.hold(now, path, held),
            Step::Sizes { path, octets } => {
                let sizes = PathSizes {
                    tpdu_bytes_max: octets,
                    lower_overhead: ByteCount(40),
                };
                // Those that leave no room for a connection's parity are refused.
                let _ = near.set_path_sizes(now, path, sizes);
            }
            Step::Bond => {
                let facts = PathFacts {
                    round_trip: Duration::from_millis(30),
                    home_round_trip: None,
                    rate: Some(Bitrate::from_bits_per_second(2_000_000)),
                    cost: 0,
                };
                for end in &mut self.both {
                    end.bond(now, HOMES[0], FURTHER, facts);
                }
            }
            Step::Part => {
                for end in &mut self.both {
                    end.part(now, FURTHER);
                }
            }
            Step::OtherLink { path } => near.on_other_link(now, path),
            Step::Restart { home } => near.peer_restarted(now, home),
        }
    }

    /// Compares each path's count with what its connections hold.
    fn recount(&self) -> Result<(), TestCaseError> {
        for end in &self.both {
            for (path, schedule) in &end.paths {
                let on_path = end.connections.values();
                let on_path = on_path.filter(|entry| entry.connection.key().path == *path);
                let held: u64 = on_path.map(|entry| entry.connection.unsent_bytes()).sum();
                prop_assert_eq!(schedule.unsent, held, "{:?}", path);
            }
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn the_octets_that_wait_on_a_path_are_those_that_its_connections_have_not_sent(
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut ends = Ends::new();
        for step in steps {
            ends.take(step);
            ends.recount()?;
        }
    }
}
