//! The words of the ends to each other in the handshake: version, boot, epoch, capabilities.
//!
//! A hello is always [`HELLO_BYTES`] long, so that its length reveals nothing and a response is never larger than
//! the initiation.

use super::SESSION_VERSION;

/// Octets of a hello, padding included.
pub(in crate::session) const HELLO_BYTES: usize = 256;

const FIXED_BYTES: usize = 18;
/// The longest name or value of a capability.
const TEXT_BYTES_MAX: usize = 32;
const MUST_AGREE: u8 = 1;

/// A capability that an end states about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Its name: 1 to 32 octets of UTF-8.
    pub name: String,
    /// Its value: 0 to 32 octets of UTF-8.
    pub value: String,
    /// Whether both ends must say the same, or else refuse each other.
    pub must_agree: bool,
}

/// The reason why a list of capabilities cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HelloError {
    /// A name or value has a length that does not fit.
    #[error("capability `{0}`: its name must have 1 to 32 octets and its value at most 32")]
    Text(String),
    /// All of them together do not fit.
    #[error("capabilities take {0} octets, more than the {max} of a hello", max = HELLO_BYTES - FIXED_BYTES)]
    TooMany(usize),
}

/// The payload of both handshake messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::session) struct Hello {
    pub(in crate::session) version: u8,
    /// A random number of this start: another one means that the earlier state is gone.
    pub(in crate::session) boot: u64,
    /// A number that rises with every initiation of an end, across its starts; zero in responses.
    pub(in crate::session) epoch: u64,
    pub(in crate::session) capabilities: Vec<Capability>,
}

impl Hello {
    /// Checks that `capabilities` fit a hello.
    pub(in crate::session) fn check(capabilities: &[Capability]) -> Result<(), HelloError> {
        let mut total = 0;
        for capability in capabilities {
            let (name, value) = (capability.name.len(), capability.value.len());
            if !(1..=TEXT_BYTES_MAX).contains(&name) || value > TEXT_BYTES_MAX {
                return Err(HelloError::Text(capability.name.clone()));
            }
            total += 3 + name + value;
        }
        if total > HELLO_BYTES - FIXED_BYTES {
            return Err(HelloError::TooMany(total));
        }
        Ok(())
    }

    /// The octets. Capabilities that do not fit, although [`Hello::check`] was asked before, are left out.
    pub(in crate::session) fn to_octets(&self) -> [u8; HELLO_BYTES] {
        let mut octets = Vec::with_capacity(HELLO_BYTES);
        octets.push(self.version);
        octets.push(u8::try_from(self.capabilities.len()).unwrap_or(u8::MAX));
        octets.extend_from_slice(&self.boot.to_be_bytes());
        octets.extend_from_slice(&self.epoch.to_be_bytes());
        for capability in &self.capabilities {
            octets.push(if capability.must_agree { MUST_AGREE } else { 0 });
            for text in [&capability.name, &capability.value] {
                octets.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
                octets.extend_from_slice(text.as_bytes());
            }
        }
        let mut fixed = [0; HELLO_BYTES];
        for (to, from) in fixed.iter_mut().zip(octets) {
            *to = from;
        }
        fixed
    }

    /// Reads a hello, of any version as far as the boot.
    pub(in crate::session) fn read(octets: &[u8]) -> Option<Self> {
        let octets: &[u8; HELLO_BYTES] = octets.try_into().ok()?;
        let (&[version, count, ref numbers @ ..], mut rest) =
            octets.split_first_chunk::<FIXED_BYTES>()?;
        let [
            b0,
            b1,
            b2,
            b3,
            b4,
            b5,
            b6,
            b7,
            e0,
            e1,
            e2,
            e3,
            e4,
            e5,
            e6,
            e7,
        ] = *numbers;
        let mut hello = Self {
            version,
            boot: u64::from_be_bytes([b0, b1, b2, b3, b4, b5, b6, b7]),
            epoch: u64::from_be_bytes([e0, e1, e2, e3, e4, e5, e6, e7]),
            capabilities: Vec::new(),
        };
        if version != SESSION_VERSION {
            return Some(hello);
        }
        for _ in 0..count {
            let (&flags, after) = rest.split_first()?;
            let (name, after) = text(after)?;
            let (value, after) = text(after)?;
            rest = after;
            hello.capabilities.push(Capability {
                name,
                value,
                must_agree: flags & MUST_AGREE != 0,
            });
        }
        Some(hello)
    }

