//! Limits of log lines: neither a stranger nor a link that flaps fills a disk, or hides other lines.
//!
//! All lines of a gateway pass here, whichever code writes them, so that none escapes its limit. They are
//! told apart by their event, their peer, their reason, and whether they are errors.
//!
//! # Promises
//! - Of one event of one peer for one reason at most [`LINES`]' burst is written, one line more in each of
//!   its spans, and once in [`SUMMARY_AFTER`] the number of lines that were left out. [`FLOW_LINES`] is the
//!   limit at level `debug`, which an operator asked for: one line for each flow.
//! - In all, at most [`ALL_LINES`] are written, and as many errors besides: an error is left out only for
//!   other errors.
//! - Lines left out are counted, and the number is written.
//! - [`OPERATORS`] have no limit: the configuration bounds their number.

use fulmar_net::clock::Clock;
use fulmar_proto::units::{Duration, Instant};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// The number of lines at once, and the interval of one more.
#[derive(Clone, Copy, Debug)]
struct Limit {
    burst: u32,
    each: Duration,
}

/// The limit for one event of one peer.
const LINES: Limit = Limit {
    burst: 10,
    each: Duration::from_secs(60),
};
/// The limit for one event of one peer at the level `debug`.
const FLOW_LINES: Limit = Limit {
    burst: 1_000,
    each: Duration::from_millis(10),
};
/// The limit for all events together, for errors and for others apart, except those at the level `debug`:
/// 256 peers may come at once, and a day has 86,400 seconds.
const ALL_LINES: Limit = Limit {
    burst: 2_000,
    each: Duration::from_secs(1),
};
/// The interval after which the left-out lines of one kind are summed up.
const SUMMARY_AFTER: Duration = Duration::from_secs(60);
/// The most kinds of lines that are told apart; all further kinds of one event share a limit. There are
/// some sixty events, and at most 256 peers.
const KINDS_MAX: usize = 4_096;

/// The event of a summary of left-out lines.
const SUMMARY: &str = "lines_left_out";
/// The events without a limit: one line for each entry of the configuration, and the summaries.
const OPERATORS: [&str; 4] = ["listening", "open_proxy", "entry_unopened", SUMMARY];

/// A leaky bucket.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// The time at which it will be full again.
    full_at: Instant,
}

impl Bucket {
    const FULL: Self = Self {
        full_at: Instant::START,
    };

    /// Takes one line, if there is one left; returns whether there was.
    fn take(&mut self, now: Instant, limit: Limit) -> bool {
        let from = self.full_at.max(now);
        if from.saturating_since(now) + limit.each > limit.each * limit.burst {
            return false;
        }
        self.full_at = from + limit.each;
        true
    }
}

/// A kind of lines: the event, the peer, the reason, and whether it is an error. Reasons are words of the
/// program. Text that others write is no `reason`, or each such text would be a kind of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    is_error: bool,
    event: String,
    peer: String,
    reason: String,
}

/// One line, as far as its limit depends on it.
#[derive(Clone, Debug, Default)]
struct Line {
    kind: Kind,
    /// Whether the level is `debug` or below.
    is_detail: bool,
    /// The number of lines of this kind that their writer left out itself.
    skipped: u64,
}

#[derive(Debug)]
struct State {
    bucket: Bucket,
    left_out: u64,
    /// The time at which the first of those was left out.
    since: Instant,
}

/// Lines of one kind that were left out.
#[derive(Clone, Debug, PartialEq, Eq)]
struct LeftOut {
    kind: Kind,
    lines: u64,
    within: Duration,
}

/// The limits of all kinds. Time is an argument.
#[derive(Debug)]
struct Limits {
    all: Bucket,
    errors: Bucket,
    kinds: BTreeMap<Kind, State>,
}

impl Limits {
    const fn new() -> Self {
        Self {
            all: Bucket::FULL,
            errors: Bucket::FULL,
            kinds: BTreeMap::new(),
        }
    }

    /// Whether a line may be written.
    fn may(&mut self, now: Instant, mut line: Line) -> bool {
        if OPERATORS.contains(&line.kind.event.as_str()) {
            return true;
        }
        if !self.kinds.contains_key(&line.kind) && self.kinds.len() >= KINDS_MAX {
            self.kinds
                .retain(|_, state| state.left_out > 0 || state.bucket.full_at > now);
            if self.kinds.len() >= KINDS_MAX {
                // Events are words of the program, so that there are few of these.
                line.kind.peer.clear();
                line.kind.reason.clear();
            }
        }
        let is_error = line.kind.is_error;
        let state = self.kinds.entry(line.kind).or_insert(State {
            bucket: Bucket::FULL,
            left_out: 0,
            since: now,
        });
        let limit = if line.is_detail { FLOW_LINES } else { LINES };
        let all = if is_error {
            &mut self.errors
        } else {
            &mut self.all
        };
        let may = state.bucket.take(now, limit) && (line.is_detail || all.take(now, ALL_LINES));
        if !may {
            if state.left_out == 0 {
                state.since = now;
            }
            state.left_out = state.left_out.saturating_add(1 + line.skipped);
        }
        may
    }

