//! Settings files: TOML whose every value remembers its line, read into typed quantities.
//!
//! [`document`] is a file as written, [`TableReader`] reads one of its tables and refuses keys that
//! it does not know, and [`SettingsError`] names the place, the field and the remedy in one line.
//! The simulator's scenarios and the gateway's configuration are both read with it, and know
//! what the keys mean.

pub mod document;
pub mod error;
mod reader;

pub use document::{Document, Node, Tree};
pub use error::{Origin, SettingsError, suggestion};
pub use reader::{Keys, TableReader};
