//! The search for the largest packet that the path carries, with padded probes, after RFC 8899 (DPLPMTUD).
//!
//! A size is tried by two probes: one padded to it, and one of a size that is known to pass. On a lossy
//! link a single lost probe says nothing. But when several probes of the known size were answered and none
//! of the other, the size does not pass. So the judgement adapts to any loss that hits both alike.
//!
//! # Order
//! Larger packets are of use to an end that fills packets, not to one that only answers. While full packets of data
//! arrive, the search waits until such packets leave as well, or until the session is no longer young: the way back may
//! be narrow, and a try in front of answers holds them up. Before the search, a small probe measures the round trip; it
//! is repeated until one is answered.
//! The search starts at a size that every path carries, tries the largest, then Ethernet's, then
//! halves the interval. While larger packets than the start's leave, the size in use is confirmed now
//! and then, and at once when the path may have changed or fell silent. When a size no longer passes
//! (a black hole), the start's size is used, and the search begins anew below the lost size.
//!
//! # Cost
//! Tries follow one another fast enough to find a size within a few round trips where a third of them
//! is answered, but take no more than a tenth of the link's rate while a size is searched, and a
//! hundredth while one is confirmed. Where the rate is found, and where the end fills no packets, the first try goes
//! alone and tells how long the link takes for such packets: a narrow one would be busy with tries for seconds. The
//! end that only answers may have been told the rate of a much wider way. An idle link is not probed.
//!
//! Sizes are of whole IP packets: the same packet fits whatever the family of the addresses is.

use super::config::MtuConfig;
use fulmar_proto::machine::Deadline;
use fulmar_proto::units::{ByteCount, Duration, Instant};

/// The probes of the known size that are answered before a larger size is ruled out. At 50 % loss each way,
/// where a quarter of the probes is answered, a wrong judgement has probability 0.43^8 = 0.1 %
/// (eight times in a row only the known one is answered, or neither).
const ANSWERS_TO_RULE_OUT: u32 = 8;
/// The same before the size in use is given up: 0.43^12 = 0.004 %, for it is tried much more often.
const ANSWERS_TO_FALL_BACK: u32 = 12;
/// The full packets of data after which a search begins: more than the train that shows a rate. One of Ethernet's
/// size saves twelve octets of headers for each, and a try takes more than all of these save.
const FULL_BEFORE_SEARCH: u32 = 32;
/// The age at which a path is searched although few full packets have left: what was waiting for a session comes first.
const HELD_AT_FIRST: Duration = Duration::from_millis(200);
/// The pause after a full packet of data that arrived, before an end that sends none tries a size.
const HELD_BY_ARRIVAL: Duration = Duration::from_secs(1);
/// The age of a session's first path at which arrivals hold nothing up any longer, on this path or a later one: a message that
/// fits in no shorter packet is refused until a larger size is known.
const YOUNG: Duration = Duration::from_secs(30);
/// An inner datagram of so many octets is one of full packets.
pub(super) const FULL_ARRIVAL: usize = 1_000;
/// The packet of a probe that measures the round trip alone.
const SMALL: ByteCount = ByteCount(100);
/// The octets of uncertainty at which a search ends.
const GRAIN: u64 = 4;
/// The packets that Ethernet carries.
const USUAL: ByteCount = ByteCount(1_500);
/// The pause between two tries, unless a quarter of a round trip is longer.
const PACE: Duration = Duration::from_millis(25);
/// The pause between two tries while no round trip was measured.
const PACE_UNKNOWN: Duration = Duration::from_millis(100);
/// The pause between two careful tries, while none was answered.
const PACE_CAREFUL: Duration = Duration::from_millis(250);
/// The last tries whose times are known.
const TRIED: usize = 8;
/// The pause after that, in times of what a try took above the round trip, and at most.
const TAKEN: u32 = 4;
const PACE_TAKEN_MAX: Duration = Duration::from_secs(1);
/// A search takes at most one in so many of the octets that the link carries.
const SEARCH_SHARE: u32 = 10;
/// A confirmation takes at most one in so many.
const CONFIRM_SHARE: u32 = 100;
/// The tries at that pace, enough at 50 % loss each way; then so many times more slowly.
const TRIES_AT_PACE: u32 = 64;
const SLOWER: u32 = 20;
/// Tries without any answer to the known size, after which that size is in doubt: at 50 % loss each
/// way, 0.75^24 = 0.1 %.
const TRIES_UNANSWERED: u32 = 24;
/// The time between two confirmations of the size in use while it is used.
const CONFIRM_EVERY: Duration = Duration::from_secs(2);
/// The shortest time between two confirmations: silence is a reason to confirm sooner than usual.
const CONFIRM_AGAIN: Duration = Duration::from_millis(250);
/// The pause before a larger size is tried again (RFC 8899, section 5.1.1: `PMTU_RAISE_TIMER`).
const RAISE_EVERY: Duration = Duration::from_secs(600);

