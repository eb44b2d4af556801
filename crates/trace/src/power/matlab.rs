//! Power as a MATLAB file of level 5 with one real vector in it, compressed or not.
//!
//! An element is a tag of type and length, and its content. The content of an array is elements
//! again: flags, dimensions, name, values. Only the values of the vector are kept, as they arrive.
//!
//! # Promises
//! An element never reads beyond the one it lies in, whatever its length field says.
//!
//! # Sources
//! "MAT-File Format", by The `MathWorks` (level 5).

use super::collect::Collector;
use crate::error::TraceError;
use core::ops::ControlFlow;
use flate2::read::ZlibDecoder;
use fulmar_channel::fading::PowerTrace;
use std::io::{self, Read};

/// Whether a file begins like a MATLAB file of level 5 or later.
pub(super) fn is_matlab(head: &[u8]) -> bool {
    head.starts_with(b"MATLAB ") || head.starts_with(b"\x89HDF")
}

const HEAD_OCTETS: usize = 128;

// Types of elements.
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;

/// The conversion of one number's octets to its value.
type Decode = fn(&[u8]) -> f64;

/// The size and the conversion of numbers of type `kind`, in the file's order of octets.
fn number(kind: u32, is_big: bool) -> Option<(usize, Decode)> {
    macro_rules! number {
        ($type:ty, $value:expr) => {{
            let little: Decode = |o| {
                o.try_into()
                    .map(<$type>::from_le_bytes)
                    .map_or(f64::NAN, $value)
            };
            let big: Decode = |o| {
                o.try_into()
                    .map(<$type>::from_be_bytes)
                    .map_or(f64::NAN, $value)
            };
            Some((size_of::<$type>(), if is_big { big } else { little }))
        }};
    }
    match kind {
        1 => number!(i8, f64::from),
        2 => number!(u8, f64::from),
        3 => number!(i16, f64::from),
        4 => number!(u16, f64::from),
        5 => number!(i32, f64::from),
        6 => number!(u32, f64::from),
        7 => number!(f32, f64::from),
        9 => number!(f64, f64::from),
        12 => number!(i64, |n| n as f64),
        13 => number!(u64, |n| n as f64),
        _ => None,
    }
}

/// A problem, before the file's name is known.
enum Problem {
    Io(io::Error),
    Sample(u64, String),
    Whole(String),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn whole<T>(problem: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Whole(problem.into()))
}

/// Reads a file.
pub(super) fn read(
    name: &str,
    reader: impl Read,
    collector: Collector<'_>,
) -> Result<PowerTrace, TraceError> {
    let name = name.to_owned();
    let mut collector = collector;
    let length = match vector(reader, &mut collector) {
        Ok(length) => length,
        Err(Problem::Sample(sample, problem)) => {
            return Err(TraceError::Sample {
                name,
                sample,
                problem,
            });
        }
        Err(Problem::Whole(problem)) => return Err(TraceError::Whole { name, problem }),
        Err(Problem::Io(error)) => {
            let problem = match error.kind() {
                io::ErrorKind::UnexpectedEof => "it is cut off; copy it again".to_owned(),
                io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                    format!("it is damaged ({error}); copy it again")
                }
                _ => {
                    let source = error;
                    return Err(TraceError::Io { name, source });
                }
            };
            return Err(TraceError::Whole { name, problem });
        }
    };
    // `vector` does not begin without the spacing.
    let spacing = collector.options.spacing.unwrap_or_default();
    let length = length.map(|samples| samples as f64 * spacing.as_secs_f64());
    collector.finish(spacing, length)
}

