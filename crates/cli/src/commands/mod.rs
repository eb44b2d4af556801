//! One module for each verb: its arguments as typed, what they mean, and what is printed.

pub(crate) mod emulate;
mod link;
pub(crate) mod sim;
