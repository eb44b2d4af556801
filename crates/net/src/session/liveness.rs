//! The state of a link as seen from what was sent and heard, and the silence that means that it is down.
//!
//! # How
//! - An end that hears data and has nothing to send answers with a heartbeat, soon. So an end that sends
//!   data hears something soon, in every mode, while the link is up.
//! - After a silence longer than a heartbeat's interval while something was sent, probes leave.
//! - After a silence longer than three round trips, and than twelve times the usual silence (on a link that
//!   loses at random, one in 160,000 such silences is an accident), the link is held for down. Then only
//!   probes go out. Where other paths to the peer carry on, one and a half round trips are enough: a mistake costs little.
//! - Anything genuine that arrives ends the outage.

use super::config::LivenessConfig;
use fulmar_proto::machine::Deadline;
use fulmar_proto::units::{Duration, Instant};

const ROUND_TRIPS: u32 = 3;
/// The multiple of the usual silence that means an outage: e^-12 is 6e-6.
const USUAL_SILENCES: u32 = 12;
/// Heartbeats and probes in the shortest span before a link is held for down.
const BEATS: u32 = 4;
/// Weight of a new sample of the usual silence; that of RFC 6298 for round trips.
const GAIN: u32 = 8;

/// The thing to do at a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Heartbeat,
    Probe,
    /// The link is now held for down, after so long a silence.
    Down(Duration),
}

/// Whether what was sent or heard wants an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wants {
    Answer,
    Nothing,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Liveness {
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
    /// Whether other paths to the peer carry on.
    is_backed: bool,
    /// Whether the silence since the last word was noted as longer than usual.
    is_doubted: bool,
}