/// Takes the only vector of the file. Returns its length, or none if reading stopped at the end of
/// the wanted part.
fn vector(mut reader: impl Read, collector: &mut Collector<'_>) -> Result<Option<u64>, Problem> {
    let mut head = [0; HEAD_OCTETS];
    reader.read_exact(&mut head)?;
    if head.starts_with(b"MATLAB 7.3") || head.starts_with(b"\x89HDF") {
        return whole(LATER);
    }
    let is_big = match &head[124..] {
        [_, _, b'I', b'M'] => false,
        [_, _, b'M', b'I'] => true,
        _ => return whole("it begins as a MATLAB file and does not go on as one of level 5"),
    };
    if collector.options.spacing.is_none() {
        return whole(
            "MATLAB's vectors say nothing of time; say how far apart the samples are: `trace FILE \
             spacing 100us`",
        );
    }
    let mut found: Option<(String, Option<u64>)> = None;
    let mut others = Vec::new();
    loop {
        let mut tag = [0; 8];
        let begun = reader.read(&mut tag[..1])?;
        if begun == 0 {
            break;
        }
        reader.read_exact(&mut tag[1..])?;
        let Tag { kind, len, .. } = Tag::of(tag, is_big);
        let mut element = reader.by_ref().take(u64::from(len));
        let array = match kind {
            MATRIX => array(&mut element, is_big, collector, found.is_some())?,
            COMPRESSED => {
                let mut inner = ZlibDecoder::new(&mut element);
                let mut tag = [0; 8];
                inner.read_exact(&mut tag)?;
                let Tag { kind, len, .. } = Tag::of(tag, is_big);
                if kind == MATRIX {
                    let mut inner = inner.take(u64::from(len));
                    array(&mut inner, is_big, collector, found.is_some())?
                } else {
                    Array::Other("something that is no array".to_owned())
                }
            }
            _ => Array::Other("something that is no array".to_owned()),
        };
        match array {
            // The wanted part is complete: a second vector behind it is not seen.
            Array::Vector(_, None) => return Ok(None),
            Array::Vector(name, length) => match found {
                Some((first, _)) => {
                    return whole(format!(
                        "it has two vectors, `{first}` and `{name}`; keep the power alone: \
                         save('power.mat', '{first}', '-v7')"
                    ));
                }
                None => found = Some((name, length)),
            },
            Array::Other(what) if others.len() < OTHERS_SHOWN => others.push(what),
            Array::Other(_) => {}
        }
        // The rest of the element. A file that ends before it is no error here: the next tag is
        // then missing.
        io::copy(&mut element, &mut io::sink())?;
    }
    match found {
        Some((_, length)) => Ok(length),
        None if others.is_empty() => whole("there is nothing in it; a recording is a vector"),
        None => whole(format!(
            "there is no real vector in it, only {}; save the power as one",
            others.join(", ")
        )),
    }
}

const LATER: &str = "it is a MATLAB file of version 7.3 (HDF5), which is not read; save it with \
                     save('power.mat', 'NAME', '-v7')";
const OTHERS_SHOWN: usize = 8;

/// The head of an element.
struct Tag {
    kind: u32,
    len: u32,
    /// The content of up to four octets that stands in the tag itself.
    small: Option<[u8; 4]>,
}

impl Tag {
    fn of(octets: [u8; 8], is_big: bool) -> Self {
        let [left @ .., _, _, _, _] = octets;
        let [_, _, _, _, right @ ..] = octets;
        let word = |octets| {
            if is_big {
                u32::from_be_bytes(octets)
            } else {
                u32::from_le_bytes(octets)
            }
        };
        let (first, second) = (word(left), word(right));
        if first >> 16 == 0 {
            let (kind, len) = (first, second);
            let small = None;
            return Self { kind, len, small };
        }
        Self {
            kind: first & 0xFFFF,
            len: (first >> 16).min(4),
            small: Some(right),
        }
    }
}

/// The content of an array.
enum Array {
    /// A real vector of this name, and the number of its samples; none if the wanted part ended
    /// before.
    Vector(String, Option<u64>),
    /// Anything else, by its name.
    Other(String),
}

/// The head of an element inside an array, and its content if that is no longer than `most`.
fn short(reader: &mut impl Read, is_big: bool, most: usize) -> Result<(u32, Vec<u8>), Problem> {
    let mut tag = [0; 8];
    reader.read_exact(&mut tag)?;
    let Tag { kind, len, small } = Tag::of(tag, is_big);
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    if let Some(small) = small {
        return Ok((kind, small.iter().copied().take(len).collect()));
    }
    if len > most {
        return whole(format!(
            "it is damaged: {len} octets where {most} are the most"
        ));
    }
    let mut content = vec![0; len];
    reader.read_exact(&mut content)?;
    skip_padding(reader, len as u64)?;
    Ok((kind, content))
}

