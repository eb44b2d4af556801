//! The outages of a link: rows of lost packets that the loss around them does not explain.

use super::ReplayedOutage;
use super::seen::Seen;

/// The chance below which a row of losses is an outage, and the packets of the shortest such row.
const OUTAGE_CHANCE: f64 = 1e-6;
const OUTAGE_PACKETS: usize = 5;
/// The chance above which losses at the end of such a row may be single ones.
const SINGLE_CHANCE: f64 = 0.01;
/// The loss that is thought possible anywhere.
const LOSS_MIN: f64 = 0.02;
/// The time from which a packet has waited for others.
const WAITED_S: f64 = 0.001;

/// A time of a packet's transmission, if it is known.
pub(super) type TimeOf<'a> = &'a dyn Fn(&Seen) -> Option<f64>;

/// The outages, and whether each packet was lost in one. `left` and `begun` are the times at which a packet that arrived had
/// left the link, and at which it began to.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few packets: the loss is bounded on both sides"
)]
pub(super) fn outages(
    seen: &[Seen],
    left: TimeOf<'_>,
    begun: TimeOf<'_>,
) -> (Vec<ReplayedOutage>, Vec<bool>) {
    let arrived = seen
        .iter()
        .filter(|packet| packet.arrived.is_some())
        .count();
    let loss = (1.0 - arrived as f64 / seen.len() as f64).clamp(LOSS_MIN, 0.9);
    let row_min = OUTAGE_CHANCE.ln() / loss.ln();
    let single = (SINGLE_CHANCE.ln() / loss.ln()).ceil() as usize;
    let mut found = Vec::new();
    let mut inside = vec![false; seen.len()];
    let mut index = 0;
    while index < seen.len() {
        let lost = seen[index..]
            .iter()
            .take_while(|packet| packet.arrived.is_none());
        let row = lost.count();
        let end = index + row;
        if row >= OUTAGE_PACKETS && row as f64 >= row_min {
            let (first, last) = (seen[index].sent, seen[end - 1].sent);
            let sure = seen[end.saturating_sub(single + 1).max(index)].sent;
            // Those before may still have been on the link when the first of the row was handed over.
            let before = index.checked_sub(1).and_then(|before| left(&seen[before]));
            let start = before.map_or(first, |before| before.max(first));
            let over = seen.get(end).map_or(last, |next| {
                let waited = begun(next).filter(|begun| *begun > next.sent + WAITED_S);
                waited.unwrap_or_else(|| f64::midpoint(last, next.sent))
            });
            found.push(ReplayedOutage {
                start_s: start,
                sure_until_s: sure.max(start),
                end_s: over.max(start),
            });
            inside[index..end].fill(true);
        }
        index = end.max(index + 1);
    }
    (found, inside)
}
