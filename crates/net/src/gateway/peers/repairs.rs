//! The changes of flows' repair, by class and peer, as often as a person can read them.

use super::decisions::cut;
use fulmar_proto::repair::RepairPlan;
use fulmar_proto::trace::RepairDecision;
use fulmar_proto::transport::aerotp::RepairChange;
use fulmar_proto::units::{Duration, Instant};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// The least time between two changes of a class with a peer that are told.
const APART: Duration = Duration::from_secs(10);
/// The changes of a class that are remembered.
const KEPT_MAX: usize = 8;

/// A change of the repair of a class's flows, with its reasons.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RepairReport {
    /// The time, since the start.
    pub uptime_seconds: f64,
    /// The peer's name.
    pub peer: String,
    /// The share of first transmissions that was lost, as the flow saw it.
    pub lost_ratio: f64,
    /// Its standard error.
    pub lost_error_ratio: f64,
    /// The share that was lost right behind a loss.
    pub lost_behind_a_loss_ratio: f64,
    /// The deadline of the goal.
    pub deadline_seconds: f64,
    /// The share of messages that may miss it.
    pub may_miss_ratio: f64,
    /// Repair symbols ahead of any loss, for each message.
    pub symbols: f64,
    /// Transmissions in the first, the second and the further rounds of repetition.
    pub transmissions: [u8; 3],
    /// The time by which each repetition is put off.
    pub put_off_seconds: f64,
    /// The share of messages that this is predicted to let miss the deadline.
    pub will_miss_ratio: f64,
    /// Packets for each message that it is predicted to take.
    pub packets: f64,
    /// Messages of the flow since its change before, and those of them that missed the deadline.
    pub before_messages: u32,
    /// The messages of those that missed the deadline.
    pub before_missed: u32,
    /// Changes of the class with this peer that were left out since the one told before, this flow's and others'.
    pub left_out: u64,
}

fn ratio(millionths: u32) -> f64 {
    f64::from(millionths) / 1e6
}

impl RepairReport {
    fn of(at: Instant, peer: &str, decision: &RepairDecision, left_out: u64) -> Self {
        Self {
            uptime_seconds: at.as_secs_f64(),
            peer: peer.to_owned(),
            lost_ratio: ratio(decision.loss),
            lost_error_ratio: ratio(decision.loss_error),
            lost_behind_a_loss_ratio: ratio(decision.behind_a_loss),
            deadline_seconds: decision.deadline.as_secs_f64(),
            may_miss_ratio: ratio(decision.may_miss),
            symbols: f64::from(decision.ahead_eighths) / f64::from(RepairPlan::AHEAD_UNIT),
            transmissions: decision.times,
            put_off_seconds: decision.put_off.as_secs_f64(),
            will_miss_ratio: ratio(decision.will_miss),
            packets: ratio(decision.packets),
            before_messages: decision.messages,
            before_missed: decision.missed,
            left_out,
        }
    }

    /// The same in words.
    fn in_words(&self, class: &str) -> String {
        let [first, second, further] = self.transmissions;
        let hundredths = |ratio: f64| ratio * 100.0;
        let ahead = if self.symbols > 0.0 {
            let plural = if self.symbols > 1.0 { "s" } else { "" };
            format!("{} symbol{plural} ahead of each message, ", self.symbols)
        } else {
            String::new()
        };
        let before = match self.before_messages {
            0 => String::new(),
            messages => format!("; before, {} of {messages} missed it", self.before_missed),
        };
        let put_off = if self.put_off_seconds > 0.0 {
            format!(", each {:.0} ms later", self.put_off_seconds * 1e3)
        } else {
            String::new()
        };
        let left_out = match self.left_out {
            0 => String::new(),
            1 => " (1 change of the class left out)".to_owned(),
            changes => format!(" ({changes} changes of the class left out)"),
        };
        format!(
            "{class}: {ahead}{first}, {second}, {further} transmissions in the rounds of repetition{put_off}: {:.1} % are lost (+-{:.1}), \
             {:.2} % may miss {:.0} ms, {:.2} % will for {:.2} packets each{before}{left_out}",
            hundredths(self.lost_ratio),
            hundredths(self.lost_error_ratio),
            hundredths(self.may_miss_ratio),
            self.deadline_seconds * 1e3,
            hundredths(self.will_miss_ratio),
            self.packets,
        )
    }
}

/// The last change of a class with a peer that was not told, and the time of the one that was.
#[derive(Debug, Default)]
struct Untold {
    told_at: Option<Instant>,
    change: Option<RepairChange>,
    left_out: u64,
}

/// The changes of the repair by class.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Repairs {
    /// By the peer's place in the configuration, and class.
    untold: BTreeMap<(usize, u8), Untold>,
    kept: BTreeMap<u8, VecDeque<RepairReport>>,
}

