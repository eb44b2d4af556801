//! Packets of some time, counted so that losses can be shared out among their causes, with the error of each share.
//!
//! The counts are kept in [`GROUPS`] groups, a stretch of packets in each by turns. The shares of all groups but one, for each of
//! them, give the error of the shares of all (the jackknife; Tukey 1958): whatever the estimate goes through, the error goes
//! through as well.

use super::super::loss_by_length::{LossByLength, OctetLosses};
use super::runs_by_length::{Links, RunsByLength};
use super::{CAUSES, LossCause};

/// Groups of packets.
const GROUPS: usize = 8;
/// Packets of a stretch.
const STRETCH: u32 = 64;
/// Packets outside of full queues that tell the loss there from other loss.
const OTHER_MIN: f64 = 200.0;

/// Lost packets by cause.
pub(super) type ByCause = [f64; CAUSES];

/// The counts of one group.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// Packets that met no full queue and no outage, by length.
    pub(super) lengths: LossByLength,
    /// The same in a row.
    pub(super) runs: RunsByLength,
    /// Packets that met a full queue, and those of them that were lost.
    pub(super) full: f64,
    pub(super) full_lost: f64,
    /// Packets lost in outages.
    pub(super) outage: f64,
}

impl Group {
    fn add(&mut self, other: &Self) {
        self.lengths.add(&other.lengths);
        self.runs.add(&other.runs);
        self.full += other.full;
        self.full_lost += other.full_lost;
        self.outage += other.outage;
    }

    fn lost(&self) -> f64 {
        self.runs.lost() + self.full_lost + self.outage
    }

    /// The losses by cause. Those of wrong bits may be fewer than none, and more than there are: that evens out over time.
    fn by_cause(&self, begin: &Links) -> (ByCause, Links) {
        let lost = self.runs.lost();
        let sent = self.runs.arrived() + lost;
        let mut links = Links::new();
        let mut causes = [0.0; CAUSES];
        causes[LossCause::Outage as usize] = self.outage;
        if lost > 0.0 {
            let (bursts, of_bursts) = self.runs.in_bursts(begin);
            links = of_bursts;
            let hit = self.lengths.octet_losses().lost;
            causes[LossCause::BitErrors as usize] = hit;
            causes[LossCause::Burst as usize] = bursts;
            causes[LossCause::Random as usize] = lost - bursts - hit;
        }
        // Packets that meet a full queue are lost for other reasons as well, as often as elsewhere.
        let share = if sent >= OTHER_MIN { lost / sent } else { 0.0 };
        let others = (self.full * share).min(self.full_lost);
        causes[LossCause::Queue as usize] = self.full_lost - others;
        if lost > 0.0 {
            let more = 1.0 + others / lost;
            for cause in [LossCause::BitErrors, LossCause::Burst, LossCause::Random] {
                causes[cause as usize] *= more;
            }
        }
        (causes, links)
    }
}

/// The counts of some time.
#[derive(Clone, Debug, Default)]
pub(super) struct Epoch {
    groups: [Group; GROUPS],
    noted: u32,
    pub(super) sent: f64,
    pub(super) lost: f64,
}

/// Lost packets by cause, and the variance of each number.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Apportioned {
    pub(super) by_cause: ByCause,
    pub(super) variance: ByCause,
}

impl Epoch {
    /// The group of the packets that are noted now.
    pub(super) fn group(&mut self) -> &mut Group {
        let stretch = (self.noted / STRETCH) as usize;
        &mut self.groups[stretch % GROUPS]
    }

    /// Notes packets that were counted.
    pub(super) fn on_counted(&mut self, sent: u32, lost: u32) {
        self.noted = self.noted.wrapping_add(sent);
        self.sent += f64::from(sent);
        self.lost += f64::from(lost);
    }

    /// The losses that met no full queue and no outage.
    pub(super) fn lost_elsewhere(&self) -> f64 {
        self.groups.iter().map(|group| group.runs.lost()).sum()
    }

    /// The losses that wrong bits explain.
    pub(super) fn octet_losses(&self) -> OctetLosses {
        let mut lengths = LossByLength::default();
        let groups = self.groups.iter();
        groups.for_each(|group| lengths.add(&group.lengths));
        lengths.octet_losses()
    }

    pub(super) fn apportion(&self) -> Apportioned {
        let sum_without = |left_out: Option<usize>| {
            let mut sum = Group::default();
            let kept = self.groups.iter().enumerate();
            kept.filter(|(index, _)| Some(*index) != left_out)
                .for_each(|(_, group)| sum.add(group));
            sum
        };
        let all = sum_without(None);
        let (by_cause, links) = all.by_cause(&Links::new());
        let lost = all.lost();
        let mut variance = [0.0; CAUSES];
        if lost <= 0.0 {
            return Apportioned { by_cause, variance };
        }
        let without: Vec<ByCause> = (0..GROUPS)
            .map(|index| {
                let sum = sum_without(Some(index));
                let scale = lost / sum.lost().max(1.0);
                let (without, _) = sum.by_cause(&links);
                without.map(|count| count * scale)
            })
            .collect();
        for (cause, variance) in variance.iter_mut().enumerate() {
            let mean = without.iter().map(|of| of[cause]).sum::<f64>() / GROUPS as f64;
            let squares: f64 = without.iter().map(|of| (of[cause] - mean).powi(2)).sum();
            *variance = squares * (GROUPS - 1) as f64 / GROUPS as f64;
        }
        // Eight groups may agree by chance.
        let error = all.lengths.octet_losses().error;
        for cause in [LossCause::BitErrors, LossCause::Random] {
            let variance = &mut variance[cause as usize];
            *variance = variance.max(error * error);
        }
        Apportioned { by_cause, variance }
    }
}
