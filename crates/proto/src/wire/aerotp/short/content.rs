//! The content of a datagram: frames, one behind the other.

use super::name::{Name, Named, OPENED};
use crate::wire::varint;

/// The bit of a type that says that another frame follows.
const MORE: u8 = 0x80;
/// The first type that cannot have MORE: data fill the rest.
const DATA_FIRST: u8 = 0x40;

/// Octets before a TPDU in the long form: the type.
pub const LONG_TYPE_BYTES: usize = 1;

/// The most frames in a datagram.
pub const FRAMES_MAX: u8 = 16;

pub(super) const LONG: u8 = 0x00;
pub(super) const MACK: u8 = 0x20;
pub(super) const NACK: u8 = 0x21;
pub(super) const UNKNOWN_NAME: u8 = 0x22;
/// The first of two types: the other has [`REPAIR_OPENED`].
pub(super) const REPAIR: u8 = 0x30;
pub(super) const REPAIR_OPENED: u8 = 0x01;
/// The same for repair symbols over a window.
pub(super) const WINDOW: u8 = 0x32;
pub(super) const DATA: u8 = 0x40;
/// The bits of a type of data: O, T, P, U, then one that is zero.
pub(super) const DATA_OPENED: u8 = 0x10;
pub(super) const DATA_TIME: u8 = 0x08;
pub(super) const DATA_PSH: u8 = 0x04;
pub(super) const DATA_URG: u8 = 0x02;

pub(super) const FULL: u8 = 0x60;
/// The bits of a type of data in full: A, T, three of the mode.
pub(super) const FULL_ASYN: u8 = 0x10;
pub(super) const FULL_TIME: u8 = 0x08;
pub(super) const FULL_MODE: u8 = 0x07;

/// What arrived on a path: the session's.
const PATH_ACK: u8 = 0x10;
const FURTHER_PARITY: u8 = 0x14;
const DAMAGE_REPORT: u8 = 0x16;
const ARRIVAL_MAP: u8 = 0x18;
const MEET: u8 = 0x1A;
const MET: u8 = 0x1C;
const RELAYED: u8 = 0x1E;

/// Whether a frame of this type is a repair symbol, of a block or over a window.
const fn is_repair(code: u8) -> bool {
    let kind = code & !REPAIR_OPENED;
    kind == REPAIR || kind == WINDOW
}

/// The frames that this version knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameKind {
    /// A TPDU in the long form (0x00).
    Long,
    /// One of the session's own (0x01 to 0x06, 0x10, 0x14, 0x16, 0x18).
    Session,
    /// Octets without a meaning (0x07).
    Padding,
    /// A cumulative MACK (0x20).
    Mack,
    /// A NACK (0x21).
    Nack,
    /// The sender has no connection of this name (0x22).
    UnknownName,
    /// A repair symbol of a block (0x30, 0x31).
    Repair,
    /// A repair symbol over a window (0x32, 0x33).
    Window,
    /// Data under a name (even types from 0x40 to 0x5E).
    Data,
    /// Data with the ports in full (0x60 to 0x7F).
    Full,
}

