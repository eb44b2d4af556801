//! Performance optimization of free-space optical communication protocols (Epple).

mod claims_channel;
mod claims_features;
mod claims_forms;
mod claims_table;
mod courses;
mod curves;
mod forms;
mod tables;
mod view;

pub use tables::FSO;
