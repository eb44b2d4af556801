//! Two ends and a wire between them, whose frames a test may drop, repeat, delay or damage.

use crate::link::{
    FlowHash, FrameTransmit, LinkDriver, LinkMachine, LinkPacket, Medium, Slacp, SlacpConfig,
    StrictLink, drain,
};
use crate::wire::link::slacp::{SLACP_BLOCK_OVERHEAD_BYTES, SLACP_OVERHEAD_BYTES};
use fulmar_proto::machine::{Priority, TransmitKind};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Bitrate, Duration, Instant};
use std::collections::{BTreeMap, VecDeque};

/// Octets of a frame's check, behind the packet.
const CHECK: usize = 4;

/// The delay of one way.
pub(super) const DELAY: Duration = Duration::from_millis(100);
const RATE: Bitrate = Bitrate::from_bits_per_second(1_000_000);

/// The ends' knowledge of the wire.
pub(super) const MEDIUM: Medium = Medium {
    rate: Some(RATE),
    back_rate: Some(RATE),
    round_trip: Duration::from_millis(200),
    access: Duration::from_millis(30),
};

/// The fate of a frame: the times at which its copies arrive, after [`DELAY`] and the time given
/// here.
pub(super) type Fate = Vec<Duration>;

/// A rule that decides each frame's fate by the end that sends it, its number, and its octets.
type Oracle = dyn FnMut(usize, u64, &mut Vec<u8>) -> Fate;

/// The fate of a frame that arrives once, in time.
pub(super) fn intact() -> Fate {
    vec![Duration::ZERO]
}

#[derive(Clone, Debug)]
struct Offered {
    octets: Vec<u8>,
    flow: u32,
    priority: u8,
}

struct End {
    machine: Option<StrictLink<Slacp>>,
    queue: VecDeque<Offered>,
    busy_until: Instant,
    wake: Option<Instant>,
    released: Vec<Vec<u8>>,
    released_at: Vec<Instant>,
    births: u64,
}

/// The two ends and the wire.
pub(super) struct Pair {
    pub(super) now: Instant,
    config: SlacpConfig,
    seed: u64,
    ends: [End; 2],
    /// Frames under way, by time of arrival and order of sending, each with the end it goes to.
    flying: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    sent: u64,
    /// The time at which each packet first came to end 1 in a frame of its own.
    pub(super) arrived: BTreeMap<Vec<u8>, Instant>,
    /// Every frame that was sent: the end that sent it, its first octet's type, and the time.
    pub(super) log: Vec<(usize, u8, Instant)>,
    /// The rule that decides each frame's fate by the end that sends it, its number, and its
    /// octets.
    pub(super) fate: Box<Oracle>,
}

struct Port<'a> {
    from: usize,
    pair: &'a mut Pair,
    packet: Vec<u8>,
    frame: Vec<u8>,
    up: Vec<u8>,
}

impl LinkDriver for Port<'_> {
    /// Packets of higher precedence leave the queue first.
    fn next_packet(&mut self, _now: Instant, least: Priority) -> Option<LinkPacket<'_>> {
        let queue = &mut self.pair.ends[self.from].queue;
        let highest = queue.iter().map(|offered| offered.priority).max()?;
        if highest < least.0 {
            return None;
        }
        let place = queue
            .iter()
            .position(|offered| offered.priority == highest)?;
        let offered = queue.remove(place)?;
        self.packet = offered.octets;
        Some(LinkPacket {
            octets: &self.packet,
            flow: FlowHash(offered.flow),
            priority: Priority(offered.priority),
            kind: TransmitKind::Source,
            deadline: None,
        })
    }

    fn packet_buffer(&mut self) -> &mut Vec<u8> {
        self.up.clear();
        &mut self.up
    }

    fn deliver(&mut self, now: Instant, _len: usize) {
        self.pair.ends[self.from].released.push(self.up.clone());
        self.pair.ends[self.from].released_at.push(now);
    }

    fn can_send(&self) -> bool {
        self.pair.ends[self.from].busy_until <= self.pair.now
    }

    fn frame_buffer(&mut self) -> &mut Vec<u8> {
        self.frame.clear();
        &mut self.frame
    }

    fn send(&mut self, now: Instant, _frame: FrameTransmit) {
        let mut frame = self.frame.clone();
        let pair = &mut *self.pair;
        let airtime = RATE.time_to_send(fulmar_proto::units::ByteCount::of(&frame));
        let end = now + airtime;
        pair.ends[self.from].busy_until = end;
        pair.sent += 1;
        pair.log.push((self.from, frame[0] >> 5, now));
        let mut fate = core::mem::replace(&mut pair.fate, Box::new(|_, _, _| intact()));
        for (copy, late) in (0..).zip(fate(self.from, pair.sent, &mut frame)) {
            let key = (end + DELAY + late, pair.sent * 8 + copy);
            pair.flying.insert(key, (1 - self.from, frame.clone()));
        }
        pair.fate = fate;
    }
}

