//! The outcome of a transfer.

use super::part::StorageError;
use super::record::{BadRecord, TransferRefusal};
use fulmar_proto::transport::aerotp::{ConnectError, Counters, PathRate};
use fulmar_proto::units::Duration;
use fulmar_proto::wire::Mode;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

/// The sender's knowledge at the end.
#[derive(Clone, Debug)]
pub struct SendReport {
    /// The mode.
    pub mode: Mode,
    /// Octets of the file.
    pub size: u64,
    /// Octets of them that the receiver had when the last connection began.
    pub resumed_at: u64,
    /// Octets of them that the receiver had before the transfer began: `elapsed` is the time of the others.
    pub present_before: u64,
    /// Octets of them that the receiver has.
    pub delivered: u64,
    /// Octets of them that the receiver lacks.
    pub missing: u64,
    /// Whether its file has the right BLAKE3 digest.
    pub intact: bool,
    /// The time from the first octet handed to the transport to the receiver's verdict.
    pub elapsed: Duration,
    /// The counters of the connection with the octets.
    pub counters: Counters,
    /// The rate of the path at the end, and its reason.
    pub path_rate: Option<PathRate>,
    /// The times that the connection had to be opened again.
    pub reconnections: u32,
}

/// The sender's knowledge of a transfer that failed. It does not know how much the receiver has.
#[derive(Clone, Copy, Debug)]
pub struct SentSoFar {
    /// Octets of the file, where known.
    pub size: Option<u64>,
    /// Octets of them that the receiver had before.
    pub resumed_at: u64,
    /// Octets of them that were handed to the transport, those that the receiver had before included.
    pub submitted: u64,
    /// Octets of these that were confirmed or, in modes that confirm nothing, sent.
    pub confirmed: u64,
    /// The counters of the last connection with the octets, if there was one.
    pub counters: Option<Counters>,
    /// The times that the connection had to be opened again.
    pub reconnections: u32,
}

/// A transfer that failed at the sender: the receiver's file is not whole, or nothing is known of it.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// Nobody answers.
    #[error(
        "nobody answers: silence for {}; the likely causes: another address or port than `fulmar recv` has, \
         something on the way that drops UDP, or keys (--key, --preset) at one end only",
        fulmar_proto::units::format_duration(*.0)
    )]
    Unreachable(Duration),
    /// The network says that nobody listens.
    #[error(
        "nobody answers: the port is closed or the host out of reach; start `fulmar recv DIR` there, \
         or check the address"
    )]
    PortClosed,
    /// The receiver was there, and every further connection ends without progress.
    #[error("the receiver ended every connection for {}", fulmar_proto::units::format_duration(*.0))]
    Unsteady(Duration),
    /// The receiver was told to stop.
    #[error("the receiver was stopped")]
    ReceiverStopped,
    /// The receiver has forgotten the transfer, and a pipe cannot be read again.
    #[error("the receiver was restarted, and a pipe cannot be sent again from its start")]
    Unrepeatable,
    /// The receiver was there and is gone.
    #[error("the receiver was not heard for {}", fulmar_proto::units::format_duration(*.0))]
    Vanished(Duration),
    /// The receiver does not want the file, or cannot take it.
    #[error("the receiver refuses: {text}")]
    Refused {
        /// The class of the reason.
        reason: TransferRefusal,
        /// The reason, in the receiver's words.
        text: String,
    },
    /// The file cannot be read to its end.
    #[error("reading the file")]
    Read(#[source] io::Error),
    /// The file was written to meanwhile: the octets sent are neither the old nor the new file.
    #[error(
        "the file was changed while it was sent; send it again, or send one that grows through a pipe \
         (`fulmar send -`)"
    )]
    Changed,
    /// The settings cannot work.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The peer does not speak our protocol.
    #[error("the receiver sent {0}")]
    Protocol(#[from] BadRecord),
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
}

