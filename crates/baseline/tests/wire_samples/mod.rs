//! Each kind of packet of the baselines with and without each optional part, as `wire_samples` of the core does it.

mod link;
mod lt_tcp;
mod network;
#[path = "../../../proto/tests/wire_samples/sample.rs"]
mod sample;
mod slacp;
