//! The traffic's side of a recording: entries into a bounded buffer.

use super::end::RecordingEnd;
use fulmar_proto::units::{ByteCount, Duration};
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// The most octets that wait for the file: for a capture, 70 ms at 1 gbit/s.
const WAITING_MAX: usize = 8 << 20;
/// The octets from which on the writer is called.
const WRITE_FROM: usize = 64 << 10;
/// The time after which less than that is written.
const WRITE_EVERY: Duration = Duration::from_millis(500);

/// The encoding of entries as octets.
pub(crate) trait Format: fmt::Debug + Send + 'static {
    /// The name of a recording of it.
    const KIND: &'static str;
    /// Octets kept free below the largest size for [`Format::ends_at_size`].
    const END_OCTETS: u64;

    /// The octets that were encoded and not taken yet.
    fn out(&mut self) -> &mut Vec<u8>;
    /// Octets encoded since the beginning.
    fn octets(&self) -> u64;
    /// Encodes the last word of a recording that has its largest size, in at most
    /// [`Format::END_OCTETS`].
    fn ends_at_size(&mut self) {}
    /// The number of entries in octets that are whole.
    fn entries(octets: &[u8]) -> u64;
    /// The length of the whole entries in the first `written` of these octets, which begin with an entry.
    fn whole_octets(octets: &[u8], written: usize) -> usize;
}

/// The counters of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordingCounters {
    /// Entries that got into the file.
    pub written: u64,
    /// Entries left out, because the disk did not keep up or the recording has ended.
    pub missed: u64,
}

/// Takes entries for a recording, from any thread.
#[derive(Debug)]
pub(crate) struct Spool<F>(Arc<Shared<F>>);

impl<F> Clone for Spool<F> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

#[derive(Debug)]
struct Shared<F> {
    state: Mutex<State<F>>,
    more: Condvar,
}

#[derive(Debug)]
struct State<F> {
    format: F,
    max_size: ByteCount,
    counters: RecordingCounters,
    /// The entries left out since the last one.
    missed: u64,
    ended: Option<RecordingEnd>,
    /// Whether no more entries are taken.
    is_closing: bool,
}

impl<F> State<F> {
    const fn miss(&mut self, entries: u64) {
        self.missed += entries;
        self.counters.missed += entries;
    }
}

impl<F: Format> Spool<F> {
    pub(super) fn new(format: F, max_size: ByteCount) -> Self {
        let state = State {
            format,
            max_size,
            counters: RecordingCounters::default(),
            missed: 0,
            ended: None,
            is_closing: false,
        };
        Self(Arc::new(Shared {
            state: Mutex::new(state),
            more: Condvar::new(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State<F>> {
        // A panicking thread left entries, of which the last is whole or is cut off below.
        self.0
            .state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Records one entry of at most `room` octets, or counts it as missed. `encode` is told how many
    /// were missed since the last.
    pub(crate) fn record(&self, room: usize, encode: impl FnOnce(&mut F, u64) -> io::Result<()>) {
        let mut state = self.lock();
        let waiting = state.format.out().len();
        if state.ended.is_some() || state.is_closing || waiting + room > WAITING_MAX {
            state.miss(1);
            return;
        }
        let missed = state.missed;
        let encoded = encode(&mut state.format, missed);
        if encoded.is_err()
            || state.format.octets() > state.max_size.0.saturating_sub(F::END_OCTETS)
        {
            state.format.out().truncate(waiting);
            state.format.ends_at_size();
            state.ended = Some(RecordingEnd::Size);
            state.miss(1);
        } else {
            state.missed = 0;
        }
        let has_crossed = waiting < WRITE_FROM && state.format.out().len() >= WRITE_FROM;
        if has_crossed || state.ended.is_some() {
            self.0.more.notify_one();
        }
    }

    /// Counts entries that never came here.
    pub(crate) fn note_missed(&self, entries: u64) {
        self.lock().miss(entries);
    }

    /// The counters so far.
    pub(crate) fn counters(&self) -> RecordingCounters {
        self.lock().counters
    }

    /// The reason for the recording's end, if it has ended.
    pub(crate) fn ended(&self) -> Option<RecordingEnd> {
        self.lock().ended.clone()
    }

    /// Takes no more entries: the writer writes the rest and ends.
    pub(crate) fn close(&self) {
        self.lock().is_closing = true;
        self.0.more.notify_one();
    }

    /// Counts entries that are in the file now.
    pub(super) fn wrote(&self, entries: u64) {
        self.lock().counters.written += entries;
    }

    /// Notes that the recording cannot go on, and that `lost` entries that were taken are not in it.
    pub(super) fn fail(&self, why: &str, lost: u64) {
        let mut state = self.lock();
        state.ended = Some(RecordingEnd::Disk(why.to_owned()));
        let lost = lost + F::entries(state.format.out());
        state.counters.missed += lost;
        // Nobody will write these octets.
        *state.format.out() = Vec::new();
    }

    /// Waits for entries and takes them in exchange for an empty buffer; `false` if nothing will
    /// follow them.
    pub(super) fn take(&self, encoded: &mut Vec<u8>) -> bool {
        encoded.clear();
        let idle = |state: &mut State<F>| {
            state.format.out().len() < WRITE_FROM && state.ended.is_none() && !state.is_closing
        };
        let waited = self
            .0
            .more
            .wait_timeout_while(self.lock(), WRITE_EVERY, idle);
        let (mut state, _) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        core::mem::swap(state.format.out(), encoded);
        state.ended.is_none() && !state.is_closing
    }
}
