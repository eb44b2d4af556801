//! Scripts for one TCP: segments in, segments out, at stated times, as in packetdrill.
//!
//! The peer is the script. Sequence numbers in scripts are relative: ours count from our SYN (0),
//! the peer's from its SYN (0); data begin at 1.

use fulmar_baseline::StreamEndpoint;
use fulmar_baseline::tcp::{
    TcpConfig, TcpConnectionId, TcpEndpoint, TcpEndpointConfig, TcpEvent, TcpPreset, TcpStatus,
};
use fulmar_baseline::wire::tcp::{
    AddressPair, SackBlock, TcpFlags, TcpHeader, TcpOptions, TcpSeq, Timestamps,
};
use fulmar_proto::machine::{Datagram, Ecn, Machine, PathId, Strict, Transmit};
use fulmar_proto::rng::Rng;
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::Port;
use fulmar_proto::wire::network::NodeAddress;
use std::collections::VecDeque;

pub(crate) const OURS: NodeAddress = NodeAddress(0x0A00_0001);
pub(crate) const THEIRS: NodeAddress = NodeAddress(0x0A00_0002);
pub(crate) const PATH: PathId = PathId(THEIRS.0);
pub(crate) const PORT: Port = Port(80);
pub(crate) const PEER_PORT: Port = Port(5000);
/// The peer's first sequence number, so that its numbers wrap within the first kilobyte.
const PEER_ISS: TcpSeq = TcpSeq(u32::MAX - 500);

pub(crate) const SYN: TcpFlags = TcpFlags::SYN;
pub(crate) const ACK: TcpFlags = TcpFlags::ACK;
pub(crate) const FIN: TcpFlags = TcpFlags::FIN;
pub(crate) const RST: TcpFlags = TcpFlags::RST;

/// A segment as the script sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) flags: TcpFlags,
    /// The sequence number, counted from our SYN.
    pub(crate) seq: u32,
    pub(crate) len: usize,
    /// The acknowledgement, counted from the peer's SYN; 0 without ACK.
    pub(crate) ack: u32,
    pub(crate) window: u16,
    pub(crate) options: TcpOptions,
    pub(crate) sack: Vec<(u32, u32)>,
    pub(crate) ecn: Ecn,
    pub(crate) payload: Vec<u8>,
}

impl Seen {
    /// The first octet and the length.
    pub(crate) fn range(&self) -> (u32, usize) {
        (self.seq, self.len)
    }

    pub(crate) fn has(&self, flags: TcpFlags) -> bool {
        self.flags.has(flags)
    }
}

/// One TCP and its scripted peer.
pub(crate) struct Drill {
    pub(crate) now: Instant,
    machine: Strict<TcpEndpoint>,
    pub(crate) id: Option<TcpConnectionId>,
    our_iss: Option<TcpSeq>,
    out: VecDeque<Seen>,
    pub(crate) events: Vec<TcpEvent>,
    pub(crate) received: Vec<u8>,
    pub(crate) reads: bool,
    /// The options of the peer's next segment.
    pub(crate) options: TcpOptions,
    pub(crate) window: u16,
    pub(crate) ecn: Ecn,
    pub(crate) peer_port: u16,
    buffer: Vec<u8>,
}

impl Drill {
    pub(crate) fn new() -> Self {
        let config = TcpEndpointConfig {
            local: OURS,
            connections_max: 4,
        };
        Self {
            now: Instant::START + Duration::from_secs(1),
            machine: Strict::new(TcpEndpoint::new(config, Rng::from_seed(7))),
            id: None,
            our_iss: None,
            out: VecDeque::new(),
            events: Vec::new(),
            received: Vec::new(),
            reads: true,
            options: TcpOptions::default(),
            window: 60_000,
            ecn: Ecn::NotCapable,
            peer_port: PEER_PORT.0,
            buffer: Vec::new(),
        }
    }

    /// Asks for a connection; the SYN is the next segment out.
    pub(crate) fn connect(config: TcpConfig) -> Self {
        let mut drill = Self::new();
        drill.open(config);
        drill
    }

