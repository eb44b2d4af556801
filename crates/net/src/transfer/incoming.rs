//! One file on its way in, from the sender's HELLO to our verdict.
//!
//! ```text
//!  Hello ──▶ (Contending) ──▶ Recovering ──OFFER──▶ Receiving ──END──▶ Settling ──DONE──▶ Leaving ──▶ over
//!                                     │ cannot go on: REFUSE ──────────────▲
//! ```

mod introduction;
mod octets;
mod verdict;

use super::coverage::Coverage;
use super::part::Part;
use super::pipe::PipeSink;
use super::present::Present;
use super::record::{Digest, Record, Records};
use super::report::{ReceiveError, ReceiveReport, TransferVerdict};
use fulmar_proto::machine::Deadline;
use fulmar_proto::transport::aerotp::{AerotpEndpoint, ConnectionId, Counters, ModeRules};
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::Mode;
use introduction::Contest;
use std::ops::Range;
use std::path::PathBuf;

/// The time in which a connection must introduce a file. A connection that was opened by the middle of a stream,
/// because we were restarted, never does.
const HELLO_PATIENCE: Duration = Duration::from_secs(5);
/// The time that the sender has to confirm our last words.
const LEAVING_MAX: Duration = Duration::from_secs(5);
/// The time for which the sender's own end is answered once it has confirmed ours.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
/// The result of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Idle,
    Touched,
    Over,
}

#[derive(Debug)]
enum Phase {
    Hello { since: Instant },
    Contending(Contest),
    Recovering,
    Receiving,
    Settling { size: u64, digest: Digest },
    Leaving { until: Instant },
    Over,
}

/// The place where the octets go.
#[derive(Debug)]
enum Sink {
    Part(Box<Part>),
    /// A file of that name and length is here; arriving octets must be the same.
    Present(Box<Present>),
    Pipe {
        pipe: PipeSink,
        hasher: Box<blake3::Hasher>,
        written: u64,
    },
}

/// The sender's description of the file.
#[derive(Debug)]
struct File {
    name: String,
    mode: Mode,
    id: u64,
    size: Option<u64>,
    seekable: bool,
    replace: bool,
}

/// One transfer.
#[derive(Debug)]
pub(super) struct Transfer {
    control: ConnectionId,
    pub(super) records: Records,
    /// The rest of one payload at most.
    held: Vec<u8>,
    phase: Phase,
    begun: Instant,
    decided: Option<Instant>,
    file: Option<File>,
    sink: Option<Sink>,
    coverage: Coverage,
    lane: Option<ConnectionId>,
    lane_ended: bool,
    heard: Instant,
    outbox: Vec<u8>,
    introduced: bool,
    confirmed: bool,
    resumed_at: u64,
    checkpointed: Instant,
    counters: Option<Counters>,
    verdict: Option<TransferVerdict>,
    path: Option<PathBuf>,
    missing: u64,
    missing_ranges: Vec<Range<u64>>,
    missing_range_count: u64,
    delivered: u64,
    error: Option<ReceiveError>,
}

impl Transfer {
    pub(super) fn new(control: ConnectionId, now: Instant) -> Self {
        Self {
            control,
            records: Records::default(),
            held: Vec::new(),
            phase: Phase::Hello { since: now },
            begun: now,
            decided: None,
            file: None,
            sink: None,
            coverage: Coverage::default(),
            lane: None,
            lane_ended: false,
            heard: now,
            outbox: Vec::new(),
            introduced: false,
            confirmed: false,
            resumed_at: 0,
            checkpointed: now,
            counters: None,
            verdict: None,
            path: None,
            missing: 0,
            missing_ranges: Vec::new(),
            missing_range_count: 0,
            delivered: 0,
            error: None,
        }
    }

    pub(super) const fn control(&self) -> ConnectionId {
        self.control
    }

    pub(super) fn id(&self) -> Option<u64> {
        self.file.as_ref().map(|file| file.id)
    }

