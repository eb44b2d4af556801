//! Numbers as runs and gaps, in MACKs and NACKs of the short form.
//!
//! All are variable-length integers. In a MACK the newest come first: the distance of the largest number from the next
//! expected one, the run's count - 1, then again and again gap - 1 and count - 1. In a NACK they ascend from
//! the first number: its run's count - 1, then gap - 1 and count - 1; one number alone takes no octet.

use super::super::reject::Reject;
use crate::wire::{TpduSeq, varint};

/// The most numbers that are written in a MACK or NACK, or read from one.
pub const RANGE_NUMBERS_MAX: usize = 4_096;

/// The distances from the first number: less than this, as the low bits cannot tell more.
const SPAN: u32 = 1 << 23;

/// The order of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wire::aerotp) enum Order {
    /// Descending, as in a MACK.
    NewestFirst,
    /// Ascending, as in a NACK.
    OldestFirst,
}

/// Consecutive numbers, as distances from the base.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    /// The first one in the order of the list.
    first: u32,
    count: u32,
}

/// The runs in a list, read one by one.
#[derive(Clone, Debug)]
struct Runs<'a> {
    octets: &'a [u8],
    order: Order,
    /// The last number of the run before, in the order of the list.
    edge: Option<u32>,
}

impl<'a> Runs<'a> {
    const fn new(order: Order, octets: &'a [u8]) -> Self {
        Self {
            octets,
            order,
            edge: None,
        }
    }

    fn number(&mut self) -> Result<u32, Reject> {
        let (value, rest) = varint::read(self.octets).ok_or(Reject::Ranges)?;
        self.octets = rest;
        let value = u32::try_from(value).ok().filter(|value| *value < SPAN);
        value.ok_or(Reject::Ranges)
    }

    fn next_run(&mut self) -> Result<Option<Run>, Reject> {
        let is_end = self.octets.is_empty();
        let first = match (self.order, self.edge) {
            (Order::OldestFirst, None) if is_end => {
                self.edge = Some(0);
                return Ok(Some(Run { first: 0, count: 1 }));
            }
            (Order::OldestFirst, None) => Some(0),
            _ if is_end => return Ok(None),
            (Order::NewestFirst, None) => Some(self.number()?),
            (Order::NewestFirst, Some(edge)) => edge.checked_sub(self.number()? + 2),
            (Order::OldestFirst, Some(edge)) => Some(edge + self.number()? + 2),
        };
        let first = first.ok_or(Reject::Ranges)?;
        let further = self.number()?;
        let last = match self.order {
            Order::NewestFirst => first.checked_sub(further),
            Order::OldestFirst => Some(first + further).filter(|last| *last < SPAN),
        };
        self.edge = Some(last.ok_or(Reject::Ranges)?);
        let count = further + 1;
        Ok(Some(Run { first, count }))
    }
}

/// Refuses a list that is cut off, or has a number that is not up to 2^23 - 1 behind its base.
pub(super) fn check(order: Order, octets: &[u8]) -> Result<(), Reject> {
    let mut runs = Runs::new(order, octets);
    while runs.next_run()?.is_some() {}
    Ok(())
}

/// The numbers of a list, read one by one, in its order: at most [`RANGE_NUMBERS_MAX`].
#[derive(Clone, Debug)]
pub(in crate::wire::aerotp) struct Ranges<'a> {
    runs: Runs<'a>,
    base: TpduSeq,
    run: Run,
    left: usize,
}

impl<'a> Ranges<'a> {
    /// The numbers in `octets`. A list that would not pass [`check`] ends where it is no longer sound.
    pub(in crate::wire::aerotp) fn new(order: Order, base: TpduSeq, octets: &'a [u8]) -> Self {
        let runs = Runs::new(order, octets);
        let mut ahead = runs.clone();
        let mut left = 0;
        while left < RANGE_NUMBERS_MAX
            && let Ok(Some(run)) = ahead.next_run()
        {
            left = (left + run.count as usize).min(RANGE_NUMBERS_MAX);
        }
        Self {
            runs,
            base,
            run: Run::default(),
            left,
        }
    }
}