/// A try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Try {
    /// The size of the padded probe's packet; without padding it may be longer.
    pub(super) packet: ByteCount,
    /// The number of the padded probe; the one of known size has the next.
    pub(super) id: u32,
    /// The size of the probe that is known to pass, if one goes along.
    pub(super) known: Option<ByteCount>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aim {
    /// Nothing to find out.
    Rest,
    /// The time that an answer takes.
    RoundTrip,
    /// Whether this larger size passes.
    Raise(ByteCount),
    /// Whether the size in use still passes.
    Confirm,
}

pub(super) struct PathMtu {
    config: MtuConfig,
    /// The size that is known to pass.
    packet: ByteCount,
    /// The smallest size known not to pass.
    too_large: ByteCount,
    aim: Aim,
    /// The first number of the current aim's probes; answers to older ones say nothing.
    first_id: u32,
    next_id: u32,
    tries: u32,
    known_answers: u32,
    /// The tries since the known size was answered.
    unanswered: u32,
    /// The times at which the last tries left, by their numbers, and the round trip then.
    tried_at: [Instant; TRIED],
    round_trip: Duration,
    /// The time that the last try which was answered took above the round trip, once there was one.
    took: Option<Duration>,
    next_at: Instant,
    raise_at: Instant,
    confirmed_at: Instant,
    /// Whether larger packets than the start's left since the size in use was confirmed.
    used: bool,
    /// The full packets of data that left since the path is this one.
    full_sent: u32,
    /// Whether the first search on this path is still to begin.
    is_held: bool,
    /// The time until which arrivals hold tries up; none before there was a path.
    young_until: Option<Instant>,
}

/// The place of the try with the probe `id` among the times.
const fn tried_index(id: u32) -> usize {
    (id / 2) as usize % TRIED
}

impl PathMtu {
    pub(super) const fn new(config: MtuConfig) -> Self {
        Self {
            config,
            packet: config.start,
            too_large: ByteCount(config.max.0.saturating_add(1)),
            aim: Aim::Rest,
            first_id: 0,
            next_id: 0,
            tries: 0,
            known_answers: 0,
            unanswered: 0,
            tried_at: [Instant::START; TRIED],
            round_trip: Duration::ZERO,
            took: None,
            next_at: Instant::START,
            raise_at: Instant::FAR_FUTURE,
            confirmed_at: Instant::START,
            used: false,
            full_sent: 0,
            is_held: false,
            young_until: None,
        }
    }

    /// Octets of an IP packet that is known to arrive.
    pub(super) const fn packet(&self) -> ByteCount {
        self.packet
    }

    const fn is_fixed(&self) -> bool {
        self.config.max.0 <= self.config.start.0
    }

    fn take_aim(&mut self, aim: Aim, at: Instant) {
        self.aim = aim;
        self.first_id = self.next_id;
        self.tries = 0;
        self.known_answers = 0;
        self.unanswered = 0;
        self.next_at = at;
    }

    /// The next size between what passes and what does not, or rest.
    fn search(&mut self, now: Instant) {
        let (low, high) = (self.packet.0, self.too_large.0);
        let max = self.config.max;
        if high > max.0 && low < max.0 {
            self.take_aim(Aim::Raise(max), now);
        } else if low < USUAL.0 && USUAL.0 < high {
            self.take_aim(Aim::Raise(USUAL), now);
        } else if high.saturating_sub(low) > GRAIN {
            self.take_aim(Aim::Raise(ByteCount(low + (high - low) / 2)), now);
        } else {
            self.rest(now);
            self.raise_at = if self.packet < max {
                now + RAISE_EVERY
            } else {
                Instant::FAR_FUTURE
            };
        }
    }

