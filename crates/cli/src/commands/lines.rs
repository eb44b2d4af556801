//! Lines of styled text for a terminal: cut where it ends, or broken between words.
//!
//! # Promises
//! - Nothing that a gateway or a peer says reaches the terminal as a control sequence.
//! - No line is longer than the terminal is wide.

use std::env;
use std::io::{self, IsTerminal};

/// The columns between two columns of text, and before a line that goes on.
pub(super) const GAP: usize = 2;

/// Whether styles are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paint {
    Colours,
    Plain,
}

impl Paint {
    /// Colours on a terminal whose user has not declined them (no-color.org).
    pub(super) fn of_stdout() -> Self {
        let declined = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        if io::stdout().is_terminal() && !declined && !is_dumb {
            Self::Colours
        } else {
            Self::Plain
        }
    }
}

/// The style of a piece of text (ECMA-48, SGR).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Usual,
    Strong,
    Quiet,
    Good,
    Bad,
    Doubtful,
}

impl Style {
    const fn code(self) -> Option<&'static str> {
        match self {
            Self::Usual => None,
            Self::Strong => Some("1"),
            Self::Quiet => Some("2"),
            Self::Good => Some("1;32"),
            Self::Bad => Some("1;31"),
            Self::Doubtful => Some("1;33"),
        }
    }
}

/// A line in the making.
pub(super) struct Line {
    text: String,
    pub(super) columns: usize,
    width: usize,
    paint: Paint,
}

impl Line {
    pub(super) fn new(width: usize, paint: Paint) -> Self {
        Self {
            text: String::new(),
            columns: 0,
            width,
            paint,
        }
    }

    /// Adds text, cut where the line ends.
    pub(super) fn add(mut self, style: Style, text: &str) -> Self {
        let room = self.width - self.columns;
        let readable = |c: char| if c.is_control() { '?' } else { c };
        let mut cut: String = text.chars().map(readable).take(room).collect();
        let len = cut.chars().count();
        if len < text.chars().count() && len > 0 {
            cut.pop();
            cut.push('…');
        }
        self.columns += len;
        match style.code().filter(|_| self.paint == Paint::Colours) {
            Some(code) => {
                self.text.push_str("\x1b[");
                self.text.push_str(code);
                self.text.push('m');
                self.text.push_str(&cut);
                self.text.push_str("\x1b[0m");
            }
            None => self.text.push_str(&cut),
        }
        self
    }

    /// Goes to a column.
    pub(super) fn to(mut self, column: usize) -> Self {
        while self.columns < column.min(self.width) {
            self.text.push(' ');
            self.columns += 1;
        }
        self
    }

    pub(super) fn done(self) -> String {
        self.text.trim_end_matches(' ').to_owned()
    }
}

/// A text as lines that are broken between words: so much of it as fits `room`, and the further lines, which begin at [`GAP`].
/// A word that is longer than a line is left to be cut.
pub(super) fn wrapped(text: &str, room: usize, width: usize) -> (String, Vec<String>) {
    let mut lines = vec![String::new()];
    let (mut room, further) = (room, width.saturating_sub(GAP));
    let mut used = 0;
    for word in text.split_whitespace() {
        let len = word.chars().count();
        let gap = usize::from(used > 0);
        let is_full = used + gap + len > room;
        if is_full && (used > 0 || lines.len() == 1) && len <= further {
            lines.push(String::new());
            (room, used) = (further, 0);
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += len;
        }
    }
    let mut lines = lines.into_iter();
    (lines.next().unwrap_or_default(), lines.collect())
}

/// A time since the gateway's start, so that no clock of ours is needed.
pub(super) fn after(seconds: f64) -> String {
    let whole = seconds.clamp(0.0, 1e12).round();
    let (hours, rest) = ((whole / 3_600.0).floor(), whole % 3_600.0);
    format!(
        "{hours:.0}:{:02.0}:{:02.0}",
        (rest / 60.0).floor(),
        rest % 60.0
    )
}

/// A line's text without its styles. Panics at any other control character.
#[cfg(test)]
pub(super) fn visible_text(line: &str) -> String {
    let mut pieces = line.split("\x1b[");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (code, rest) = piece.split_once('m').expect("only SGR");
        assert!(
            code.chars().all(|c| c.is_ascii_digit() || c == ';'),
            "{code}"
        );
        text.push_str(rest);
    }
    assert!(!text.chars().any(char::is_control), "{text:?}");
    text
}
