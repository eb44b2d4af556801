//! The program as its users meet it.
//!
//! One program for all of them: it is linked once, and a test that waits leaves its core to another.

mod captures;
mod carriers;
mod doctor;
mod errors;
mod fading;
mod field;
mod fit;
mod gateway_applicants;
mod gateway_carriers;
mod gateway_config;
mod gateway_directions;
mod gateway_disk_full;
mod gateway_field;
mod gateway_first_use;
mod gateway_flows;
mod gateway_forgotten;
mod gateway_hostile;
mod gateway_killed;
mod gateway_log;
mod gateway_mtu;
mod gateway_names;
mod gateway_proxies;
mod gateway_rate;
mod gateway_refusals;
mod gateway_reload;
mod gateway_service;
mod gateway_shares;
mod gateway_soak;
mod gateway_streams;
mod gateway_top;
mod gateway_traces;
mod gateway_transparent;
mod gateway_wires;
mod gateways;
mod interrupted;
mod interruptions;
mod keygen;
mod overwritten;
mod perf;
mod perf_streams;
mod plan;
mod processes;
#[path = "../../capture/tests/reader/mod.rs"]
mod reader;
mod reproduce;
mod rig;
mod sim;
mod sim_config;
mod sim_flags;
mod stations;
mod strangers;
mod sweep_resumed;
mod transfers;
mod tun_link;