/// One frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    code: u8,
    fields: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The type: 0 to 0x7F, or the octet of an unknown one from 0xC0 on, for which MORE has no meaning.
    pub const fn code(&self) -> u8 {
        self.code
    }

    /// The octets behind the type.
    pub const fn fields(&self) -> &'a [u8] {
        self.fields
    }

    /// The kind of frame; `None` if this version does not know the type. Such a frame is counted and left out.
    pub const fn kind(&self) -> Option<FrameKind> {
        Some(match self.code {
            LONG => FrameKind::Long,
            0x01..=0x06
            | PATH_ACK
            | FURTHER_PARITY
            | DAMAGE_REPORT
            | ARRIVAL_MAP
            | MEET
            | MET
            | RELAYED => FrameKind::Session,
            0x07 => FrameKind::Padding,
            MACK => FrameKind::Mack,
            NACK => FrameKind::Nack,
            UNKNOWN_NAME => FrameKind::UnknownName,
            code if code & !REPAIR_OPENED == WINDOW => FrameKind::Window,
            code if is_repair(code) => FrameKind::Repair,
            0x40..=0x5F if self.code & 1 == 0 => FrameKind::Data,
            0x60..=0x7F => FrameKind::Full,
            _ => return None,
        })
    }

    /// The name in the frame; `None` if its kind has none, or it is cut off.
    pub fn named(&self) -> Option<Named> {
        let flagged = |at: &'a [u8]| {
            at.split_first()
                .map(|(flags, at)| (flags & OPENED != 0, at))
        };
        let (sender_opened, at) = match self.kind()? {
            FrameKind::Mack | FrameKind::Nack | FrameKind::UnknownName => flagged(self.fields)?,
            FrameKind::Repair | FrameKind::Window => (self.code & REPAIR_OPENED != 0, self.fields),
            FrameKind::Data => (self.code & DATA_OPENED != 0, self.fields),
            FrameKind::Long | FrameKind::Session | FrameKind::Padding | FrameKind::Full => {
                return None;
            }
        };
        let name = Name(u16::from_be_bytes(*at.first_chunk()?));
        Some(Named {
            name,
            sender_opened,
        })
    }
}

/// The reason why the frames of a datagram end early. Those before it are sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FrameError {
    /// A frame is announced and not there in full.
    #[error("a frame is cut off")]
    Truncated,
    /// There are more than [`FRAMES_MAX`].
    #[error("more than {FRAMES_MAX} frames")]
    TooMany,
    /// A frame of the type of a repair symbol announces another behind it.
    #[error("a repair symbol is not the last frame")]
    RepairNotLast,
}

/// The frames of a datagram, in the order sent: at most [`FRAMES_MAX`], then perhaps one error.
#[derive(Clone, Debug)]
pub struct Content<'a> {
    /// The octets behind the frame before; `None` once the last was given.
    rest: Option<&'a [u8]>,
    left: u8,
}

impl<'a> Content<'a> {
    /// The frames in `octets`, which are all that was sealed.
    pub const fn of(octets: &'a [u8]) -> Self {
        Self {
            rest: Some(octets),
            left: FRAMES_MAX,
        }
    }

    fn take(&mut self, octets: &'a [u8]) -> Result<Frame<'a>, FrameError> {
        let (&first, rest) = octets.split_first().ok_or(FrameError::Truncated)?;
        self.left = self.left.checked_sub(1).ok_or(FrameError::TooMany)?;
        let code = first & !MORE;
        if code == first || code >= DATA_FIRST {
            return Ok(Frame {
                code: first,
                fields: rest,
            });
        }
        if is_repair(code) {
            return Err(FrameError::RepairNotLast);
        }
        let split = varint::read(rest).and_then(|(bytes, rest)| {
            let bytes = usize::try_from(bytes).ok()?;
            rest.split_at_checked(bytes)
        });
        let (fields, rest) = split.ok_or(FrameError::Truncated)?;
        self.rest = Some(rest);
        Ok(Frame { code, fields })
    }
}

impl<'a> Iterator for Content<'a> {
    type Item = Result<Frame<'a>, FrameError>;

