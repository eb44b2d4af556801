//! The state of a link as seen from what was sent and heard, and the silence that means that it is down.
//!
//! One for each path of a session, the only one included. The session says what it sent and heard, and asks what is due.
//!
//! # How
//! - An end that hears data and has nothing to send answers with a heartbeat, soon. So an end that sends
//!   data hears something soon, in every mode, while the link is up.
//! - After a silence longer than a heartbeat's interval and one and a half round trips while something was sent, the link is in
//!   doubt, and probes leave.
//! - After a silence longer than three round trips, and than twelve times the usual silence (on a link that
//!   loses at random, one in 160,000 such silences is an accident), the link is held for down. Then only
//!   probes go out. Where other paths to the peer carry on, one and three quarters are enough, and 150 ms: a mistake costs little.
//! - Anything genuine that arrives ends the outage.
//! - A link may tell itself that it is down, or up again: that is believed at once. While it is told to be down, one probe leaves in
//!   a [keep-alive](LivenessConfig::keep_alive): its answer shows that the word is wrong.
//! - What is heard proves nothing about what is sent: one direction may die alone. A path ack, a heartbeat and the answer to a
//!   probe are *proofs*: something that left here has just arrived. While other paths carry on, a link without a proof for long,
//!   of what wants an answer, is held for down, and is up again with the next proof.

mod config;
mod first_probes;

pub use config::LivenessConfig;
pub use first_probes::FirstProbes;

use crate::machine::Deadline;
use crate::units::{Duration, Instant};

const ROUND_TRIPS: u32 = 3;
/// Quarters of round trips before the first probe of a silent link, and before it is down where other paths to the peer carry on.
const PROBE_QUARTERS: u32 = 6;
const BACKED_DOWN_QUARTERS: u32 = 7;
/// The shortest silence after which one of several paths is held for down: the others carry on, so that a mistake costs little.
const BACKED_DOWN_AFTER_MIN: Duration = Duration::from_millis(150);
/// The multiple of the usual silence that means an outage: e^-12 is 6e-6.
const USUAL_SILENCES: u32 = 12;
/// The multiple of the usual time without a proof after which a probe asks for one, and the bounds of that time. One probe is enough
/// where there are no path acks.
const USUAL_UNPROVED: u32 = 3;
const UNPROVED_MIN: Duration = Duration::from_millis(150);
const UNPROVED_MAX: Duration = Duration::from_secs(1);
/// The quarters of the longest round trip of all paths that are waited for in any case: a path that carries nothing either way is
/// found silent first, by both ends, and proofs that would have come by it come by another then.
const UNPROVED_QUARTERS: u32 = 6;
/// The probes without an answer before a link without proofs is held for down: where a fifth is lost each way, one in four hundred
/// such rows is an accident.
const UNPROVED_PROBES: u32 = 6;
/// Heartbeats and probes in the shortest span before a link is held for down.
const BEATS: u32 = 4;
/// Weight of a new sample of the usual silence; that of RFC 6298 for round trips.
const GAIN: u32 = 8;

/// The thing to do at a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// A heartbeat leaves: something was heard that wants an answer, and nothing was said.
    Heartbeat,
    /// The link is in doubt from now on: an answer is missing for longer than usual. Told once, until something is heard.
    Doubt,
    /// A probe leaves.
    Probe,
    /// The link is now held for down, after so long a silence.
    Down(Duration),
    /// The link is now held for down: for so long nothing proved that what leaves here arrives.
    Unproved(Duration),
}

/// Whether what was sent or heard wants an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// It does.
    Answer,
    /// It does not.
    Nothing,
}

/// The change that a link's own word makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToldChange {
    /// There is none.
    Nothing,
    /// The link is now held for down.
    Down,
    /// It is up again after so long an outage.
    Up(Duration),
}

/// The change that something heard made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The length of the outage that it ends, if there was one.
    pub outage: Option<Duration>,
    /// Whether it ends a doubt.
    pub ends_doubt: bool,
}

/// The deadlines of a link, by what is done at them.
#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    heartbeat: Option<Deadline>,
    doubt: Option<Deadline>,
    probe: Option<Deadline>,
    down: Option<Deadline>,
    unproved: Option<Deadline>,
}

impl Plan {
    /// Plans a probe at this time, unless one leaves sooner.
    fn probe_at(&mut self, at: Instant, why: &'static str) {
        self.probe = Deadline::earlier(self.probe, Some(deadline(at, why)));
    }
}

const fn deadline(at: Instant, why: &'static str) -> Deadline {
    Deadline { at, why }
}

/// The outages of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outages {
    /// Their number.
    pub count: u64,
    /// Their time, each from the first datagram that nothing answered.
    pub time: Duration,
}

