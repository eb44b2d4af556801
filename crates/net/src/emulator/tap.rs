//! The capture of an emulated link: each packet as it enters, with what the link does to it, and as it leaves.

use super::direction::Direction;
use crate::capture::{Capture, Seen};
use crate::clock::Clock;
use crate::recording::{EndOfRecording, RecordingConfig, RecordingCounters, RecordingError};
use fulmar_capture::{Comment, Dissector, InterfaceId, PacketDirection, PacketEnds};
use fulmar_proto::units::Instant;

/// A direction of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Up,
    Down,
}

/// A packet at one end of the link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passing<'a> {
    pub(super) at: Instant,
    pub(super) way: Way,
    pub(super) dissector: Dissector,
    /// The sockets of a datagram; none of a packet that says so itself.
    pub(super) ends: Option<PacketEnds>,
    pub(super) octets: &'a [u8],
}

/// The taps of an emulated link.
#[derive(Debug)]
pub struct EmulatorTap {
    capture: Capture,
    /// The interfaces of up and down, each where packets enter and where they leave.
    interfaces: [[InterfaceId; 2]; 2],
}

const INTERFACES: [(&str, &str); 4] = [
    ("up/in", "packets enter the link, with its verdict"),
    ("up/out", "packets leave the link"),
    ("down/in", "packets enter the link back, with its verdict"),
    ("down/out", "packets leave the link back"),
];

impl EmulatorTap {
    /// Begins a capture with the description `about`. `tell` is called once if it ends before the
    /// link does.
    ///
    /// # Errors
    /// [`RecordingError`]: there is no file, or no thread to write it.
    pub fn start(
        clock: Clock,
        config: RecordingConfig,
        about: &str,
        tell: impl FnOnce(EndOfRecording) + Send + 'static,
    ) -> Result<Self, RecordingError> {
        let (capture, ids) = Capture::start(clock, config, about, INTERFACES, tell)?;
        let [up_in, up_out, down_in, down_out] = ids;
        Ok(Self {
            capture,
            interfaces: [[up_in, up_out], [down_in, down_out]],
        })
    }

    /// The counters so far.
    pub fn counters(&self) -> RecordingCounters {
        self.capture.recorder().counters()
    }

    /// Captures a packet that entered the link of `direction`, and for so many of whose arrivals there was no room.
    pub(super) fn entered(
        &self,
        passing: &Passing<'_>,
        (direction, overflow): (&mut Direction, usize),
    ) {
        let comment = direction.take_comment();
        let comment = (0..overflow).fold(comment, |comment, _| comment.dropped("overflow"));
        self.enters(passing, &comment);
    }

    /// Captures a packet that enters the link.
    pub(super) fn enters(&self, passing: &Passing<'_>, comment: &Comment) {
        let [interface, _] = self.interfaces[passing.way as usize];
        self.packet(interface, PacketDirection::Inbound, passing, comment);
    }

    /// Captures a packet that leaves the link, or that cannot leave because the system does not take it.
    pub(super) fn leaves(&self, passing: &Passing<'_>, is_sent: bool) {
        let [_, interface] = self.interfaces[passing.way as usize];
        let comment = if is_sent {
            Comment::NONE
        } else {
            Comment::NONE.dropped("unsent")
        };
        self.packet(interface, PacketDirection::Outbound, passing, &comment);
    }

    fn packet(
        &self,
        interface: InterfaceId,
        direction: PacketDirection,
        passing: &Passing<'_>,
        comment: &Comment,
    ) {
        self.capture.recorder().packet(&Seen {
            interface,
            at: passing.at,
            direction,
            dissector: passing.dissector,
            ends: passing.ends,
            octets: passing.octets,
            comment,
        });
    }
}
