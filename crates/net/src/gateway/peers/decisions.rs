//! The latest decisions of the gateway and its session, with their reasons, for later readers.
//!
//! # Promises
//! - At most [`DECISIONS_MAX`] are kept, each of bounded length: a peer's words about itself are cut.

use super::carrier_changes::carrier_name;
use super::rate::RateReport;
use super::reach::way_of;
use crate::gateway::config::GatewayConfig;
use crate::session::{Hint, PathChange, PeerIndex, SessionEvent};
use fulmar_proto::units::{Duration, Instant};
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
/// The `event` of a configured rate that is less than the path carries, and limits.
pub(in crate::gateway) const DECLARED_LOW: &str = "rate_declared_low";

/// The least time between two decisions on a rate that is found, which changes all the time.
const FOUND_APART: Duration = Duration::from_secs(10);
/// The time without a sign that the configured rate limits after which such a sign is news again.
const LOW_FORGOTTEN: Duration = Duration::from_secs(60);
/// The factor by which a rate that is found changes before that is told with all details.
const FOUND_CHANGE: f64 = 1.2;

/// The state of a peer's rate that was seen last.
#[derive(Clone, Copy, Debug)]
struct SeenRate {
    reason: &'static str,
    bits_per_second: u64,
    declared_wrong: bool,
    /// The time at which the configured rate was seen to limit last.
    low_at: Option<Instant>,
    at: Option<Instant>,
}

/// The reasons for the rates of peers that were seen last.
#[derive(Debug, Default)]
pub(in crate::gateway) struct RatesSeen {
    seen: BTreeMap<String, SeenRate>,
    /// Whether each change of a rate that is found is told, and not only of its kind.
    is_detailed: bool,
}

/// The kinds of reasons for a rate that is found between which a change is told of without details.
fn kind(reason: &'static str) -> &'static str {
    match reason {
        "queue" | "cut" | "free" | "bound" => "found",
        other => other,
    }
}

fn megabits(bits_per_second: u64) -> f64 {
    bits_per_second as f64 / 1e6
}

impl RatesSeen {
    /// The limit on lines about a found rate and its reason.
    pub(in crate::gateway) fn detailed() -> Self {
        Self {
            is_detailed: true,
            ..Self::default()
        }
    }

    /// The decisions on a peer's rate since it was last seen, with their reasons. A new reason for the rate is a
    /// decision.
    pub(in crate::gateway) fn changes(
        &mut self,
        now: Instant,
        peer: &str,
        rate: &RateReport,
    ) -> impl Iterator<Item = (&'static str, String)> + use<> {
        // A rate that was not seen before was the configured one, or was not known.
        let first = SeenRate {
            reason: if rate.is_found() {
                "searching"
            } else {
                "declared"
            },
            bits_per_second: 0,
            declared_wrong: false,
            low_at: None,
            at: None,
        };
        let seen = self.seen.entry(peer.to_owned()).or_insert(first);
        let before = *seen;
        let is_soon = |at: Instant| now.saturating_since(at) < FOUND_APART;
        let differs = if !rate.is_found() {
            before.reason != rate.reason
        } else if self.is_detailed {
            let (less, more) = (before.bits_per_second, rate.current_bits_per_second);
            let ratio = less.max(more) as f64 / less.min(more).max(1) as f64;
            before.reason != rate.reason || ratio > FOUND_CHANGE
        } else {
            kind(before.reason) != kind(rate.reason) && !before.at.is_some_and(is_soon)
        };
        if differs {
            seen.reason = rate.reason;
            seen.bits_per_second = rate.current_bits_per_second;
            seen.at = Some(now);
        }
        seen.declared_wrong = rate.declared_wrong;
        let is_known = |at: Instant| now.saturating_since(at) < LOW_FORGOTTEN;
        let is_low_known = before.low_at.is_some_and(is_known);
        seen.low_at = if rate.declared_low_beside.is_some() {
            Some(now)
        } else {
            before.low_at.filter(|_| is_low_known)
        };
        let current = megabits(rate.current_bits_per_second);
        let found = rate.link_bits_per_second.map(megabits);
        let reason = differs.then(|| {
            let why = format!("{current:.3} Mbit/s from now on: {}", rate.why);
            ("rate", why)
        });
        let declared_wrong = (rate.declared_wrong && !before.declared_wrong).then(|| {
            let found = found.map_or_else(String::new, |found| format!(", {found:.3} Mbit/s"));
            let why = format!(
                "the link has carried less than 0.8 of the configured rate for seconds{found}: lower `rate` of this \
                 [[peer]], or leave it out"
            );
            (DECLARED_WRONG, why)
        });
        let low = rate.declared_low_beside.filter(|_| !is_low_known);
        let declared_low = low.map(|link| {
            let why = format!(
                "the configured rate limits, and not the link, which seems to carry {:.3} Mbit/s: raise `rate` of this \
                 [[peer]], or leave it out",
                megabits(link)
            );
            (DECLARED_LOW, why)
        });
        reason.into_iter().chain(declared_wrong).chain(declared_low)
    }
}

const fn up_reason(resumed: bool) -> &'static str {
    if resumed {
        "the peer is there, and still knows its flows"
    } else {
        "the peer is there, and begins without flows of before"
    }
}