impl Iterator for Ranges<'_> {
    type Item = TpduSeq;

    fn next(&mut self) -> Option<TpduSeq> {
        self.left = self.left.checked_sub(1)?;
        if self.run.count == 0 {
            self.run = self.runs.next_run().ok()??;
        }
        let at = self.run.first;
        self.run.count -= 1;
        // The number beside the last of a run is never given.
        self.run.first = match self.runs.order {
            Order::NewestFirst => at.saturating_sub(1),
            Order::OldestFirst => at + 1,
        };
        Some(self.base.plus(at))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

/// The numbers for which no memory is taken.
const FEW: usize = 256;

/// Appends as many of `numbers` as `room` octets hold, taken in the order offered, at most [`RANGE_NUMBERS_MAX`], and returns how
/// many it took. A number that is not up to 2^23 - 1 behind `base` is not taken, nor are those after it.
///
/// In a list that ascends the base is the first number, is not offered and always said; a number that does not ascend is not taken, nor are those
/// after it.
pub(super) fn write(
    order: Order,
    base: TpduSeq,
    numbers: impl IntoIterator<Item = TpduSeq>,
    room: usize,
    out: &mut Vec<u8>,
) -> usize {
    let base_said = order == Order::OldestFirst;
    let mut above = None;
    let mut offsets = base_said
        .then_some(0)
        .into_iter()
        .chain(
            numbers
                .into_iter()
                .map(|number| number.offset_from(base))
                .take_while(|offset| *offset < SPAN)
                .take_while(|offset| {
                    let before = above.replace(*offset).unwrap_or_default();
                    !base_said || *offset > before
                }),
        )
        .take(RANGE_NUMBERS_MAX);
    let Some(first) = offsets.next() else {
        return 0;
    };
    let mut few = [first; FEW];
    let mut count = 1;
    for (place, offset) in few[1..].iter_mut().zip(offsets.by_ref()) {
        *place = offset;
        count += 1;
    }
    let more: Vec<u32> = offsets.collect();
    if more.is_empty() {
        write_fitting(order, &few[..count], &mut [0; FEW], room, out)
    } else {
        let all = [&few[..], &more].concat();
        let mut sorted = vec![0; all.len()];
        write_fitting(order, &all, &mut sorted, room, out)
    }
}

/// Appends as many of these offsets as fit, the base's in any case. `sorted` is memory for as many.
fn write_fitting(
    order: Order,
    offsets: &[u32],
    sorted: &mut [u32],
    room: usize,
    out: &mut Vec<u8>,
) -> usize {
    let start = out.len();
    let mut put = |count: usize, out: &mut Vec<u8>| {
        let sorted = &mut sorted[..count];
        sorted.copy_from_slice(&offsets[..count]);
        sorted.sort_unstable();
        out.truncate(start);
        write_sorted(order, sorted, out);
        out.len() - start <= room
    };
    let least = usize::from(order == Order::OldestFirst);
    // All usually fit. If not, the search ends at a count that fits while one more does not.
    let (mut fits, mut too_many) = (least, offsets.len() + 1);
    let mut count = offsets.len();
    while fits + 1 < too_many {
        if put(count, out) {
            fits = count;
        } else {
            too_many = count;
        }
        count = fits.midpoint(too_many);
    }
    put(fits, out);
    fits - least
}

/// The first and last of each run of numbers that ascend; a number may be there twice.
fn runs(sorted: &[u32]) -> impl DoubleEndedIterator<Item = (u32, u32)> {
    let runs = sorted.chunk_by(|a, b| b - a <= 1);
    runs.filter_map(|run| Some((*run.first()?, *run.last()?)))
}

fn write_sorted(order: Order, sorted: &[u32], out: &mut Vec<u8>) {
    let mut edge: Option<u32> = None;
    match order {
        Order::NewestFirst => {
            for (low, high) in runs(sorted).rev() {
                let distance = edge.map_or(high, |edge| edge - high - 2);
                varint::write(distance.into(), out);
                varint::write((high - low).into(), out);
                edge = Some(low);
            }
        }
        // One alone is said by the base.
        Order::OldestFirst if sorted.len() <= 1 => {}
        Order::OldestFirst => {
            for (low, high) in runs(sorted) {
                if let Some(edge) = edge {
                    varint::write((low - edge - 2).into(), out);
                }
                varint::write((high - low).into(), out);
                edge = Some(high);
            }
        }
    }
}