impl Repairs {
    /// Takes a change with the peer in this place. It may give way to a later one.
    pub(super) fn note(&mut self, peer: usize, change: RepairChange) {
        let untold = self.untold.entry((peer, change.class)).or_default();
        let before = untold.change.replace(change);
        untold.left_out += u64::from(before.is_some());
    }

    /// Takes what is to be told by now, as the peer's place, the class and the words.
    pub(super) fn due<'a>(
        &mut self,
        now: Instant,
        peer_name: impl Fn(usize) -> &'a str,
        class_name: impl Fn(u8) -> String,
    ) -> Vec<(usize, String)> {
        let mut told = Vec::new();
        for ((peer, class), untold) in &mut self.untold {
            let recent = |at: Instant| now.saturating_since(at) < APART;
            if untold.told_at.is_some_and(recent) {
                continue;
            }
            let Some(change) = untold.change.take() else {
                continue;
            };
            untold.told_at = Some(now);
            let left_out = core::mem::take(&mut untold.left_out);
            let report = RepairReport::of(change.at, peer_name(*peer), &change.decision, left_out);
            told.push((*peer, cut(report.in_words(&class_name(*class)))));
            let kept = self.kept.entry(*class).or_default();
            if kept.len() >= KEPT_MAX {
                kept.pop_front();
            }
            kept.push_back(report);
        }
        told
    }

    /// The last changes of a class, the latest last.
    pub(in crate::gateway) fn of_class(&self, class: u8) -> Vec<RepairReport> {
        let kept = self.kept.get(&class).into_iter().flatten();
        kept.cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::machine::PathId;

    fn change(millis: u64, class: u8) -> RepairChange {
        RepairChange {
            at: Instant::START + Duration::from_millis(millis),
            path: PathId(0),
            class,
            decision: RepairDecision {
                loss: 294_000,
                loss_error: 40_000,
                behind_a_loss: 310_000,
                may_miss: 10_000,
                deadline: Duration::from_millis(90),
                will_miss: 8_000,
                packets: 2_130_000,
                missed: 12,
                messages: 800,
                ahead_eighths: 10,
                times: [1, 2, 2],
                put_off: Duration::from_millis(40),
            },
        }
    }

    fn due(repairs: &mut Repairs, millis: u64) -> Vec<(usize, String)> {
        let now = Instant::START + Duration::from_millis(millis);
        repairs.due(now, |_| "ground", |class| format!("class {class}"))
    }

    #[test]
    fn a_change_is_told_in_figures() {
        let mut repairs = Repairs::default();
        repairs.note(0, change(100, 3));
        let told = due(&mut repairs, 200);
        assert_eq!(told.len(), 1);
        for words in [
            "class 3: 1.25 symbols ahead",
            "1.25 symbols ahead of each message",
            "1, 2, 2 transmissions in the rounds of repetition, each 40 ms later:",
            "29.4 % are lost (+-4.0)",
            "1.00 % may miss 90 ms, 0.80 % will for 2.13 packets",
            "before, 12 of 800 missed it",
        ] {
            assert!(told[0].1.contains(words), "{words} in {}", told[0].1);
        }
        let mut one = change(11_000, 3);
        one.decision.ahead_eighths = 8;
        one.decision.put_off = Duration::ZERO;
        repairs.note(0, change(10_900, 3));
        repairs.note(0, one);
        let told = due(&mut repairs, 11_000).remove(0).1;
        for words in [
            ": 1 symbol ahead",
            "repetition: ",
            "(1 change of the class left out)",
        ] {
            assert!(told.contains(words), "{words} in {told}");
        }
        let kept = repairs.of_class(3);
        assert_eq!((kept.len(), kept[0].uptime_seconds), (2, 0.1));
        assert_eq!(repairs.of_class(4), []);
    }

    #[test]
    fn of_many_changes_the_last_is_told_after_ten_seconds_with_the_number_left_out() {
        let mut repairs = Repairs::default();
        let mut told = Vec::new();
        for second in 0..120 {
            for class in [1, 2] {
                repairs.note(0, change(second * 1_000, class));
            }
            told.extend(due(&mut repairs, second * 1_000));
        }
        assert_eq!(told.len(), 2 * 12, "each class every ten seconds");
        let kept = repairs.of_class(1);
        assert_eq!(kept.len(), KEPT_MAX);
        let last = kept.last().expect("eight");
        assert_eq!((last.uptime_seconds, last.left_out), (110.0, 9));
        // The last one is told, though nothing comes after it.
        assert_eq!(due(&mut repairs, 120_000).len(), 2);
        assert_eq!(due(&mut repairs, 200_000).len(), 0);
    }
}
