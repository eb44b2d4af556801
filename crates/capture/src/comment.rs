//! Remarks beside a packet: its fate, or the fault that was found in it.
//!
//! The first word of each remark is fixed, so that a display filter finds all of a kind
//! (`frame.comment contains "dropped"`). A packet to which nothing happened has no comment.

use core::fmt::Write as _;

/// Remarks on one packet, joined by semicolons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comment(String);

impl Comment {
    /// No remark.
    pub const NONE: Self = Self(String::new());

    fn remark(mut self, word: core::fmt::Arguments<'_>) -> Self {
        if !self.0.is_empty() {
            self.0.push_str("; ");
        }
        self.0
            .write_fmt(word)
            .expect("writing to a string does not fail");
        self
    }

    /// The packet went no further; `reason` is the name of the reason's counter.
    pub fn dropped(self, reason: &str) -> Self {
        self.remark(format_args!("dropped: {reason}"))
    }

    /// The receiver refused the packet as implausible; `reason` is the name of the reason's
    /// counter.
    pub fn refused(self, reason: &str) -> Self {
        self.remark(format_args!("refused: {reason}"))
    }

    /// So many bits of the packet were inverted; with none there is no remark.
    pub fn damaged(self, bits: usize) -> Self {
        match bits {
            0 => self,
            1 => self.remark(format_args!("damaged: 1 bit inverted")),
            bits => self.remark(format_args!("damaged: {bits} bits inverted")),
        }
    }

    /// The channel delivers the packet twice.
    pub fn duplicated(self) -> Self {
        self.remark(format_args!("duplicated"))
    }

    /// The packet is the second copy of two.
    pub fn duplicate(self) -> Self {
        self.remark(format_args!("duplicate"))
    }

    /// The queue marked the packet as having experienced congestion.
    pub fn marked(self) -> Self {
        self.remark(format_args!("marked"))
    }

    /// The peer of a gateway that the packet is from, or for.
    pub fn peer(self, name: &str) -> Self {
        self.remark(format_args!("peer {name}"))
    }

    /// The further path on which the packet leaves, or came; the first is not remarked on.
    pub fn path(self, place: u8) -> Self {
        match place {
            0 => self,
            place => self.remark(format_args!("path {place}")),
        }
    }

    /// The text; empty if there is no remark.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_are_joined_and_nothing_is_said_of_no_damage() {
        assert_eq!(Comment::NONE.damaged(0).as_str(), "");
        assert_eq!(Comment::NONE.damaged(1).as_str(), "damaged: 1 bit inverted");
        assert_eq!(Comment::NONE.peer("air").path(0).as_str(), "peer air");
        let further = Comment::NONE.peer("air").path(2);
        assert_eq!(further.as_str(), "peer air; path 2");
        let all = Comment::NONE.damaged(3).duplicated().marked();
        assert_eq!(all.as_str(), "damaged: 3 bits inverted; duplicated; marked");
    }
}