/// Elements begin at multiples of eight octets.
fn skip_padding(reader: &mut impl Read, len: u64) -> io::Result<()> {
    let padding = len.next_multiple_of(8) - len;
    io::copy(&mut reader.take(padding), &mut io::sink()).map(drop)
}

/// Classes of arrays that hold numbers.
const NUMERIC: core::ops::RangeInclusive<u8> = 6..=15;
const IS_COMPLEX: u8 = 0x08;
const DIMENSIONS_MAX: usize = 32;
const NAME_OCTETS_MAX: usize = 4096;

fn array(
    reader: &mut impl Read,
    is_big: bool,
    collector: &mut Collector<'_>,
    has_one: bool,
) -> Result<Array, Problem> {
    let (_, flags) = short(reader, is_big, 8)?;
    let flag = |index: usize| {
        let place = if is_big { 3 - index } else { index };
        flags.get(place).copied().unwrap_or_default()
    };
    let (class, is_complex) = (flag(0), flag(1) & IS_COMPLEX != 0);
    let (_, dimensions) = short(reader, is_big, 4 * DIMENSIONS_MAX)?;
    let (_, decode) = number(6, is_big).unwrap_or((4, |_| 0.0));
    let sizes: Vec<f64> = dimensions.chunks_exact(4).map(decode).collect();
    let (_, name) = short(reader, is_big, NAME_OCTETS_MAX)?;
    // A name has 63 letters, digits and underscores at most.
    let letters = name.iter().copied().map(char::from);
    let shown: String = letters
        .filter(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
        .take(63)
        .collect();
    let shape = || {
        let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
        sizes.join(" x ")
    };
    let count: f64 = sizes.iter().product();
    let is_vector = sizes.iter().filter(|&&size| size > 1.0).count() == 1;
    if !NUMERIC.contains(&class) || !is_vector {
        let kind = if NUMERIC.contains(&class) {
            ""
        } else {
            " of no numbers"
        };
        return Ok(Array::Other(format!("`{shown}` ({}{kind})", shape())));
    }
    if is_complex {
        return Ok(Array::Other(format!("`{shown}` (complex)")));
    }
    if has_one {
        return Ok(Array::Vector(shown, Some(0)));
    }
    let length = values(reader, is_big, collector, &shown, count)?;
    Ok(Array::Vector(shown, length))
}

/// Takes the values of a vector of `count` samples. Returns their number, or none if the wanted part
/// ended before.
fn values(
    reader: &mut impl Read,
    is_big: bool,
    collector: &mut Collector<'_>,
    name: &str,
    count: f64,
) -> Result<Option<u64>, Problem> {
    let mut tag = [0; 8];
    reader.read_exact(&mut tag)?;
    let Tag { kind, len, small } = Tag::of(tag, is_big);
    let Some((width, decode)) = number(kind, is_big) else {
        return whole(format!(
            "`{name}` is damaged: its values are of the unknown type {kind}"
        ));
    };
    let samples = u64::from(len) / width as u64;
    let differs = (samples as f64 - count).abs() > 0.5;
    if differs || u64::from(len) % width as u64 != 0 {
        return whole(format!(
            "`{name}` is damaged: {len} octets of values for {count} of them"
        ));
    }
    let values: &mut dyn Read = match &small {
        Some(small) => &mut small.as_slice(),
        None => reader,
    };
    let spacing = collector.options.spacing.unwrap_or_default().as_secs_f64();
    let mut octets = [0; 8];
    for sample in 0..samples {
        let octets = octets.get_mut(..width).unwrap_or_default();
        values.read_exact(octets)?;
        match collector.take(sample as f64 * spacing, decode(octets)) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => return Ok(None),
            Err(problem) => return Err(Problem::Sample(sample + 1, problem)),
        }
    }
    Ok(Some(samples))
}