    /// The time at which the next summary of left-out lines is due.
    fn next_summary(&self) -> Option<Instant> {
        let waiting = self.kinds.values().filter(|state| state.left_out > 0);
        waiting.map(|state| state.since + SUMMARY_AFTER).min()
    }

    /// Takes the counts of left-out lines that are due for a summary, or with `all` every count.
    fn summaries(&mut self, now: Instant, all: bool) -> Vec<LeftOut> {
        let due = |state: &State| {
            let waited = now.saturating_since(state.since);
            state.left_out > 0 && (all || waited >= SUMMARY_AFTER)
        };
        let kinds = self.kinds.iter_mut().filter(|(_, state)| due(state));
        kinds
            .map(|(kind, state)| LeftOut {
                kind: kind.clone(),
                lines: core::mem::take(&mut state.left_out),
                within: now.saturating_since(state.since),
            })
            .collect()
    }
}

/// Reads a line's event and peer.
#[derive(Debug, Default)]
struct Reader(Line);

impl Visit for Reader {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "event" => value.clone_into(&mut self.0.kind.event),
            "peer" => value.clone_into(&mut self.0.kind.peer),
            "reason" => value.clone_into(&mut self.0.kind.reason),
            _ => {}
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "skipped" {
            self.0.skipped = value;
        }
    }

    fn record_debug(&mut self, _field: &Field, _value: &dyn Debug) {}
}

impl Line {
    fn of(event: &Event<'_>) -> Self {
        let mut reader = Reader::default();
        event.record(&mut reader);
        let mut line = reader.0;
        if line.kind.event.is_empty() {
            // A line without an event is told apart by its place in the sources.
            event.metadata().name().clone_into(&mut line.kind.event);
        }
        line.kind.is_error = *event.metadata().level() == Level::ERROR;
        line.is_detail = *event.metadata().level() >= Level::DEBUG;
        line
    }
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    limits: Mutex<Limits>,
    /// Wakes the thread that writes summaries: a line was left out.
    left_out: Condvar,
}

impl Shared {
    fn limits(&self) -> MutexGuard<'_, Limits> {
        // Nothing panics while it is held.
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A layer that lets lines pass as far as they may.
#[derive(Clone, Debug)]
pub(crate) struct LineLimit(Arc<Shared>);

impl LineLimit {
    pub(crate) fn new(clock: Clock) -> Self {
        Self(Arc::new(Shared {
            clock,
            limits: Mutex::new(Limits::new()),
            left_out: Condvar::new(),
        }))
    }

    /// Writes summaries of left-out lines from now on, on a thread of its own.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn sum_up(&self) -> io::Result<()> {
        let shared = Arc::clone(&self.0);
        let sum_up = move || {
            loop {
                let due = shared.wait_for_summaries();
                say(&due);
            }
        };
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(sum_up)
            .map(drop)
    }

    /// Writes all summaries that are not written yet, at the end.
    pub(crate) fn end(&self) {
        let due = self.0.limits().summaries(self.0.clock.now(), true);
        say(&due);
    }
}

