//! The latest decisions of the gateway and its session, with their reasons, for later readers.
//!
//! # Promises
//! - At most [`DECISIONS_MAX`] are kept, each of bounded length: a peer's words about itself are cut.

use super::rate::RateReport;
use crate::session::{PeerIndex, SessionEvent};
use fulmar_proto::units::Instant;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// The most decisions that are remembered.
pub(in crate::gateway) const DECISIONS_MAX: usize = 64;
/// The longest reason, in characters.
const REASON_CHARS_MAX: usize = 300;

/// One decision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision {
    /// Decisions before this one since the start.
    pub number: u64,
    /// The time, since the start.
    pub uptime_seconds: f64,
    /// The peer that it is about.
    pub peer: Option<String>,
    /// The `event` of the log line.
    pub what: &'static str,
    /// The reason, in words.
    pub why: String,
}

/// The last decisions.
#[derive(Debug, Default)]
pub(in crate::gateway) struct Decisions {
    kept: VecDeque<Decision>,
    made: u64,
    rates: RatesSeen,
}

/// The `event` of a configured rate that the path does not carry.
pub(in crate::gateway) const DECLARED_WRONG: &str = "rate_declared_wrong";

/// The reasons for the rates of peers that were seen last.
#[derive(Debug, Default)]
pub(in crate::gateway) struct RatesSeen(BTreeMap<String, (&'static str, bool)>);

impl RatesSeen {
    /// The decisions on a peer's rate since it was last seen, with their reasons. A new reason for the rate is a
    /// decision.
    pub(in crate::gateway) fn changes(
        &mut self,
        peer: &str,
        rate: &RateReport,
    ) -> impl Iterator<Item = (&'static str, String)> + use<> {
        let seen = (rate.reason, rate.declared_wrong);
        // A rate that was not seen before was the configured one.
        let before = self.0.insert(peer.to_owned(), seen);
        let before = before.unwrap_or(("declared", false));
        let reason = (before.0 != rate.reason).then(|| {
            let megabits = rate.current_bits_per_second as f64 / 1e6;
            let why = match rate.reason {
                "marks" => "congestion marks came back",
                "link" => "the link was found to carry less than configured",
                "draining" => "a standing queue on the way is being emptied",
                _ => "nothing speaks against the configured rate",
            };
            let why = format!("{megabits:.3} Mbit/s from now on: {why}");
            ("rate", why)
        });
        let declared_wrong = (rate.declared_wrong && !before.1).then(|| {
            let why = "the link has carried less than 0.8 of the configured rate for seconds: lower \
                       `rate` of this [[peer]]";
            (DECLARED_WRONG, why.to_owned())
        });
        reason.into_iter().chain(declared_wrong)
    }
}

/// The decision in an event of the session: the peer, its name in the log, and the reason.
pub(super) fn of_event<E>(
    event: &SessionEvent<E>,
) -> Option<(Option<PeerIndex>, &'static str, String)> {
    let seconds = |span: &fulmar_proto::units::Duration| format!("{:.3} s", span.as_secs_f64());
    let (peer, what, why) = match event {
        SessionEvent::Up { peer, resumed, .. } => {
            let why = if *resumed {
                "keys agreed on; the peer still knows its flows"
            } else {
                "keys agreed on; the peer begins without flows of before"
            };
            (*peer, "peer_up", why.to_owned())
        }
        SessionEvent::PeerRestarted(peer) => {
            let why = "the peer lost its state: flows that it does not keep on disk are over";
            (*peer, "peer_restarted", why.to_owned())
        }
        SessionEvent::Closed(peer) => (
            *peer,
            "peer_closed",
            "the peer says that it shuts down".to_owned(),
        ),
        SessionEvent::LinkDown { peer, silent_for } => {
            let why = format!(
                "nothing came back for {}: sending is held, flows wait",
                seconds(silent_for)
            );
            (*peer, "link_down", why)
        }
        SessionEvent::LinkUp { peer, outage } => {
            let why = format!(
                "something came back after {}: sending goes on",
                seconds(outage)
            );
            (*peer, "link_up", why)
        }
        SessionEvent::Moved { peer, .. } => {
            let why = "genuine datagrams come from another address: it is followed";
            (*peer, "peer_moved", why.to_owned())
        }
        SessionEvent::MtuChanged { peer, sizes } => {
            let packet = sizes.packet.0;
            let why = format!("packets of {packet} octets are known to arrive");
            (*peer, "path_mtu", why)
        }
        SessionEvent::Mismatch {
            peer,
            what,
            ours,
            theirs,
        } => {
            let why = format!("the ends do not agree on {what}: here {ours}, there {theirs}");
            (*peer, "peer_mismatch", why)
        }
        SessionEvent::Refused { peer, reason, .. } => {
            return Some((*peer, "handshake_refused", reason.to_string()));
        }
        SessionEvent::TurnedAway { peer, hint, .. } => {
            let why = format!("somebody there says, without proof: {hint}");
            (*peer, "refused_by_peer", why)
        }
        SessionEvent::NoAnswer { peer, waited } => {
            let why = format!(
                "none of our handshakes was answered for {}",
                seconds(waited)
            );
            (*peer, "no_answer", why)
        }
        SessionEvent::EpochSeen { .. }
        // This happens every few minutes, without anybody's choice.
        | SessionEvent::Rekeyed(_)
        | SessionEvent::TooNarrow { .. }
        | SessionEvent::ReportDue(_)
        | SessionEvent::Reported { .. }
        | SessionEvent::Inner(_) => return None,
    };
    Some((Some(peer), what, why))
}

/// A reason of bounded length.
pub(in crate::gateway) fn cut(mut why: String) -> String {
    if let Some((end, _)) = why.char_indices().nth(REASON_CHARS_MAX) {
        why.truncate(end);
    }
    why
}

impl Decisions {
    pub(in crate::gateway) fn note(
        &mut self,
        now: Instant,
        peer: Option<&str>,
        what: &'static str,
        why: &str,
    ) {
        if self.kept.len() >= DECISIONS_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(Decision {
            number: self.made,
            uptime_seconds: now.as_secs_f64(),
            peer: peer.map(str::to_owned),
            what,
            why: cut(why.to_owned()),
        });
        self.made += 1;
    }

    /// Compares the rate in use with the last one seen, and notes another reason for it. Returns the noted
    /// decisions, for the log.
    pub(super) fn note_rate(
        &mut self,
        now: Instant,
        peer: &str,
        rate: &RateReport,
    ) -> Vec<(&'static str, String)> {
        let changes: Vec<_> = self.rates.changes(peer, rate).collect();
        for (what, why) in &changes {
            self.note(now, Some(peer), what, why);
        }
        changes
    }

    /// The decisions, the latest last.
    pub(in crate::gateway) fn list(&self) -> Vec<Decision> {
        self.kept.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::units::Duration;

    #[test]
    fn the_oldest_give_way_and_no_reason_is_long() {
        let mut decisions = Decisions::default();
        for n in 0..=DECISIONS_MAX {
            let at = Instant::START + Duration::from_secs(n as u64);
            decisions.note(at, None, "test", &"é".repeat(10_000));
        }
        let list = decisions.list();
        assert_eq!(list.len(), DECISIONS_MAX);
        assert_eq!((list[0].number, list[0].uptime_seconds), (1, 1.0));
        assert!(
            list.iter()
                .all(|one| one.why.chars().count() == REASON_CHARS_MAX)
        );
    }

    #[test]
    fn only_another_reason_for_the_rate_is_a_decision() {
        let mut decisions = Decisions::default();
        let rate = |reason, declared_wrong| RateReport {
            current_bits_per_second: 4_000_000,
            reason,
            link_bits_per_second: None,
            delivered_bits_per_second: None,
            declared_wrong,
        };
        let steps = [
            ("declared", false),
            ("link", false),
            ("link", true),
            ("link", true),
            ("declared", false),
        ];
        let mut told = Vec::new();
        for (reason, wrong) in steps {
            told.extend(decisions.note_rate(Instant::START, "ground", &rate(reason, wrong)));
        }
        let told: Vec<_> = told.into_iter().map(|(what, _)| what).collect();
        let list = decisions.list();
        let what: Vec<_> = list.iter().map(|one| one.what).collect();
        assert_eq!(what, ["rate", "rate_declared_wrong", "rate"]);
        assert_eq!(told, what, "the log has the same");
        assert!(list[0].why.contains("carry less"), "{}", list[0].why);
        assert_eq!(list[0].peer.as_deref(), Some("ground"));
    }

    #[test]
    fn an_outage_is_told_with_its_length() {
        let event: SessionEvent<()> = SessionEvent::LinkUp {
            peer: PeerIndex(0),
            outage: Duration::from_millis(2_500),
        };
        let (peer, what, why) = of_event(&event).unwrap();
        assert_eq!((peer, what), (Some(PeerIndex(0)), "link_up"));
        assert!(why.contains("2.500 s"), "{why}");
    }
}
