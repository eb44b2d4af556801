//! The fields that a library names in its errors, by the names that a user knows.

/// The names of a library's fields in its errors, each with the key or option that sets it.
pub type FieldKeys = [(&'static str, &'static str)];

/// The key that sets the library's `field`.
pub fn key_of(fields: &FieldKeys, field: &str) -> Option<&'static str> {
    let found = fields.iter().find(|(known, _)| *known == field);
    found.map(|(_, key)| *key)
}

/// The text of a library's error with keys in place of the fields in backquotes; a field that has no key stays.
///
/// ```
/// let fields = [("rto.min", "rto_min")];
/// assert_eq!(fulmar_settings::with_keys(&fields, "must not be below `rto.min`"), "must not be below rto_min");
/// ```
pub fn with_keys(fields: &FieldKeys, text: &str) -> String {
    let mut said = text.to_owned();
    for (field, key) in fields {
        said = said.replace(&format!("`{field}`"), key);
    }
    said
}
