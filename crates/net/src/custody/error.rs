//! The faults of a store, and of one flow in it.

use std::io;
use std::path::PathBuf;

/// Why a store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process has it.
    #[error(
        "custody store {0} is in use by another process; stop that gateway, or give each gateway a directory of its own"
    )]
    InUse(PathBuf),
    /// It was written by another version.
    #[error(
        "custody store {path} has format {found}, and this fulmar reads format {supported}; drain it with the fulmar that wrote it, or use another directory"
    )]
    Version {
        /// The file that names the format.
        path: PathBuf,
        /// The format found.
        found: String,
        /// The format that can be read.
        supported: u16,
    },
    /// The directory holds something else.
    #[error(
        "{0} is no custody store: it is not empty and has no file `store`; use another directory"
    )]
    NotAStore(PathBuf),
    /// Others may have written what is in it.
    #[error("custody store: {} {problem}", .path.display())]
    Untrusted {
        /// The file or directory.
        path: PathBuf,
        /// The problem with it, and the remedy.
        problem: String,
    },
    /// The system refuses.
    #[error("custody store: cannot {what} {path}: {source}")]
    Io {
        /// The attempt.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl StoreError {
    pub(super) fn io(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}

/// Why a flow's octets cannot be kept, or not be given back. The flow cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum FlowFault {
    /// The system refuses, and not for lack of space.
    #[error("custody store: cannot {what}: {source}")]
    Io {
        /// The attempt.
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The octets on disk are not those that were written.
    #[error("custody store: octets after offset {offset} are damaged")]
    Damaged {
        /// The first octet that cannot be vouched for.
        offset: u64,
    },
    /// The flow said that nothing follows.
    #[error("custody store: the flow ended at offset {0}, and takes no more")]
    Finished(u64),
    /// The offset was released, or was never reached.
    #[error("custody store: offset {0} is not kept")]
    NotKept(u64),
}

impl FlowFault {
    pub(super) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}

impl From<FlowFault> for io::Error {
    fn from(fault: FlowFault) -> Self {
        Self::other(fault)
    }
}