impl Liveness {
    pub(super) const fn new(config: LivenessConfig, now: Instant) -> Self {
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
            is_backed: false,
            is_doubted: false,
        }
    }

    /// Sets the shortest silence that is an outage.
    pub(super) const fn set_down_after_min(&mut self, silence: Duration) {
        self.config.down_after_min = silence;
    }

    /// Notes whether other paths to the peer carry on.
    pub(super) const fn set_backed(&mut self, is_backed: bool) {
        self.is_backed = is_backed;
    }

    /// Probes at once, if the link is down.
    pub(super) const fn try_again(&mut self) {
        if self.is_down() {
            self.last_probe = None;
        }
    }

    /// The time for which it is down, from the first datagram that nothing answered.
    pub(super) fn down_for(&self, now: Instant) -> Option<Duration> {
        let noticed = self.down_since?;
        let since = self.waiting_since.unwrap_or(noticed);
        Some(now.saturating_since(since))
    }

    /// Whether an answer is missing for so long that a probe leaves, which is told once.
    pub(super) fn begin_doubt(&mut self, now: Instant) -> bool {
        let asked = self.waiting_since.map(|since| since + self.probe_after());
        let begins = !self.is_doubted && !self.is_down() && asked.is_some_and(|at| at <= now);
        self.is_doubted |= begins;
        begins
    }

    /// Whether something was heard again after [`Liveness::begin_doubt`].
    pub(super) const fn end_doubt(&mut self) -> bool {
        core::mem::replace(&mut self.is_doubted, false)
    }

    pub(super) const fn is_down(&self) -> bool {
        self.down_since.is_some()
    }

    pub(super) const fn down_since(&self) -> Option<Instant> {
        self.down_since
    }

    pub(super) const fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    pub(super) fn on_rtt_sample(&mut self, sample: Duration) {
        self.rtt = Some(match self.rtt {
            None => sample,
            // The estimate decides whether to wait longer, so a longer round trip is believed soon.
            Some(rtt) if sample > rtt => (rtt + sample) / 2,
            Some(rtt) => (rtt * (GAIN - 1) + sample) / GAIN,
        });
    }

    /// Notes that something left.
    pub(super) fn on_sent(&mut self, now: Instant, wants: Wants) {
        self.last_sent = now;
        self.owing_since = None;
        if wants == Wants::Answer {
            self.waiting_since.get_or_insert(now);
        }
    }

    /// Notes that something genuine arrived. Returns the length of the outage that this ends, if there was one.
    pub(super) fn on_heard(&mut self, now: Instant, wants: Wants) -> Option<Duration> {
        self.last_heard = Some(now);
        let outage = self.down_since.take();
        let silence = self.waiting_since.take();
        let silence = silence.map(|since| now.saturating_since(since));
        // A short outage may have been none, on a link that is slow to answer.
        if let Some(silence) = silence.filter(|silence| *silence <= self.config.down_after_max) {
            self.usual_silence = (self.usual_silence * (GAIN - 1) + silence) / GAIN;
        }
        if wants == Wants::Answer {
            self.owing_since.get_or_insert(now);
        }
        // It began with the first datagram that nothing answered, not when it was noticed.
        outage.map(|since| silence.unwrap_or_else(|| now.saturating_since(since)))
    }

    /// The shortest silence that is an outage.
    pub(super) fn down_after(&self) -> Duration {
        let Some(rtt) = self.rtt else {
            return self.config.down_after_max;
        };
        let trips = if self.is_backed {
            self.probe_after()
        } else {
            rtt * ROUND_TRIPS
        };
        (self.usual_silence * USUAL_SILENCES)
            .max(self.config.down_after_min)
            .min(self.config.down_after_max)
            .max(trips)
    }

    fn beat(&self) -> Duration {
        self.config.down_after_min / BEATS
    }

    /// The time after which a probe leaves, counted from the beginning of a silence and from the last probe.
    fn probe_after(&self) -> Duration {
        self.beat().max(self.rtt.unwrap_or_default() * 3 / 2)
    }

    fn silence(&self, now: Instant) -> Duration {
        let since = self.last_heard.or(self.waiting_since).unwrap_or(now);
        now.saturating_since(since)
    }

    fn deadlines(&self) -> [Option<Deadline>; 4] {
        let deadline = |at, why| Some(Deadline { at, why });
        let after_probe = |span| self.last_probe.map_or(Instant::START, |at| at + span);
        if let Some(since) = self.down_since {
            let interval = self.config.probe_interval;
            let at = since.max(after_probe(interval));
            return [
                deadline(at, "probe of a link that is down"),
                None,
                None,
                None,
            ];
        }
        let owing = self
            .owing_since
            .and_then(|since| deadline(since + self.beat(), "heartbeat"));
        let (doubt, down) = match self.waiting_since {
            None => (None, None),
            Some(since) => {
                let at = (since + self.probe_after()).max(after_probe(self.probe_after()));
                (
                    deadline(at, "probe of a silent link"),
                    deadline(since + self.down_after(), "silence"),
                )
            }
        };
        let idle = self.last_sent + self.config.keep_alive;
        [owing, doubt, down, deadline(idle, "keep-alive")]
    }

    /// The time at which [`Liveness::due`] has something next.
    pub(super) fn next_deadline(&self) -> Option<Deadline> {
        self.deadlines().into_iter().fold(None, Deadline::earlier)
    }

    /// One thing that is due at `now`; call until `None`, and report what was sent.
    pub(super) fn due(&mut self, now: Instant) -> Option<Due> {
        let [first, doubt, down, idle] = self.deadlines();
        let is_due = |deadline: Option<Deadline>| deadline.is_some_and(|d| d.at <= now);
        if self.is_down() {
            return is_due(first).then(|| self.probe(now));
        }
        if is_due(down) {
            self.down_since = Some(now);
            self.owing_since = None;
            return Some(Due::Down(self.silence(now)));
        }
        if is_due(first) {
            self.owing_since = None;
            return Some(Due::Heartbeat);
        }
        (is_due(doubt) || is_due(idle)).then(|| self.probe(now))
    }

    fn probe(&mut self, now: Instant) -> Due {
        self.last_probe = Some(now);
        self.last_sent = now;
        Due::Probe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::START + Duration::from_millis(millis)
    }

    fn liveness() -> Liveness {
        Liveness::new(LivenessConfig::default(), at(0))
    }

    /// The things that become due up to `until`, each with its time.
    fn run(liveness: &mut Liveness, until: u64) -> Vec<(u64, Due)> {
        let mut log = Vec::new();
        while let Some(deadline) = liveness.next_deadline().filter(|d| d.at <= at(until)) {
            let due = liveness.due(deadline.at).expect("named a deadline");
            log.push((deadline.at.as_nanos() / 1_000_000, due));
        }
        log
    }

    #[test]
    fn silence_is_asked_about_and_then_is_an_outage_with_probes() {
        let mut liveness = liveness();
        liveness.on_rtt_sample(Duration::from_millis(10));
        liveness.on_sent(at(1_000), Wants::Answer);
        let silent = Duration::from_millis(300);
        assert_eq!(
            run(&mut liveness, 1_800),
            [
                (1_075, Due::Probe),
                (1_150, Due::Probe),
                (1_225, Due::Probe),
                (1_300, Due::Down(silent)),
                (1_475, Due::Probe),
                (1_725, Due::Probe),
            ]
        );
        let down_for = liveness.down_for(at(1_800));
        let outage = liveness.on_heard(at(1_800), Wants::Nothing);
        assert_eq!(down_for, outage);
        let since_asked = Duration::from_millis(800);
        assert_eq!(outage, Some(since_asked), "not since it was noticed");
        assert!(!liveness.is_down());
        assert_eq!(run(&mut liveness, 11_700), []);
    }

    #[test]
    fn what_wants_an_answer_gets_one_soon_unless_something_else_leaves_first() {
        let mut liveness = liveness();
        liveness.on_heard(at(1_000), Wants::Answer);
        assert_eq!(run(&mut liveness, 2_000), [(1_075, Due::Heartbeat)]);
        liveness.on_heard(at(2_000), Wants::Answer);
        liveness.on_sent(at(2_010), Wants::Nothing);
        assert_eq!(run(&mut liveness, 3_000), []);
    }

    #[test]
    fn an_idle_link_is_kept_alive_without_being_suspected() {
        let mut liveness = liveness();
        assert_eq!(run(&mut liveness, 9_999), []);
        assert_eq!(run(&mut liveness, 10_000), [(10_000, Due::Probe)]);
    }

    #[test]
    fn a_link_that_answers_rarely_is_given_more_time_within_a_bound() {
        let mut liveness = liveness();
        assert_eq!(
            liveness.down_after(),
            Duration::from_secs(3),
            "nothing is known yet"
        );
        liveness.on_rtt_sample(Duration::from_millis(10));
        for n in 0..100 {
            liveness.on_sent(at(n * 200), Wants::Answer);
            liveness.on_heard(at(n * 200 + 100), Wants::Nothing);
        }
        let twelve_times = Duration::from_millis(1_200);
        let short = twelve_times.saturating_sub(liveness.down_after());
        assert!(
            short < Duration::from_millis(1),
            "{:?}",
            liveness.down_after()
        );
        for n in 0..100 {
            liveness.on_sent(at(30_000 + n * 2_000), Wants::Answer);
            liveness.on_heard(at(30_000 + n * 2_000 + 1_000), Wants::Nothing);
        }
        assert_eq!(liveness.down_after(), Duration::from_secs(3));
        for _ in 0..30 {
            liveness.on_rtt_sample(Duration::from_secs(2));
        }
        assert!(liveness.down_after() > Duration::from_millis(5_999));
    }
}