impl Pair {
    pub(super) fn new(config: SlacpConfig, seed: u64) -> Self {
        let end = || End {
            machine: None,
            queue: VecDeque::new(),
            busy_until: Instant::START,
            wake: None,
            released: Vec::new(),
            released_at: Vec::new(),
            births: 0,
        };
        let mut pair = Self {
            now: Instant::START,
            config,
            seed,
            ends: [end(), end()],
            flying: BTreeMap::new(),
            sent: 0,
            arrived: BTreeMap::new(),
            log: Vec::new(),
            fate: Box::new(|_, _, _| intact()),
        };
        pair.restart(0);
        pair.restart(1);
        pair
    }

    /// Restarts an end without memory, and the node above it too: packets that it got before are
    /// forgotten.
    pub(super) fn restart(&mut self, end: usize) {
        let births = self.ends[end].births;
        let mut rng = Rng::from_seed(self.seed).child(&format!("end-{end}/{births}"));
        let machine = StrictLink::new(Slacp::new(self.config, MEDIUM, &mut rng));
        self.ends[end].machine = Some(machine);
        self.ends[end].births += 1;
        self.ends[end].released.clear();
        self.ends[end].released_at.clear();
        self.ends[end].wake = None;
    }

    /// Gives `end` packets to send, of a flow and a precedence.
    pub(super) fn offer(&mut self, end: usize, flow: u32, priority: u8, packets: Vec<Vec<u8>>) {
        let offered = packets.into_iter().map(|octets| Offered {
            octets,
            flow,
            priority,
        });
        self.ends[end].queue.extend(offered);
        self.drain(end);
    }

    /// Hands `end` a frame that no end sent.
    pub(super) fn inject(&mut self, end: usize, octets: &[u8]) {
        let before = match (end, octets.first().map(|first| first >> 5)) {
            (1, Some(0)) => Some(SLACP_OVERHEAD_BYTES - CHECK),
            (1, Some(1)) => Some(SLACP_BLOCK_OVERHEAD_BYTES - CHECK),
            _ => None,
        };
        let packet =
            before.and_then(|before| octets.get(before..octets.len().saturating_sub(CHECK)));
        if let Some(packet) = packet {
            self.arrived.entry(packet.to_vec()).or_insert(self.now);
        }
        if let Some(machine) = &mut self.ends[end].machine {
            machine.handle_frame(self.now, octets);
        }
        self.drain(end);
    }

    fn drain(&mut self, end: usize) {
        let Some(mut machine) = self.ends[end].machine.take() else {
            return;
        };
        let now = self.now;
        let mut port = Port {
            from: end,
            pair: self,
            packet: Vec::new(),
            frame: Vec::new(),
            up: Vec::new(),
        };
        self.ends[end].wake = drain(&mut machine, now, &mut port).map(|deadline| deadline.at);
        self.ends[end].machine = Some(machine);
    }

    /// Runs until `until`. Returns whether something was still to come.
    pub(super) fn run_until(&mut self, until: Instant) -> bool {
        loop {
            let arrival = self.flying.first_key_value().map(|(&(at, _), _)| at);
            let ends = self.ends.iter().flat_map(|end| {
                let busy = (end.busy_until > self.now).then_some(end.busy_until);
                [end.wake, busy]
            });
            let Some(next) = ends.flatten().chain(arrival).min() else {
                self.now = until;
                return false;
            };
            if next > until {
                self.now = until;
                return true;
            }
            self.now = self.now.max(next);
            if arrival == Some(next)
                && let Some((_, (end, octets))) = self.flying.pop_first()
            {
                self.inject(end, &octets);
            }
            for end in 0..2 {
                if let Some(machine) = &mut self.ends[end].machine
                    && machine.next_deadline().is_some_and(|d| d.at <= self.now)
                {
                    machine.handle_deadline(self.now);
                }
                self.drain(end);
            }
        }
    }

    /// Runs for `span`.
    pub(super) fn run_for(&mut self, span: Duration) -> bool {
        self.run_until(self.now + span)
    }

    /// Runs until nothing happens any more; fails when that takes more than ten minutes.
    pub(super) fn run_out(&mut self) {
        let more = self.run_for(Duration::from_secs(600));
        assert!(
            !more,
            "a link without packets must come to rest, seed {}",
            self.seed
        );
    }

    pub(super) fn released(&self, end: usize) -> &[Vec<u8>] {
        &self.ends[end].released
    }

    /// The time at which each packet was released.
    pub(super) fn released_at(&self, end: usize) -> &[Instant] {
        &self.ends[end].released_at
    }

    pub(super) fn machine(&self, end: usize) -> &Slacp {
        self.ends[end]
            .machine
            .as_ref()
            .expect("it is away only while it is drained")
            .inner()
    }

    /// Counts the frames of a type that an end has sent.
    pub(super) fn frames(&self, end: usize, kind: u8) -> usize {
        self.log
            .iter()
            .filter(|f| (f.0, f.1) == (end, kind))
            .count()
    }
}

/// `count` packets that differ, numbered from `first`.
pub(super) fn packets(first: u32, count: u32) -> Vec<Vec<u8>> {
    (first..first + count)
        .map(|number| {
            let len = 40 + usize::try_from(number * 37 % 400).unwrap_or_default();
            let mut packet = vec![number.to_le_bytes()[0]; len];
            packet[..4].copy_from_slice(&number.to_be_bytes());
            packet
        })
        .collect()
}