impl Outages {
    const NONE: Self = Self {
        count: 0,
        time: Duration::ZERO,
    };
}

/// The state of one link.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts, each one bit of the state"
)]
pub struct Liveness {
    config: LivenessConfig,
    rtt: Option<Duration>,
    usual_silence: Duration,
    last_heard: Option<Instant>,
    last_sent: Instant,
    /// The time since which an answer is outstanding.
    waiting_since: Option<Instant>,
    /// The time since which we owe an answer.
    owing_since: Option<Instant>,
    last_probe: Option<Instant>,
    down_since: Option<Instant>,
    /// Whether this is one of several paths to the peer, so that the other end is impatient.
    is_one_of_several: bool,
    /// Whether other paths to the peer carry on.
    is_backed: bool,
    /// The longest round trip of the peer's paths: a proof may have to wait until the peer finds one of them silent.
    longest_rtt: Duration,
    /// The first datagram that wants an answer since the last proof.
    unproved_since: Option<Instant>,
    usual_unproved: Duration,
    /// Whether it is down for want of proofs.
    wants_proof: bool,
    /// Whether there was a proof since it was last up again.
    is_proved: bool,
    /// The first datagram that nothing answered, of the last outage.
    out_since: Instant,
    outages: Outages,
    is_doubted: bool,
    /// Whether the link itself tells that it is up, or down.
    told_up: Option<bool>,
}

impl Liveness {
    /// A link that is taken for up, of which nothing is known.
    pub const fn new(config: LivenessConfig, now: Instant) -> Self {
        Self {
            config,
            rtt: None,
            usual_silence: Duration::ZERO,
            last_heard: None,
            last_sent: now,
            waiting_since: None,
            owing_since: None,
            last_probe: None,
            down_since: None,
            is_one_of_several: false,
            is_backed: false,
            longest_rtt: Duration::ZERO,
            unproved_since: None,
            usual_unproved: Duration::ZERO,
            wants_proof: false,
            is_proved: true,
            out_since: now,
            outages: Outages::NONE,
            is_doubted: false,
            told_up: None,
        }
    }

    /// Takes the link's own word. While it is down by that, nothing that is heard ends the outage: it was under way. A word that
    /// it is up ends an outage, whatever it began with.
    pub fn on_told(&mut self, now: Instant, is_up: Option<bool>) -> ToldChange {
        let before = core::mem::replace(&mut self.told_up, is_up);
        if before == is_up {
            return ToldChange::Nothing;
        }
        match is_up {
            Some(false) if self.is_down() => {}
            Some(false) => {
                self.fall(now, None);
                self.waiting_since = None;
                self.wants_proof = false;
                self.is_doubted = false;
                // Nothing leaves now, not even a probe.
                self.last_probe = Some(now);
                return ToldChange::Down;
            }
            Some(true) => {
                self.wants_proof = false;
                self.waiting_since = None;
                self.is_doubted = false;
                if let Some(outage) = self.end_outage(now) {
                    return ToldChange::Up(outage);
                }
            }
            // Probes find out.
            None => self.try_again(),
        }
        ToldChange::Nothing
    }

    /// The time without a word after which something is sent; `None` if an idle link is left alone.
    pub const fn keep_alive(&self) -> Option<Duration> {
        self.config.keep_alive
    }

    /// Whether the link tells that it is down.
    pub fn is_told_down(&self) -> bool {
        self.told_up == Some(false)
    }

    /// The time of the last word that was heard.
    pub const fn last_heard(&self) -> Option<Instant> {
        self.last_heard
    }

    /// Whether the silence is longer than usual: it is in doubt.
    pub const fn is_doubted(&self) -> bool {
        self.is_doubted
    }

    /// The time since when it is down though nobody told so.
    pub fn silent_since(&self) -> Option<Instant> {
        self.down_since.filter(|_| !self.is_told_down())
    }

    /// Notes whether this is one of several paths to the peer.
    pub const fn set_one_of_several(&mut self, is_one_of_several: bool) {
        self.is_one_of_several = is_one_of_several;
        if !is_one_of_several {
            // Whatever is heard ends an outage of the only path.
            self.wants_proof = false;
            self.unproved_since = None;
        }
    }

    /// Notes whether other paths to the peer carry on, and the longest round trip of all.
    pub const fn set_backed(&mut self, is_backed: bool, longest_rtt: Duration) {
        if !self.is_backed {
            // Proofs come by the others.
            self.unproved_since = None;
        }
        self.is_backed = is_backed;
        self.longest_rtt = longest_rtt;
    }

    /// Probes at once, if the link is down.
    pub const fn try_again(&mut self) {
        if self.is_down() {
            self.last_probe = None;
        }
    }

