//! Settings files: TOML whose every value remembers its line, read into typed quantities.
//!
//! [`document`] is a file as written, [`TableReader`] reads one of its tables and refuses keys that
//! it does not know, and [`SettingsError`] names the place, the field and the remedy in one line.
//! The simulator's scenarios and the gateway's configuration are both read with it, and know
//! what the keys mean.
//!
//! ```
//! use fulmar_settings::{Document, SettingsError, TableReader};
//! let document = Document::parse("link.toml", "rate = \"5 Mbit/s\"")?;
//! let table = TableReader::root(&document.name, &document.root, &[&["rate"]])?;
//! let rate: fulmar_proto::units::Bitrate = table.required("rate", "\"5 Mbit/s\"")?;
//! assert_eq!(rate.as_bits_per_second(), 5_000_000);
//! # Ok::<(), SettingsError>(())
//! ```

pub mod document;
pub mod error;
mod fields;
pub mod goal;
mod reader;
mod written;

pub use document::{Document, Node, Override, Tree};
pub use error::{Origin, SettingsError, suggestion};
pub use fields::{FieldKeys, key_of, with_keys};
pub use reader::{Keys, TableReader};
