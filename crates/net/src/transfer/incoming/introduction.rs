//! The start of a transfer: the file that the sender wants to send, and whether it may.
//!
//! A name belongs to one sender at a time. When another introduces a file of that name, the first is asked
//! for a sign of life: a sender that was killed and starts again must not wait for the patience
//! with a silent peer, and two that live must not take the file from each other for ever.

use super::super::name::check_name;
use super::super::part::Part;
use super::super::pipe::PipeSink;
use super::super::present::Present;
use super::super::receiver::{FileDestination, ReceivePlan};
use super::super::record::Record;
use super::super::report::ReceiveError;
use super::super::verified::Verified;
use super::{File, Phase, Sink, Transfer};
use fulmar_proto::transport::aerotp::{AerotpEndpoint, ConnectionId};
use fulmar_proto::units::{Duration, Instant};
use fulmar_proto::wire::Mode;

/// Round trips in which a living sender confirms a PING, or sends something.
const SIGN_OF_LIFE_RTTS: u32 = 4;
/// The shortest and the longest wait for them: for a busy machine, and for a wrong estimate.
const SIGN_OF_LIFE_MIN: Duration = Duration::from_millis(300);
const SIGN_OF_LIFE_MAX: Duration = Duration::from_secs(3);

/// A wait for a sign of life from another sender of the same file.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Contest {
    /// The connection of the other sender.
    pub(in super::super) rival: ConnectionId,
    asked: Instant,
    pub(super) until: Instant,
}

impl Transfer {
    /// Notes the file that the sender introduces. Nothing is done about it before [`Transfer::admit`].
    pub(in super::super) fn on_hello(
        &mut self,
        mode: Mode,
        id: u64,
        (size, seekable): (Option<u64>, bool),
        name: String,
    ) -> Result<(), ReceiveError> {
        if !matches!(self.phase, Phase::Hello { .. }) || self.file.is_some() {
            return Err(ReceiveError::Sequence("introduces a second file"));
        }
        if let Err(why) = check_name(&name) {
            return Err(ReceiveError::Name { name, why });
        }
        self.file = Some(File {
            name,
            mode,
            id,
            size,
            seekable,
            replace: false,
        });
        Ok(())
    }

    /// Checks that the connection may carry a last word: no file was introduced on it.
    pub(in super::super) fn only_leaves(&self) -> Result<(), ReceiveError> {
        match self.file {
            None => Ok(()),
            Some(_) => Err(ReceiveError::Sequence("leaves in the middle of its file")),
        }
    }

    /// The name of the file that was introduced.
    pub(in super::super) fn name(&self) -> Option<&str> {
        self.file.as_ref().map(|file| file.name.as_str())
    }

    /// Opens the place that the octets will go to.
    pub(in super::super) fn admit(
        &mut self,
        now: Instant,
        plan: &ReceivePlan,
        verified: &Verified,
    ) -> Result<(), ReceiveError> {
        let lossy = self.is_lossy();
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        self.sink = Some(match &plan.destination {
            FileDestination::Stdout(_) if lossy => {
                let why = "uses a mode that cannot fill a pipe in order";
                return Err(ReceiveError::Sequence(why));
            }
            FileDestination::Stdout(waker) => {
                let waker = waker.try_clone().map_err(ReceiveError::Pipe)?;
                Sink::Pipe {
                    pipe: PipeSink::new(std::io::stdout(), waker),
                    hasher: Box::default(),
                    written: 0,
                }
            }
            FileDestination::Directory { path, replace } => {
                file.replace = *replace;
                let target = path.join(&file.name);
                if !replace && target.symlink_metadata().is_ok() {
                    // Perhaps the file here is the same, and nothing need be sent.
                    let size = file.size.filter(|_| file.seekable && !lossy);
                    let present = size.and_then(|size| Present::open(now, &target, size, verified));
                    let present = present.ok_or(ReceiveError::Exists(target))?;
                    Sink::Present(Box::new(present))
                } else {
                    Sink::Part(Box::new(Part::open(path, &file.name, verified)?))
                }
            }
        });
        self.phase = Phase::Recovering;
        Ok(())
    }

    /// Waits for a sign of life of `rival`, which was sent a PING.
    pub(in super::super) fn contend(
        &mut self,
        now: Instant,
        rival: ConnectionId,
        rtt: Option<Duration>,
    ) {
        let patience = rtt.map_or(SIGN_OF_LIFE_MAX, |rtt| rtt * SIGN_OF_LIFE_RTTS);
        self.phase = Phase::Contending(Contest {
            rival,
            asked: now,
            until: now + patience.clamp(SIGN_OF_LIFE_MIN, SIGN_OF_LIFE_MAX),
        });
    }

    pub(in super::super) const fn contest(&self) -> Option<Contest> {
        match self.phase {
            Phase::Contending(contest) => Some(contest),
            _ => None,
        }
    }

    /// Asks the sender for a sign of life.
    pub(in super::super) fn ping(&mut self, now: Instant, machine: &mut AerotpEndpoint) {
        Record::Ping.encode(&mut self.outbox);
        self.pump(now, machine);
    }

    /// Whether the sender, which was sent a PING, lives; `None` while that is open.
    pub(in super::super) fn is_alive(
        &self,
        now: Instant,
        machine: &AerotpEndpoint,
        contest: &Contest,
    ) -> Option<bool> {
        if self.outbox.is_empty() && machine.is_settled(self.control) == Some(true) {
            return Some(true);
        }
        // Octets that it sent before it was killed have arrived by half time.
        let half = contest.until.saturating_since(contest.asked) / 2;
        (now >= contest.until).then(|| self.heard > contest.asked + half)
    }
}