    fn next(&mut self) -> Option<Self::Item> {
        let octets = self.rest.take()?;
        Some(self.take(octets))
    }
}

/// Appends the type of a frame with a TPDU in the long form, which the caller appends.
pub fn begin_long(out: &mut Vec<u8>) {
    out.push(LONG);
}

/// Appends `frame`, which was written as a last one, so that another must follow.
///
/// # Panics
/// `frame` is empty, or of a type that is always the last of a datagram: a repair symbol, or 0x40 and above.
pub fn write_followed(frame: &[u8], out: &mut Vec<u8>) {
    let (&code, fields) = frame.split_first().expect("a frame has a type");
    assert!(
        code < DATA_FIRST && !is_repair(code),
        "nothing follows a frame of type {code:#x}"
    );
    out.push(code | MORE);
    varint::write(fields.len() as u64, out);
    out.extend_from_slice(fields);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn frames_are_announced_in_full_or_not_at_all() {
        let errors =
            |octets: &[u8]| -> Vec<_> { Content::of(octets).filter_map(Result::err).collect() };
        assert_eq!(errors(&[]), [FrameError::Truncated]);
        assert_eq!(errors(&[0x81]), [FrameError::Truncated], "no length");
        assert_eq!(
            errors(&[0x81, 0x40]),
            [FrameError::Truncated],
            "half a length"
        );
        assert_eq!(
            errors(&[0x81, 0x02, 0]),
            [FrameError::Truncated],
            "too long"
        );
        assert_eq!(
            errors(&[0x81, 0xFF, 0, 0, 0, 0, 0, 0, 0]),
            [FrameError::Truncated]
        );
        assert_eq!(
            errors(&[0x81, 0x01, 0]),
            [FrameError::Truncated],
            "nothing follows"
        );
        assert_eq!(errors(&[0x81, 0x01, 0, 0x07]), []);
        // The frames before are there.
        let frames: Vec<_> = Content::of(&[0x88, 0x01, 9, 0x81, 0x02]).collect();
        assert_eq!((frames.len(), frames[0].unwrap().code()), (2, 0x08));
        let sixteen = [&[0x87, 0x00].repeat(15)[..], &[0x07]].concat();
        assert_eq!(
            (Content::of(&sixteen).count(), errors(&sixteen)),
            (16, vec![])
        );
        let more = [&[0x87, 0x00].repeat(16)[..], &[0x07]].concat();
        assert_eq!(
            (Content::of(&more).count(), errors(&more)),
            (17, vec![FrameError::TooMany])
        );
    }

    #[test]
    fn a_repair_symbol_is_the_last_frame_or_refused() {
        for (code, kind) in [
            (0x30, FrameKind::Repair),
            (0x31, FrameKind::Repair),
            (0x32, FrameKind::Window),
            (0x33, FrameKind::Window),
        ] {
            let last = [0x87, 0x01, 9, code, 0x01, 2, 3, 0x07];
            let frames: Vec<_> = Content::of(&last).map(Result::unwrap).collect();
            assert_eq!(frames[1].kind(), Some(kind));
            assert_eq!((frames.len(), frames[1].fields()), (2, &last[4..]));
            // The same with MORE: the frame before is sound, and nothing from there on is read.
            let followed = [0x87, 0x01, 9, code | MORE, 0x02, 2, 3, 0x07];
            let read: Vec<_> = Content::of(&followed).collect();
            assert_eq!(read[0].unwrap().fields(), [9]);
            assert_eq!(read[1..], [Err(FrameError::RepairNotLast)]);
        }
    }

    #[test]
    #[should_panic(expected = "nothing follows")]
    fn nothing_follows_a_repair_symbol() {
        write_followed(&[0x31, 0, 0], &mut Vec::new());
    }

    #[test]
    #[should_panic(expected = "nothing follows")]
    fn nothing_follows_data() {
        write_followed(&[0x58, 0, 0], &mut Vec::new());
    }

    proptest! {
        #[test]
        fn frames_come_back_one_behind_the_other(
            frames in vec(((0_u8..0x40).prop_filter("goes last", |code| !is_repair(*code)), vec(any::<u8>(), 0..80)), 0..15),
            last: u8, rest: Vec<u8>,
        ) {
            let mut out = Vec::new();
            for (code, fields) in &frames {
                write_followed(&[&[*code], &fields[..]].concat(), &mut out);
            }
            // A last type below 0x40 has no MORE.
            let last = if last & 0x40 == 0 { last & 0x3F } else { last };
            out.push(last);
            out.extend_from_slice(&rest);
            let read: Vec<_> = Content::of(&out).map(Result::unwrap).collect();
            prop_assert_eq!(read.len(), frames.len() + 1);
            for (read, (code, fields)) in read.iter().zip(&frames) {
                prop_assert_eq!((read.code(), read.fields()), (*code, &fields[..]));
            }
            let tail = read[frames.len()];
            prop_assert_eq!((tail.code(), tail.fields()), (last, &rest[..]));
        }
    }
}
