//! Probabilities, and the two error rates, which must not be confused.

macro_rules! probability {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
        pub struct $name(f64);

        impl $name {
            /// The probability zero.
            pub const ZERO: Self = Self(0.0);

            /// Checks that `value` lies in 0..=1.
            pub fn new(value: f64) -> Option<Self> {
                (0.0..=1.0).contains(&value).then_some(Self(value))
            }

            /// The value in 0..=1.
            pub const fn value(self) -> f64 {
                self.0
            }

            /// Whether the value is exactly zero, so that the process can be skipped.
            pub fn is_zero(self) -> bool {
                self.0 <= 0.0
            }
        }
    };
}

probability!(
    /// A probability in 0..=1.
    Probability
);
probability!(
    /// The share of packets that a medium loses, in 0..=1.
    PacketErrorRate
);
probability!(
    /// The share of bits that a medium inverts, in 0..=1.
    BitErrorRate
);

impl BitErrorRate {
    /// The probability that at least one of `bits` independent bits is hit: 1 - (1 - BER)^bits.
    pub fn packet_error_rate(self, bits: u64) -> PacketErrorRate {
        let intact = bits as f64 * (-self.0).ln_1p();
        PacketErrorRate(-intact.exp_m1())
    }
}
