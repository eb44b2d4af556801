//! A link's goodput before anything is sent over it: closed forms for each class of repetition, and a short run of a
//! sender that is told no rate.

mod forecast;
mod found;

pub use forecast::{ArqForecast, BlocksNeeded, LossOnLink, PlanForecast, PlanQuestion};
pub use found::FoundRate;

use fulmar_proto::units::{
    BitErrorRate, Bitrate, ByteCount, Duration, OpticalPower, PacketErrorRate, Probability,
};
use fulmar_sim::theory::ReceiverModel;

/// The longest packet: IP's length field has 16 bits.
const LONGEST: ByteCount = ByteCount(65_535);

/// The longest packet that is advised unless told otherwise: Ethernet's, which nearly every path carries.
const USUAL_MTU: ByteCount = ByteCount(1_500);

/// The errors of a link, as a user knows them.
#[derive(Clone, Copy, Debug)]
pub enum LinkErrors {
    /// The share of bits that are inverted, each for itself.
    Bits(BitErrorRate),
    /// The optical power at the reference receiver.
    Power(OpticalPower),
    /// The share of packets that are lost whole.
    Packets(PacketErrorRate),
}

/// A link and its packets as a user names them, not checked yet.
#[derive(Clone, Copy, Debug)]
pub struct PlanWish {
    /// The rate of the link.
    pub rate: Bitrate,
    /// The time there and back.
    pub round_trip: Duration,
    /// Its errors.
    pub errors: LinkErrors,
    /// The headers of each packet, all layers.
    pub header: ByteCount,
    /// The headers with selective repeat, if its lists make them longer.
    pub selective_header: Option<ByteCount>,
    /// The user data of each packet; `None` for the best length of each class.
    pub data: Option<ByteCount>,
    /// The longest packet that may be advised; `None` for the usual MTU, or what `data` needs.
    pub longest: Option<ByteCount>,
    /// An acknowledgement, one for each packet.
    pub acknowledgement: ByteCount,
    /// The bit error rate that acknowledgements meet.
    pub back: BitErrorRate,
    /// The probability with which the number of blocks shall suffice.
    pub confidence: Probability,
}

/// A wish that no link can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} {problem}")]
pub struct UnplannableLink {
    /// The setting at fault: `rate`, `power`, `confidence`, `ack`, `longest` or `data`.
    pub name: &'static str,
    /// Its value, what is wrong with it, and what would do.
    pub problem: String,
}

impl PlanWish {
    /// The question, once nothing in it contradicts.
    ///
    /// # Errors
    /// [`UnplannableLink`].
    pub fn checked(&self) -> Result<PlanQuestion, UnplannableLink> {
        let wrong = |name, problem| Err(UnplannableLink { name, problem });
        if self.rate == Bitrate::ZERO {
            return wrong("rate", "0bit/s: a link has at least 1bit/s".to_owned());
        }
        let confidence = self.confidence.value();
        if confidence <= 0.0 || confidence >= 1.0 {
            let given = self.confidence;
            return wrong(
                "confidence",
                format!("{given}: must be above 0 and below 1, such as 99%"),
            );
        }
        let acknowledgement = self.acknowledgement;
        if acknowledgement == ByteCount::ZERO || acknowledgement > LONGEST {
            return wrong("ack", format!("{acknowledgement}: 1B to {LONGEST}"));
        }
        let selective = self.selective_header.unwrap_or(self.header);
        let header = self.header.max(selective);
        let told = self.data.map(|data| data + header);
        let usual = told.unwrap_or_default().max(USUAL_MTU).min(LONGEST);
        let longest = self.longest.unwrap_or(usual);
        if longest > LONGEST {
            return wrong("longest", format!("{longest}: at most {LONGEST}"));
        }
        if header + ByteCount(1) > longest {
            return wrong(
                "longest",
                format!("{longest}: leaves no octet for data behind headers of {header}"),
            );
        }
        if let Some(data) = self.data
            && (data == ByteCount::ZERO || data + header > longest)
        {
            let most = longest.saturating_sub(header);
            return wrong("data", format!("{data}: 1B to {most} beside the headers"));
        }
        Ok(PlanQuestion {
            rate: self.rate,
            round_trip: self.round_trip,
            loss: self.loss()?,
            header: self.header,
            selective_header: selective,
            data: self.data,
            longest,
            acknowledgement,
            back: self.back,
            confidence: self.confidence,
        })
    }

    fn loss(&self) -> Result<LossOnLink, UnplannableLink> {
        let power = match self.errors {
            LinkErrors::Packets(loss) => return Ok(LossOnLink::OfPackets(loss)),
            LinkErrors::Bits(rate) => return Ok(LossOnLink::OfBits(rate)),
            LinkErrors::Power(power) => power,
        };
        let receiver = ReceiverModel::reference();
        if self.rate != receiver.rate {
            return Err(UnplannableLink {
                name: "power",
                problem: format!(
                    "{power}: the receiver was measured at a rate of {} alone; for {} give the bit error rate",
                    receiver.rate, self.rate
                ),
            });
        }
        Ok(LossOnLink::OfBits(receiver.bit_error_rate(power)))
    }
}

/// The whole answer; its fields are those of `fulmar plan --json`.
#[derive(Clone, Debug, serde::Serialize)]
pub struct PlannedLink {
    #[serde(rename = "record")]
    kind: &'static str,
    schema: u32,
    /// The closed forms.
    #[serde(flatten)]
    pub forecast: PlanForecast,
    /// The rate that a sender finds if nobody tells it; `null` where a run would take too long.
    pub found: Option<FoundRate>,
}

impl PlannedLink {
    /// The answer to `question`.
    ///
    /// # Errors
    /// No channel can be like that link.
    pub fn of(question: &PlanQuestion) -> Result<Self, fulmar_channel::ChannelConfigError> {
        Ok(Self {
            kind: "plan",
            schema: 1,
            forecast: PlanForecast::of(question),
            found: FoundRate::of(question)?,
        })
    }
}
