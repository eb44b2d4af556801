//! The three classes of repetition, and the share of the link that each uses: equations 7 to 10.

use fulmar_proto::units::{Bitrate, ByteCount, Duration, PacketErrorRate};

/// A class of repetition (automatic repeat request).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArqClass {
    /// One packet at a time, and a wait for its acknowledgement.
    StopAndWait,
    /// A window, sent again from the first packet that is missing.
    GoBackN,
    /// A window, of which only missing packets are sent again.
    SelectiveRepeat,
}

impl ArqClass {
    /// Every class, from the simplest on.
    pub const ALL: [Self; 3] = [Self::StopAndWait, Self::GoBackN, Self::SelectiveRepeat];

    /// The name in tables and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StopAndWait => "stop-and-wait",
            Self::GoBackN => "go-back-n",
            Self::SelectiveRepeat => "selective-repeat",
        }
    }

    /// The normalised goodput:
    ///
    /// - selective repeat (equation 8): G = (1 - p) l / (l + l')
    /// - stop-and-wait (equation 9): G / (1 + C)
    /// - go-back-N (equation 10): G / (1 + C p)
    ///
    /// with p the loss of a packet and C the [`RoundTripCapacity`].
    pub fn goodput(
        self,
        packing: Packing,
        loss: PacketErrorRate,
        capacity: RoundTripCapacity,
    ) -> Goodput {
        let unrepeated = (1.0 - loss.value()) * packing.user_share();
        Goodput(unrepeated * self.useful_share(loss, capacity))
    }

    /// The share of the link's time that is left when waiting and needless repetition are taken out.
    fn useful_share(self, loss: PacketErrorRate, capacity: RoundTripCapacity) -> f64 {
        let wasted = match self {
            Self::StopAndWait => capacity.0,
            Self::GoBackN => capacity.0 * loss.value(),
            Self::SelectiveRepeat => 0.0,
        };
        1.0 / (1.0 + wasted)
    }

    /// The window that keeps the link busy, in octets of whole packets. For stop-and-wait, which never
    /// keeps it busy, it is one packet; for the others, as many as a round trip holds, and the packet whose
    /// acknowledgement is awaited.
    pub fn window(self, packing: Packing, capacity: RoundTripCapacity) -> ByteCount {
        let packet = packing.packet().0;
        let packets = match self {
            Self::StopAndWait => 1.0,
            Self::GoBackN | Self::SelectiveRepeat => capacity.0.ceil() + 1.0,
        };
        ByteCount(whole(packets).saturating_mul(packet))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float to integer casts saturate, and the values are not negative"
)]
fn whole(value: f64) -> u64 {
    value as u64
}

/// The lengths of a packet's parts: user data and headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packing {
    /// User data, the source's l.
    pub user: ByteCount,
    /// Headers, the source's l'.
    pub header: ByteCount,
}

impl Packing {
    /// The packet's length, l + l'.
    pub fn packet(self) -> ByteCount {
        self.user + self.header
    }

    /// The share of the user's data, l / (l + l'); zero for an empty packet.
    pub fn user_share(self) -> f64 {
        self.user.0 as f64 / self.packet().0.max(1) as f64
    }
}

/// The number of packets on the way during one round trip (equation 7): C = RTT × D / (l + l'). Not
/// rounded: 0.4 says that a packet takes longer than the round trip.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct RoundTripCapacity(f64);

impl RoundTripCapacity {
    /// The capacity in packets of `packet` octets on a link of `rate`. An empty packet counts as one octet.
    pub fn new(round_trip: Duration, rate: Bitrate, packet: ByteCount) -> Self {
        let bits = round_trip.as_secs_f64() * rate.as_bits_per_second() as f64;
        Self(bits / packet.bits().max(8) as f64)
    }

    /// The number of packets.
    pub const fn packets(self) -> f64 {
        self.0
    }
}

/// Goodput as a share of the link's rate, in 0..=1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Goodput(f64);

impl Goodput {
    /// The share of the link's rate.
    pub const fn share(self) -> f64 {
        self.0
    }

    /// The goodput on a link of `rate`.
    pub fn on(self, rate: Bitrate) -> Bitrate {
        rate.scaled(self.0)
    }
}

/// The load that acknowledgements put on a way back as fast as the way there, as a share of its
/// rate: one acknowledgement for each packet sent, lost ones included. No equation of the source
/// says it; its Table 1 measures it.
pub fn back_channel_share(
    arq: ArqClass,
    packet: ByteCount,
    acknowledgement: ByteCount,
    capacity: RoundTripCapacity,
) -> f64 {
    let per_packet = acknowledgement.0 as f64 / packet.0.max(1) as f64;
    match arq {
        ArqClass::StopAndWait => per_packet / (1.0 + capacity.0),
        ArqClass::GoBackN | ArqClass::SelectiveRepeat => per_packet,
    }
}
