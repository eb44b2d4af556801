//! The traffic's side: packets into a buffer that is bounded.

use super::file::CaptureEnd;
use crate::clock::{Clock, unix_time};
use fulmar_capture::{
    Comment, Direction, Dissector, Ends, InterfaceId, Packet, Pcapng, Section, packet_count,
};
use fulmar_proto::units::{ByteCount, Duration, Instant};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Octets that wait for the file at most: 70 ms at 1 gbit/s.
const WAITING_MAX: usize = 8 << 20;
/// From here on the writer is called.
const WRITE_FROM: usize = 64 << 10;
/// What waits less is written after so long.
const WRITE_EVERY: Duration = Duration::from_millis(500);

/// A packet as it was seen.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Where.
    pub interface: InterfaceId,
    /// When.
    pub at: Instant,
    /// Which way it went.
    pub direction: Direction,
    /// What its octets are.
    pub dissector: Dissector,
    /// The ends it travels between, where the octets do not say so.
    pub ends: Option<Ends>,
    /// All of it.
    pub octets: &'a [u8],
    /// What is to be said about it.
    pub comment: &'a Comment,
}

/// What a capture did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureCounters {
    /// Packets that got into the file.
    pub packets: u64,
    /// Packets left out, because the disk did not keep up or the capture has ended.
    pub missed: u64,
}

/// Takes packets for a capture, from any thread.
#[derive(Clone, Debug)]
pub struct Recorder(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Debug)]
struct State {
    pcapng: Pcapng<Vec<u8>>,
    max_size: ByteCount,
    counters: CaptureCounters,
    /// Left out since the last packet.
    missed: u64,
    ended: Option<CaptureEnd>,
    /// Nothing more comes.
    is_closing: bool,
}

impl Recorder {
    /// A recorder whose packets have times of `clock`, and its interfaces, each by name and text.
    pub(super) fn new<const N: usize>(
        clock: Clock,
        about: &str,
        max_size: ByteCount,
        interfaces: [(&str, &str); N],
    ) -> io::Result<(Self, [InterfaceId; N])> {
        let section = Section {
            comment: about.to_owned(),
            origin: unix_time().saturating_sub(clock.now().saturating_since(Instant::START)),
        };
        let mut pcapng = Pcapng::new(Vec::new(), &section)?;
        let ids = interfaces.map(|(name, text)| {
            let written = pcapng.interface(name, text);
            written.expect("memory takes everything")
        });
        let state = State {
            pcapng,
            max_size,
            counters: CaptureCounters::default(),
            missed: 0,
            ended: None,
            is_closing: false,
        };
        let shared = Shared {
            state: Mutex::new(state),
            more: Condvar::new(),
        };
        Ok((Self(Arc::new(shared)), ids))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What a panicking thread left is blocks, the last of which is whole or cut off below.
        self.0
            .state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Captures a packet, or counts it as missed.
    pub fn packet(&self, seen: &Seen<'_>) {
        let mut state = self.lock();
        let waiting = state.pcapng.out().len();
        // Room for tags and options beside the octets.
        let fits = waiting + seen.octets.len() + 1_024 <= WAITING_MAX;
        if state.ended.is_some() || !fits {
            state.missed += 1;
            state.counters.missed += 1;
            return;
        }
        let missed = state.missed;
        let written = state.pcapng.packet(&Packet {
            interface: seen.interface,
            at: seen.at,
            direction: seen.direction,
            dissector: seen.dissector,
            ends: seen.ends,
            octets: seen.octets,
            comment: seen.comment,
            missed,
        });
        if written.is_err() || state.pcapng.octets() > state.max_size.0 {
            state.pcapng.out().truncate(waiting);
            state.ended = Some(CaptureEnd::Size);
            state.missed += 1;
            state.counters.missed += 1;
        } else {
            state.missed = 0;
        }
        if waiting >= WRITE_FROM || state.ended.is_some() {
            self.0.more.notify_one();
        }
    }

    /// What was done so far.
    pub fn counters(&self) -> CaptureCounters {
        self.lock().counters
    }

    /// Whether the capture has ended, and why.
    pub fn ended(&self) -> Option<CaptureEnd> {
        self.lock().ended.clone()
    }

    /// Nothing more comes: the writer writes the rest and ends.
    pub(super) fn close(&self) {
        self.lock().is_closing = true;
        self.0.more.notify_one();
    }

    /// So many more packets are in the file.
    pub(super) fn wrote(&self, packets: u64) {
        self.lock().counters.packets += packets;
    }

    /// The capture cannot go on, and `lost` packets that were taken are not in it.
    pub(super) fn fail(&self, why: &str, lost: u64) {
        let mut state = self.lock();
        state.ended = Some(CaptureEnd::Disk(why.to_owned()));
        let lost = lost + packet_count(state.pcapng.out());
        state.counters.missed += lost;
        // Nobody will write it.
        *state.pcapng.out() = Vec::new();
    }

    /// Waits for blocks and takes them in exchange for an empty buffer; `false` if nothing will
    /// follow them.
    pub(super) fn take(&self, blocks: &mut Vec<u8>) -> bool {
        blocks.clear();
        let idle = |state: &mut State| {
            state.pcapng.out().len() < WRITE_FROM && state.ended.is_none() && !state.is_closing
        };
        let waited = self
            .0
            .more
            .wait_timeout_while(self.lock(), WRITE_EVERY, idle);
        let (mut state, _) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        core::mem::swap(state.pcapng.out(), blocks);
        state.ended.is_none() && !state.is_closing
    }
}
