//! Packets as entries of a recording.

use crate::clock::{Clock, unix_time};
use crate::recording::{
    EndOfRecording, Format, Recording, RecordingConfig, RecordingCounters, RecordingError, Spool,
};
use fulmar_capture::{
    Comment, Dissector, InterfaceId, Packet, PacketDirection, PacketEnds, Pcapng, Section,
    packet_count, whole_octets,
};
use fulmar_proto::units::Instant;

/// Room for tags and options beside a packet's octets.
const TAG_OCTETS_MAX: usize = 1_024;

/// A packet as it was seen.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The interface at which it was seen.
    pub interface: InterfaceId,
    /// The time at which it was seen.
    pub at: Instant,
    /// Its direction.
    pub direction: PacketDirection,
    /// The protocol of its octets.
    pub dissector: Dissector,
    /// The ends it travels between, where the octets do not tell them.
    pub ends: Option<PacketEnds>,
    /// The whole packet.
    pub octets: &'a [u8],
    /// The comment on it.
    pub comment: &'a Comment,
}

impl Format for Pcapng<Vec<u8>> {
    const KIND: &'static str = "capture";
    const END_OCTETS: u64 = 0;

    fn out(&mut self) -> &mut Vec<u8> {
        Self::out(self)
    }

    fn octets(&self) -> u64 {
        Self::octets(self)
    }

    fn entries(octets: &[u8]) -> u64 {
        packet_count(octets)
    }

    fn whole_octets(octets: &[u8], written: usize) -> usize {
        whole_octets(octets, written)
    }
}

/// The entrance of a capture, which takes packets from any thread.
#[derive(Clone, Debug)]
pub struct Recorder(Spool<Pcapng<Vec<u8>>>);

impl Recorder {
    /// Captures a packet, or counts it as missed.
    pub fn packet(&self, seen: &Seen<'_>) {
        let room = seen.octets.len() + TAG_OCTETS_MAX;
        self.0.record(room, |pcapng, missed| {
            pcapng.packet(&Packet {
                interface: seen.interface,
                at: seen.at,
                direction: seen.direction,
                dissector: seen.dissector,
                ends: seen.ends,
                octets: seen.octets,
                comment: seen.comment,
                missed,
            })
        });
    }

    /// The counters so far, in packets.
    pub fn counters(&self) -> RecordingCounters {
        self.0.counters()
    }
}

/// A capture with the description `about` and these interfaces.
fn begin<const N: usize>(
    clock: Clock,
    about: &str,
    interfaces: [(&str, &str); N],
) -> (Pcapng<Vec<u8>>, [InterfaceId; N]) {
    let section = Section {
        comment: about.to_owned(),
        origin: unix_time().saturating_sub(clock.now().saturating_since(Instant::START)),
    };
    let mut pcapng = Pcapng::new(Vec::new(), &section).expect("memory takes everything");
    let ids = interfaces.map(|(name, text)| {
        let written = pcapng.interface(name, text);
        written.expect("memory takes everything")
    });
    (pcapng, ids)
}

/// A capture under way. Dropped, it writes what is left and closes its file.
#[derive(Debug)]
pub struct Capture {
    recorder: Recorder,
    _recording: Recording<Pcapng<Vec<u8>>>,
}

impl Capture {
    /// Makes the file and begins a capture with the description `about`, with these interfaces, by
    /// name and text, and times of `clock`. `tell` is called once if the capture ends before it is dropped.
    ///
    /// # Errors
    /// [`RecordingError`]: there is no file, or no thread.
    pub fn start<const N: usize>(
        clock: Clock,
        config: RecordingConfig,
        about: &str,
        interfaces: [(&str, &str); N],
        tell: impl FnOnce(EndOfRecording) + Send + 'static,
    ) -> Result<(Self, [InterfaceId; N]), RecordingError> {
        let (pcapng, ids) = begin(clock, about, interfaces);
        let recording = Recording::start(config, pcapng, tell)?;
        let recorder = Recorder(recording.spool().clone());
        let capture = Self {
            recorder,
            _recording: recording,
        };
        Ok((capture, ids))
    }

    /// The recorder that takes the packets.
    pub const fn recorder(&self) -> &Recorder {
        &self.recorder
    }
}