/// The change of one of several paths: its name in the log, and the reason.
fn of_path(place: u8, change: PathChange) -> (&'static str, String) {
    match change {
        PathChange::Down(silent) => {
            let silent = silent.as_secs_f64();
            let why = format!("path {place} was silent for {silent:.3} s: the others carry on");
            ("path_down", why)
        }
        PathChange::Unproved(span) => {
            let span = span.as_secs_f64();
            let why = format!(
                "nothing sent on path {place} was answered for {span:.3} s, though the peer is heard there: the others \
                 carry on"
            );
            ("path_down", why)
        }
        PathChange::Found => {
            let why = format!("a probe was answered on path {place}: it carries data from now on");
            ("path_up", why)
        }
        PathChange::Up(outage) => {
            let outage = outage.as_secs_f64();
            let why = format!("something came back on path {place} after {outage:.3} s");
            ("path_up", why)
        }
    }
}

/// The decision of an event about a peer that is met through a hub.
fn of_meeting<E>(
    config: &GatewayConfig,
    event: &SessionEvent<E>,
) -> Option<(Option<PeerIndex>, &'static str, String)> {
    let (peer, what, why) = match event {
        SessionEvent::Introduced {
            peer,
            address,
            is_news: true,
        } => {
            let why = format!("its hub tells that it calls from {address}: it is called there");
            (*peer, "peer_introduced", why)
        }
        SessionEvent::NotIntroduced { peer, hub, why } => {
            let hub = usize::try_from(hub.0).unwrap_or(usize::MAX);
            let hub = config.peer_name(hub);
            (*peer, "peer_not_introduced", format!("by `{hub}`: {why}"))
        }
        SessionEvent::Reached { peer, reach } => {
            let way = way_of(config, *reach);
            (*peer, "peer_reached", format!("data flows {way}"))
        }
        _ => return None,
    };
    Some((Some(peer), what, why))
}

