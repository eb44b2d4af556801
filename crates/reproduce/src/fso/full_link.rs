//! The cause of the fall of the paper's TCP, read from the table's last columns: the link was full all the
//! time.
//!
//! Every packet that arrives is acknowledged, so the way back's share counts arrivals. Over the testbed
//! with independent errors nearly all packets arrive, and nearly all are of use. A row's way back divided
//! by that of this reference is the share of packets that arrive; its goodput divided likewise is the share
//! that is of use.

use super::families::{BETWEEN, EVERY_PACKET, LATE};
use super::view::{list, shares};
use crate::data::Data;

/// Goodput of TCP and its way back's share, Table 1, at 500, 1000 and 1500 octets.
struct Row {
    goodput: [f64; 3],
    back: [f64; 3],
}

const AWGN: Row = Row {
    goodput: [0.9306, 0.9479, 0.9347],
    back: [0.0528, 0.0270, 0.0181],
};
const TESTBED: Row = Row {
    goodput: [0.8222, 0.7755, 0.7557],
    back: [0.0507, 0.0254, 0.0167],
};
const FASOLT: Row = Row {
    goodput: [0.4944, 0.0421, 0.0644],
    back: [0.0428, 0.0202, 0.0131],
};

fn over(row: [f64; 3], reference: [f64; 3]) -> [f64; 3] {
    [0, 1, 2].map(|index| row[index] / reference[index])
}

/// The share of packets that arrive, and the share of arrived packets that are of use.
fn arriving_and_useful(row: &Row) -> ([f64; 3], [f64; 3]) {
    let arriving = over(row.back, AWGN.back);
    let useful = over(over(row.goodput, AWGN.goodput), arriving);
    (arriving, useful)
}

/// The cause as far as it is proven, and an experiment that shows that it suffices.
pub(super) fn full_link(data: &Data) -> Option<String> {
    let texts = [&FASOLT, &TESTBED].map(|row| {
        let (arriving, useful) = arriving_and_useful(row);
        (list(&arriving, 2), list(&useful, 2))
    });
    let [
        (fasolt_arriving, fasolt_useful),
        (testbed_arriving, testbed_useful),
    ] = texts;
    let early = |line| Some(list(&shares(data, "early", line)?, 3));
    Some(format!(
        "The paper's own last columns show where it was lost: every arrival is acknowledged, and measured by the testbed's without fading {fasolt_arriving} of the packets arrived over FASOLT at 500, 1000 and 1500 octets, of which {fasolt_useful} were of use; \
         over the testbed {testbed_arriving} and {testbed_useful}. So its link was full and passed long packets nearly as often as short ones: TCP neither waited nor lost them to the channel, it sent again what had arrived. A timer before the acknowledgement does that, and may favour short packets: \
         over our FASOLT, where the round trip is 414, 420 and 427 us, a timer that stands at 417 us has {}, at 470 us {}, at 100 us {}.",
        early(BETWEEN)?,
        early(LATE)?,
        early(EVERY_PACKET)?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_arrived_over_fasolt_little_was_of_use_but_at_the_shortest_length() {
        let (arriving, useful) = arriving_and_useful(&FASOLT);
        assert!(arriving.iter().all(|share| *share > 0.7), "{arriving:?}");
        assert!(
            useful[0] > 0.6 && useful[1] < 0.1 && useful[2] < 0.1,
            "{useful:?}"
        );
    }
}
