//! The keys that a user presses while the screen is shown.

use super::tabs::Tab;
use rustix::io::{Errno, read};
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, isatty, tcgetattr, tcgetpgrp, tcsetattr,
};
use std::io::{Stdin, stdin};
use std::os::fd::{AsFd, BorrowedFd};

/// The wish behind a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    /// The command ends.
    Quit,
    Line(Direction),
    Page(Direction),
    /// The first or the last lines.
    End(Direction),
    /// This table.
    Tab(Tab),
    /// The table beside the one that is shown.
    NextTab(Direction),
    /// Another column to sort by.
    Sort,
    /// The other way round.
    Reverse,
    Help,
}

/// The direction in which the picture is read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Back,
    On,
}

/// The longest input that is read at once; somebody who pastes more is not obeyed to the end.
const INPUT_BYTES: usize = 256;

/// Whether the shell has put this program in the background of `terminal`: whoever reads or sets a terminal from there is
/// stopped. A terminal that is not the session's own has no background.
pub(super) fn is_in_background(terminal: impl AsFd) -> bool {
    tcgetpgrp(terminal).is_ok_and(|front| front != getpgrp())
}

/// The terminal's keyboard, whose keys come one by one and are not shown. It is as it was when this is dropped.
pub(super) struct Keyboard {
    stdin: Stdin,
    before: Option<Termios>,
    is_gone: bool,
}

impl Keyboard {
    /// Takes the keyboard; without one there are no keys. In the background it is nobody's to take.
    pub(super) fn take() -> Self {
        let stdin = stdin();
        let may_take = isatty(&stdin) && !is_in_background(&stdin);
        let before = may_take.then(|| tcgetattr(&stdin).ok()).flatten();
        let before = before.filter(|before| {
            let mut keys = before.clone();
            keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
            // A read returns at once, also if there is nothing.
            keys.special_codes[SpecialCodeIndex::VMIN] = 0;
            keys.special_codes[SpecialCodeIndex::VTIME] = 0;
            tcsetattr(&stdin, OptionalActions::Now, &keys).is_ok()
        });
        Self {
            stdin,
            before,
            is_gone: false,
        }
    }

    /// The descriptor to wait at, if keys can come.
    pub(super) fn readable(&self) -> Option<BorrowedFd<'_>> {
        let is_there = self.before.is_some() && !self.is_gone;
        (is_there && !is_in_background(&self.stdin)).then(|| self.stdin.as_fd())
    }

    /// The keys that were pressed, once the descriptor is ready.
    pub(super) fn pressed(&mut self) -> Vec<Pressed> {
        let mut input = [0; INPUT_BYTES];
        match read(&self.stdin, &mut input) {
            Ok(0) | Err(Errno::IO) => {
                // The terminal is gone, and would be ready for ever.
                self.is_gone = true;
                Vec::new()
            }
            Ok(len) => meant(&input[..len]),
            Err(_) => Vec::new(),
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        // In the background the terminal is its shell's, which has put it in order.
        if let Some(before) = &self.before
            && !is_in_background(&self.stdin)
        {
            // There is nobody left to tell of an error.
            let _restored = tcsetattr(&self.stdin, OptionalActions::Now, before);
        }
    }
}