impl Shared {
    fn wait_for_summaries(&self) -> Vec<LeftOut> {
        let mut limits = self.limits();
        loop {
            let now = self.clock.now();
            let due = limits.summaries(now, false);
            if !due.is_empty() {
                return due;
            }
            limits = match limits.next_summary() {
                None => self
                    .left_out
                    .wait(limits)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(at) => {
                    let woken = self.left_out.wait_timeout(limits, at.saturating_since(now));
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

fn say(due: &[LeftOut]) {
    for LeftOut {
        kind,
        lines,
        within,
    } in due
    {
        let said = |word: &str| Some(word.to_owned()).filter(|word| !word.is_empty());
        let (peer, reason) = (said(&kind.peer), said(&kind.reason));
        tracing::warn!(
            event = SUMMARY,
            of = kind.event,
            peer,
            reason,
            lines,
            seconds = within.as_secs_f64()
        );
    }
}

impl<S: Subscriber> Layer<S> for LineLimit {
    fn event_enabled(&self, event: &Event<'_>, _context: Context<'_, S>) -> bool {
        let line = Line::of(event);
        let now = self.0.clock.now();
        let mut limits = self.0.limits();
        let was_waiting = limits.next_summary().is_some();
        let may = limits.may(now, line);
        let is_first = !may && !was_waiting;
        drop(limits);
        if is_first {
            self.0.left_out.notify_one();
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fulmar_proto::rng::Rng;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;
    use tracing_subscriber::layer::SubscriberExt;

    fn sources(directory: &Path, files: &mut Vec<String>) {
        for entry in fs::read_dir(directory).expect("sources") {
            let path = entry.expect("sources").path();
            if path.is_dir() {
                sources(&path, files);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                files.push(fs::read_to_string(&path).expect("text"));
            }
        }
    }

    /// The names of all events in the sources of the gateway and its command, but for those in tests.
    fn events() -> BTreeSet<String> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = Vec::new();
        sources(&here.join("src"), &mut files);
        sources(&here.join("../net/src"), &mut files);
        let mut events = BTreeSet::new();
        for text in &files {
            let program = text.split("#[cfg(test)]").next().unwrap_or_default();
            for written in program.split("event = \"").skip(1) {
                events.extend(written.split('"').next().map(str::to_owned));
            }
        }
        events
    }

    fn line(event: &str, peer: &str) -> Line {
        Line {
            kind: Kind {
                event: event.to_owned(),
                peer: peer.to_owned(),
                ..Kind::default()
            },
            ..Line::default()
        }
    }

    fn allowed(limit: Limit, span: Duration) -> u64 {
        let more = u64::try_from(span.as_nanos() / limit.each.as_nanos());
        u64::from(limit.burst) + more.expect("a short time")
    }

    /// The limit holds for every event, in any order and at any pace.
    #[test]
    fn however_often_something_happens_its_lines_are_few_and_every_one_is_counted() {
        let events: Vec<String> = events().into_iter().collect();
        assert!(events.len() > 40, "only {events:?}");
        assert!(events.iter().any(|event| event == "peer_moved"));
        let peers = ["", "a", "b"];
        for seed in 0..8 {
            let mut rng = Rng::from_seed(seed);
            let mut limits = Limits::new();
            let mut now = Instant::START;
            let mut happened = BTreeMap::<Kind, u64>::new();
            let mut written = BTreeMap::<Kind, u64>::new();
            let mut left_out = BTreeMap::<Kind, u64>::new();
            let mut summaries = 0_u64;
            let mut sum_up = |left: Vec<LeftOut>, left_out: &mut BTreeMap<Kind, u64>| {
                summaries += left.len() as u64;
                for LeftOut { kind, lines, .. } in left {
                    *left_out.entry(kind).or_default() += lines;
                }
            };
            // Storms of one kind, up to one line a microsecond, and everything at once.
            for storm in 0..400_u64 {
                let chosen = rng.below(events.len() as u64 + 1);
                let pace = Duration::from_micros(1 << rng.below(24));
                for n in 0..500_u64 {
                    let event = usize::try_from(chosen).expect("small");
                    let event = events.get(event).unwrap_or_else(|| {
                        &events[usize::try_from(n).expect("small") % events.len()]
                    });
                    let peer = peers[usize::try_from((storm + n) % 3).expect("small")];
                    let line = line(event, peer);
                    let kind = line.kind.clone();
                    *happened.entry(kind.clone()).or_default() += 1;
                    if limits.may(now, line) {
                        *written.entry(kind).or_default() += 1;
                    }
                    now += pace;
                    sum_up(limits.summaries(now, false), &mut left_out);
                }
            }
            sum_up(limits.summaries(now, true), &mut left_out);
            let span = now.saturating_since(Instant::START);
            let mut all = 0;
            for (kind, count) in &happened {
                let lines = written.get(kind).copied().unwrap_or(0);
                let told = left_out.get(kind).copied().unwrap_or(0);
                assert_eq!(lines + told, *count, "{kind:?}");
                if OPERATORS.contains(&kind.event.as_str()) {
                    assert_eq!(told, 0, "{kind:?}");
                    continue;
                }
                all += lines;
                assert!(
                    lines <= allowed(LINES, span),
                    "{kind:?}: {lines} in {span:?}"
                );
            }
            assert!(all <= allowed(ALL_LINES, span), "{all} lines in {span:?}");
            let most = span.as_secs() / SUMMARY_AFTER.as_secs() + 1;
            assert!(summaries <= most * happened.len() as u64, "{summaries}");
        }
    }

    #[test]
    fn the_lines_without_a_limit_are_those_that_the_configuration_counts() {
        let events = events();
        for event in OPERATORS.iter().filter(|event| **event != SUMMARY) {
            assert!(events.contains(*event), "no line has {event}");
        }
        let mut limits = Limits::new();
        let written = |event: &str, limits: &mut Limits| {
            let all = (0..1_000).filter(|_| limits.may(Instant::START, line(event, "a")));
            all.count()
        };
        assert_eq!(written("listening", &mut limits), 1_000);
        assert_eq!(written("peer_moved", &mut limits), 10);
    }

    #[test]
    fn one_storm_does_not_hide_other_lines() {
        let mut limits = Limits::new();
        let at = |seconds| Instant::START + Duration::from_secs(seconds);
        for second in 0..3_600 {
            for _ in 0..50 {
                limits.may(at(second), line("peer_moved", "a"));
            }
        }
        assert!(limits.may(at(3_600), line("peer_moved", "b")));
        assert!(limits.may(at(3_600), line("link_down", "a")));
    }

    #[test]
    fn no_error_is_left_out_for_the_many_lines_of_other_kinds() {
        let events: Vec<String> = events().into_iter().collect();
        let has = |event: &str| events.iter().any(|known| known == event);
        assert!(has("custody_set_aside") && has("custody_sync_failed"));
        let mut limits = Limits::new();
        for peer in 0..1_000 {
            for event in &events {
                limits.may(Instant::START, line(event, &peer.to_string()));
            }
        }
        let mut failed = line("custody_sync_failed", "");
        failed.kind.is_error = true;
        assert!(limits.may(Instant::START, failed));
    }

    #[test]
    fn one_reason_does_not_hide_another() {
        let mut limits = Limits::new();
        let because = |reason: &str| {
            let mut line = line("exit_refused", "");
            line.kind.reason = reason.to_owned();
            line
        };
        let written = (0..100).filter(|_| limits.may(Instant::START, because("not_allowed")));
        assert_eq!(written.count(), 10);
        assert!(limits.may(Instant::START, because("too_many")));
    }

    #[test]
    fn what_a_line_says_it_left_out_itself_is_counted_too() {
        let mut limits = Limits::new();
        for _ in 0..12 {
            let mut line = line("refused", "");
            line.skipped = 100;
            limits.may(Instant::START, line);
        }
        let [left] = &limits.summaries(Instant::START, true)[..] else {
            panic!("one kind");
        };
        assert_eq!(left.lines, 2 * 101);
    }

    #[test]
    fn kinds_that_nobody_foresaw_share_one_limit() {
        let mut limits = Limits::new();
        let peers = 0..20_000;
        let written = peers
            .filter(|peer| limits.may(Instant::START, line("x", &peer.to_string())))
            .count();
        assert!(
            limits.kinds.len() <= KINDS_MAX + 1,
            "{}",
            limits.kinds.len()
        );
        let most = usize::try_from(ALL_LINES.burst).expect("small");
        assert_eq!(written, most);
    }

    /// A layer that counts the lines that come through.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<Line>>>);

    impl<S: Subscriber> Layer<S> for Written {
        fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
            self.0.lock().expect("no panic").push(Line::of(event));
        }
    }

    #[test]
    fn real_lines_are_told_apart_by_event_and_peer_and_summed_up_at_the_end() {
        let written = Written::default();
        let limit = LineLimit::new(Clock::start());
        let subscriber = tracing_subscriber::registry()
            .with(limit.clone())
            .with(written.clone());
        tracing::subscriber::with_default(subscriber, || {
            for _ in 0..500 {
                tracing::info!(event = "peer_moved", peer = "a");
                tracing::info!(event = "peer_moved", peer = Some("b"));
                tracing::warn!("no event");
            }
            limit.end();
        });
        let lines = written.0.lock().expect("no panic").clone();
        let count = |event: &str, peer: &str| {
            let is = |line: &&Line| line.kind.event.contains(event) && line.kind.peer == peer;
            lines.iter().filter(is).count()
        };
        assert_eq!(count("peer_moved", "a"), 10);
        assert_eq!(count("peer_moved", "b"), 10);
        assert_eq!(count("line_limit.rs", ""), 10);
        assert_eq!(count(SUMMARY, "a"), 1);
        assert_eq!(count(SUMMARY, "b"), 1);
        assert_eq!(count(SUMMARY, ""), 1);
    }
}
