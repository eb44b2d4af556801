//! The words of a source in one turn.

use fulmar_proto::told::LinkNews;
use fulmar_proto::units::Duration;

/// The last word of a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LinkWord {
    /// A message, and how long it holds if it says so.
    News(LinkNews, Option<Duration>),
    /// The source is gone: nothing is known any more.
    Gone,
}

/// The words of a source in one turn.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// The last word: each is whole.
    pub(super) word: Option<LinkWord>,
    pub(super) messages: u64,
    pub(super) wrong: u64,
    /// The first fault of what came, in words.
    pub(super) fault: Option<String>,
}
