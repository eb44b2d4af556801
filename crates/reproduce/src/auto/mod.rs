//! `mode = "auto"` and its own goals, those of issue 21, checked as the papers' claims are.

mod beside;
mod families;
mod frontier;
mod tables;
mod thin;

pub use tables::AUTO;
