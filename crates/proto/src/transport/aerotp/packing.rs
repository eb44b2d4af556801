//! The headers that a connection's TPDUs have on its path.

use crate::machine::TpduForm;
use crate::wire::aerotp::short;

/// The headers of data. Within a connection they only become shorter, unless its path goes back to the long form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    /// The long form.
    Long,
    /// The short form, with the ports in full: the peer was not heard, or the connection has no name.
    Full,
    /// The short form, under the connection's name.
    Named,
}

impl Packing {
    pub(super) const fn of(form: TpduForm, is_named: bool) -> Self {
        match (form, is_named) {
            (TpduForm::Long, _) => Self::Long,
            (TpduForm::Short, false) => Self::Full,
            (TpduForm::Short, true) => Self::Named,
        }
    }

    /// Octets before a TPDU in the long form.
    pub(super) const fn long_type_bytes(self) -> usize {
        match self {
            Self::Long => 0,
            Self::Full | Self::Named => short::LONG_TYPE_BYTES,
        }
    }

    /// Begins a TPDU in the long form.
    pub(super) fn begin_long(self, out: &mut Vec<u8>) {
        if self != Self::Long {
            short::begin_long(out);
        }
    }
}
