//! The core's promises: each file tests one of them.
//!
//! One program for all of the tests: it is linked once, and a test that waits leaves its core to
//! another.

use fulmar_proto::machine::TpduForm;

/// The form of the TPDUs in these tests; those of [`short`] run in the short one.
const FORM: TpduForm = TpduForm::Long;

mod aerotp_bonds;
mod aerotp_copies;
mod aerotp_damage;
mod aerotp_faults;
mod aerotp_found;
mod aerotp_hold;
mod aerotp_hostile;
mod aerotp_idle;
mod aerotp_modes;
mod aerotp_names;
mod aerotp_rate;
mod aerotp_setup;
mod aerotp_sharing;
mod aerotp_tail;
mod aerotp_thin;
mod aerotp_writes;
mod bottleneck;
mod chain;
mod fixed_seeds;
mod frame_link;
mod pair;
mod short;
mod sight;
mod slow_packet_fec;
mod smallest_driver;
mod splice_any_order;
mod splice_chains;
mod splice_datagrams;
mod splice_doubts;
mod splice_graves;
mod splice_hostile;
mod splice_message_lengths;
mod splice_orphans;
mod splice_resume;
mod splice_streams;
mod splice_swarm;
mod splice_versions;
mod splicers;
mod wire_examples;
mod wire_samples;
mod wire_short;
