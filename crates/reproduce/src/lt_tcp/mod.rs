//! Balancing loss tolerance between link and transport layers in multi-hop wireless networks (the
//! LT-TCP + LL-HARQ slides).

mod claims_link;
mod claims_transport;
mod families;
mod figures;
mod granulation;
mod matrix;
mod published;
#[cfg(test)]
mod quotes;
mod tables;
mod view;

pub use tables::LT_TCP;