    pub(crate) fn open(&mut self, config: TcpConfig) {
        let app = self.machine.app();
        let id = app.connect(PATH, PORT, PEER_PORT, config).expect("sane");
        self.id = Some(id);
        self.our_iss = None;
        self.drain();
    }

    /// An established connection to a peer that offers `mss` and, if we ask for it, SACK. Its first
    /// round trip took 100 ms.
    pub(crate) fn established(config: TcpConfig, mss: u16) -> Self {
        let mut drill = Self::connect(config);
        let syn = drill.sent();
        assert_eq!(syn.flags.0 & SYN.0, SYN.0);
        drill.advance(100);
        drill.options = TcpOptions {
            mss: Some(mss),
            sack_permitted: config.recovery.sack,
            timestamps: syn.options.timestamps.map(|stamps| Timestamps {
                value: 1,
                echo: stamps.value,
            }),
            ..TcpOptions::default()
        };
        drill.peer(SYN | ACK, 0, 1, &[]);
        drill.options = TcpOptions::default();
        assert_eq!(drill.sent().flags, ACK);
        drill.silent();
        drill
    }

    /// A listener that took the peer's SYN and got the acknowledgement of its own.
    pub(crate) fn accepted(config: TcpConfig) -> Self {
        let mut drill = Self::listening(config);
        drill.options.sack_permitted = config.recovery.sack;
        drill.options.mss = Some(1460);
        drill.peer(SYN, 0, 0, &[]);
        drill.options = TcpOptions::default();
        assert_eq!(drill.sent().flags, SYN | ACK);
        drill.peer(ACK, 1, 1, &[]);
        drill.silent();
        drill
    }

    pub(crate) fn listening(config: TcpConfig) -> Self {
        let mut drill = Self::new();
        drill.machine.app().listen(PORT, config).expect("sane");
        drill.drain();
        drill
    }

    /// Sends a segment from the peer; numbers are relative.
    pub(crate) fn peer(&mut self, flags: TcpFlags, seq: u32, ack: u32, payload: &[u8]) {
        let ours = self.our_iss.unwrap_or(TcpSeq(0));
        self.peer_absolute(flags, PEER_ISS.plus(seq), ours.plus(ack), payload);
    }

    pub(crate) fn peer_absolute(&mut self, flags: TcpFlags, seq: TcpSeq, ack: TcpSeq, data: &[u8]) {
        let header = TcpHeader {
            source: Port(self.peer_port),
            destination: PORT,
            seq,
            ack: if flags.has(ACK) { ack } else { TcpSeq(0) },
            flags,
            window: self.window,
            urgent: 0,
            options: self.options,
        };
        let mut octets = Vec::new();
        header.write(&AddressPair::nodes(THEIRS, OURS), data, &mut octets);
        let datagram = Datagram {
            path: PATH,
            octets: &octets,
            ecn: self.ecn,
        };
        self.machine.handle_datagram(self.now, datagram);
        self.drain();
    }

    /// Sends an acknowledgement without data from the peer, with SACK blocks.
    pub(crate) fn peer_sacks(&mut self, ack: u32, blocks: &[(u32, u32)]) {
        let ours = self.our_iss.expect("a SYN went out");
        for &(start, end) in blocks {
            self.options.sack.push(SackBlock {
                start: ours.plus(start),
                end: ours.plus(end),
            });
        }
        self.peer(ACK, 1, ack, &[]);
        self.options = TcpOptions::default();
    }

    pub(crate) fn write(&mut self, len: usize) {
        let octets: Vec<u8> = (0..len)
            .map(|i| u8::try_from(i % 251).expect("small"))
            .collect();
        let id = self.id();
        let taken = self.machine.app().write(id, &octets).expect("open");
        assert_eq!(taken, len);
        self.drain();
    }

    pub(crate) fn id(&self) -> TcpConnectionId {
        self.id.expect("a connection")
    }

