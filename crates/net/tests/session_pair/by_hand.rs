//! Two sessions whose datagrams are carried by hand, around machines that send what they are told to.

use super::{PATH, PEER};
use fulmar_net::session::{Entropy, LinkState, Session, SessionConfig, source_octets};
use fulmar_proto::machine::{
    Carried, Datagram, Deadline, Ecn, Machine, PathId, PathSizes, Priority, TpduForm, Transmit,
    TransmitKind,
};
use fulmar_proto::units::{ByteCount, Instant};
use fulmar_proto::wire::aerotp::short::{Content, FrameKind};
use std::net::SocketAddr;

/// The type of data in full, with a time, among the frames of content.
const FULL: u8 = 0x68;

/// The contents that a machine keeps.
const CONTENTS_KEPT: usize = 100;

/// A machine that sends as many datagrams as it is told to, in either form. Each begins with its number.
#[derive(Default)]
pub(crate) struct Source {
    pub(crate) left: u32,
    /// Octets of each datagram.
    pub(crate) octets: usize,
    /// Content of each, in the short form, instead of a number and octets.
    pub(crate) content: Option<Vec<u8>>,
    pub(crate) received: u64,
    /// The numbers that arrived, in either form.
    pub(crate) numbers: Vec<u32>,
    /// The number of contents that arrived, in the short form.
    pub(crate) frames: u64,
    /// The first of them.
    pub(crate) contents: Vec<Vec<u8>>,
    /// The form in which the peer is spoken to.
    pub(crate) form: TpduForm,
    /// Datagrams sent.
    pub(crate) sent: u32,
}

impl Source {
    fn note(&mut self, octets: &[u8]) {
        self.received += 1;
        let number = octets
            .first_chunk()
            .map(|number| u32::from_be_bytes(*number));
        self.numbers.extend(number);
    }
}

impl Machine for Source {
    type Event = ();
    fn handle_datagram(&mut self, _now: Instant, datagram: Datagram<'_>) {
        self.note(datagram.octets);
    }
    fn handle_deadline(&mut self, _now: Instant) {}
    fn poll_transmit(&mut self, _now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        self.left = self.left.checked_sub(1)?;
        let start = out.len();
        match (&self.content, self.form) {
            (Some(content), TpduForm::Short) => out.extend_from_slice(content),
            (_, form) => {
                if form == TpduForm::Short {
                    out.push(FULL);
                }
                out.extend_from_slice(&self.sent.to_be_bytes());
                out.resize(start + self.octets, 7);
            }
        }
        self.sent += 1;
        Some(Transmit {
            path: PEER.inner_path(),
            len: out.len() - start,
            kind: TransmitKind::Source,
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

impl Carried for Source {
    const SHORT: bool = true;

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
    fn speak(&mut self, _now: Instant, path: PathId, form: TpduForm) {
        assert_eq!(path, PEER.inner_path());
        assert_ne!(form, self.form, "said once");
        self.form = form;
    }
    fn handle_frames(&mut self, _now: Instant, datagram: Datagram<'_>) {
        self.frames += 1;
        if self.contents.len() < CONTENTS_KEPT {
            self.contents.push(datagram.octets.to_vec());
        }
        for frame in Content::of(datagram.octets).flatten() {
            if frame.kind() == Some(FrameKind::Full) {
                self.note(frame.fields());
            }
        }
    }
}

pub(crate) type ByHand = Session<Source>;

/// A path and the address that it stands for.
pub(crate) type Place = (PathId, SocketAddr);

pub(crate) fn the_peer() -> Place {
    (PATH, ([198, 51, 100, 7], 4_914).into())
}

pub(crate) fn session(config: SessionConfig, seed: u8) -> ByHand {
    let entropy = Entropy::from_seed([seed; 32]);
    Session::new(config, Source::default(), entropy).expect("a sound configuration")
}

/// Hands the datagrams that `session` sends now to `each`.
pub(crate) fn drain_into(
    session: &mut ByHand,
    now: Instant,
    buffer: &mut Vec<u8>,
    mut each: impl FnMut(PathId, &[u8]),
) {
    loop {
        while session.poll_event().is_some() {}
        buffer.clear();
        let Some(transmit) = session.poll_transmit(now, buffer) else {
            return;
        };
        each(transmit.path, buffer);
    }
}

/// The datagrams that `session` sends now.
pub(crate) fn sent(session: &mut ByHand, now: Instant) -> Vec<(PathId, Vec<u8>)> {
    let mut all = Vec::new();
    drain_into(session, now, &mut Vec::new(), |path, octets| {
        all.push((path, octets.to_vec()));
    });
    all
}

pub(crate) fn take(session: &mut ByHand, now: Instant, (path, from): Place, octets: &[u8]) {
    let ecn = Ecn::NotCapable;
    let datagram = Datagram { path, octets, ecn };
    session.handle_datagram_from(now, datagram, &source_octets(from));
}

/// A pair with keys: the caller, the called, and the caller's datagrams to it, in order.
pub(crate) fn joined(configs: [SessionConfig; 2], now: Instant) -> (ByHand, ByHand, Vec<Vec<u8>>) {
    let [a, b] = configs;
    let (mut caller, mut called) = (session(a, 1), session(b, 2));
    let mut recorded = Vec::new();
    for _ in 0..4 {
        for (_, octets) in sent(&mut caller, now) {
            take(&mut called, now, the_peer(), &octets);
            recorded.push(octets);
        }
        for (_, octets) in sent(&mut called, now) {
            take(&mut caller, now, the_peer(), &octets);
        }
    }
    for session in [&caller, &called] {
        let status = session.status(PEER).expect("a peer");
        assert_eq!(status.link, LinkState::Up);
    }
    (caller, called, recorded)
}
