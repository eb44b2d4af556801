//! The outages of a link: rows of lost packets that the loss around them does not explain.

use super::ReplayedOutage;
use super::seen::Seen;

/// The chance below which a row of losses is an outage, and the packets of the shortest such row.
const OUTAGE_CHANCE: f64 = 1e-6;
const OUTAGE_PACKETS: usize = 5;
/// The shortest outage: a full queue refuses some packets in a row, and bursts have some.
const OUTAGE_S_MIN: f64 = 0.02;
/// The part of the rows of losses, the shortest, by which bursts are known: the others may be outages.
const USUAL_ROWS: f64 = 0.95;
/// The chance above which losses at the end of such a row may be single ones.
const SINGLE_CHANCE: f64 = 0.01;
/// The loss that is thought possible anywhere.
const LOSS_MIN: f64 = 0.02;
/// The time from which a packet has waited for others.
const WAITED_S: f64 = 0.001;

/// The time by which an outage may be seen to begin sooner or end later here than on the other way.
const EDGE_S: f64 = 0.05;

/// A time of a packet's transmission, if it is known.
pub(super) type TimeOf<'a> = &'a dyn Fn(&Seen) -> Option<f64>;

/// The outages of one direction.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnOutages {
    pub(super) found: Vec<ReplayedOutage>,
    /// Whether each packet was lost in one.
    pub(super) inside: Vec<bool>,
}

impl OwnOutages {
    /// Those that the packets of this direction show. `left` and `begun` are the times at which a packet that arrived had left the
    /// link, and at which it began to.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a few packets: the loss is bounded on both sides"
    )]
    pub(super) fn of(seen: &[Seen], left: TimeOf<'_>, begun: TimeOf<'_>) -> Self {
        let loss = going_on(seen).clamp(LOSS_MIN, 0.98);
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
            let first = seen[index].sent;
            let last = seen[end.max(index + 1) - 1].sent;
            let is_long = row >= OUTAGE_PACKETS && last - first >= OUTAGE_S_MIN;
            if is_long && row as f64 >= row_min {
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
        Self { found, inside }
    }
}

/// The chance that the next packet behind a lost one is lost, too: that of any packet, if packets are lost one by one, and higher
/// where they are lost in bursts.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part of a number of rows"
)]
fn going_on(seen: &[Seen]) -> f64 {
    let rows = seen.chunk_by(|one, other| one.arrived.is_some() == other.arrived.is_some());
    let lost = rows.filter(|row| row[0].arrived.is_none());
    let mut rows: Vec<usize> = lost.map(<[Seen]>::len).collect();
    rows.sort_unstable();
    rows.truncate((rows.len() as f64 * USUAL_ROWS) as usize);
    let lost: usize = rows.iter().sum();
    if lost == 0 {
        return 0.0;
    }
    1.0 - rows.len() as f64 / lost as f64
}

/// The outages of a direction together with those of the other one, each of which is of both unless something came through here
/// meanwhile. While nothing comes through there, hardly anybody sends here, so that few packets or none show it.
pub(super) fn shared(seen: &[Seen], own: &OwnOutages, others: &[ReplayedOutage]) -> OwnOutages {
    let mut all = own.clone();
    for other in others {
        let own = all
            .found
            .iter_mut()
            .find(|own| own.start_s < other.end_s + EDGE_S && other.start_s < own.end_s + EDGE_S);
        if let Some(own) = own {
            // It is over with the other, unless losses show that it lasted.
            own.end_s = own.end_s.min(other.end_s.max(own.sure_until_s));
            continue;
        }
        let within = |from: f64, until: f64| {
            let first = seen.partition_point(|packet| packet.sent < from);
            let end = seen.partition_point(|packet| packet.sent <= until);
            first..end.max(first)
        };
        let surely = within(other.start_s + EDGE_S, other.sure_until_s - EDGE_S);
        if seen[surely].iter().any(|packet| packet.arrived.is_some()) {
            continue;
        }
        all.found.push(*other);
        for index in within(other.start_s - EDGE_S, other.end_s + EDGE_S) {
            all.inside[index] |= seen[index].arrived.is_none();
        }
    }
    all.found
        .sort_by(|one, other| one.start_s.total_cmp(&other.start_s));
    all
}