/// The wishes behind octets of a keyboard (xterm's control sequences, `ctlseqs`).
fn meant(mut input: &[u8]) -> Vec<Pressed> {
    const KEYS: [(&[u8], Pressed); 35] = [
        (b"\x1b[A", Pressed::Line(Direction::Back)),
        (b"\x1bOA", Pressed::Line(Direction::Back)),
        (b"\x1b[B", Pressed::Line(Direction::On)),
        (b"\x1bOB", Pressed::Line(Direction::On)),
        (b"\x1b[5~", Pressed::Page(Direction::Back)),
        (b"\x1b[6~", Pressed::Page(Direction::On)),
        (b"\x1b[H", Pressed::End(Direction::Back)),
        (b"\x1bOH", Pressed::End(Direction::Back)),
        (b"\x1b[1~", Pressed::End(Direction::Back)),
        (b"\x1b[F", Pressed::End(Direction::On)),
        (b"\x1bOF", Pressed::End(Direction::On)),
        (b"\x1b[4~", Pressed::End(Direction::On)),
        (b"k", Pressed::Line(Direction::Back)),
        (b"j", Pressed::Line(Direction::On)),
        (b"\r", Pressed::Line(Direction::On)),
        (b"b", Pressed::Page(Direction::Back)),
        (b" ", Pressed::Page(Direction::On)),
        (b"g", Pressed::End(Direction::Back)),
        (b"G", Pressed::End(Direction::On)),
        (b"\x1b[C", Pressed::NextTab(Direction::On)),
        (b"\x1bOC", Pressed::NextTab(Direction::On)),
        (b"\x1b[D", Pressed::NextTab(Direction::Back)),
        (b"\x1bOD", Pressed::NextTab(Direction::Back)),
        (b"\t", Pressed::NextTab(Direction::On)),
        (b"\x1b[Z", Pressed::NextTab(Direction::Back)),
        (b"1", Pressed::Tab(Tab::Links)),
        (b"2", Pressed::Tab(Tab::Flows)),
        (b"3", Pressed::Tab(Tab::Figures)),
        (b"4", Pressed::Tab(Tab::Decisions)),
        (b"s", Pressed::Sort),
        (b"r", Pressed::Reverse),
        (b"?", Pressed::Help),
        (b"h", Pressed::Help),
        (b"q", Pressed::Quit),
        (b"Q", Pressed::Quit),
    ];
    let mut all = Vec::new();
    while !input.is_empty() {
        let key = KEYS.iter().find(|(octets, _)| input.starts_with(octets));
        if let Some((octets, pressed)) = key {
            all.push(*pressed);
            input = &input[octets.len()..];
        } else if let Some(rest) = input.strip_prefix(b"\x1b[") {
            // Another key's sequence ends with the first octet above the digits (ECMA-48, section 5.4).
            let end = rest.iter().position(|octet| (0x40..=0x7e).contains(octet));
            input = &rest[end.map_or(rest.len(), |end| end + 1)..];
        } else {
            // A key with Alt is an escape before the key's octet; a key of the keypad has an `O` between.
            let len = match input {
                [0x1b, b'O', ..] => 3,
                [0x1b, ..] => 2,
                _ => 1,
            };
            input = &input[len.min(input.len())..];
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_means_one_thing_and_others_mean_nothing() {
        use Direction::{Back, On};
        for (input, wished) in [
            (&b"q"[..], vec![Pressed::Quit]),
            (
                b"\x1b[B\x1b[B\x1b[A",
                vec![Pressed::Line(On), Pressed::Line(On), Pressed::Line(Back)],
            ),
            (b" \x1b[5~", vec![Pressed::Page(On), Pressed::Page(Back)]),
            (
                b"\t3sr?",
                vec![
                    Pressed::NextTab(On),
                    Pressed::Tab(Tab::Figures),
                    Pressed::Sort,
                    Pressed::Reverse,
                    Pressed::Help,
                ],
            ),
            (
                b"\x1b[C\x1b[Z",
                vec![Pressed::NextTab(On), Pressed::NextTab(Back)],
            ),
            (b"Gg", vec![Pressed::End(On), Pressed::End(Back)]),
            // F5, Shift and an arrow; and a key cut short.
            (b"\x1b[15~\x1b[1;2Bx", vec![]),
            // Alt and q, F1, and an escape by itself.
            (b"\x1bqj", vec![Pressed::Line(On)]),
            (b"\x1bOPj", vec![Pressed::Line(On)]),
            (b"\x1b", vec![]),
            (b"\x1b[", vec![]),
        ] {
            assert_eq!(meant(input), wished, "{input:?}");
        }
    }
}
