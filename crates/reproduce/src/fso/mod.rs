//! Performance optimization of free-space optical communication protocols (Epple).

mod absent;
mod asking;
mod claims_adaptive;
mod claims_channel;
mod claims_features;
mod claims_forms;
mod claims_kiodo;
mod claims_power;
mod claims_table;
mod coded;
mod courses;
mod curves;
mod exhibits;
mod experiments;
mod families;
mod features;
mod forms;
mod full_link;
mod ideal;
mod knowledge;
mod slots;
mod tables;
mod unsteady;
mod view;

pub use tables::FSO;
