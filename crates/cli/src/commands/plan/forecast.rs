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
pub(super) enum Loss {
    /// By any wrong bit.
    OfBits(BitErrorRate),
    /// As whole packets.
    OfPackets(PacketErrorRate),
}

/// A link, and the packets that would be sent over it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    pub(super) rate: Bitrate,
    pub(super) round_trip: Duration,
    pub(super) loss: Loss,
    pub(super) header: ByteCount,
    /// The header of selective repeat.
    pub(super) selective_header: ByteCount,
    /// The data of a packet; `None` for the best of each class.
    pub(super) data: Option<ByteCount>,
    /// The longest packet, headers included; longer than each header.
    pub(super) longest: ByteCount,
    pub(super) acknowledgement: ByteCount,
    /// The bit error rate that acknowledgements meet.
    pub(super) back: BitErrorRate,
    /// The confidence, above 0 and below 1.
    pub(super) confidence: Probability,
}

/// The answer; its fields are those of `--json`.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Forecast {
    rate_bps: u64,
    rtt_s: f64,
    /// The bit error rate; `null` where packets are lost whole.
    ber: Option<f64>,
    back_ber: f64,
    ack_bytes: u64,
    pub(super) kinds: Vec<Kind>,
    /// The blocks that are needed; `null` where every packet is lost.
    pub(super) blocks: Option<BlocksNeeded>,
}

/// One class of repetition.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Kind {
    #[serde(rename = "arq")]
    pub(super) name: &'static str,
    pub(super) header_bytes: u64,
    pub(super) data_bytes: u64,
    pub(super) packet_loss: f64,
    rtt_packets: f64,
    pub(super) goodput_bps: u64,
    pub(super) goodput_share: f64,
    pub(super) best_data_bytes: u64,
    /// Whether only the longest packet allowed bounds it.
    pub(super) best_is_longest: bool,
    pub(super) best_goodput_share: f64,
    pub(super) window_bytes: u64,
    pub(super) back_channel_share: f64,
}

/// The number of blocks that an acknowledgement of selective repeat has to name.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct BlocksNeeded {
    pub(super) mean: f64,
    deviation: f64,
    pub(super) quantile: f64,
    pub(super) confidence: f64,
}

impl Forecast {
    pub(super) fn of(question: &Question) -> Self {
        let kinds: Vec<Kind> = ArqClass::ALL
            .into_iter()
            .map(|arq| question.kind(arq))
            .collect();
        let selective = question.packing(ArqClass::SelectiveRepeat, question.data_of(&kinds));
        let blocks = BlockDemand::new(question.capacity(selective), question.loss(selective));
        Self {
            rate_bps: question.rate.as_bits_per_second(),
            rtt_s: question.round_trip.as_secs_f64(),
            ber: match question.loss {
                Loss::OfBits(rate) => Some(rate.value()),
                Loss::OfPackets(_) => None,
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

impl Question {
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
    fn data_of(&self, kinds: &[Kind]) -> ByteCount {
        let advised = kinds.last().map_or(1, |kind| kind.data_bytes);
        self.data.unwrap_or(ByteCount(advised))
    }

    fn loss(&self, packing: Packing) -> PacketErrorRate {
        let packet = match self.loss {
            Loss::OfBits(rate) => packet_loss(rate, packing.packet()),
            Loss::OfPackets(rate) => rate,
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

    fn kind(&self, arq: ArqClass) -> Kind {
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
        Kind {
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
