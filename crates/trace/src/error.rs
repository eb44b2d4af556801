//! Errors in a recording, with their places.

use std::io;

/// A recording that cannot be used. Prints as one line: place, field, problem and remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A line of a table.
    #[error("{name}:{line}: `{field}`: {problem}")]
    Line {
        /// The file as the user named it.
        name: String,
        /// The line, from 1.
        line: u64,
        /// The column.
        field: String,
        /// The problem, and what would be right.
        problem: String,
    },
    /// A packet of a capture.
    #[error("{name}: packet {packet}: {problem}")]
    Packet {
        /// The file as the user named it.
        name: String,
        /// The packet, from 1; 0 is the head of the file.
        packet: u64,
        /// The problem, and what would be right.
        problem: String,
    },
    /// A sample of a recording that has no lines.
    #[error("{name}: sample {sample}: {problem}")]
    Sample {
        /// The file as the user named it.
        name: String,
        /// The sample, from 1.
        sample: u64,
        /// The problem, and what would be right.
        problem: String,
    },
    /// The recording as a whole.
    #[error("{name}: {problem}")]
    Whole {
        /// The file as the user named it.
        name: String,
        /// The problem, and what would be right.
        problem: String,
    },
    /// The recording could not be read.
    #[error("cannot read {name}: {source}")]
    Io {
        /// The file as the user named it.
        name: String,
        /// The system's error.
        source: io::Error,
    },
}
