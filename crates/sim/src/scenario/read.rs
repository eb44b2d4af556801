//! Helpers that put values read from a document into settings.

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
