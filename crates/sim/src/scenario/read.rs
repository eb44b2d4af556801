//! Helpers that put values read from a document into settings.

use super::SettingsError;
use core::num::NonZeroU8;
use fulmar_settings::TableReader;

/// Overwrites `field` if a value was given.
pub(super) fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

/// A number whose bounds were checked when it was read.
pub(super) fn narrow<T: TryFrom<u64> + Default>(number: u64) -> T {
    T::try_from(number).unwrap_or_default()
}

/// More copies than help on any link: each takes its share of the rate.
const COPIES_MAX: u64 = 100;

/// `copies = 2`: the number of times that each packet with data is sent.
pub(super) fn copies(reader: &TableReader<'_>) -> Result<NonZeroU8, SettingsError> {
    let copies = reader.whole("copies", 1..=COPIES_MAX)?.map(narrow);
    Ok(copies.and_then(NonZeroU8::new).unwrap_or(NonZeroU8::MIN))
}
