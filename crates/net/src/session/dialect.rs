//! The wire of data: the form of the datagrams under the keys of one handshake.
//!
//! Handshakes have one form. If both hellos said `wire-2`, data under their keys is in wire 2, from the first datagram
//! on, and otherwise in wire 1 ([ADR 0029](../../../../docs/adr/0029-one-wire-revision.md)). So each handshake decides
//! anew, and nobody between the ends can take the word away: hellos are sealed.

use super::wire::{Capability, Hello};
use fulmar_proto::machine::TpduForm;
use fulmar_proto::units::FecStrength;

const CAPABILITY: &str = "wire-2";
const VERSION: &str = "1";

/// The capability in a hello that asks for data in [`Wire::Two`], which is used if the peer says the same. The machine
/// inside must speak the short form ([`SHORT`](fulmar_proto::machine::Carried::SHORT)).
pub fn wire_2() -> Capability {
    Capability {
        name: CAPABILITY.to_owned(),
        value: VERSION.to_owned(),
        must_agree: false,
    }
}

/// Whether an end that says this speaks wire 2.
pub(super) fn speaks_two(capabilities: &[Capability]) -> bool {
    let mut said = capabilities.iter();
    said.any(|one| one.name == CAPABILITY && one.value == VERSION)
}

const WINDOWS: &str = "window-repair";

/// The capability of an end whose machine takes repair symbols over windows, in wire 2. They are sent to whoever says the same.
pub fn window_repair() -> Capability {
    Capability {
        name: WINDOWS.to_owned(),
        value: VERSION.to_owned(),
        must_agree: false,
    }
}

/// Whether both ends said so.
pub(super) fn use_windows(ours: &[Capability], theirs: &[Capability]) -> bool {
    let says = |said: &[Capability]| {
        let mut said = said.iter();
        said.any(|one| one.name == WINDOWS && one.value == VERSION)
    };
    says(ours) && says(theirs)
}

/// The form of the datagrams that carry data under one pair of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wire {
    /// Version 1: 12 octets of header, and one message.
    #[default]
    One,
    /// Version 2: 8 octets of header, and frames.
    Two,
}

impl Wire {
    /// The wire of two ends that said this in their hellos.
    pub(super) fn of(ours: &Hello, theirs: &Hello) -> Self {
        if speaks_two(&ours.capabilities) && speaks_two(&theirs.capabilities) {
            Self::Two
        } else {
            Self::One
        }
    }

    /// Its number.
    pub const fn version(self) -> u8 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }

    /// The form in which the inner machine's packets travel in it.
    pub(super) const fn form(self) -> TpduForm {
        match self {
            Self::One => TpduForm::Long,
            Self::Two => TpduForm::Short,
        }
    }
}

/// The parity of data to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DataParity {
    /// Whether the header has parity of its own, in wire 2.
    pub(super) is_armoured: bool,
    /// Words behind each datagram.
    pub(super) words: FecStrength,
}

impl DataParity {
    /// None, and nothing that would say so.
    pub(super) const NONE: Self = Self {
        is_armoured: false,
        words: FecStrength::NONE,
    };

    /// The same with another number of words.
    pub(super) const fn with(self, words: FecStrength) -> Self {
        Self { words, ..self }
    }
}

/// The form of data to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DataForm {
    /// Its wire.
    pub(super) wire: Wire,
    /// The parity of each datagram.
    pub(super) parity: DataParity,
}

#[cfg(test)]
mod tests {
    use super::super::wire::SESSION_VERSION;
    use super::*;

    fn hello(capabilities: Vec<Capability>) -> Hello {
        Hello {
            version: SESSION_VERSION,
            boot: 1,
            epoch: 1,
            capabilities,
        }
    }

    #[test]
    fn the_second_wire_takes_both_ends_and_this_word() {
        let other = |name: &str, value: &str| Capability {
            name: name.to_owned(),
            value: value.to_owned(),
            must_agree: false,
        };
        let two = hello(vec![other("x", "y"), wire_2()]);
        assert_eq!(Wire::of(&two, &two), Wire::Two);
        // The next release will insist on it.
        let insisting = hello(vec![Capability {
            must_agree: true,
            ..wire_2()
        }]);
        assert_eq!(Wire::of(&two, &insisting), Wire::Two);
        for lacking in [
            hello(vec![]),
            hello(vec![other("wire-2", "2")]),
            hello(vec![other("wire-3", "1"), other("x", "wire-2")]),
        ] {
            assert_eq!(Wire::of(&two, &lacking), Wire::One);
            assert_eq!(Wire::of(&lacking, &two), Wire::One);
        }
        assert_eq!(two.disagreement(&hello(vec![])), None, "an old end is none");
    }
}
