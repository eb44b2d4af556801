//! The baselines' promises: each file tests one of them.
//!
//! One program for all of the tests: it is linked once, and a test that waits leaves its core to
//! another.

mod lt_tcp_hostile;
mod lt_tcp_promises;
mod lt_tcp_sessions;
mod stream_lab;
mod tcp_close;
mod tcp_drill;
mod tcp_handshake;
mod tcp_loss;
mod tcp_receive;
mod tcp_sessions;
mod wire_samples;
