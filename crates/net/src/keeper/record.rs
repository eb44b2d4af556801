//! The keeper's record of a socket.

use super::position::Baseline;
use fulmar_proto::splice::Role;

/// The longest [`SocketRecord::note`].
pub const NOTE_BYTES_MAX: usize = 2048;

/// The facts that the next gateway must know to go on with a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketRecord {
    /// The side of the connection: our client's, or ours to the destination.
    pub role: Role,
    /// The kernel's counters at its birth.
    pub baseline: Baseline,
    /// The gateway's own words, at most [`NOTE_BYTES_MAX`] octets.
    pub note: Vec<u8>,
}

/// Role and baseline.
const FIXED_BYTES: usize = 1 + 3 * 8;
/// The longest that [`SocketRecord::encode`] makes.
pub(super) const RECORD_BYTES_MAX: usize = FIXED_BYTES + NOTE_BYTES_MAX;

impl SocketRecord {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(match self.role {
            Role::Opener => 0,
            Role::Acceptor => 1,
        });
        let Baseline { taken, given, syn } = self.baseline;
        for count in [taken, given, syn] {
            out.extend_from_slice(&count.to_be_bytes());
        }
        out.extend_from_slice(&self.note);
    }

    pub(super) fn decode(octets: &[u8]) -> Option<Self> {
        let (role, mut rest) = octets.split_first()?;
        let mut count = || {
            let (count, after) = rest.split_first_chunk()?;
            rest = after;
            Some(u64::from_be_bytes(*count))
        };
        let baseline = Baseline {
            taken: count()?,
            given: count()?,
            syn: count()?,
        };
        Some(Self {
            role: match role {
                0 => Role::Opener,
                1 => Role::Acceptor,
                _ => return None,
            },
            baseline,
            note: rest.to_vec(),
        })
    }
}
