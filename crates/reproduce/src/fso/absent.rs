//! Things that the paper describes and that are not here.

use crate::paper::Absent;

pub(super) const ABSENT: &[Absent] = &[
    Absent {
        place: "Section 2.3, Figure 1",
        what: "The recordings of received light",
        instead: "They are not public. Synthetic processes stand for them, made from the paper's words: what they share with the recordings is given, not found.",
    },
    Absent {
        place: "Section 3.1",
        what: "Turbo and Hamming codes",
        instead: "Parity is Reed-Solomon's, inside packets and across them, and repetition.",
    },
    Absent {
        place: "Section 3.2",
        what: "The memory that reordering takes at a receiver of selective repeat, which on lossy channels may exceed what is en route",
        instead: "Receivers here are bounded, and what they hold is not measured.",
    },
    Absent {
        place: "Section 3.3.4",
        what: "SCPS-TP itself: its segments and its options",
        instead: "AeroTP's near-reliable mode stands for what it does (SNACK, a set rate, no answer to loss, copies), and link layers for its limit to retransmissions; nothing here speaks to an SCPS-TP.",
    },
    Absent {
        place: "Section 3.3.5",
        what: "Explicit signs of corruption beside those of congestion, by which a TCP tells them apart",
        instead: "TCP here has ECN, and takes every loss for congestion where its control is on. Only AeroTP tells damage from loss.",
    },
    Absent {
        place: "Section 4.1.1",
        what: "The course of ATENAA's propagation delay, as its motion made it",
        instead: "The preset varies light alone. Where timestamps are judged a jitter by chance stands for it.",
    },
];
