//! A file that a reproduction makes.

/// A file of the outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// Its name in the output directory.
    pub name: String,
    /// Its text.
    pub text: String,
}
