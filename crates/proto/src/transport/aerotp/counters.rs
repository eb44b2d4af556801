//! The fate of the data: lost on the wire, recovered, and lost for good, counted apart.

use crate::machine::TransmitKind;
use crate::transport::parts::{BurstLengths, DelaySpread};
use crate::units::FecStrength;

/// The counters of a connection. Sending and receiving are counted where they happen, so an
/// end-to-end balance adds the two ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Octets sent, from header to parity, by kind, in the order of [`TransmitKind::ALL`].
    pub sent_bytes: [u64; 4],
    /// TPDUs sent, by kind.
    pub sent_tpdus: [u64; 4],
    /// Copies among the retransmissions that followed at once, because each TPDU is sent several
    /// times.
    pub copied_tpdus: u64,
    /// Sender: TPDUs held lost because later ones were acknowledged.
    pub held_lost_overtaken: u64,
    /// Sender: TPDUs held lost because the receiver asked for them.
    pub held_lost_nack: u64,
    /// Sender: TPDUs held lost after a timeout.
    pub held_lost_timeout: u64,
    /// Sender: TPDUs held lost because their datagrams arrived damaged beyond repair.
    pub held_lost_damaged: u64,
    /// Sender: confirmed TPDUs whose first transmission was lost, sent again once, twice or more often for being held lost.
    pub recovered_arq: [u64; 3],
    /// Sender: changes of payload length or parity by the bit error rate.
    pub adaptations: u64,
    /// Sender: first copies sent while the bit error rate was followed.
    pub adapted_tpdus: u64,
    /// Sender: payload octets of these first copies.
    pub adapted_bytes: u64,
    /// Sender: parity words of these first copies.
    pub adapted_words: u64,
    /// Sender: the rates that these first copies were expected to meet, as quarter octaves below 1,
    /// summed.
    pub adapted_quarter_octaves: u64,
    /// Sender: TPDUs confirmed.
    pub confirmed_tpdus: u64,
    /// Sender: payload octets of the confirmed TPDUs.
    pub confirmed_bytes: u64,
    /// Sender: times from the first transmission of a TPDU to the arrival of its confirmation.
    pub confirmed_after: DelaySpread,
    /// Sender: messages that never left, because they would have been too late.
    pub late_unsent: u64,
    /// Sender: times that a whole timeout passed in silence.
    pub stalls: u64,
    /// Receiver: TPDUs accepted, first copies only.
    pub accepted_tpdus: u64,
    /// Receiver: payload octets handed to the application.
    pub delivered_bytes: u64,
    /// Receiver: octets of TPDUs known to be damaged, among those handed to the application.
    pub delivered_damaged_bytes: u64,
    /// Receiver: holes noticed. Where TPDUs are sent several times, those of which no copy came.
    pub wire_lost: u64,
    /// Receiver: numbers of holes noticed in a row.
    pub loss_bursts: BurstLengths,
    /// Receiver: TPDUs that arrived damaged beyond their parity.
    pub wire_damaged: u64,
    /// Receiver: TPDUs corrected by their parity words.
    pub recovered_fec_words: u64,
    /// Receiver: octets corrected in them, which measure the bit errors.
    pub corrected_symbols: u64,
    /// Receiver: TPDUs rebuilt from blocks.
    pub recovered_fec_block: u64,
    /// Receiver: TPDUs that the sender took back, because they would have been too late, and that had not arrived.
    pub late_withdrawn: u64,
    /// Receiver: TPDUs given up that never arrived.
    pub residual_lost: u64,
    /// Receiver: TPDUs given up that had arrived damaged.
    pub residual_damaged: u64,
    /// Receiver: copies of TPDUs that had arrived already, including copies sent beforehand.
    pub duplicates: u64,
    /// Receiver: TPDUs beyond the window.
    pub beyond_window: u64,
    /// TPDUs that parse but make no sense here, such as acknowledgements of data that was never
    /// sent.
    pub nonsense: u64,
}

