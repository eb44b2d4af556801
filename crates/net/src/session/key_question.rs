//! "Are our keys right?": asked of a running gateway without touching the session with it.
//!
//! The question is an initiation with epoch 0, which is below every epoch that was ever confirmed. A gateway
//! that can read it, and knows the caller, answers that it is superseded; another gateway answers with the reason
//! why it cannot (docs/protocol/session.md, section 11). Neither end keeps state of it, and it leads to no keys.
//!
//! # Does not
//! - Find out whether a preset key beside static keys is the same at both ends: the preset key is used only in the
//!   answer of a handshake, and this question gets no such answer.

use super::config::Security;
use super::entropy::Entropy;
use super::event::{Hint, Mismatch};
use super::guard::{GuardKeys, MAC_BYTES, Mac};
use super::handshake::{Initiator, Means};
use super::keys::SecretKey;
use super::kinds::SecurityKinds;
use super::wire::{DatagramType, HEADER_BYTES, Header, Hello, Notice, SESSION_VERSION};
use super::work::{KeyMeter, Work};
use fulmar_proto::units::FecStrength;

/// The epoch of a question; that of a call is larger.
pub(super) const QUESTION_EPOCH: u64 = 0;

/// A question to one peer.
#[derive(Debug)]
pub struct KeyQuestion {
    octets: Vec<u8>,
    index: u32,
    first: Mac,
    wrong: Hint,
    unknown: Option<Hint>,
    kinds: SecurityKinds,
}

/// The answer to a question, without proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyAnswer {
    /// The gateway could read the question and knows who asks.
    Agree,
    /// The ends are configured differently.
    Differ(Hint),
}

impl KeyQuestion {
    /// A question to the gateway that is recognised by `security`. `None`: no handshake can be begun with its key, or a
    /// key of our own is missing.
    pub fn new(
        security: &Security,
        identity: Option<&SecretKey>,
        entropy: &mut Entropy,
    ) -> Option<Self> {
        let index = u32::from_be_bytes(entropy.array()) | 1;
        let hello = Hello {
            version: SESSION_VERSION,
            boot: u64::from_le_bytes(entropy.array()),
            epoch: QUESTION_EPOCH,
            capabilities: Vec::new(),
        };
        let means = Means {
            entropy: entropy.child(),
            meter: KeyMeter::default(),
        };
        let begun = Initiator::begin(security, identity, index, &hello, means);
        let (_, body) = begun?;
        let header = Header {
            kind: DatagramType::Initiation,
            fec: FecStrength::NONE,
            receiver: 0,
            low: index,
        };
        let mut octets = [&header.to_octets()[..], &body].concat();
        let first = GuardKeys::of(security).first(&mut Work::default(), &octets);
        octets.extend_from_slice(&first);
        octets.extend_from_slice(&[0; MAC_BYTES]);
        Some(Self {
            octets,
            index,
            first,
            wrong: match security {
                Security::Noise { peer, .. } => Hint::WrongPublicKey(*peer),
                Security::Preset { .. } => Hint::Mismatch(Mismatch::PresetKey),
                Security::None { .. } => Hint::Mismatch(Mismatch::Label),
                Security::Nobody => return None,
            },
            unknown: identity.map(|key| Hint::UnknownCaller(key.public())),
            kinds: SecurityKinds::of(security),
        })
    }

    /// The datagram to send, as often as wanted.
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Reads the answer from `octets`; `None` if they do not answer this question.
    pub fn answer(&self, octets: &[u8]) -> Option<KeyAnswer> {
        let header = Header::parse(octets).ok()?;
        let seen = octets.get(HEADER_BYTES..)?;
        if header.kind != DatagramType::Notice
            || header.receiver != self.index
            || seen != self.first
        {
            return None;
        }
        Some(match Notice::of_word(header.low)? {
            Notice::Superseded => KeyAnswer::Agree,
            Notice::WrongKey => KeyAnswer::Differ(self.wrong),
            Notice::UnknownCaller => KeyAnswer::Differ(self.unknown?),
            Notice::OtherSecurity(theirs) => {
                let ours = self.kinds;
                KeyAnswer::Differ(Hint::Mismatch(Mismatch::Security { ours, theirs }))
            }
            Notice::NoSession => return None,
        })
    }
}