/// The outcome for a received file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferVerdict {
    /// Every octet is there and the digest is right.
    Complete,
    /// Octets are missing, in a mode that may lose some.
    Incomplete,
    /// All octets are there, but not the right ones.
    Corrupt,
    /// The sender gave up, was stopped or started anew.
    Abandoned,
    /// The sender was not heard for too long.
    Vanished,
    /// This side was told to stop.
    Stopped,
    /// This side could not go on.
    Failed,
}

/// The receiver's knowledge of one file at the end.
#[derive(Debug)]
pub struct ReceiveReport {
    /// The outcome.
    pub verdict: TransferVerdict,
    /// The name that the sender gave, safe to print.
    pub name: String,
    /// The mode.
    pub mode: Mode,
    /// Where the octets are; `None` for stdout, or if nothing was kept.
    pub path: Option<PathBuf>,
    /// Octets of the file, where known.
    pub size: Option<u64>,
    /// Octets of it that were here before.
    pub resumed_at: u64,
    /// Octets of it that are here.
    pub delivered: u64,
    /// Octets of it that are missing, where known.
    pub missing: Option<u64>,
    /// The first of the missing ranges; `None` for a transfer that was cut off.
    pub missing_ranges: Option<Vec<Range<u64>>>,
    /// The number of all missing ranges; `None` for a transfer that was cut off.
    pub missing_range_count: Option<u64>,
    /// The time from the sender's first record to the verdict.
    pub elapsed: Duration,
    /// The counters of the connection with the octets; `None` if there was none, as for datagrams.
    pub counters: Option<Counters>,
    /// The fault here, for [`TransferVerdict::Failed`].
    pub error: Option<ReceiveError>,
}

/// The reason why this side could not go on.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The disk.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The pipe behind stdout.
    #[error("writing to stdout")]
    Pipe(#[source] io::Error),
    /// The name cannot be used here.
    #[error("the name {name:?} is not used: {why}")]
    Name {
        /// The name.
        name: String,
        /// The rule it breaks.
        why: super::name::UnsafeName,
    },
    /// Another sender, which is still there, is sending this file.
    #[error("another sender is sending {0:?} right now; wait for it, or give another --name")]
    Busy(String),
    /// Another sender took over from this one, which did not answer.
    #[error("another sender took {0:?} over")]
    TakenOver(String),
    /// The caller asked to stop.
    #[error("the receiver was stopped")]
    Stopped,
    /// A file of that name exists.
    #[error("{} exists; --force replaces it", .0.display())]
    Exists(PathBuf),
    /// The peer does not speak our protocol.
    #[error("the sender sent {0}")]
    Protocol(#[from] BadRecord),
    /// The peer sends a record that makes no sense at this point.
    #[error("the sender {0}")]
    Sequence(&'static str),
}

impl ReceiveError {
    /// The words for the sender: what and why, but not where on our disk.
    pub(super) fn for_the_sender(&self) -> String {
        match self {
            Self::Storage(error) => format!("{} the file there: {}", error.attempt, error.source),
            Self::Pipe(error) => format!("writing to its stdout: {error}"),
            Self::Exists(path) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                format!("{name} exists there; `recv --force` replaces it")
            }
            Self::Name { .. }
            | Self::Busy(_)
            | Self::TakenOver(_)
            | Self::Stopped
            | Self::Protocol(_)
            | Self::Sequence(_) => self.to_string(),
        }
    }

    /// The class told to the sender.
    pub(super) const fn reason(&self) -> TransferRefusal {
        match self {
            Self::Storage(_) | Self::Pipe(_) => TransferRefusal::Storage,
            Self::Name { .. } => TransferRefusal::Name,
            Self::Exists(_) => TransferRefusal::Exists,
            Self::Busy(_) | Self::TakenOver(_) => TransferRefusal::Busy,
            Self::Stopped => TransferRefusal::Stopped,
            Self::Protocol(_) | Self::Sequence(_) => TransferRefusal::Protocol,
        }
    }
}