impl Counters {
    /// Sender: TPDUs held lost, whatever said so.
    pub const fn held_lost(&self) -> u64 {
        let asked_for = self.held_lost_nack + self.held_lost_damaged;
        self.held_lost_overtaken + asked_for + self.held_lost_timeout
    }

    /// Counts a datagram that was sent.
    pub fn on_sent(&mut self, kind: TransmitKind, octets: usize) {
        let index = match kind {
            TransmitKind::Source => 0,
            TransmitKind::Repair => 1,
            TransmitKind::Retransmission => 2,
            TransmitKind::Control => 3,
        };
        self.sent_bytes[index] += octets as u64;
        self.sent_tpdus[index] += 1;
    }

    /// Counts holes that the receiver noticed in a row.
    pub(super) fn on_holes(&mut self, in_a_row: u64) {
        self.wire_lost += in_a_row;
        self.loss_bursts.note(in_a_row);
    }

    /// Counts a first copy whose shape follows the bit error rate; the copy is expected to meet a rate of so many
    /// quarter octaves below 1.
    pub(super) fn on_adapted(&mut self, payload: usize, words: FecStrength, quarters: u8) {
        self.adapted_tpdus += 1;
        self.adapted_bytes += payload as u64;
        self.adapted_words += u64::from(words.words());
        self.adapted_quarter_octaves += u64::from(quarters);
    }
}

fn add_each<const N: usize>(sums: &mut [u64; N], counts: [u64; N]) {
    for (sum, count) in sums.iter_mut().zip(counts) {
        *sum += count;
    }
}

impl core::ops::AddAssign for Counters {
    fn add_assign(&mut self, other: Self) {
        let Self {
            sent_bytes,
            sent_tpdus,
            copied_tpdus,
            recovered_arq,
            held_lost_overtaken,
            held_lost_nack,
            held_lost_timeout,
            held_lost_damaged,
            adaptations,
            adapted_tpdus,
            adapted_bytes,
            adapted_words,
            adapted_quarter_octaves,
            confirmed_tpdus,
            confirmed_bytes,
            confirmed_after,
            late_unsent,
            late_withdrawn,
            stalls,
            accepted_tpdus,
            delivered_bytes,
            delivered_damaged_bytes,
            wire_lost,
            loss_bursts,
            wire_damaged,
            recovered_fec_words,
            corrected_symbols,
            recovered_fec_block,
            residual_lost,
            residual_damaged,
            duplicates,
            beyond_window,
            nonsense,
        } = other;
        add_each(&mut self.sent_bytes, sent_bytes);
        add_each(&mut self.sent_tpdus, sent_tpdus);
        add_each(&mut self.recovered_arq, recovered_arq);
        self.copied_tpdus += copied_tpdus;
        self.held_lost_overtaken += held_lost_overtaken;
        self.held_lost_nack += held_lost_nack;
        self.held_lost_timeout += held_lost_timeout;
        self.held_lost_damaged += held_lost_damaged;
        self.adaptations += adaptations;
        self.adapted_tpdus += adapted_tpdus;
        self.adapted_bytes += adapted_bytes;
        self.adapted_words += adapted_words;
        self.adapted_quarter_octaves += adapted_quarter_octaves;
        self.confirmed_tpdus += confirmed_tpdus;
        self.confirmed_bytes += confirmed_bytes;
        self.confirmed_after += confirmed_after;
        self.late_unsent += late_unsent;
        self.late_withdrawn += late_withdrawn;
        self.stalls += stalls;
        self.accepted_tpdus += accepted_tpdus;
        self.delivered_bytes += delivered_bytes;
        self.delivered_damaged_bytes += delivered_damaged_bytes;
        self.wire_lost += wire_lost;
        self.loss_bursts += loss_bursts;
        self.wire_damaged += wire_damaged;
        self.recovered_fec_words += recovered_fec_words;
        self.corrected_symbols += corrected_symbols;
        self.recovered_fec_block += recovered_fec_block;
        self.residual_lost += residual_lost;
        self.residual_damaged += residual_damaged;
        self.duplicates += duplicates;
        self.beyond_window += beyond_window;
        self.nonsense += nonsense;
    }
}
