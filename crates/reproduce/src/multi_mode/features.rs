//! Table I: what each protocol has, and Fulmar's AeroTP beside the paper's.

use crate::exhibit::{Cells, Exhibit};
use crate::facts::{FactRow, FactTable};

const fn row(feature: &'static str, values: &'static [&'static str]) -> FactRow {
    FactRow { feature, values }
}

const TCP_CHECK: &str = "16-bit checksum";
const LOST: &str = "lost in print";

pub(super) const TABLE_I: Exhibit = Exhibit {
    id: "table-i",
    title: "Table I: features of AeroTP and its rivals",
    intro: "The paper's words, as far as its print lets them be told apart, and Fulmar beside them. It runs the TCPs (Reno, NewReno, SACK, CUBIC), UDP and LT-TCP; TP++, T/TCP and SCPS-TP it does not.",
    cells: Cells::Facts(FactTable {
        columns: &[
            "AeroTP, paper",
            "AeroTP, Fulmar",
            "LT-TCP, Fulmar",
            "TP++",
            "UDP",
            "TCP NewReno",
            "(CU)BIC-TCP",
            "T/TCP",
            "SCPS-TP",
        ],
        rows: &[
            row(
                "TCP compatible",
                &[
                    "friendly",
                    "friendly: gateways splice, tunnels carry it whole",
                    "no",
                    "no",
                    "no",
                    "yes",
                    "yes",
                    "yes",
                    "interoperates",
                ],
            ),
            row(
                "UDP compatible",
                &[
                    "friendly",
                    "friendly: gateways and tunnels carry it",
                    "no",
                    "no",
                    "yes",
                    "no",
                    "no",
                    "no",
                    "no",
                ],
            ),
            row(
                "3-way handshake",
                &[
                    "no",
                    "no: data go with the first packet",
                    "yes",
                    "no",
                    "no",
                    "per flow",
                    "per flow",
                    "per end",
                    "per end",
                ],
            ),
            row(
                "partial-path support",
                &[
                    "yes",
                    "gateways in a row, each with custody of what it took while the next hop is down",
                    "no",
                    "no",
                    "yes",
                    "no",
                    "no",
                    "no",
                    "no",
                ],
            ),
            row(
                "header integrity check",
                &[
                    "CRC-16",
                    "CRC-16; between gateways the seal",
                    TCP_CHECK,
                    "checksum",
                    "no",
                    "no",
                    "no",
                    "no",
                    "no",
                ],
            ),
            row(
                "data integrity check",
                &[
                    "CRC-32",
                    "CRC-32; between gateways the seal",
                    TCP_CHECK,
                    LOST,
                    TCP_CHECK,
                    TCP_CHECK,
                    TCP_CHECK,
                    TCP_CHECK,
                    TCP_CHECK,
                ],
            ),
            row(
                "error correction",
                &[
                    "variable FEC",
                    "Reed-Solomon in each packet and across packets, set or by the errors",
                    "Reed-Solomon across packets, by the loss",
                    "FEC",
                    "no",
                    "no",
                    "no",
                    "no",
                    "no",
                ],
            ),
            row(
                "aggregated ACKs",
                &[
                    "yes",
                    "yes: listed, or cumulative with ranges",
                    "yes",
                    "yes",
                    "no",
                    "optional",
                    "optional",
                    "no",
                    "yes",
                ],
            ),
            row(
                "selective repeat",
                &[
                    "yes", "yes", "yes", "yes", "no", "optional", "optional", "no", "yes",
                ],
            ),
            row(
                "negative ACKs",
                &[
                    "optional",
                    "optional: for damage, and for what is missing",
                    "units needed, with each answer",
                    "no",
                    "no",
                    "no",
                    "no",
                    "no",
                    "optional",
                ],
            ),
            row(
                "multipath friendly",
                &[
                    "yes",
                    "yes, between gateways",
                    "no",
                    "yes",
                    "no",
                    "no",
                    "no",
                    "no",
                    "no",
                ],
            ),
            row(
                "flow control",
                &[
                    "cross-layer",
                    "the receiver's window, with each answer",
                    "windowed",
                    "out-of-band signals",
                    "none",
                    "windowed",
                    "windowed",
                    "windowed",
                    "windowed",
                ],
            ),
            row(
                "congestion control",
                &[
                    "cross-layer, AeroNP backpressure",
                    "a rate that is set, found or told by the link, lowered by marks (ECN) and by a told queue",
                    "marks alone (ECN)",
                    LOST,
                    "none",
                    "slow start, AIMD, fast retransmit",
                    "slow start, (CU)BIC, fast retransmit",
                    LOST,
                    "Vegas, fast retransmit",
                ],
            ),
            row(
                "error control",
                &[
                    "hybrid, modular, adaptive",
                    "hybrid, modular, adaptive",
                    "hybrid",
                    LOST,
                    "none",
                    "ARQ",
                    "ARQ",
                    "ARQ",
                    "ARQ",
                ],
            ),
            row(
                "reliability modes",
                &[
                    "reliable, nearly reliable, quasi-reliable, best effort",
                    "the same, two hybrids, datagrams, and goals (auto)",
                    "reliable",
                    LOST,
                    "none",
                    "reliable",
                    "reliable",
                    "reliable",
                    "reliable",
                ],
            ),
        ],
    }),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_protocol_has_a_word_on_each_feature() {
        let Cells::Facts(table) = &TABLE_I.cells else {
            panic!("not a table of facts");
        };
        for row in table.rows {
            assert_eq!(row.values.len(), table.columns.len(), "{}", row.feature);
        }
        assert_eq!(table.csv().lines().count(), 1 + 15 * 9);
    }
}