    /// Whether it still writes the file of that name.
    pub(super) fn is_receiving(&self, name: &str) -> bool {
        self.sink.is_some() && self.file.as_ref().is_some_and(|file| file.name == name)
    }

    /// Keeps octets that cannot be understood before the offer is made.
    pub(super) fn hold(&mut self, octets: &[u8]) {
        self.held.extend_from_slice(octets);
    }

    /// The octets that were kept, once they can be understood.
    pub(super) fn take_held(&mut self) -> Option<Vec<u8>> {
        let ready = !self.held.is_empty() && !self.must_wait();
        ready.then(|| std::mem::take(&mut self.held))
    }

    /// Whether nothing more can be understood before the offer is made.
    pub(super) const fn must_wait(&self) -> bool {
        matches!(self.phase, Phase::Contending(_) | Phase::Recovering)
    }

    pub(super) fn set_lane(&mut self, lane: ConnectionId) {
        self.lane = Some(lane);
    }

    fn is_lossy(&self) -> bool {
        self.file
            .as_ref()
            .is_some_and(|file| !ModeRules::of(file.mode).complete)
    }

    /// Whether more octets may be read from the connection.
    pub(super) fn has_room(&mut self) -> bool {
        match (&self.phase, &mut self.sink) {
            (Phase::Contending(_) | Phase::Recovering, _) => false,
            (_, Some(Sink::Pipe { pipe, .. })) => pipe.has_room(),
            _ => true,
        }
    }

    pub(super) fn on_start(&mut self, offset: u64) -> Result<(), ReceiveError> {
        if self.is_over() {
            return Ok(());
        }
        match &mut self.sink {
            Some(Sink::Part(part)) if offset == 0 => {
                self.resumed_at = 0;
                Ok(part.restart()?)
            }
            Some(Sink::Present(present)) => Err(ReceiveError::Exists(present.path().to_owned())),
            _ => Err(ReceiveError::Sequence("starts somewhere else than it may")),
        }
    }

    pub(super) fn on_end(
        &mut self,
        now: Instant,
        size: u64,
        digest: Digest,
    ) -> Result<(), ReceiveError> {
        self.heard = now;
        match self.phase {
            Phase::Receiving => {
                self.phase = Phase::Settling { size, digest };
                Ok(())
            }
            _ if self.is_over() => Ok(()),
            _ => Err(ReceiveError::Sequence("ends a file that was not begun")),
        }
    }

    /// Notes that the connection with the octets is over, or that all of it has been read.
    pub(super) fn on_lane_ended(&mut self, _now: Instant) {
        self.lane_ended = true;
    }

    /// Notes that our last words were confirmed. The sender's are answered a while longer.
    pub(super) fn on_all_sent(&mut self, now: Instant) {
        if let Phase::Leaving { until } = self.phase {
            let until = until.min(now + LAST_ANSWERS);
            self.phase = Phase::Leaving { until };
            self.confirmed = true;
        }
    }