/// The decision in an event of the session: the peer, its name in the log, and the reason.
pub(super) fn of_event<E>(
    config: &GatewayConfig,
    event: &SessionEvent<E>,
) -> Option<(Option<PeerIndex>, &'static str, String)> {
    let seconds = |span: &Duration| format!("{:.3} s", span.as_secs_f64());
    let (peer, what, why) = match event {
        SessionEvent::Up { peer, resumed, .. } => {
            (*peer, "peer_up", up_reason(*resumed).to_owned())
        }
        SessionEvent::PeerRestarted(peer) => {
            let why = "the peer lost its state: flows that it does not keep on disk are over";
            (*peer, "peer_restarted", why.to_owned())
        }
        SessionEvent::Closed(peer) => {
            let why = "the peer says that it shuts down";
            (*peer, "peer_closed", why.to_owned())
        }
        SessionEvent::LinkDown { peer, silent_for } => {
            let silent = seconds(silent_for);
            let why = format!("nothing came back for {silent}: sending is held, flows wait");
            (*peer, "link_down", why)
        }
        SessionEvent::LinkUp { peer, outage } => {
            let why = format!("something came back after {}: sending goes on", seconds(outage));
            (*peer, "link_up", why)
        }
        SessionEvent::Path {
            peer,
            place,
            change,
        } => {
            let (what, why) = of_path(*place, *change);
            (*peer, what, why)
        }
        SessionEvent::Moved { peer, .. } => {
            let why = "genuine datagrams come from another address: it is followed";
            (*peer, "peer_moved", why.to_owned())
        }
        SessionEvent::MtuChanged { peer, sizes } => {
            let why = format!("packets of {} octets are known to arrive", sizes.packet.0);
            (*peer, "path_mtu", why)
        }
        SessionEvent::CarrierChosen {
            peer,
            is_unchecked,
            why,
        } => {
            let carrier = carrier_name(*is_unchecked);
            (*peer, "carrier", format!("{carrier}: {why}"))
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
            let hint = by_names(config, *peer, hint);
            let why = format!("somebody there says, without proof: {hint}");
            (*peer, "refused_by_peer", why)
        }
        SessionEvent::Introduced { .. }
        | SessionEvent::NotIntroduced { .. }
        | SessionEvent::Reached { .. } => return of_meeting(config, event),
        SessionEvent::NoAnswer { peer, waited } => {
            let waited = seconds(waited);
            let why = format!("none of our handshakes was answered for {waited}");
            (*peer, "no_answer", why)
        }
        SessionEvent::EpochSeen { .. }
        // This happens every few minutes, without anybody's choice.
        | SessionEvent::Rekeyed(_)
        | SessionEvent::TooNarrow { .. }
        // This may happen many times a second; `/status` says what is in use.
        | SessionEvent::ParityChanged { .. }
        | SessionEvent::ReportDue(_)
        | SessionEvent::Reported { .. }
        | SessionEvent::Inner(_) => return None,
    };
    Some((Some(peer), what, why))
}

