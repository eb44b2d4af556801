//! The closed forms put together for one link.

use fulmar_proto::units::{
    BitErrorRate, Bitrate, ByteCount, Duration, PacketErrorRate, Probability,
};
use fulmar_sim::theory::{
    ArqClass, BlockDemand, Goodput, Packing, RoundTripCapacity, back_channel_share, packet_loss,
    packet_or_acknowledgement_loss, search_best_length,
};
use serde::Serialize;

/// The way in which packets are lost.
#[derive(Clone, Copy, Debug)]
pub enum LossOnLink {
    /// By any wrong bit.
    OfBits(BitErrorRate),
    /// As whole packets.
    OfPackets(PacketErrorRate),
}

/// A link, and the packets that would be sent over it.
#[derive(Clone, Copy, Debug)]
pub struct PlanQuestion {
    /// The rate of the link, above zero.
    pub rate: Bitrate,
    /// The time there and back.
    pub round_trip: Duration,
    /// The way in which packets are lost.
    pub loss: LossOnLink,
    /// The header of stop-and-wait and of go-back-N.
    pub header: ByteCount,
    /// The header of selective repeat.
    pub selective_header: ByteCount,
    /// The data of a packet; `None` for the best of each class.
    pub data: Option<ByteCount>,
    /// The longest packet, headers included; longer than each header.
    pub longest: ByteCount,
    /// An acknowledgement, one for each packet.
    pub acknowledgement: ByteCount,
    /// The bit error rate that acknowledgements meet.
    pub back: BitErrorRate,
    /// The confidence, above 0 and below 1.
    pub confidence: Probability,
}

/// The answer; its fields are those of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct PlanForecast {
    rate_bps: u64,
    rtt_s: f64,
    /// The bit error rate; `null` where packets are lost whole.
    ber: Option<f64>,
    back_ber: f64,
    ack_bytes: u64,
    /// Each class of repetition.
    pub kinds: Vec<ArqForecast>,
    /// The blocks that are needed; `null` where every packet is lost.
    pub blocks: Option<BlocksNeeded>,
}

/// One class of repetition.
#[derive(Clone, Debug, Serialize)]
pub struct ArqForecast {
    /// Its name.
    #[serde(rename = "arq")]
    pub name: &'static str,
    /// Octets of a packet's headers.
    pub header_bytes: u64,
    /// Octets of a packet's data.
    pub data_bytes: u64,
    /// The share of packets that are lost, or whose acknowledgement is.
    pub packet_loss: f64,
    rtt_packets: f64,
    /// Bits of data that arrive in a second.
    pub goodput_bps: u64,
    /// The same as a share of the rate.
    pub goodput_share: f64,
    /// Octets of data with which most arrives.
    pub best_data_bytes: u64,
    /// Whether only the longest packet allowed bounds it.
    pub best_is_longest: bool,
    /// The share of the rate that arrives with that length.
    pub best_goodput_share: f64,
    /// Octets under way that keep the link busy.
    pub window_bytes: u64,
    /// The share that acknowledgements take of a way back with the same rate.
    pub back_channel_share: f64,
}

/// The number of blocks that an acknowledgement of selective repeat has to name.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BlocksNeeded {
    /// The mean number.
    pub mean: f64,
    deviation: f64,
    /// The number that suffices with the confidence.
    pub quantile: f64,
    /// The confidence.
    pub confidence: f64,
}

impl PlanForecast {
    /// The closed forms of `question`.
    pub fn of(question: &PlanQuestion) -> Self {
        let kinds: Vec<ArqForecast> = ArqClass::ALL
            .into_iter()
            .map(|arq| question.kind(arq))
            .collect();
        let selective = question.packing(ArqClass::SelectiveRepeat, question.data_of(&kinds));
        let blocks = BlockDemand::new(question.capacity(selective), question.loss(selective));
        Self {
            rate_bps: question.rate.as_bits_per_second(),
            rtt_s: question.round_trip.as_secs_f64(),
            ber: match question.loss {
                LossOnLink::OfBits(rate) => Some(rate.value()),
                LossOnLink::OfPackets(_) => None,
            },
            back_ber: question.back.value(),
            ack_bytes: question.acknowledgement.0,
            blocks: blocks.and_then(|blocks| {
                Some(BlocksNeeded {
                    mean: blocks.mean(),
                    deviation: blocks.deviation(),
                    quantile: blocks.quantile(question.confidence)?,
                    confidence: question.confidence.value(),
                })
            }),
            kinds,
        }
    }
}

impl PlanQuestion {
    fn header_of(&self, arq: ArqClass) -> ByteCount {
        match arq {
            ArqClass::StopAndWait | ArqClass::GoBackN => self.header,
            ArqClass::SelectiveRepeat => self.selective_header,
        }
    }

    fn packing(&self, arq: ArqClass, user: ByteCount) -> Packing {
        Packing {
            user,
            header: self.header_of(arq),
        }
    }

    /// The data in a packet of selective repeat, which is the last of the classes.
    fn data_of(&self, kinds: &[ArqForecast]) -> ByteCount {
        let advised = kinds.last().map_or(1, |kind| kind.data_bytes);
        self.data.unwrap_or(ByteCount(advised))
    }

    fn loss(&self, packing: Packing) -> PacketErrorRate {
        let packet = match self.loss {
            LossOnLink::OfBits(rate) => packet_loss(rate, packing.packet()),
            LossOnLink::OfPackets(rate) => rate,
        };
        packet_or_acknowledgement_loss(packet, packet_loss(self.back, self.acknowledgement))
    }

    fn capacity(&self, packing: Packing) -> RoundTripCapacity {
        RoundTripCapacity::new(self.round_trip, self.rate, packing.packet())
    }

    fn goodput(&self, arq: ArqClass, user: ByteCount) -> Goodput {
        let packing = self.packing(arq, user);
        arq.goodput(packing, self.loss(packing), self.capacity(packing))
    }

    fn kind(&self, arq: ArqClass) -> ArqForecast {
        let header = self.header_of(arq);
        let most = self.longest.saturating_sub(header);
        let candidates = 1..=u32::try_from(most.0).unwrap_or(u32::MAX);
        let best = search_best_length(candidates, |user| self.goodput(arq, user));
        let (best, best_goodput) =
            best.unwrap_or_else(|| (ByteCount(1), self.goodput(arq, ByteCount(1))));
        let user = self.data.unwrap_or(best);
        let packing = self.packing(arq, user);
        let capacity = self.capacity(packing);
        let goodput = self.goodput(arq, user);
        ArqForecast {
            name: arq.name(),
            header_bytes: header.0,
            data_bytes: user.0,
            packet_loss: self.loss(packing).value(),
            rtt_packets: capacity.packets(),
            goodput_bps: goodput.on(self.rate).as_bits_per_second(),
            goodput_share: goodput.share(),
            best_data_bytes: best.0,
            best_is_longest: best == most,
            best_goodput_share: best_goodput.share(),
            window_bytes: arq.window(packing, capacity).0,
            back_channel_share: back_channel_share(
                arq,
                packing.packet(),
                self.acknowledgement,
                capacity,
            ),
        }
    }
}
