//! The settings of a receiving directory, and the news about its files.

use super::counters::{CounterFile, CounterFileError};
use super::receiver::OneWayReturn;
use super::report::OneWayReport;
use super::wire::Announcement;
use crate::session::PresetKey;
use fulmar_proto::units::Duration;
use std::io;
use std::path::PathBuf;

/// The settings of a receiving directory.
#[derive(Debug)]
pub struct OneWayReceivePlan {
    /// The directory for the files.
    pub directory: PathBuf,
    /// The key.
    pub preset: PresetKey,
    /// Whether existing files are replaced.
    pub replace: bool,
    /// Whether to stop after one file.
    pub once: bool,
    /// The interval at which symbols are synced.
    pub checkpoint_every: Duration,
    /// The silence after which a file's sender counts as gone.
    pub give_up: Duration,
    /// The thin way back, if there is one.
    pub returns: Option<ThinReturnPlan>,
}

/// A receiver's thin way back, with the numbers of the datagrams that it sends there.
#[derive(Debug)]
pub struct ThinReturnPlan {
    /// The way.
    pub way: OneWayReturn,
    /// The numbers.
    pub counters: CounterFile,
}

/// The state of a file's reception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OneWayVerdict {
    /// The file is here, verified.
    Whole,
    /// The file was here before.
    Present,
    /// Its sender is done, and symbols are missing.
    Missing,
    /// Its sender was not heard for long, and symbols are missing.
    Silent,
    /// The receiver was stopped, and symbols are missing.
    Stopped,
    /// Another file of that name is here, or the name cannot be used.
    Refused,
    /// The symbols gave other octets than the sender said.
    Corrupt,
}

/// News for whoever watches a receiver.
#[derive(Debug)]
pub enum OneWayNews {
    /// A file is announced.
    Announced(Announcement),
    /// A file of an earlier start is gone on with: its name, and the symbols that it needs.
    Resumed(Announcement, u64),
    /// The reception of a file stands so; it may go on.
    File {
        /// The verdict.
        verdict: OneWayVerdict,
        /// The report.
        report: Box<OneWayReport>,
        /// The file, if it is here.
        path: Option<PathBuf>,
        /// The report's file, if it could be written.
        report_path: Option<PathBuf>,
    },
    /// Symbols could not be kept.
    Storage(PathBuf, io::Error),
    /// A report could not be written.
    NoReport(PathBuf, io::Error),
    /// Symbols of a file that were kept cannot be read any more. So many are needed again.
    Damaged(Announcement, u64),
    /// A file made room for another one. Its symbols stay on the disk until it is announced again.
    SetAside(Announcement),
    /// Datagrams came that no key of ours opens, so many by now.
    OtherKey(u64),
    /// No numbers for requests can be had: nothing is asked for. More are tried at each invitation.
    NoRequests(CounterFileError),
    /// A start of a sender that was never heard uses numbers that were heard before: a recording, or a sender whose numbers went back.
    WentBack,
}