/// A hint with the names of the two ends.
pub(super) fn by_names(config: &GatewayConfig, peer: PeerIndex, hint: &Hint) -> String {
    let peer = usize::try_from(peer.0).unwrap_or(usize::MAX);
    hint.between(
        &format!("`{}`", config.name),
        &format!("`{}`", config.peer_name(peer)),
    )
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
        let changes: Vec<_> = self.rates.changes(now, peer, rate).collect();
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
    use super::super::rate::tests::{found, told};
    use super::*;
    use crate::session::{Entropy, SecretKey};
    use fulmar_proto::machine::PathId;
    use fulmar_proto::rate::RateCause;

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
        let steps = [
            ("declared", false),
            ("link", false),
            ("link", true),
            ("link", true),
            ("declared", false),
        ];
        let mut log = Vec::new();
        for (reason, wrong) in steps {
            log.extend(decisions.note_rate(Instant::START, "ground", &told(reason, wrong)));
        }
        let log: Vec<_> = log.into_iter().map(|(what, _)| what).collect();
        let list = decisions.list();
        let what: Vec<_> = list.iter().map(|one| one.what).collect();
        assert_eq!(what, ["rate", "rate_declared_wrong", "rate"]);
        assert_eq!(log, what, "the log has the same");
        assert!(list[0].why.contains("of the test"), "{}", list[0].why);
        assert_eq!(list[0].peer.as_deref(), Some("ground"));
    }

    #[test]
    fn a_rate_that_is_found_is_told_by_its_kind_and_rarely_but_with_all_details_in_a_trace() {
        let (mut log, mut trace) = (RatesSeen::default(), RatesSeen::detailed());
        let mut lines = [0, 0];
        for tenths in 0..600_u64 {
            let now = Instant::START + Duration::from_millis(100 * tenths);
            let cause = match tenths % 20 {
                _ if tenths < 10 => RateCause::Searching,
                0..8 => RateCause::Queue,
                8..16 => RateCause::Free,
                _ => RateCause::Shared,
            };
            let report = found(cause, 4 + tenths % 2, 20);
            lines[0] += log.changes(now, "ground", &report).count();
            lines[1] += trace.changes(now, "ground", &report).count();
        }
        assert!((2..=7).contains(&lines[0]), "{lines:?}");
        assert!(lines[1] > 500, "{lines:?}");
    }

    #[test]
    fn a_configured_rate_that_limits_is_told_once_with_what_the_link_shows() {
        let mut seen = RatesSeen::default();
        let mut lines = Vec::new();
        for _ in 0..5 {
            let report = found(RateCause::Bound, 10, 25);
            lines.extend(seen.changes(Instant::START, "ground", &report));
        }
        let low: Vec<_> = lines
            .iter()
            .filter(|(what, _)| *what == DECLARED_LOW)
            .collect();
        assert_eq!(low.len(), 1, "{lines:?}");
        assert!(low[0].1.contains("25.000 Mbit/s"), "{lines:?}");
    }

    #[test]
    fn a_configured_rate_that_limits_again_after_a_minute_in_which_it_did_not_is_told_again() {
        let mut seen = RatesSeen::default();
        let mut said = Vec::new();
        for second in 0..400 {
            // It limits for a minute and a half; then, twice, for a second in each half minute; then not for a while.
            let limits = match second {
                90..190 => second % 30 == 0,
                190..300 => false,
                _ => true,
            };
            let link = if limits { 25 } else { 11 };
            let now = Instant::START + Duration::from_secs(second);
            let lines = seen.changes(now, "ground", &found(RateCause::Bound, 10, link));
            said.extend(
                lines
                    .filter(|(what, _)| *what == DECLARED_LOW)
                    .map(|_| second),
            );
        }
        assert_eq!(said, [0, 300]);
    }

    #[test]
    fn an_outage_is_told_with_its_length() {
        let event: SessionEvent<()> = SessionEvent::LinkUp {
            peer: PeerIndex(0),
            outage: Duration::from_millis(2_500),
        };
        let (peer, what, why) = of_event(&air(), &event).unwrap();
        assert_eq!((peer, what), (Some(PeerIndex(0)), "link_up"));
        assert!(why.contains("2.500 s"), "{why}");
    }

    /// A gateway of that name, with the peer `ground`.
    fn air() -> GatewayConfig {
        let text = "gateway = { name = \"air\" }\nsecurity = { kind = \"none\" }\n\
                    peer = [{ name = \"ground\", rate = \"1mbit\" }]\negress = { allow = [\"10.0.0.1:80\"] }\n";
        GatewayConfig::read("air.toml", text).unwrap()
    }

    #[test]
    fn a_key_that_the_peer_does_not_have_is_told_with_the_names_of_both_ends() {
        let key = SecretKey::generate(&mut Entropy::from_seed([1; 32])).public();
        let event: SessionEvent<()> = SessionEvent::TurnedAway {
            peer: PeerIndex(0),
            path: PathId(0),
            hint: Hint::WrongPublicKey(key),
        };
        let (_, what, why) = of_event(&air(), &event).unwrap();
        assert_eq!(what, "refused_by_peer");
        let cure = "run `fulmar keygen --public FILE` at `ground`, and write what it prints as public_key of the [[peer]] of \
                    `ground` in the file of `air`";
        assert!(why.ends_with(cure), "{why}");
        assert!(cut(why).ends_with("`air`"), "the cure is whole");
    }
}
