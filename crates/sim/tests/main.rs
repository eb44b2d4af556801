//! The simulator's promises, one in each file.
//!
//! One program for all of them: it is linked once, and a test that waits leaves its core to another.

mod aerotp_adapts;
mod aerotp_found;
mod aerotp_modes;
mod captures;
mod dama;
mod fixture;
mod flow_packets;
mod fso;
mod gateway;
mod goals;
mod graphs;
mod link_latency;
mod links;
mod lt_tcp_blocks;
#[path = "fixture/ns3.rs"]
mod ns3;
mod own_parts;
mod own_transports;
mod rate_found;
#[path = "../../capture/tests/reader/mod.rs"]
mod reader;
mod scenario_errors;
mod shared_queue;
mod slow_aerotp_promises;
mod slow_lt_tcp_table;
mod slow_tcp_ns3;
mod slow_tcp_setup;
mod swarm;
mod tcp_presets;
mod theory;
mod told;
mod twice;
mod udp_law;
