//! The promises of sockets, gateways and sessions.
//!
//! One program for all of them: it is linked once, and one that waits leaves its core to another.

mod configuration_texts;
mod corpora;
mod emulator;
mod forged_sources;
mod gateway_isolation;
#[path = "../../capture/tests/reader/mod.rs"]
mod reader;
mod secured_restart;
mod session;
mod session_early;
mod session_frames;
mod session_golden;
mod session_keys;
mod session_links;
mod session_many;
mod session_mtu;
mod session_notices;
mod session_pair;
mod session_refusals;
mod session_reports;
mod session_versions;
mod session_work;
mod tcp_kernel;
mod tcp_lab;
mod transfer_farewell;
mod udp_driver;
