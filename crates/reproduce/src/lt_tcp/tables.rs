//! The page of the slides.

use super::families::{BOTH_WAYS, CHAIN, HOP, LIGHT_CHAIN, SATURATED, SATURATED_100};
use super::figures::{CHAIN_FIGURES, HOP_FIGURES, LINK_FIGURES, WHY_FIGURES};
use super::granulation::{self, GRANULATION, GRANULATION_LOST};
use super::published::TABLE_1;
use super::{claims_link, claims_transport, matrix};
use crate::figure::FigureSection;
use crate::paper::{Absent, ClaimSource, Paper};

/// The reproduction of the slides.
pub static LT_TCP: Paper = Paper {
    name: "lt-tcp",
    title: "Loss tolerance between link and transport: LT-TCP and LL-HARQ",
    source: ClaimSource::Paper,
    families: &[
        SATURATED,
        SATURATED_100,
        GRANULATION,
        GRANULATION_LOST,
        HOP,
        CHAIN,
        LIGHT_CHAIN,
        BOTH_WAYS,
        matrix::RANDOM,
        matrix::ON_OFF,
        matrix::BITS,
    ],
    sections: &[
        FigureSection {
            title: "The link by itself",
            intro: "One hop whose queue never empties, packets of 1040 octets.",
            figures: &LINK_FIGURES,
        },
        FigureSection {
            title: "Four hops, ten flows",
            intro: "The slides' chain; their Table I beside.",
            figures: &CHAIN_FIGURES,
        },
        FigureSection {
            title: "One hop, ten flows",
            intro: "",
            figures: &HOP_FIGURES,
        },
        FigureSection {
            title: "Why it comes out otherwise",
            intro: "LL-HARQ with less parity, which trades latency for goodput, and with parity for each packet by itself; errors on the way back \
                too. An LL-ARQ whose window never stands still, and a TCP with ns-2's default window, are among the curves above.",
            figures: &WHY_FIGURES,
        },
    ],
    exhibits: &[TABLE_1, matrix::HEAT],
    claims: &[
        &claims_link::CLAIMS,
        &granulation::CLAIMS,
        &claims_transport::CLAIMS,
    ],
    absent: ABSENT,
    notes: &[
        "The slides leave most parameters unsaid. Rate, propagation, packet lengths, LL-ARQ's retries and its order are decoded from their \
         latencies; LL-ARQ's window of 32 frames and its timer, a quarter more than a round trip, from these and from what the slides say of goodput: with a wider window a long latency \
         costs none. LL-HARQ's blocks were made as long, and as many of them left to a second round, as the published latencies allow (docs/models/link.md has the grids). Queues and RED's thresholds are ours: one to three bandwidth-delay products of the chain.",
        "ON and OFF last 20 ms each; the error rate in ON is 1.5 times the average, in OFF half of it. Every transmission of a frame or unit is lost by \
         that rate, however short. Errors hit the way there; the way back is clean, but for the experiment that says otherwise.",
        "LL-HARQ's units have ten to twelve octets of header, where a simulation of the slides' time may have had none: 2 % of a packet of 1350 octets in two parts.",
        "Receiver goodput is that of all ten flows together; link goodput, residual loss and latency are means over the hops. Latency counts from leaving \
         the queue above the link layer. The round trip is the sum of the hops' mean waits and latencies, there and back.",
    ],
};

/// Things that the slides describe and that are not here.
const ABSENT: &[Absent] = &[
    Absent {
        place: "slide \"Multi-tier NLOS MANETs & meshes\"",
        what: "Losses of real meshes, such as Roofnet's",
        instead: "Errors are the slides' ON-OFF process, independent losses and bit errors.",
    },
    Absent {
        place: "slides \"Link level goodput\", \"End-end delay\" and \"PER v/s TCP goodput\"",
        what: "The values of the curves",
        instead: "They are lost with the pictures; only the tables' values stand beside ours.",
    },
];
