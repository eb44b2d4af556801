//! Sequence numbers of octets, which wrap.

use core::fmt;

/// The number of an octet of the stream, modulo 2^32 (RFC 9293, section 3.4). Like
/// [`fulmar_proto::wire::TpduSeq`] it has no `<`: only distances of less than half the number space have
/// a sign.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TcpSeq(pub u32);

impl TcpSeq {
    /// The number `count` octets later.
    #[must_use]
    pub const fn plus(self, count: u32) -> Self {
        Self(self.0.wrapping_add(count))
    }

    /// The distance of this number behind `other`; negative if it lies before.
    pub const fn distance_from(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0).cast_signed()
    }
}

impl fmt::Display for TcpSeq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_keep_their_sign_across_the_wrap() {
        let last = TcpSeq(u32::MAX);
        assert_eq!(last.plus(3).distance_from(last), 3);
        assert_eq!(last.distance_from(TcpSeq(1)), -2);
    }
}
