//! The end of a command: one line on stderr and one documented exit code.
//!
//! Libraries return their own errors; a command adds what it was doing (`anyhow::Context`) and, where
//! 1 is not right, the exit code ([`OrExit::or_exit`]). Nothing else in the binary calls `exit`.

use std::process::ExitCode;

/// The exit codes of every `fulmar` command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// The run failed, or a stated goal was missed.
    Failed,
    /// A flag or a configuration file is wrong.
    Usage,
    /// The peer is unreachable or refused.
    Unreachable,
    /// The link was lost for longer than allowed.
    LinkLost,
    /// A permission is missing, or a device, port or file system refused.
    Device,
    /// SIGINT.
    Interrupted,
    /// SIGTERM.
    Terminated,
}

/// The same table as text for `--help`.
pub(crate) const EXIT_CODES: &str = "Exit codes: 0 done; 1 the run failed or a stated goal was \
missed; 2 usage or configuration; 3 peer unreachable or refused; 4 link lost for longer than \
allowed; 5 permission or device; 130 interrupted; 143 terminated.";

impl Exit {
    /// The number that the shell sees.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unreachable => 3,
            Self::LinkLost => 4,
            Self::Device => 5,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The reason why a command failed, and its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) cause: anyhow::Error,
}

impl Failure {
    /// The failure and its causes in one line; a cause that the line already has is not repeated.
    pub(crate) fn line(&self) -> String {
        let mut line = String::new();
        for cause in self.cause.chain().map(ToString::to_string) {
            if !line.contains(&cause) {
                let joint = if line.is_empty() { "" } else { ": " };
                line += joint;
                line += &cause;
            }
        }
        line
    }

    /// Puts the attempted action before the line.
    pub(crate) fn context(self, attempt: impl Into<String>) -> Self {
        Self {
            exit: self.exit,
            cause: self.cause.context(attempt.into()),
        }
    }
}

/// A failure without a code of its own is a failed run.
impl From<anyhow::Error> for Failure {
    fn from(cause: anyhow::Error) -> Self {
        Self {
            exit: Exit::Failed,
            cause,
        }
    }
}

/// Gives an error its exit code.
pub(crate) trait OrExit<T> {
    /// Replaces the default code 1 by `exit`.
    fn or_exit(self, exit: Exit) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> OrExit<T> for Result<T, E> {
    fn or_exit(self, exit: Exit) -> Result<T, Failure> {
        self.map_err(|cause| Failure {
            exit,
            cause: cause.into(),
        })
    }
}
