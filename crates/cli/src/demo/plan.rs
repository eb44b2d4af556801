//! The runs of the demonstration: two conditions of one link; on each a sender that is told nothing, TCP, plain UDP,
//! and seven modes.

use core::num::NonZeroU8;
use fulmar_channel::preset::ChannelPreset;
use fulmar_channel::{BitErrors, ChannelConfig, LossModel};
use fulmar_proto::fec::block::BlockPlan;
use fulmar_proto::transport::aerotp::ModeRules;
use fulmar_proto::units::{BitErrorRate, Bitrate, ByteCount, Duration, PacketErrorRate};
use fulmar_proto::wire::Mode;
use fulmar_proto::wire::aerotp::FecStrength;
use fulmar_sim::measure::capacity::{HopLaw, yardsticks};

/// The octets that a transport may hold for the application: enough for a few tries at every packet (several round
/// trips of 20 ms at 5 mbit), and little enough that the delay is the link's rather than the buffer's.
pub(crate) const SEND_BUFFER: usize = 64 * 1024;
/// The seed of both links.
pub(crate) const SEED: u64 = 1;
/// The headers of IPv4 and UDP.
pub(crate) const OVERHEAD: ByteCount = ByteCount(28);
/// The whole datagram.
pub(crate) const MTU: ByteCount = ByteCount(1_500);
/// Packets lost on the bad link, beside those with bit errors.
const LOSS: f64 = 0.02;
/// Bits inverted on the bad link: one packet of 1500 octets in nine is hit.
const BER: f64 = 1e-5;
/// Parity words of a TPDU: they correct 16 octets; at a BER of 1e-5 a TPDU has 0.12 wrong bits on average.
const FEC_WORDS: u16 = 8;
/// A block's sources and repairs: they repair every block that loses up to 4 of its 36 TPDUs; 0.7 are lost
/// on average.
const BLOCK: (u8, u8) = (32, 4);
const BLOCK_CLOSE: Duration = Duration::from_millis(100);

/// A condition of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    /// Nothing is lost.
    Clean,
    /// Loss and bit errors.
    Lossy,
}

impl Condition {
    pub(crate) const ALL: [Self; 2] = [Self::Clean, Self::Lossy];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Lossy => "lossy",
        }
    }

    /// The airborne preset with 10 ms of delay, both ways.
    pub(crate) fn config(self) -> ChannelConfig {
        let mut config = ChannelPreset::AirborneFar.config();
        if self == Self::Lossy {
            config.loss = LossModel::Bernoulli(loss());
            config.bits = BitErrors::Independent(ber());
        }
        config
    }

    /// The most that any code could carry over the link.
    pub(crate) fn capacity(self) -> Bitrate {
        let config = self.config();
        let (loss, ber) = match self {
            Self::Clean => (PacketErrorRate::ZERO, BitErrorRate::ZERO),
            Self::Lossy => (loss(), ber()),
        };
        let law = HopLaw::steady(config.rate, loss, ber, MTU);
        let bound = yardsticks(std::iter::once(law)).expect("the preset has a rate");
        Bitrate::from_bits_per_second(1).scaled(bound.capacity_bps)
    }
}

fn loss() -> PacketErrorRate {
    PacketErrorRate::new(LOSS).expect("the constant is a share")
}

fn ber() -> BitErrorRate {
    BitErrorRate::new(BER).expect("the constant is a share")
}

/// The transport that moves the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DemoCarrier {
    /// AeroTP as `fulmar send` has it when nobody says anything: mode reliable, and the rate is found.
    Found,
    /// The laboratory's TCP with Linux's rules, which finds its rate.
    Tcp,
    /// The kernel's UDP, at the link's rate.
    PlainUdp,
    /// AeroTP in a mode, at the link's rate.
    AeroTp(Mode),
}

impl DemoCarrier {
    /// All carriers, in the order of the table.
    pub(crate) const ALL: [Self; 10] = [
        Self::Found,
        Self::Tcp,
        Self::PlainUdp,
        Self::AeroTp(Mode::Datagram),
        Self::AeroTp(Mode::Unreliable),
        Self::AeroTp(Mode::QuasiReliable),
        Self::AeroTp(Mode::HybridNack),
        Self::AeroTp(Mode::NearReliable),
        Self::AeroTp(Mode::Reliable),
        Self::AeroTp(Mode::HybridNackMack),
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Found => "reliable-found",
            Self::Tcp => "tcp-cubic",
            Self::PlainUdp => "plain-udp",
            Self::AeroTp(mode) => mode.name(),
        }
    }

    /// The mode, if it is AeroTP.
    pub(crate) const fn mode(self) -> Option<Mode> {
        match self {
            Self::Found => Some(Mode::Reliable),
            Self::Tcp | Self::PlainUdp => None,
            Self::AeroTp(mode) => Some(mode),
        }
    }

    /// Whether nothing may be missing.
    pub(crate) fn is_complete(self) -> bool {
        self == Self::Tcp || self.mode().is_some_and(|mode| ModeRules::of(mode).complete)
    }

    /// The rate that it is told.
    pub(crate) fn told(self, condition: Condition) -> Option<Bitrate> {
        let is_told = !matches!(self, Self::Found | Self::Tcp);
        condition.config().rate.filter(|_| is_told)
    }

    /// Parity inside TPDUs, in the modes that use it.
    pub(crate) fn fec_words(self) -> FecStrength {
        match self {
            Self::AeroTp(Mode::QuasiReliable | Mode::HybridNack | Mode::HybridNackMack) => {
                FecStrength::from_words(FEC_WORDS).expect("the constant is in range")
            }
            _ => FecStrength::NONE,
        }
    }

    /// Parity across TPDUs.
    pub(crate) fn block(self) -> Option<BlockPlan> {
        if self != Self::AeroTp(Mode::QuasiReliable) {
            return None;
        }
        let (k, repairs) = BLOCK;
        BlockPlan::new(NonZeroU8::new(k)?, repairs, BLOCK_CLOSE)
    }

    /// The parity in words, for the table.
    pub(crate) fn parity(self) -> String {
        let words = self.fec_words().words();
        match (words, self.block()) {
            (0, _) => "none".to_owned(),
            (words, None) => format!("{words} words"),
            (words, Some(_)) => format!("{words} words, {} of {}", BLOCK.1, BLOCK.0 + BLOCK.1),
        }
    }
}