    const fn fall(&mut self, now: Instant, since: Option<Instant>) {
        self.down_since = Some(now);
        self.out_since = match since {
            Some(since) => since,
            None => now,
        };
        self.unproved_since = None;
        self.owing_since = None;
        self.outages.count += 1;
    }

    /// Holds it for down until something is heard: the peer was reached by another path, and nothing is known of this one. Returns
    /// whether it was taken for up.
    pub fn fall_unheard(&mut self, now: Instant) -> bool {
        let was_up = !self.is_down();
        if was_up {
            self.fall(now, self.waiting_since);
            self.wants_proof = false;
        }
        was_up
    }

    /// The outages so far, with that which lasts.
    pub fn outages(&self, now: Instant) -> Outages {
        let now_down = self.down_for(now).unwrap_or_default();
        Outages {
            time: self.outages.time + now_down,
            ..self.outages
        }
    }

    /// The time for which it is down, from the first datagram that nothing answered.
    pub fn down_for(&self, now: Instant) -> Option<Duration> {
        self.is_down().then(|| now.saturating_since(self.out_since))
    }

    /// Whether it is held for down.
    pub const fn is_down(&self) -> bool {
        self.down_since.is_some()
    }

    /// The time since which it is held for down.
    pub const fn down_since(&self) -> Option<Instant> {
        self.down_since
    }

    /// The round trip, once there was a sample.
    pub const fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// Takes a sample of the round trip.
    pub fn on_rtt_sample(&mut self, sample: Duration) {
        self.rtt = Some(match self.rtt {
            None => sample,
            // The estimate decides whether to wait longer, so a longer round trip is believed soon.
            Some(rtt) if sample > rtt => (rtt + sample) / 2,
            Some(rtt) => (rtt * (GAIN - 1) + sample) / GAIN,
        });
    }

    /// Notes that something left.
    pub fn on_sent(&mut self, now: Instant, wants: Wants) {
        self.last_sent = now;
        self.owing_since = None;
        if wants == Wants::Answer {
            self.waiting_since.get_or_insert(now);
            self.unproved_since.get_or_insert(now);
        }
    }

    /// Notes that something genuine arrived.
    pub fn on_heard(&mut self, now: Instant, wants: Wants) -> Heard {
        self.last_heard = Some(now);
        let outage = if self.wants_proof || self.is_told_down() {
            None
        } else {
            self.end_outage(now)
        };
        let silence = self.waiting_since.take();
        let silence = silence.map(|since| now.saturating_since(since));
        // A short outage may have been none, on a link that is slow to answer.
        if let Some(silence) = silence.filter(|silence| *silence <= self.config.down_after_max) {
            self.usual_silence = (self.usual_silence * (GAIN - 1) + silence) / GAIN;
        }
        if wants == Wants::Answer {
            self.owing_since.get_or_insert(now);
        }
        Heard {
            outage,
            ends_doubt: core::mem::replace(&mut self.is_doubted, false),
        }
    }

    /// Notes that nothing is under way between the ends: nobody waits for an answer, and nobody owes one.
    pub const fn rest(&mut self) {
        self.waiting_since = None;
        self.unproved_since = None;
        self.owing_since = None;
    }

    fn end_outage(&mut self, now: Instant) -> Option<Duration> {
        let outage = self.down_for(now)?;
        self.down_since = None;
        // Probes of the outage prove nothing.
        self.unproved_since = None;
        self.outages.time += outage;
        self.is_proved = false;
        Some(outage)
    }

    /// Notes that something that left here has arrived. Returns the length of the outage that this ends, if there was one for want
    /// of that.
    pub fn on_proved(&mut self, now: Instant) -> Option<Duration> {
        let unproved = self.unproved_since.take();
        let unproved = unproved.map(|since| now.saturating_since(since));
        if let Some(unproved) = unproved.filter(|unproved| *unproved <= self.config.down_after_max)
        {
            self.usual_unproved = (self.usual_unproved * (GAIN - 1) + unproved) / GAIN;
        }
        let wanted = core::mem::replace(&mut self.wants_proof, false);
        let ends = wanted && !self.is_told_down();
        let outage = if ends { self.end_outage(now) } else { None };
        self.is_proved = true;
        outage
    }

    /// The times without a proof after which one is asked for, and after which it is held for down, if it ever is.
    fn unproved_after(&self) -> Option<(Duration, Duration)> {
        let looks = self.is_backed && self.config.wants_proofs;
        self.rtt.filter(|_| looks)?;
        let usual = (self.usual_unproved * USUAL_UNPROVED).clamp(UNPROVED_MIN, UNPROVED_MAX);
        let asked = usual.max(self.longest_rtt * UNPROVED_QUARTERS / 4);
        let answered = self.probe_after() * 2 + self.beat() * UNPROVED_PROBES;
        Some((asked, asked + answered))
    }

