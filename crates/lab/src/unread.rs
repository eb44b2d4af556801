//! The reasons why a recording cannot be used.

use fulmar_trace::TraceError;

/// A recording that cannot be read, or that does not show what it was given for.
#[derive(Debug, thiserror::Error)]
pub enum UnreadRecording {
    /// It cannot be read.
    #[error("cannot read {name}: {error}")]
    Unreadable {
        /// The file as the user named it.
        name: String,
        /// The reason.
        #[source]
        error: std::io::Error,
    },
    /// It is of another kind than is wanted.
    #[error("{name}: {problem}")]
    Kind {
        /// The file as the user named it.
        name: String,
        /// The problem, and what would be right.
        problem: String,
    },
    /// Something in it is wrong.
    #[error(transparent)]
    Content(#[from] TraceError),
}
