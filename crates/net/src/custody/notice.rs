//! The words of a store to its operator, once each.

use super::directory::ASIDE;
use core::fmt;
use fulmar_proto::units::ByteCount;
use std::path::PathBuf;

/// A change of the store's state: one log line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreNotice {
    /// The limit is reached: clients wait.
    LimitReached {
        /// The store.
        directory: PathBuf,
        /// Its limit.
        limit: ByteCount,
    },
    /// The disk is full, or a quota is used up: clients wait.
    DiskFull {
        /// The store.
        directory: PathBuf,
        /// The system's reason.
        why: String,
    },
    /// There is room again.
    RoomAgain {
        /// The store.
        directory: PathBuf,
    },
    /// A damaged file of a flow was moved to the damaged ones.
    SetAside {
        /// The store.
        directory: PathBuf,
        /// The file, by its former name.
        file: String,
    },
    /// A damaged file of a flow could not be moved. It is left alone, and met again at the next start.
    NotSetAside {
        /// The store.
        directory: PathBuf,
        /// The file.
        file: String,
        /// The system's error message.
        why: String,
    },
    /// The oldest of the damaged files was removed: there are too many.
    GaveWay {
        /// The store.
        directory: PathBuf,
        /// The file.
        file: String,
    },
    /// The file that names the store's format was damaged, and was written anew.
    LineMended {
        /// The store.
        directory: PathBuf,
    },
    /// Octets could not be brought to the disk. Flows that wait for it cannot go on.
    SyncFailed {
        /// The store.
        directory: PathBuf,
        /// The system's reason.
        why: String,
    },
}

impl fmt::Display for StoreNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LimitReached { directory, limit } => write!(
                f,
                "custody store {} holds its limit of {limit}: clients wait until the destination has taken some",
                directory.display()
            ),
            Self::DiskFull { directory, why } => write!(
                f,
                "the disk of custody store {} is full ({why}): clients wait; free some space, and it goes on by itself",
                directory.display()
            ),
            Self::RoomAgain { directory } => {
                write!(f, "custody store {} has room again", directory.display())
            }
            Self::SetAside { directory, file } => write!(
                f,
                "custody store {}: the damaged file {file} is kept in {ASIDE}/, for you to look at and to remove",
                directory.display()
            ),
            Self::NotSetAside {
                directory,
                file,
                why,
            } => write!(
                f,
                "custody store {}: the damaged file {file} cannot be moved to {ASIDE}/ ({why}) and is left alone",
                directory.display()
            ),
            Self::GaveWay { directory, file } => write!(
                f,
                "custody store {}: {ASIDE}/ is full, and its oldest file {file} was removed; look at what is left there, and remove it",
                directory.display()
            ),
            Self::LineMended { directory } => write!(
                f,
                "custody store {}: its file `store` was damaged and is written anew; flows are not concerned",
                directory.display()
            ),
            Self::SyncFailed { directory, why } => write!(
                f,
                "custody store {} cannot bring octets to the disk ({why}): its flows end",
                directory.display()
            ),
        }
    }
}
