//! The two yardsticks that goodput is divided by.
//!
//! *Capacity* is a bound that no code can exceed: a medium of rate R that loses whole packets with
//! probability L and inverts each bit of the others with probability B carries at most
//! R (1 - L) (1 - H(B)), H being the binary entropy (Shannon 1948; erasures and the binary symmetric
//! channel in series). The *ARQ bound* is one that no scheme can exceed that throws a damaged packet away:
//! R (1 - L) (1 - B)^bits, or with the mean of (1 - B)^bits where B varies. Loss and bit errors of several
//! hops accumulate, since the transports here code end to end; the rate is the lowest of all hops.

use fulmar_proto::units::{BitErrorRate, Bitrate, ByteCount, PacketErrorRate, Probability};

/// The long-run properties of one direction of a hop.
#[derive(Clone, Copy, Debug)]
pub struct HopLaw {
    /// Octets leave at this rate.
    pub rate: Option<Bitrate>,
    /// Share of packets lost whole, whatever their content.
    pub loss: PacketErrorRate,
    /// Share of bits inverted; for a rate that varies, the constant rate that has the mean of its
    /// entropies.
    pub ber: BitErrorRate,
    /// Share of packets that arrives without an inverted bit, of those that arrive.
    pub intact: Probability,
}

impl HopLaw {
    /// The law of a medium whose bit error rate does not vary, for packets of `packet` octets.
    pub fn steady(
        rate: Option<Bitrate>,
        loss: PacketErrorRate,
        ber: BitErrorRate,
        packet: ByteCount,
    ) -> Self {
        let hit = ber.packet_error_rate(packet.bits()).value();
        Self {
            rate,
            loss,
            ber,
            intact: Probability::new(1.0 - hit).unwrap_or_default(),
        }
    }
}

/// The most that a path could carry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Yardsticks {
    /// R (1 - L) (1 - H(B)), bits per second.
    pub capacity_bps: f64,
    /// R (1 - L) (1 - B)^bits, bits per second.
    pub arq_bound_bps: f64,
}

/// The binary entropy in bits.
fn entropy(p: f64) -> f64 {
    if p <= 0.0 || p >= 1.0 {
        return 0.0;
    }
    -p * p.log2() - (1.0 - p) * (1.0 - p).log2()
}

/// The yardsticks of a path; `None` when no hop has a rate.
pub fn yardsticks(hops: impl Iterator<Item = HopLaw>) -> Option<Yardsticks> {
    let mut rate: Option<Bitrate> = None;
    let mut whole = 1.0;
    let mut intact = 1.0;
    let mut unbiased = 1.0;
    for hop in hops {
        rate = match (rate, hop.rate) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        whole *= 1.0 - hop.loss.value();
        intact *= hop.intact.value();
        // Two symmetric channels in series: 1 - 2B multiplies.
        unbiased *= 1.0 - 2.0 * hop.ber.value();
    }
    let rate = rate?.as_bits_per_second() as f64;
    Some(Yardsticks {
        capacity_bps: rate * whole * (1.0 - entropy((1.0 - unbiased) / 2.0)),
        arq_bound_bps: rate * whole * intact,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(mbit: u64, loss: f64, ber: f64) -> HopLaw {
        HopLaw::steady(
            Some(Bitrate::from_bits_per_second(mbit * 1_000_000)),
            PacketErrorRate::new(loss).unwrap(),
            BitErrorRate::new(ber).unwrap(),
            ByteCount(1500),
        )
    }

    #[test]
    fn a_clean_path_carries_its_lowest_rate() {
        let hops = [hop(10_000, 0.0, 0.0), hop(5, 0.0, 0.0)];
        let y = yardsticks(hops.into_iter()).unwrap();
        assert!((y.capacity_bps - 5e6).abs() < 1e-6);
        assert!((y.arq_bound_bps - 5e6).abs() < 1e-6);
    }

    #[test]
    fn bit_errors_hurt_whoever_throws_packets_away_far_more() {
        let y = yardsticks([hop(5, 0.0, 1e-4)].into_iter()).unwrap();
        // H(1e-4) = 0.0014730; (1 - 1e-4)^12000 = 0.301176.
        assert!((y.capacity_bps / 5e6 - (1.0 - 0.001_473)).abs() < 1e-6);
        assert!((y.arq_bound_bps / 5e6 - 0.301_176).abs() < 1e-5);
    }

    #[test]
    fn loss_accumulates_over_hops() {
        let hops = [hop(5, 0.1, 0.0), hop(5, 0.2, 0.0)];
        let y = yardsticks(hops.into_iter()).unwrap();
        assert!((y.capacity_bps - 5e6 * 0.72).abs() < 1e-3);
    }
}