    /// The shortest silence that is an outage.
    pub fn down_after(&self) -> Duration {
        let Some(rtt) = self.rtt else {
            return self.config.down_after_max;
        };
        let least = self.config.down_after_min;
        let (trips, least) = if self.is_backed {
            (
                rtt * BACKED_DOWN_QUARTERS / 4,
                least.min(BACKED_DOWN_AFTER_MIN),
            )
        } else {
            (rtt * ROUND_TRIPS, least)
        };
        (self.usual_silence * USUAL_SILENCES)
            .max(least)
            .min(self.config.down_after_max)
            .max(trips)
    }

    fn beat(&self) -> Duration {
        let least = self.config.down_after_min;
        let least = if self.is_one_of_several {
            least.min(BACKED_DOWN_AFTER_MIN)
        } else {
            least
        };
        least / BEATS
    }

    /// The time after which a probe leaves, counted from the beginning of a silence and from the last probe.
    fn probe_after(&self) -> Duration {
        let trips = self.rtt.unwrap_or_default() * PROBE_QUARTERS / 4;
        self.beat().max(trips)
    }

    fn silence(&self, now: Instant) -> Duration {
        let since = self.last_heard.or(self.waiting_since).unwrap_or(now);
        now.saturating_since(since)
    }

    /// The times of all that becomes due, unless something is sent or heard before.
    fn plan(&self) -> Plan {
        let after_probe = |span| self.last_probe.map_or(Instant::START, |at| at + span);
        if let Some(since) = self.down_since {
            // Without a keep-alive no probe is due while the link tells that it is down.
            let interval = if self.is_told_down() {
                self.config.keep_alive
            } else {
                Some(self.config.probe_interval)
            };
            let probe = interval.map(|interval| {
                let at = since.max(after_probe(interval));
                deadline(at, "probe of a link that is down")
            });
            return Plan {
                probe,
                ..Plan::default()
            };
        }
        let mut plan = Plan::default();
        if let Some(since) = self.owing_since {
            plan.heartbeat = Some(deadline(since + self.beat(), "heartbeat"));
        }
        if let Some(idle_max) = self.config.keep_alive {
            plan.probe = Some(deadline(self.last_sent + idle_max, "keep-alive"));
        }
        if let Some(since) = self.waiting_since {
            let doubt = since + self.probe_after();
            let probe = doubt.max(after_probe(self.probe_after()));
            plan.probe_at(probe, "probe of a silent link");
            plan.down = Some(deadline(since + self.down_after(), "silence"));
            if !self.is_doubted {
                plan.doubt = Some(deadline(doubt, "doubt of a silent link"));
            }
        }
        if let Some((since, (asked, down))) = self.unproved_since.zip(self.unproved_after()) {
            // One is answered as a rule.
            let first = since + asked;
            let probe = if self.last_probe.is_none_or(|last| last < first) {
                first
            } else {
                (first + self.probe_after()).max(after_probe(self.beat()))
            };
            plan.probe_at(probe, "probe of a link without proofs");
            plan.unproved = Some(deadline(since + down, "no proof"));
        }
        plan
    }

    /// The time at which [`Liveness::due`] has something next.
    pub fn next_deadline(&self) -> Option<Deadline> {
        let plan = self.plan();
        let all = [plan.down, plan.unproved, plan.doubt, plan.heartbeat];
        all.into_iter().fold(plan.probe, Deadline::earlier)
    }

    /// One thing that is due at `now`; call until `None`, and report what was sent.
    pub fn due(&mut self, now: Instant) -> Option<Due> {
        let plan = self.plan();
        let is_due = |deadline: Option<Deadline>| deadline.is_some_and(|d| d.at <= now);
        if is_due(plan.down) {
            let silent_for = self.silence(now);
            self.fall(now, self.waiting_since);
            // An end that hears nothing sends probes alone, which end an outage here and prove nothing.
            self.wants_proof = self.is_backed && self.config.wants_proofs && !self.is_proved;
            return Some(Due::Down(silent_for));
        }
        if is_due(plan.unproved) {
            let since = self.unproved_since;
            self.fall(now, since);
            self.wants_proof = true;
            let span = since.map(|since| now.saturating_since(since));
            return Some(Due::Unproved(span.unwrap_or_default()));
        }
        if is_due(plan.doubt) {
            self.is_doubted = true;
            return Some(Due::Doubt);
        }
        if is_due(plan.heartbeat) {
            self.owing_since = None;
            return Some(Due::Heartbeat);
        }
        is_due(plan.probe).then(|| self.probe(now))
    }

    fn probe(&mut self, now: Instant) -> Due {
        self.last_probe = Some(now);
        self.last_sent = now;
        Due::Probe
    }
}

#[cfg(test)]
mod tests;
