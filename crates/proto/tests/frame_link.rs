//! Two endpoints on a pipe of constant delay that keeps what it has carried, so that a test can carry it again or put
//! frames of its own in.

use fulmar_proto::machine::{Datagram, Ecn, Machine, PathId, TpduForm, TransmitKind};
use fulmar_proto::rng::Rng;
use fulmar_proto::transport::aerotp::{
    AerotpEndpoint, CloseReason, ConnectionConfig, ConnectionId, EndpointConfig, Event, RateSource,
};
use fulmar_proto::units::{Bitrate, Duration, Instant};
use fulmar_proto::wire::Port;
use fulmar_proto::wire::aerotp::short::{Content, Frame, FrameKind, Name, Named};
use std::collections::VecDeque;

pub(crate) const PATH: PathId = PathId(5);
pub(crate) const PORT: Port = Port(4_002);
pub(crate) const DELAY: Duration = Duration::from_millis(10);

/// A datagram, and the form in which it left.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) from: usize,
    pub(crate) form: TpduForm,
    pub(crate) kind: TransmitKind,
    pub(crate) octets: Vec<u8>,
}

/// Side 0 opens connections to side 1.
pub(crate) struct Link {
    pub(crate) now: Instant,
    pub(crate) ends: [AerotpEndpoint; 2],
    pub(crate) forms: [TpduForm; 2],
    pub(crate) flying: VecDeque<(Instant, Sent)>,
    /// All that has left, oldest first.
    pub(crate) carried: Vec<Sent>,
    pub(crate) received: [Vec<u8>; 2],
    pub(crate) events: [Vec<Event>; 2],
    /// Whether an end closes when the other has.
    pub(crate) closes: bool,
}

pub(crate) fn listening(seed: u64, config: ConnectionConfig) -> AerotpEndpoint {
    let settings = EndpointConfig {
        rate: RateSource::Told(Bitrate::from_bits_per_second(20_000_000)),
        ..EndpointConfig::default()
    };
    let mut endpoint = AerotpEndpoint::new(settings, Rng::from_seed(seed));
    endpoint
        .listen(PORT, config)
        .expect("a sound configuration");
    endpoint
}

impl Link {
    pub(crate) fn new(config: ConnectionConfig) -> Self {
        let mut link = Self {
            now: Instant::START,
            ends: [1, 2].map(|seed| listening(seed, config)),
            forms: [TpduForm::Long; 2],
            flying: VecDeque::new(),
            carried: Vec::new(),
            received: [Vec::new(), Vec::new()],
            events: [Vec::new(), Vec::new()],
            closes: true,
        };
        link.speak(0, TpduForm::Short);
        link.speak(1, TpduForm::Short);
        link
    }

    pub(crate) fn speak(&mut self, side: usize, form: TpduForm) {
        self.forms[side] = form;
        self.ends[side].speak(self.now, PATH, form);
        self.settle(side);
    }

    pub(crate) fn call<T>(
        &mut self,
        side: usize,
        call: impl FnOnce(&mut AerotpEndpoint, Instant) -> T,
    ) -> T {
        let result = call(&mut self.ends[side], self.now);
        self.settle(side);
        result
    }

    /// Opens a connection that writes `octets`.
    pub(crate) fn open(&mut self, config: ConnectionConfig, octets: &[u8]) -> ConnectionId {
        self.call(0, |end, now| {
            let id = end.connect(now, PATH, PORT, config).expect("room");
            assert_eq!(end.write(now, id, octets), Ok(octets.len()));
            id
        })
    }

    /// Hands `octets` over as content that has just arrived.
    pub(crate) fn inject(&mut self, to: usize, octets: &[u8]) {
        let form = TpduForm::Short;
        self.arrive(to, form, octets);
    }

    pub(crate) fn arrive(&mut self, to: usize, form: TpduForm, octets: &[u8]) {
        let datagram = Datagram {
            path: PATH,
            octets,
            ecn: Ecn::NotCapable,
        };
        match form {
            TpduForm::Long => self.ends[to].handle_datagram(self.now, datagram),
            TpduForm::Short => self.ends[to].handle_frames(self.now, datagram),
        }
        self.settle(to);
    }

    pub(crate) fn settle(&mut self, side: usize) {
        loop {
            while let Some(event) = self.ends[side].poll_event() {
                match event {
                    Event::Readable(id) => {
                        while let Some(chunk) = self.ends[side].read(self.now, id) {
                            self.received[side].extend(chunk.octets);
                        }
                    }
                    Event::PeerFinished(id) if self.closes => self.ends[side].close(self.now, id),
                    _ => {}
                }
                self.events[side].push(event);
            }
            let mut octets = Vec::new();
            let Some(transmit) = self.ends[side].poll_transmit(self.now, &mut octets) else {
                return;
            };
            let sent = Sent {
                from: side,
                form: self.forms[side],
                kind: transmit.kind,
                octets,
            };
            self.flying.push_back((self.now + DELAY, sent.clone()));
            self.carried.push(sent);
        }
    }

    pub(crate) fn run(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            let arrival = self.flying.front().map(|(at, _)| *at);
            let timers = [0, 1].into_iter();
            let timer = timers
                .filter_map(|side| Some((self.ends[side].next_deadline()?.at, side)))
                .min();
            match (arrival, timer) {
                (Some(at), timer) if at <= until && timer.is_none_or(|(t, _)| at <= t) => {
                    self.now = at;
                    let (_, sent) = self.flying.pop_front().expect("looked at");
                    self.arrive(1 - sent.from, sent.form, &sent.octets);
                }
                (_, Some((at, side))) if at <= until => {
                    self.now = self.now.max(at);
                    self.ends[side].handle_deadline(self.now);
                    self.settle(side);
                }
                _ => {
                    self.now = until;
                    return;
                }
            }
        }
    }

    /// The last content that `side` sent.
    pub(crate) fn last_of(&self, side: usize) -> &[u8] {
        let last = self.carried.iter().rfind(|sent| sent.from == side);
        &last.expect("it has sent").octets
    }

    pub(crate) fn count_of(&self, side: usize) -> usize {
        self.carried.iter().filter(|sent| sent.from == side).count()
    }

    pub(crate) fn ended(&self, side: usize) -> Option<CloseReason> {
        self.events[side].iter().find_map(|event| match event {
            Event::Closed { why, .. } => Some(*why),
            _ => None,
        })
    }

    /// The port from which the first connection was opened.
    pub(crate) fn opener(&self) -> Port {
        let full = only(&self.carried[0].octets);
        assert_eq!(full.kind(), Some(FrameKind::Full));
        let port = full.fields().first_chunk().expect("two octets");
        Port(u16::from_be_bytes(*port))
    }

    /// The name of the first connection, in frames of the side that opened it.
    pub(crate) fn name(&self) -> Named {
        Named {
            name: Name::of(self.opener(), PORT).expect("a dynamic port"),
            sender_opened: true,
        }
    }
}

pub(crate) fn only(content: &[u8]) -> Frame<'_> {
    let mut frames = Content::of(content);
    let frame = frames.next().expect("one frame").expect("our own");
    assert!(frames.next().is_none());
    frame
}