    fn rest(&mut self, now: Instant) {
        self.confirmed_at = now;
        self.used = false;
        let pause = CONFIRM_EVERY.max(self.on_link(self.packet) * CONFIRM_SHARE);
        self.take_aim(Aim::Rest, now + pause);
    }

    fn on_link(&self, packet: ByteCount) -> Duration {
        let rate = self.config.rate;
        rate.map_or(Duration::ZERO, |rate| rate.time_to_send(packet))
    }

    fn forget_too_large(&mut self) {
        self.too_large = ByteCount(self.config.max.0.saturating_add(1));
    }

    /// Begins anew, since the path may be another one.
    pub(super) fn on_new_path(&mut self, now: Instant) {
        if self.is_fixed() {
            return;
        }
        self.forget_too_large();
        self.took = None;
        self.raise_at = now + HELD_AT_FIRST;
        self.used = false;
        self.full_sent = 0;
        self.is_held = true;
        self.young_until.get_or_insert(now + YOUNG);
        // Waiting datagrams go first.
        self.take_aim(Aim::RoundTrip, now + PACE);
    }

    /// Notes a packet that left.
    pub(super) fn on_sent(&mut self, now: Instant, packet: ByteCount) {
        if packet > self.config.start && !self.is_fixed() {
            self.used = true;
            self.go_on(now);
        }
    }

    /// Notes a packet of data that is as long as it may be, or one of several that would be one if it might.
    pub(super) fn on_full(&mut self, now: Instant) {
        self.full_sent = self.full_sent.saturating_add(1);
        self.go_on(now);
    }

    /// Notes that a full packet of data arrived.
    pub(super) fn on_full_arrived(&mut self, now: Instant) {
        if self.fills_packets() || self.may_confirm() {
            return;
        }
        let later = (now + HELD_BY_ARRIVAL).min(self.young_until.unwrap_or(now));
        if self.is_held {
            self.raise_at = self.raise_at.max(later);
        } else if !matches!(self.aim, Aim::Rest | Aim::RoundTrip) {
            self.next_at = self.next_at.max(later);
        }
    }

    /// Begins the first search on a path, if it need not be held any longer.
    fn go_on(&mut self, now: Instant) {
        if self.is_held && (self.fills_packets() || self.may_confirm()) {
            self.is_held = false;
            self.raise_at = now;
        }
    }

    const fn fills_packets(&self) -> bool {
        self.full_sent >= FULL_BEFORE_SEARCH
    }

    fn may_confirm(&self) -> bool {
        self.used && self.packet > self.config.start
    }

    /// Notes that sent packets are not answered: one may have been too large.
    pub(super) fn on_silence(&mut self, now: Instant) {
        if self.aim == Aim::Rest && self.used {
            let soon = self.confirmed_at + CONFIRM_AGAIN;
            self.next_at = self.next_at.min(soon.max(now));
        }
    }

    /// Takes the network's word that a packet of the size in use is too large. Returns the size in use, if that
    /// changed it.
    pub(super) fn on_too_large(&mut self, now: Instant) -> Option<ByteCount> {
        let in_use = matches!(self.aim, Aim::Rest | Aim::RoundTrip | Aim::Confirm);
        (in_use && self.packet > self.config.start).then(|| self.fall_back(now))
    }

    fn fall_back(&mut self, now: Instant) -> ByteCount {
        self.too_large = self.packet;
        self.packet = self.config.start;
        self.is_held = false;
        self.search(now);
        self.packet
    }