    /// The first capability on which the ends do not agree: its name, our value, their value.
    pub(in crate::session) fn disagreement(
        &self,
        theirs: &Self,
    ) -> Option<(String, String, String)> {
        if self.version != theirs.version {
            return Some((
                "session version".to_owned(),
                self.version.to_string(),
                theirs.version.to_string(),
            ));
        }
        let value = |of: &Self, name: &str| {
            let found = of.capabilities.iter().find(|c| c.name == name);
            found.map_or_else(|| "none".to_owned(), |c| c.value.clone())
        };
        let binding = self.capabilities.iter().chain(&theirs.capabilities);
        binding
            .filter(|c| c.must_agree)
            .map(|c| (c.name.clone(), value(self, &c.name), value(theirs, &c.name)))
            .find(|(_, ours, theirs)| ours != theirs)
    }
}

fn text(octets: &[u8]) -> Option<(String, &[u8])> {
    let (&len, rest) = octets.split_first()?;
    let (text, rest) = rest.split_at_checked(usize::from(len))?;
    Some((core::str::from_utf8(text).ok()?.to_owned(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn capability(name: &str, value: &str, must_agree: bool) -> Capability {
        Capability {
            name: name.to_owned(),
            value: value.to_owned(),
            must_agree,
        }
    }

    fn hello(capabilities: Vec<Capability>) -> Hello {
        Hello {
            version: SESSION_VERSION,
            boot: 0x0102_0304_0506_0708,
            epoch: 9,
            capabilities,
        }
    }

    #[test]
    fn a_hello_is_these_octets() {
        let octets = hello(vec![capability("splice", "1", true)]).to_octets();
        let golden =
            b"\x01\x01\x01\x02\x03\x04\x05\x06\x07\x08\0\0\0\0\0\0\0\x09\x01\x06splice\x011";
        assert_eq!(octets[..golden.len()], golden[..]);
        assert!(octets[golden.len()..].iter().all(|&octet| octet == 0));
    }

    #[test]
    fn a_hello_reads_back_and_its_capabilities_are_bounded() {
        let most = vec![capability(&"n".repeat(32), &"v".repeat(32), false); 3];
        assert_eq!(Hello::check(&most), Ok(()));
        let sent = hello(most.clone());
        assert_eq!(Hello::read(&sent.to_octets()), Some(sent));
        let more = [most.clone(), most].concat();
        assert_eq!(Hello::check(&more), Err(HelloError::TooMany(402)));
        for (name, value) in [("", "x".to_owned()), ("x", "v".repeat(33))] {
            let refused = Hello::check(&[capability(name, &value, true)]);
            assert_eq!(refused, Err(HelloError::Text(name.to_owned())));
        }
    }

    #[test]
    fn only_what_must_agree_can_disagree() {
        let one = hello(vec![
            capability("splice", "1", true),
            capability("software", "a", false),
        ]);
        let two = hello(vec![
            capability("software", "b", false),
            capability("splice", "1", true),
        ]);
        assert_eq!(one.disagreement(&two), None);
        let old = hello(vec![]);
        let missing = ("splice".to_owned(), "1".to_owned(), "none".to_owned());
        assert_eq!(one.disagreement(&old), Some(missing));
        let later = Hello {
            version: 2,
            ..one.clone()
        };
        let versions = ("session version".to_owned(), "1".to_owned(), "2".to_owned());
        assert_eq!(one.disagreement(&later), Some(versions));
    }

    proptest! {
        #[test]
        fn noise_never_panics(octets in proptest::collection::vec(any::<u8>(), HELLO_BYTES)) {
            let mut octets = octets;
            octets[0] = SESSION_VERSION;
            let _ = Hello::read(&octets);
        }
    }
}
