//! The promises of sockets, gateways and sessions.
//!
//! One program for all of them: it is linked once, and one that waits leaves its core to another.

use fulmar_net::session::Wire;

/// The wire of the data in these tests; those of [`second_wire`] run in the second one.
const WIRE: Wire = Wire::One;

mod bit_errors;
mod configuration_texts;
mod corpora;
mod emulator;
mod first_answer;
mod forged_sources;
mod gateway_dlep;
mod gateway_isolation;
mod gateway_rendezvous;
mod gateway_told;
mod one_way;
mod one_way_thin;
#[path = "../../capture/tests/reader/mod.rs"]
mod reader;
mod second_wire;
mod secured_restart;
mod session;
mod session_armour;
mod session_carriers;
mod session_checksum_choice;
mod session_checksum_links;
mod session_damage;
mod session_early;
mod session_frames;
mod session_golden;
mod session_keys;
mod session_later_repair;
mod session_length;
mod session_links;
mod session_long_ways;
mod session_loss_causes;
mod session_loss_causes_chosen;
mod session_many;
mod session_meeting;
mod session_mtu;
mod session_notices;
mod session_octets;
mod session_pair;
mod session_path_acks;
mod session_paths;
mod session_paths_begin;
mod session_refusals;
mod session_reports;
mod session_strength;
mod session_strength_fades;
mod session_told;
mod session_versions;
mod session_work;
mod tcp_kernel;
mod tcp_lab;
mod thin_flows;
mod thin_gateways;
mod thin_paths;
mod transfer_farewell;
mod tunnel_tcp;
mod udp_driver;
