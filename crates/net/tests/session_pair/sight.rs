//! The parts of a data datagram that an eavesdropper can read, in either wire.

use fulmar_net::session::Wire;

/// A datagram of data.
pub(crate) struct Data<'a> {
    pub(crate) wire: Wire,
    /// The receiver's session index.
    pub(crate) index: &'a [u8],
    /// The octets that a notice repeats.
    pub(crate) shown: [u8; 4],
    /// The octets behind the header.
    pub(crate) sealed: &'a [u8],
}

impl Data<'_> {
    /// The octets that a notice would repeat of data sent `more` datagrams later.
    pub(crate) fn shown_later(&self, more: u32) -> [u8; 4] {
        let later = u32::from_be_bytes(self.shown).wrapping_add(more);
        later.to_be_bytes()
    }
}

/// The parts of `octets`, if they are data.
pub(crate) fn data(octets: &[u8]) -> Option<Data<'_>> {
    let wire = match octets[0] {
        0x10 => Wire::One,
        0x28..=0x2F | 0x38..=0x3F => Wire::Two,
        _ => return None,
    };
    let (index, shown, header) = match wire {
        Wire::One => (4..8, [8, 9, 10, 11], 12),
        Wire::Two if octets[0] & 0x10 == 0 => (1..5, [0, 5, 6, 7], 8),
        // Armoured: with words of parity, and with parity of the header's own.
        Wire::Two => (2..6, [0, 6, 7, 8], 17),
    };
    Some(Data {
        wire,
        index: &octets[index],
        shown: shown.map(|place| octets[place]),
        sealed: &octets[header..],
    })
}