    /// A try that is due; `finds_rate` says that nobody knows the link's rate.
    pub(super) fn due(
        &mut self,
        now: Instant,
        rtt: Option<Duration>,
        finds_rate: bool,
    ) -> Option<Try> {
        if self.next_deadline().is_none_or(|due| due.at > now) {
            return None;
        }
        let rests = matches!(self.aim, Aim::Rest | Aim::RoundTrip);
        if rests && self.raise_at <= now {
            self.is_held = false;
            self.forget_too_large();
            if self.packet > self.config.start {
                self.take_aim(Aim::Confirm, now);
            } else {
                self.search(now);
            }
        } else if self.aim == Aim::Rest {
            self.take_aim(Aim::Confirm, now);
        }
        let in_doubt = self.packet > self.config.start && self.unanswered >= TRIES_UNANSWERED;
        if matches!(self.aim, Aim::Raise(_)) && in_doubt {
            self.take_aim(Aim::Confirm, now);
        }
        let is_careful = finds_rate || !self.fills_packets();
        let (packet, known, mut pace) = match self.aim {
            Aim::Raise(packet) if is_careful && self.took.is_none() && self.tries == 0 => {
                (packet, None, Duration::ZERO)
            }
            Aim::Raise(packet) => (packet, Some(self.packet), Duration::ZERO),
            Aim::RoundTrip => (SMALL, None, Duration::ZERO),
            // The first probe goes alone: mostly it is answered, and then nothing else need be known.
            _ if self.tries == 0 => (self.packet, None, rtt.unwrap_or(PACE_UNKNOWN) * 3 / 2),
            _ => (self.packet, Some(self.config.start), Duration::ZERO),
        };
        let quarter = rtt.map_or(PACE_UNKNOWN, |rtt| rtt / 4);
        let on_link = self.on_link(packet + known.unwrap_or(ByteCount::ZERO));
        pace = pace.max(PACE).max(quarter).max(on_link * SEARCH_SHARE);
        if is_careful && self.aim != Aim::RoundTrip {
            let unanswered = PACE_CAREFUL * (1 << self.tries.min(2));
            let taken = self.took.map_or(unanswered, |took| took * TAKEN);
            pace = pace.max(taken.min(PACE_TAKEN_MAX));
        }
        self.tried_at[tried_index(self.next_id)] = now;
        self.round_trip = rtt.unwrap_or_default();
        self.tries = self.tries.saturating_add(1);
        self.unanswered = self.unanswered.saturating_add(1);
        let slower = self.tries > TRIES_AT_PACE;
        self.next_at = now + pace * if slower { SLOWER } else { 1 };
        let id = self.next_id;
        // Even numbers try a size, the odd ones after them are of known size.
        self.next_id = self.next_id.wrapping_add(2);
        Some(Try { packet, id, known })
    }

    /// Takes the answer to a probe of ours. Returns the size in use, if that changed it.
    pub(super) fn on_answer(&mut self, now: Instant, id: u32) -> Option<ByteCount> {
        let age = id.wrapping_sub(self.first_id);
        if age >= self.next_id.wrapping_sub(self.first_id) || self.aim == Aim::Rest {
            return None;
        }
        if self.aim == Aim::RoundTrip {
            self.take_aim(Aim::Rest, now);
            return None;
        }
        let tried = id.is_multiple_of(2);
        if self.next_id.wrapping_sub(id) as usize <= 2 * TRIED {
            let since = now.saturating_since(self.tried_at[tried_index(id)]);
            self.took = Some(since.saturating_sub(self.round_trip));
        }
        if !tried {
            self.known_answers += 1;
            self.unanswered = 0;
        }
        match self.aim {
            Aim::Raise(packet) if tried => {
                self.packet = packet;
                self.search(now);
                Some(packet)
            }
            Aim::Raise(packet) if self.known_answers >= ANSWERS_TO_RULE_OUT => {
                self.too_large = packet;
                self.search(now);
                None
            }
            Aim::Confirm if tried => {
                self.confirmed(now);
                None
            }
            Aim::Confirm if self.known_answers >= ANSWERS_TO_FALL_BACK => Some(self.fall_back(now)),
            _ => None,
        }
    }

    fn confirmed(&mut self, now: Instant) {
        if self.raise_at <= now {
            self.search(now);
        } else {
            self.rest(now);
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        if self.is_fixed() {
            return None;
        }
        let at = match self.aim {
            Aim::Rest if self.is_held || !self.may_confirm() => self.raise_at,
            Aim::Rest | Aim::RoundTrip => self.next_at.min(self.raise_at),
            Aim::Raise(_) | Aim::Confirm => self.next_at,
        };
        let why = "probe of a packet size";
        (at < Instant::FAR_FUTURE).then_some(Deadline { at, why })
    }
}

#[cfg(test)]
mod tests;
