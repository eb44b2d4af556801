//! Samples of each kind of packet of the baselines with and without each optional part, as in `wire_samples` of the
//! core.

mod link;
mod lt_tcp;
mod network;
#[path = "../../../proto/tests/wire_samples/sample.rs"]
mod sample;
mod slacp;