    /// Whether the peer has our last words.
    pub(super) const fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    const fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Leaving { .. } | Phase::Over)
    }

    /// Whether no verdict was sent yet.
    pub(super) const fn is_undecided(&self) -> bool {
        self.verdict.is_none() && !self.is_over()
    }

    /// Ends without a word to the peer: it is gone, or ended it itself.
    pub(super) fn abandon(&mut self, verdict: TransferVerdict) {
        self.verdict.get_or_insert(verdict);
        self.phase = Phase::Over;
    }

    /// Tells the peer why this cannot go on, and ends.
    pub(super) fn refuse(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        error: ReceiveError,
    ) {
        if self.is_over() {
            return;
        }
        let record = refusal(&error);
        self.delivered = self.written();
        self.verdict = Some(TransferVerdict::Failed);
        if let ReceiveError::Stopped = error {
            self.verdict = Some(TransferVerdict::Stopped);
            if let Some(Sink::Part(part)) = &mut self.sink
                && let Err(error) = part.checkpoint()
            {
                self.error = Some(error.into());
            }
        }
        self.error.get_or_insert(error);
        // A full disk cannot keep what follows, but what was checkpointed stays.
        if let Some(Sink::Part(part)) = self.sink.take() {
            part.keep_durable();
        }
        self.leave(now, machine, &record);
    }

    /// Tells the peer why this cannot go on, and no more.
    pub(super) fn say_refused(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        error: &ReceiveError,
    ) {
        refusal(error).encode(&mut self.outbox);
        self.pump(now, machine);
    }

    fn leave(&mut self, now: Instant, machine: &mut AerotpEndpoint, record: &Record) {
        self.take_counters(machine);
        self.decided = Some(now);
        record.encode(&mut self.outbox);
        self.pump(now, machine);
        machine.close(now, self.control);
        self.phase = Phase::Leaving {
            until: now + LEAVING_MAX,
        };
    }

    /// Takes the counters of the connection with the octets, once. Datagrams have none.
    fn take_counters(&mut self, machine: &AerotpEndpoint) {
        let data = if self.is_lossy() {
            self.lane
        } else {
            Some(self.control)
        };
        if self.counters.is_none() {
            self.counters = data.and_then(|data| machine.counters(data)).copied();
        }
    }

    /// Our side of the conversation is short: it always fits the send buffer.
    fn pump(&mut self, now: Instant, machine: &mut AerotpEndpoint) -> bool {
        if self.outbox.is_empty() {
            return false;
        }
        // A closed connection gives its reason in its own event.
        let taken = machine
            .write(now, self.control, &self.outbox)
            .unwrap_or(self.outbox.len());
        self.outbox.drain(..taken);
        taken > 0
    }

    /// Does what is due.
    pub(super) fn advance(
        &mut self,
        now: Instant,
        machine: &mut AerotpEndpoint,
        checkpoint_every: Duration,
    ) -> Result<Progress, ReceiveError> {
        let touched = self.pump(now, machine);
        match self.phase {
            Phase::Hello { since } if now.saturating_since(since) >= HELLO_PATIENCE => {
                machine.abort(now, self.control);
                self.phase = Phase::Over;
                return Ok(Progress::Over);
            }
            Phase::Recovering => {
                if self.recover(now)? {
                    self.pump(now, machine);
                    return Ok(Progress::Touched);
                }
            }
            Phase::Receiving => self.checkpoint(now, checkpoint_every)?,
            Phase::Settling { size, digest } => {
                if self.settle(now, machine, size, digest)? {
                    return Ok(Progress::Touched);
                }
            }
            Phase::Leaving { until } if until <= now => return Ok(Progress::Over),
            Phase::Over => return Ok(Progress::Over),
            Phase::Hello { .. } | Phase::Contending(_) | Phase::Leaving { .. } => {}
        }
        Ok(if touched {
            Progress::Touched
        } else {
            Progress::Idle
        })
    }

    /// Verifies some more octets on the disk; returns whether the offer could be made.
    fn recover(&mut self, now: Instant) -> Result<bool, ReceiveError> {
        let lossy = self.is_lossy();
        let seekable = self.file.as_ref().is_some_and(|file| file.seekable);
        if let Some(Sink::Part(part)) = &mut self.sink {
            if lossy || !seekable {
                part.restart()?;
            }
            if part.is_recovering() {
                part.recover()?;
            }
            if part.is_recovering() {
                return Ok(false);
            }
            self.resumed_at = part.written();
            let digest = part.digest();
            Record::Offer {
                offset: part.written(),
                digest,
            }
            .encode(&mut self.outbox);
        } else if let Some(Sink::Present(present)) = &mut self.sink {
            let read = present.read_more(now);
            if !read.map_err(|_| ReceiveError::Exists(present.path().to_owned()))? {
                return Ok(false);
            }
            // Nothing is continued.
            self.introduced = true;
            self.resumed_at = present.written();
            let (offset, digest) = (present.written(), present.digest());
            Record::Offer { offset, digest }.encode(&mut self.outbox);
        } else {
            let digest = *blake3::hash(b"").as_bytes();
            Record::Offer { offset: 0, digest }.encode(&mut self.outbox);
        }
        self.phase = Phase::Receiving;
        Ok(true)
    }

    fn checkpoint(&mut self, now: Instant, every: Duration) -> Result<(), ReceiveError> {
        if now.saturating_since(self.checkpointed) >= every && !self.is_lossy() {
            self.checkpointed = now;
            if let Some(Sink::Part(part)) = &mut self.sink {
                part.checkpoint()?;
            }
        }
        Ok(())
    }

    /// The introduced file's name, its size and the octets of it that were here; given once.
    pub(super) fn take_introduction(&mut self) -> Option<(String, Option<u64>, u64)> {
        if self.introduced || !matches!(self.phase, Phase::Receiving | Phase::Settling { .. }) {
            return None;
        }
        self.introduced = true;
        let file = self.file.as_ref()?;
        Some((file.name.clone(), file.size, self.resumed_at))
    }

    pub(super) fn next_deadline(&self, checkpoint_every: Duration) -> Option<Deadline> {
        let (at, why) = match self.phase {
            Phase::Hello { since } => (since + HELLO_PATIENCE, "patience with an introduction"),
            Phase::Contending(contest) => (contest.until, "sign of life of another sender"),
            Phase::Recovering => match &self.sink {
                Some(Sink::Present(present)) => (present.quiet_at(), "verifying a file"),
                _ => (Instant::START, "verifying a part"),
            },
            Phase::Receiving if self.is_lossy() => return None,
            Phase::Receiving => (self.checkpointed + checkpoint_every, "checkpoint"),
            Phase::Settling { .. } if self.is_lossy() => {
                (self.heard + self.quiet(), "patience with missing octets")
            }
            Phase::Settling { .. } => return None,
            Phase::Leaving { until } => (until, "last acknowledgements"),
            Phase::Over => (Instant::START, "end of a transfer"),
        };
        Some(Deadline { at, why })
    }

    /// The report; `None` if no file was ever introduced.
    pub(super) fn conclude(
        mut self,
        now: Instant,
        machine: &AerotpEndpoint,
    ) -> Option<ReceiveReport> {
        self.take_counters(machine);
        if self.sink.is_some() {
            self.delivered = self.written();
        }
        if let Some(Sink::Part(part)) = &mut self.sink
            && let Err(error) = part.leave()
        {
            self.error.get_or_insert(error.into());
        }
        let name = match (&self.file, &self.error) {
            (Some(file), _) => file.name.clone(),
            (None, Some(ReceiveError::Name { name, .. })) => name.escape_default().to_string(),
            (None, Some(ReceiveError::Exists(path))) => {
                path.file_name()?.to_string_lossy().into_owned()
            }
            (None, Some(_)) => String::new(),
            (None, None) => return None,
        };
        let verdict = self.verdict.unwrap_or(TransferVerdict::Abandoned);
        let size = self.file.as_ref().and_then(|file| file.size);
        let is_told = matches!(
            verdict,
            TransferVerdict::Complete | TransferVerdict::Incomplete | TransferVerdict::Corrupt
        );
        let missing = if is_told {
            Some(self.missing)
        } else {
            size.map(|size| size.saturating_sub(self.delivered))
        };
        Some(ReceiveReport {
            verdict,
            name,
            mode: self.file.as_ref().map_or(Mode::Reliable, |file| file.mode),
            path: self.path,
            size,
            resumed_at: self.resumed_at,
            delivered: self.delivered,
            missing,
            missing_ranges: is_told.then_some(self.missing_ranges),
            missing_range_count: is_told.then_some(self.missing_range_count),
            elapsed: self.decided.unwrap_or(now).saturating_since(self.begun),
            counters: self.counters,
            error: self.error,
        })
    }
}

fn refusal(error: &ReceiveError) -> Record {
    Record::Refuse {
        reason: error.reason(),
        text: error.for_the_sender(),
    }
}
