//! A row of packets, which of them were lost, and when they were sent: the input of every fit.

use fulmar_channel::PacketTrace;

/// Packets in a row with one fate, about equally spaced: all that a likelihood needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossGroup {
    /// Whether they were lost.
    pub lost: bool,
    /// The number of packets.
    pub count: u32,
    /// Seconds from a packet to the next, on average, beginning with the step from the packet
    /// before the group. Infinite where nothing is known of what was before: at the beginning and
    /// after a break.
    pub step: f64,
}

/// Counts of packets of a recording with a fate other than loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// Packets that came again.
    pub duplicates: u64,
    /// Packets that came behind later ones, within the reordering window.
    pub reordered: u64,
    /// Packets that came too late to count, behind the window. They count as lost.
    pub late: u64,
    /// Places where the numbering began anew; nothing is known of what was lost there.
    pub restarts: u64,
    /// Packets whose number fits neither the ones before nor the ones after; they are left out.
    pub strays: u64,
}

/// A row of packets with the fate of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Losses {
    packets: PacketTrace,
    groups: Vec<LossGroup>,
    /// The time of the last packet, and of the first, in seconds.
    last: Option<f64>,
    first: Option<f64>,
    timed: bool,
    /// Whether nothing is known of what was before the next packet.
    broken: bool,
    /// Packets with another fate.
    pub counts: Counts,
}

/// The number of groups that memory has room for; packets at irregular times make a group each.
const GROUPS_MAX: usize = 1 << 23;
/// The factor by which a spacing may differ from the mean of its group.
const EVEN: f64 = 2.0;

impl Losses {
    /// Adds the next packet, sent at `time` (in seconds) if that is known. All packets or none must
    /// have times. A time before the last one counts as equal to it.
    ///
    /// # Errors
    /// There are more packets than can be kept.
    pub fn push(&mut self, lost: bool, time: Option<f64>) -> Result<(), String> {
        self.packets.push(lost).map_err(|full| full.to_string())?;
        let first = self.packets.len() == 1;
        self.timed = time.is_some() && (first || self.timed);
        let step = match (time, self.last) {
            _ if first || self.broken => f64::INFINITY,
            (Some(time), Some(last)) => (time - last).max(0.0),
            _ => 1.0,
        };
        self.broken = false;
        if let Some(time) = time {
            self.last = Some(self.last.map_or(time, |last| last.max(time)));
            self.first = self.first.or(Some(time));
        }
        if let Some(group) = self.groups.last_mut()
            && group.lost == lost
            && group.count < u32::MAX
            && step.is_finite()
            && group.step.is_finite()
            && step <= group.step * EVEN
            && step * EVEN >= group.step
        {
            let count = f64::from(group.count);
            group.step = (group.step * count + step) / (count + 1.0);
            group.count += 1;
            return Ok(());
        }
        if self.groups.len() == GROUPS_MAX {
            return Err(format!(
                "a fit holds at most {GROUPS_MAX} runs of equally spaced packets; cut it into parts"
            ));
        }
        self.groups.push(LossGroup {
            lost,
            count: 1,
            step,
        });
        Ok(())
    }

    /// Makes the next packet begin anew: nothing is known of what was before it.
    pub fn break_off(&mut self) {
        self.broken = true;
        self.last = None;
    }

    /// The packets one by one.
    pub const fn packets(&self) -> &PacketTrace {
        &self.packets
    }

    /// The packets one by one, to be replayed.
    pub fn into_packets(self) -> PacketTrace {
        self.packets
    }

    /// The packets by group.
    pub fn groups(&self) -> &[LossGroup] {
        &self.groups
    }

    /// Whether the time of each packet is known.
    pub const fn is_timed(&self) -> bool {
        self.timed
    }

    /// Seconds from the first packet to the last, if times are known.
    pub fn duration(&self) -> Option<f64> {
        self.first
            .zip(self.last)
            .map(|(first, last)| last - first)
            .filter(|_| self.timed)
    }

    /// Counts the packets that came, without duplicates.
    pub fn received(&self) -> u64 {
        self.packets.len() as u64 - self.lost()
    }

    /// Counts the packets that were lost.
    pub fn lost(&self) -> u64 {
        let lost = self.groups.iter().filter(|group| group.lost);
        lost.map(|group| u64::from(group.count)).sum()
    }
}
