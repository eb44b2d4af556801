//! Balancing loss tolerance between link and transport layers in multi-hop wireless networks (the
//! LT-TCP + LL-HARQ slides).

mod claims_link;
mod claims_transport;
mod matrix;
mod tables;
mod view;

pub use tables::LT_TCP;
