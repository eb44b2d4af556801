//! The ways in which a path's rate is known.

use crate::rate::RateSharing;
use crate::units::Bitrate;

/// The way in which the rate of each path is known. Rates include lower headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateSource {
    /// The layer below tells it: the initial rate and the upper bound.
    Told(Bitrate),
    /// It is found from what arrives. The receiving end must tell so in a session, or report often
    /// ([`EndpointConfig::reports_often`](super::EndpointConfig::reports_often)), which it does in modes with connections.
    Found {
        /// The most that may be sent, if anybody said so; at least 4 kbit.
        bound: Option<Bitrate>,
        /// The rate that was found before, if it may still hold: the search begins with it.
        first: Option<Bitrate>,
        /// Whose the path is.
        sharing: RateSharing,
    },
}

/// The ways with others, by their names in settings and options.
pub const SHARINGS: [(&str, RateSharing); 3] = [
    ("own", RateSharing::Own),
    ("fair", RateSharing::Fair),
    ("background", RateSharing::Background),
];

impl RateSource {
    /// The way that settings mean which may name a rate and whose the path is. A rate alone is taken for what the path
    /// carries, and the path for one's own. Without one it is found, and shared fairly. A rate for a path that is
    /// shared is the most that is sent, and the first that is tried.
    pub fn of(rate: Option<Bitrate>, sharing: Option<RateSharing>) -> Self {
        match (rate, sharing) {
            (Some(rate), None | Some(RateSharing::Own)) => Self::Told(rate),
            (bound, sharing) => Self::Found {
                bound,
                first: bound,
                sharing: sharing.unwrap_or_default(),
            },
        }
    }

    /// Whose the path is.
    pub const fn sharing(self) -> RateSharing {
        match self {
            Self::Told(_) => RateSharing::Own,
            Self::Found { sharing, .. } => sharing,
        }
    }

    /// The name of [`RateSource::sharing`].
    pub const fn sharing_name(self) -> &'static str {
        match self.sharing() {
            RateSharing::Own => "own",
            RateSharing::Fair => "fair",
            RateSharing::Background => "background",
        }
    }

    /// The most that is sent, if anybody said so.
    pub const fn bound(self) -> Option<Bitrate> {
        match self {
            Self::Told(rate) => Some(rate),
            Self::Found { bound, .. } => bound,
        }
    }

    /// Whether the rate is found.
    pub const fn is_found(self) -> bool {
        matches!(self, Self::Found { .. })
    }

    /// The same, but with the rate that was found before, where the rate is found: it is tried first.
    #[must_use]
    pub fn after(self, found: Option<Bitrate>) -> Self {
        match self {
            Self::Found {
                bound,
                first,
                sharing,
            } => Self::Found {
                bound,
                first: found.or(first),
                sharing,
            },
            told @ Self::Told(_) => told,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_alone_is_told_and_any_other_path_is_searched() {
        let rate = Bitrate::from_bits_per_second(1_000_000);
        assert_eq!(RateSource::of(Some(rate), None), RateSource::Told(rate));
        for (name, sharing) in SHARINGS {
            let found = RateSource::of(None, Some(sharing));
            assert_eq!((found.sharing_name(), found.bound()), (name, None));
            let told = RateSource::of(Some(rate), Some(sharing));
            assert_eq!((told.sharing_name(), told.bound()), (name, Some(rate)));
        }
        let found = RateSource::of(None, None);
        assert_eq!(found.sharing(), RateSharing::Fair);
        let again = found.after(Some(rate));
        let is_first = matches!(again, RateSource::Found { first: Some(first), bound: None, .. } if first == rate);
        assert!(is_first, "{again:?}");
    }
}
