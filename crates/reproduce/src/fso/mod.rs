//! Performance optimization of free-space optical communication protocols (Epple).

mod claims_channel;
mod claims_features;
mod claims_forms;
mod claims_table;
mod coded;
mod courses;
mod curves;
mod families;
mod features;
mod forms;
mod ideal;
mod tables;
mod view;

pub use tables::FSO;
