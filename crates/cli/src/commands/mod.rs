//! One module for each verb: its arguments as typed, the settings they mean, and its output.

mod address;
pub(crate) mod completions;
mod connection;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod emulate;
pub(crate) mod fit;
pub(crate) mod gateway;
pub(crate) mod gateway_keeper;
pub(crate) mod keygen;
mod link;
pub(crate) mod man;
pub(crate) mod merge;
mod overwrite;
pub(crate) mod perf;
pub(crate) mod plan;
mod progress;
pub(crate) mod recv;
pub(crate) mod reproduce;
mod secure;
pub(crate) mod send;
mod service;
pub(crate) mod sim;
pub(crate) mod top;
pub(crate) mod up;
mod watch;
mod writable;