    pub(crate) fn close(&mut self) {
        let id = self.id();
        self.machine.app().close(id);
        self.drain();
    }

    pub(crate) fn abort(&mut self) {
        let (id, now) = (self.id(), self.now);
        self.machine.app().abort(now, id);
        self.drain();
    }

    /// Reads all octets that are there.
    pub(crate) fn read_all(&mut self) {
        let id = self.id();
        while let Some(chunk) = self.machine.app().read(id) {
            self.received.extend_from_slice(&chunk);
        }
        self.drain();
    }

    fn drain(&mut self) {
        loop {
            let mut busy = false;
            while let Some(event) = self.machine.poll_event() {
                busy = true;
                if let TcpEvent::Incoming { id, .. } = &event {
                    self.id = Some(*id);
                }
                if let TcpEvent::Readable(id) = event
                    && self.reads
                {
                    while let Some(chunk) = self.machine.app().read(id) {
                        self.received.extend_from_slice(&chunk);
                    }
                }
                self.events.push(event);
            }
            self.buffer.clear();
            let mut octets = core::mem::take(&mut self.buffer);
            while let Some(transmit) = self.machine.poll_transmit(self.now, &mut octets) {
                busy = true;
                self.note(transmit, &octets);
                octets.clear();
            }
            self.buffer = octets;
            if !busy {
                break;
            }
        }
        self.machine.next_deadline();
    }

    fn note(&mut self, transmit: Transmit, octets: &[u8]) {
        let pair = AddressPair::nodes(OURS, THEIRS);
        let segment = TcpHeader::parse(&pair, octets).expect("we sign what we send");
        let header = segment.header;
        if header.flags.has(SYN) {
            self.our_iss = Some(header.seq);
        }
        let ours = self.our_iss.unwrap_or(TcpSeq(0));
        let relative = |seq: TcpSeq, iss: TcpSeq| seq.0.wrapping_sub(iss.0);
        let blocks = header.options.sack.as_slice().iter();
        self.out.push_back(Seen {
            flags: header.flags,
            seq: relative(header.seq, ours),
            len: segment.payload.len(),
            ack: if header.flags.has(ACK) {
                relative(header.ack, PEER_ISS)
            } else {
                0
            },
            window: header.window,
            options: header.options,
            sack: blocks
                .map(|b| (relative(b.start, PEER_ISS), relative(b.end, PEER_ISS)))
                .collect(),
            ecn: transmit.ecn,
            payload: segment.payload.to_vec(),
        });
    }

    /// The next segment out.
    pub(crate) fn sent(&mut self) -> Seen {
        self.out.pop_front().expect("a segment")
    }

    /// Every segment out since the last look.
    pub(crate) fn all_sent(&mut self) -> Vec<Seen> {
        self.out.drain(..).collect()
    }

    /// First octets and lengths of all segments out since the last look.
    pub(crate) fn ranges(&mut self) -> Vec<(u32, usize)> {
        self.all_sent().iter().map(Seen::range).collect()
    }

    /// Asserts that nothing is sent.
    #[track_caller]
    pub(crate) fn silent(&mut self) {
        assert_eq!(self.all_sent(), [], "at {}", self.now);
    }

    /// Runs for `millis`, with every deadline on the way.
    pub(crate) fn advance(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        while let Some(deadline) = self.machine.next_deadline().filter(|d| d.at <= end) {
            self.now = deadline.at.max(self.now);
            self.machine.handle_deadline(self.now);
            self.drain();
        }
        self.now = end;
    }

    pub(crate) fn status(&self) -> Option<TcpStatus> {
        self.machine.inner().status(self.id?)
    }

    pub(crate) fn counters(&self) -> fulmar_baseline::tcp::TcpCounters {
        self.machine.inner().counters()
    }
}

/// The reference TCP, with changes.
pub(crate) fn reference(change: impl FnOnce(&mut TcpConfig)) -> TcpConfig {
    let mut config = TcpPreset::Reference.config();
    change(&mut config);
    config
}
