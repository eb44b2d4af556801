//! The paper's closed forms, with the headers of its figures and with those of this project's packets.

use fulmar_proto::units::{BitErrorRate, Bitrate, ByteCount, Distance, Duration};
use fulmar_sim::theory::{ArqClass, Packing, RoundTripCapacity, packet_loss, round_trip_time};

/// The link rate of the reference receiver.
pub(super) const RATE_BPS: f64 = 622e6;
const RATE: Bitrate = Bitrate::from_bits_per_second(622_000_000);

/// The paper's header of one packet, in its figures and in Table 1's TCP.
pub(super) const HEADER: u64 = 20;
/// The headers of a packet on Fulmar's links: network 20, TCP 20; AeroTP's 16 and its CRC 4 are as many.
pub(super) const OWN_HEADER: u64 = 40;
/// The headers of a link layer's packet: UDP 8, network 20, the layer's head 7 and its CRC 4.
pub(super) const LINK_HEADER: u64 = 39;

/// The distances from which the bracketed values of Table 1 are computed, in metres. For the testbed and
/// ATENAA the text has others: 500 m and 1400 m.
pub(super) const TESTBED: f64 = 400.0;
pub(super) const ATENAA: f64 = 1_500.0;
pub(super) const FASOLT: f64 = 61_000.0;
pub(super) const KIODO: f64 = 2_500_000.0;

/// One point of the closed forms.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub(super) arq: ArqClass,
    /// The distance in metres.
    pub(super) distance: f64,
    pub(super) user: u64,
    pub(super) header: u64,
    pub(super) rate: f64,
    /// Whether a bit of the headers loses the packet too (equation 5 as printed; Table 1 leaves them
    /// out).
    pub(super) headers_too: bool,
}

impl Form {
    /// The form as in the paper's Figures 2 to 4.
    pub(super) const fn figure(arq: ArqClass, distance: f64, user: u64, rate: f64) -> Self {
        Self {
            arq,
            distance,
            user,
            header: HEADER,
            rate,
            headers_too: true,
        }
    }

    /// The same form with another length of the headers.
    pub(super) const fn with_header(self, header: u64) -> Self {
        Self { header, ..self }
    }

    fn packing(&self) -> Packing {
        Packing {
            user: ByteCount(self.user),
            header: ByteCount(self.header),
        }
    }

    /// Packets in a round trip (equation 7).
    pub(super) fn capacity(&self) -> RoundTripCapacity {
        let distance = Distance::from_metres(self.distance).unwrap_or_default();
        let round_trip = round_trip_time(distance, Duration::ZERO);
        RoundTripCapacity::new(round_trip, RATE, self.packing().packet())
    }

    /// Goodput as a share of the link (equations 8 to 10).
    pub(super) fn share(&self) -> f64 {
        let packing = self.packing();
        let hit = if self.headers_too {
            packing.packet()
        } else {
            packing.user
        };
        let ber = BitErrorRate::new(self.rate).unwrap_or_default();
        let loss = packet_loss(ber, hit);
        self.arq.goodput(packing, loss, self.capacity()).share()
    }
}

/// The loss of packets of `octets` octets at a bit error rate.
pub(super) fn loss(rate: f64, octets: u64) -> f64 {
    let ber = BitErrorRate::new(rate).unwrap_or_default();
    packet_loss(ber, ByteCount(octets)).value()
}
