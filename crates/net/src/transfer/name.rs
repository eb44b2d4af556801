//! The names from the network that may become files here.
//!
//! # Promises
//! A safe name is one component: it names a file in the receiving directory and nothing else, on
//! Linux, macOS and Windows. It never hides, and never looks like one of our own working files.

use super::record::NAME_BYTES_MAX;

/// The end of the name of a file that is not complete.
pub(super) const PART_SUFFIX: &str = ".fulmar-part";
/// The end of the name of its state file.
pub(super) const STATE_SUFFIX: &str = ".fulmar-state";

/// Why a name is not used. The message names the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsafeName {
    /// Nothing, `.` or `..`.
    #[error("it names no file")]
    Nothing,
    /// It would leave the directory.
    #[error("it contains a path separator or a drive")]
    Separator,
    /// It would confuse terminals, or the file system.
    #[error("it contains a control character")]
    Control,
    /// It would be hidden.
    #[error("it starts with a dot or a blank, or ends with one")]
    Hidden,
    /// There is no room for our suffix.
    #[error("it is longer than {max} octets", max = NAME_BYTES_MAX - STATE_SUFFIX.len())]
    TooLong,
    /// It is the name of a working file of ours.
    #[error("it ends like a working file of fulmar")]
    Working,
}

/// Checks that `name` is safe.
///
/// # Errors
/// The rule that it breaks.
pub fn check_name(name: &str) -> Result<(), UnsafeName> {
    let edge = |c: Option<char>| matches!(c, Some('.' | ' '));
    if name.is_empty() || name == "." || name == ".." {
        Err(UnsafeName::Nothing)
    } else if name.contains(['/', '\\', ':']) {
        Err(UnsafeName::Separator)
    } else if name.chars().any(char::is_control) {
        Err(UnsafeName::Control)
    } else if edge(name.chars().next()) || edge(name.chars().next_back()) {
        Err(UnsafeName::Hidden)
    } else if name.len() > NAME_BYTES_MAX - STATE_SUFFIX.len() {
        Err(UnsafeName::TooLong)
    } else if name.contains(PART_SUFFIX) || name.contains(STATE_SUFFIX) {
        Err(UnsafeName::Working)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_names_pass() {
        for name in ["a", "report.pdf", "größe 2.bin", "x.tar.gz", "日本"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn names_that_leave_the_directory_or_deceive_do_not() {
        for (name, why) in [
            ("", UnsafeName::Nothing),
            ("..", UnsafeName::Nothing),
            ("../../etc/passwd", UnsafeName::Separator),
            ("/etc/passwd", UnsafeName::Separator),
            ("a/b", UnsafeName::Separator),
            ("..\\x", UnsafeName::Separator),
            ("c:x", UnsafeName::Separator),
            ("a\0b", UnsafeName::Control),
            ("a\u{1b}[2J", UnsafeName::Control),
            (".bashrc", UnsafeName::Hidden),
            ("a.", UnsafeName::Hidden),
            ("x.fulmar-part", UnsafeName::Working),
            ("x.fulmar-state", UnsafeName::Working),
        ] {
            assert_eq!(check_name(name), Err(why), "{name:?}");
        }
        let longest = NAME_BYTES_MAX - STATE_SUFFIX.len();
        assert_eq!(check_name(&"x".repeat(longest)), Ok(()));
        assert_eq!(
            check_name(&"x".repeat(longest + 1)),
            Err(UnsafeName::TooLong)
        );
    }
}
