//! The step from bit errors to lost packets: equations 5 and 6.

use fulmar_proto::units::{BitErrorRate, ByteCount, PacketErrorRate};

/// The probability that at least one bit of `covered` octets is hit (equation 5):
/// p = 1 - (1 - BEP)^bits.
///
/// The equation covers user data and header; the source's Table 1 was computed with the user data alone.
/// The caller says by `covered` which of the two is meant.
pub fn packet_loss(bit_errors: BitErrorRate, covered: ByteCount) -> PacketErrorRate {
    bit_errors.packet_error_rate(covered.bits())
}

/// The loss of a packet when the loss of its acknowledgement counts as loss too (equation 6): the
/// sum of both, which is an upper bound of the exact p + q - p q; at most 1.
pub fn packet_or_acknowledgement_loss(
    packet: PacketErrorRate,
    acknowledgement: PacketErrorRate,
) -> PacketErrorRate {
    let sum = packet.value() + acknowledgement.value();
    PacketErrorRate::new(sum.min(1.0)).unwrap_or_default()
}
